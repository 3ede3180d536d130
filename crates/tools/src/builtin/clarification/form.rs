use serde_json::{Map, Value};

use super::fields;
use super::options::Choice;
use crate::schema::describe;

/// What a field of a form takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// A line of text.
    Text,
    /// Several lines of text.
    TextArea,
    /// A number.
    Number,
    /// One of its options.
    Select,
    /// Some of its options.
    MultiSelect,
    /// Yes or no.
    Checkbox,
    /// A day: `2026-08-01`.
    Date,
}

impl FieldKind {
    pub(super) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "text" => Self::Text,
            "textarea" => Self::TextArea,
            "number" => Self::Number,
            "select" => Self::Select,
            "multi_select" => Self::MultiSelect,
            "checkbox" => Self::Checkbox,
            "date" => Self::Date,
            _ => return None,
        })
    }

    /// Gives the name, as models and front ends write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::TextArea => "textarea",
            Self::Number => "number",
            Self::Select => "select",
            Self::MultiSelect => "multi_select",
            Self::Checkbox => "checkbox",
            Self::Date => "date",
        }
    }
}

/// One field of a form.
#[derive(Clone, Debug, PartialEq)]
pub struct FormField {
    pub(super) name: String,
    pub(super) label: String,
    pub(super) kind: FieldKind,
    pub(super) required: bool,
    pub(super) options: Vec<Choice>,
    pub(super) placeholder: Option<String>,
    pub(super) default: Option<Value>,
}

impl FormField {
    /// Names the field in the answer.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Names it for people.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Tells what it takes.
    #[must_use]
    pub fn kind(&self) -> FieldKind {
        self.kind
    }

    /// Tells whether an answer must have it.
    #[must_use]
    pub fn required(&self) -> bool {
        self.required
    }

    /// Lists what can be chosen, as people see it.
    #[must_use]
    pub fn options(&self) -> Vec<&str> {
        let labels = self.options.iter().map(|option| option.label.as_str());
        labels.collect()
    }

    /// Tells whether several options may be chosen.
    #[must_use]
    pub fn takes_several(&self) -> bool {
        self.kind == FieldKind::MultiSelect
    }

    /// Gives what it holds when an answer leaves it out.
    #[must_use]
    pub fn default(&self) -> Option<&Value> {
        self.default.as_ref()
    }

    /// Gives an example of what to write.
    #[must_use]
    pub fn placeholder(&self) -> Option<&str> {
        self.placeholder.as_deref()
    }

    /// Brings a value into the form that the model gets: `"3"` is a number
    /// where one is wanted, an option may be written in any case or by its id,
    /// a box may be ticked with `yes`. `None` stands for nothing: null, a blank
    /// text, an empty list.
    ///
    /// # Errors
    /// What is expected, and what was found.
    pub fn accept(&self, value: &Value) -> Result<Option<Value>, String> {
        let blank = match value {
            Value::Null => true,
            Value::String(text) => text.trim().is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
        };
        if blank {
            return Ok(None);
        }
        let wrong = |expected: &str| {
            Err(format!(
                "`{}`: expected {expected}, got {}",
                self.name,
                describe(value)
            ))
        };
        let accepted = match (self.kind, value) {
            (FieldKind::Text | FieldKind::TextArea, Value::String(text)) => text.as_str().into(),
            (
                FieldKind::Text | FieldKind::TextArea,
                scalar @ (Value::Number(_) | Value::Bool(_)),
            ) => scalar.to_string().into(),
            (FieldKind::Text | FieldKind::TextArea, _) => return wrong("a text"),
            (FieldKind::Number, Value::Number(_)) => value.clone(),
            (FieldKind::Number, Value::String(text)) => match number(text.trim()) {
                Some(number) => number,
                None => return wrong("a number"),
            },
            (FieldKind::Number, _) => return wrong("a number"),
            (FieldKind::Checkbox, Value::Bool(_)) => value.clone(),
            (FieldKind::Checkbox, Value::String(text)) => match flag(text.trim()) {
                Some(flag) => flag.into(),
                None => return wrong("true or false"),
            },
            (FieldKind::Checkbox, _) => return wrong("true or false"),
            (FieldKind::Date, Value::String(text)) if is_date(text.trim()) => text.trim().into(),
            (FieldKind::Date, _) => return wrong("a date as 2026-08-01"),
            (FieldKind::Select, value) => match self.option(value) {
                Some(option) => option.into(),
                None => return wrong(&format!("one of {}", self.options().join(", "))),
            },
            (FieldKind::MultiSelect, value) => match self.several(value) {
                Ok(options) => options.into(),
                Err(other) => {
                    return Err(format!(
                        "`{}`: expected some of {}, got {other}",
                        self.name,
                        self.options().join(", ")
                    ));
                }
            },
        };
        Ok(Some(accepted))
    }

    /// Finds the option that a value stands for.
    fn option(&self, value: &Value) -> Option<String> {
        let text = match value {
            Value::String(text) => text.trim().to_owned(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        };
        let exact = |option: &&Choice| [&option.value, &option.label, &option.id].contains(&&text);
        let lower = text.to_lowercase();
        let near = |option: &&Choice| {
            option.value.to_lowercase() == lower || option.label.to_lowercase() == lower
        };
        let mut options = self.options.iter();
        let found = options.clone().find(exact).or_else(|| options.find(near))?;
        Some(found.value.clone())
    }

    /// Finds the options that a value stands for, or says what is none.
    fn several(&self, value: &Value) -> Result<Vec<String>, String> {
        let items: Vec<Value> = match value {
            Value::Array(items) => items.clone(),
            Value::String(text) if self.option(value).is_none() => {
                let parts = text.split([',', '，', '、']).map(str::trim);
                parts
                    .filter(|part| !part.is_empty())
                    .map(Value::from)
                    .collect()
            }
            value => vec![value.clone()],
        };
        let mut chosen: Vec<String> = Vec::new();
        for item in items {
            let option = self.option(&item).ok_or_else(|| describe(&item))?;
            if !chosen.contains(&option) {
                chosen.push(option);
            }
        }
        Ok(chosen)
    }
}

/// A form: several values that are asked for at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    fields: Vec<FormField>,
}

impl Form {
    pub(super) fn new(fields: Vec<FormField>) -> Self {
        Self { fields }
    }

    /// Makes a form of a list of fields as models write them: `[{name, label,
    /// type, required, options, default, placeholder}]`.
    ///
    /// # Errors
    /// Why it is no form.
    pub fn read(fields: &Value) -> Result<Self, String> {
        fields::read(Some(fields)).map(Self::new)
    }

    /// Finds the form in a question of `ask_clarification`, if it asks with one.
    #[must_use]
    pub fn of_question(payload: &Value) -> Option<Self> {
        let text = |key: &str| payload.get(key).and_then(Value::as_str);
        if text("source") != Some("ask_clarification") || text("input_mode") != Some("form") {
            return None;
        }
        let form = Self::read(payload.get("fields")?).ok()?;
        (!form.fields.is_empty()).then_some(form)
    }

    /// Lists the fields, in order.
    #[must_use]
    pub fn fields(&self) -> &[FormField] {
        &self.fields
    }

    /// Brings an answer into the form that the model gets: an object with a
    /// value for each field that has one.
    ///
    /// It is given as an object, or as its JSON text; where there is one field,
    /// its value will do. The words of a front end, `{kind:
    /// "human_input_response", value: "..."}`, are taken as they are.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn accept(&self, answer: &Value) -> Result<Value, String> {
        let parsed;
        let given = match answer {
            Value::Object(given) => given,
            Value::String(text) => match serde_json::from_str::<Value>(text) {
                Ok(Value::Object(given)) => {
                    parsed = given;
                    &parsed
                }
                _ => return self.accept_one(answer),
            },
            _ => return self.accept_one(answer),
        };
        let is_response = given.get("kind").and_then(Value::as_str) == Some("human_input_response")
            && !self.fields.iter().any(|field| field.name == "kind");
        if is_response && let Some(Value::String(words)) = given.get("value") {
            return Ok(words.as_str().into());
        }
        let mut problems = Vec::new();
        let mut values = Map::new();
        for field in &self.fields {
            let value = given.get(&field.name).unwrap_or(&Value::Null);
            match field.accept(value) {
                Ok(Some(value)) => {
                    values.insert(field.name.clone(), value);
                }
                Ok(None) => match &field.default {
                    Some(default) => {
                        values.insert(field.name.clone(), default.clone());
                    }
                    None if field.required => {
                        problems.push(format!("`{}` is missing and required", field.name));
                    }
                    None => {}
                },
                Err(problem) => problems.push(problem),
            }
        }
        for name in given.keys() {
            if !self.fields.iter().any(|field| field.name == *name) {
                problems.push(format!(
                    "there is no field `{name}`; {}",
                    self.takes("the form has")
                ));
            }
        }
        match problems.is_empty() {
            true => Ok(Value::Object(values)),
            false => Err(problems.join("; ")),
        }
    }

    fn accept_one(&self, answer: &Value) -> Result<Value, String> {
        let refused = format!(
            "a form is answered with a JSON object; {}, got {}",
            self.takes("expected"),
            describe(answer)
        );
        let [field] = self.fields.as_slice() else {
            return Err(refused);
        };
        match field.accept(answer)? {
            Some(value) => Ok(Value::Object(Map::from_iter([(field.name.clone(), value)]))),
            None => Err(refused),
        }
    }

    fn takes(&self, verb: &str) -> String {
        let names: Vec<String> = self
            .fields
            .iter()
            .map(|field| format!("`{}` ({})", field.name, field.kind.name()))
            .collect();
        format!("{verb} {}", names.join(", "))
    }
}

fn number(text: &str) -> Option<Value> {
    match serde_json::from_str::<Value>(text) {
        Ok(number @ Value::Number(_)) => Some(number),
        _ => {
            let number: f64 = text.parse().ok()?;
            serde_json::Number::from_f64(number).map(Value::Number)
        }
    }
}

fn flag(text: &str) -> Option<bool> {
    match text.to_lowercase().as_str() {
        "true" | "yes" | "y" | "on" | "是" => Some(true),
        "false" | "no" | "n" | "off" | "否" => Some(false),
        _ => None,
    }
}

/// Tells whether a text is a day of the calendar.
fn is_date(text: &str) -> bool {
    let plain = text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    if !plain {
        return false;
    }
    let part = |from: usize, to: usize| text[from..to].parse::<u32>().unwrap_or_default();
    let (year, month, day) = (part(0, 4), part(5, 7), part(8, 10));
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => 0,
    };
    (1..=days).contains(&day)
}
