//! What open questions take for an answer, and how what a user writes is read.

use serde_json::json;
use tine::engine::{Interrupt, Value};
use tine::tools::Form;

/// One of the answers that a question offers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Choice {
    /// What people see.
    pub(crate) label: String,
    /// What it answers.
    pub(crate) value: Value,
}

/// What a question takes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Takes {
    /// Any words.
    Words,
    /// One of these; or, if it is not `only` these, any words.
    Options { options: Vec<Choice>, only: bool },
    /// A value for each field.
    Form(Form),
    /// A whole number.
    Whole,
    /// A number.
    Number,
    /// Yes or no.
    YesNo,
    /// Anything else, as JSON.
    Json,
}

impl Takes {
    /// What a question takes, as far as it and the definition of the graph tell.
    pub(crate) fn of(question: &Interrupt, definition: &Value) -> Self {
        let payload = asked(question);
        if let Some(form) = Form::of_question(&payload.to_json()) {
            return Self::Form(form);
        }
        let options = options(payload);
        if is_fixed(payload) {
            return Self::Options {
                options,
                only: true,
            };
        }
        match of_node(&question.node, definition) {
            None | Some(Self::Words) if !options.is_empty() => Self::Options {
                options,
                only: false,
            },
            Some(takes) => takes,
            None => Self::Words,
        }
    }

    /// The options, where there are any.
    pub(crate) fn options(&self) -> &[Choice] {
        match self {
            Self::Options { options, .. } => options,
            _ => &[],
        }
    }

    /// Reads what a user wrote: the number of an option, its text in any case, or words.
    ///
    /// # Errors
    /// Why it is no answer.
    pub(crate) fn read(&self, text: &str) -> Result<Value, String> {
        let trimmed = text.trim();
        match self {
            Self::Options { options, only } => match self.choose(trimmed)? {
                Some(value) => Ok(value),
                None if *only => match serde_json::from_str::<Value>(trimmed) {
                    // An approval with other arguments: `{"edit": {...}}`.
                    Ok(value @ Value::Map(_)) => Ok(value),
                    _ => Err(format!(
                        "`{trimmed}` is none of {}",
                        labels(options).join(", ")
                    )),
                },
                None => match serde_json::from_str::<Value>(trimmed) {
                    Ok(words @ Value::Text(_)) => Ok(words),
                    _ => Ok(text.into()),
                },
            },
            Self::YesNo => Ok(match trimmed.to_lowercase().as_str() {
                "yes" | "y" | "true" | "是" => true.into(),
                "no" | "n" | "false" | "否" => false.into(),
                _ => text.into(),
            }),
            // The node that asks reads texts as what it wants, and says what it wants.
            Self::Words | Self::Form(_) | Self::Whole | Self::Number | Self::Json => {
                Ok(text.into())
            }
        }
    }

    fn choose(&self, text: &str) -> Result<Option<Value>, String> {
        let options = self.options();
        let plain = |choice: &Choice| match choice.value.as_str() {
            Some(text) => text.to_owned(),
            None => choice.value.to_canonical(),
        };
        let lower = text.to_lowercase();
        let exact = |choice: &&Choice| choice.label == text || plain(choice) == text;
        let near = |choice: &&Choice| {
            choice.label.to_lowercase() == lower || plain(choice).to_lowercase() == lower
        };
        let mut all = options.iter();
        if let Some(choice) = all.clone().find(exact).or_else(|| all.find(near)) {
            return Ok(Some(choice.value.clone()));
        }
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(None);
        }
        let number = text.parse::<usize>().unwrap_or(usize::MAX);
        match number.checked_sub(1).and_then(|at| options.get(at)) {
            Some(choice) => Ok(Some(choice.value.clone())),
            None => Err(format!(
                "there is no option {text}; {}",
                match options.len() {
                    1 => "the one option has the number 1".to_owned(),
                    most => format!("the options have the numbers 1 to {most}"),
                }
            )),
        }
    }

    /// What can be written, in words.
    pub(crate) fn told(&self) -> String {
        match self {
            Self::Options {
                options,
                only: false,
            } => format!("{} or your own words", numbers(options)),
            Self::Options { options, .. } => {
                format!("{}, or {}", labels(options).join(" / "), numbers(options))
            }
            Self::Words => "in your own words".to_owned(),
            Self::Form(_) => "field by field".to_owned(),
            Self::Whole => "a whole number".to_owned(),
            Self::Number => "a number".to_owned(),
            Self::YesNo => "yes or no".to_owned(),
            Self::Json => "as JSON".to_owned(),
        }
    }
}

/// The numbers that options go by.
pub(crate) fn numbers(options: &[Choice]) -> String {
    match options.len() {
        1 => "1".to_owned(),
        most => format!("1-{most}"),
    }
}

fn labels(options: &[Choice]) -> Vec<&str> {
    options.iter().map(|choice| choice.label.as_str()).collect()
}

/// What a question asked at first, also if it is asked again.
pub(crate) fn asked(question: &Interrupt) -> &Value {
    let payload = &question.payload;
    let wrapped = payload.as_map().filter(|entries| entries.len() == 2);
    match (
        payload.get("problem").and_then(Value::as_str),
        wrapped.and_then(|entries| entries.get("payload")),
    ) {
        (Some(_), Some(first)) => first,
        _ => payload,
    }
}

/// Whether a question is one of tine's own, which takes nothing but its options: an approval, or one about a call of
/// which nobody knows whether it took place.
pub(crate) fn is_fixed(payload: &Value) -> bool {
    let names_call = match payload.get("kind").and_then(Value::as_str) {
        Some("approval") => "tool_call_id",
        Some("unknown_outcome") => "call",
        _ => return false,
    };
    payload.get(names_call).is_some() && !options(payload).is_empty()
}

/// The options that a question offers; none if what it calls so is something else.
pub(crate) fn options(payload: &Value) -> Vec<Choice> {
    let Some(items) = payload.get("options").and_then(Value::as_list) else {
        return Vec::new();
    };
    let plain = |value: &Value| match value {
        Value::Null | Value::List(_) | Value::Map(_) => None,
        Value::Text(text) => Some(text.to_string()),
        other => Some(other.to_canonical()),
    };
    let choice = |item: &Value| {
        let part = |key: &str| item.get(key).filter(|part| plain(part).is_some());
        match item {
            Value::Map(_) => {
                let value = part("value").or_else(|| part("label"))?;
                Some(Choice {
                    label: plain(part("label").unwrap_or(value))?,
                    value: value.clone(),
                })
            }
            scalar => Some(Choice {
                label: plain(scalar)?,
                value: scalar.clone(),
            }),
        }
    };
    items
        .iter()
        .map(choice)
        .collect::<Option<_>>()
        .unwrap_or_default()
}

/// What the graph file says that an `interrupt` node takes.
fn of_node(node: &str, definition: &Value) -> Option<Takes> {
    let spec = definition.get("nodes")?.get(node)?;
    if spec.get("type").and_then(Value::as_str) != Some("interrupt") {
        return None;
    }
    let kind = spec.get("resume").and_then(Value::as_str)?;
    Some(of_type(kind, definition, 8))
}

/// What a type takes. Types may refer to each other, as deep as this.
fn of_type(kind: &str, definition: &Value, depth: u8) -> Takes {
    let kind = kind.trim();
    let inside = kind
        .strip_prefix("optional<")
        .and_then(|rest| rest.strip_suffix('>'));
    let Some(depth) = depth.checked_sub(1) else {
        return Takes::Json;
    };
    match (inside, kind) {
        (Some(inside), _) => of_type(inside, definition, depth),
        (_, "string" | "any") => Takes::Words,
        (_, "integer") => Takes::Whole,
        (_, "number") => Takes::Number,
        (_, "boolean") => Takes::YesNo,
        (_, name) => match definition.get("types").and_then(|types| types.get(name)) {
            Some(schema) => of_schema(schema, definition, depth),
            None => Takes::Json,
        },
    }
}

fn of_schema(schema: &Value, definition: &Value, depth: u8) -> Takes {
    if schema.get("enum").is_some() {
        let named = Value::from_pairs([(
            "options",
            schema.get("enum").cloned().unwrap_or(Value::Null),
        )]);
        let options = options(&named);
        return match options.is_empty() {
            true => Takes::Json,
            false => Takes::Options {
                options,
                only: true,
            },
        };
    }
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        let name = name.rsplit('/').next().unwrap_or_default();
        return of_type(name, definition, depth);
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => record(schema, definition, depth),
        Some(kind @ ("string" | "integer" | "number" | "boolean")) => {
            of_type(kind, definition, depth)
        }
        _ => Takes::Json,
    }
}

/// A record is asked for field by field, if its fields are plain; one with a single required text takes words.
fn record(schema: &Value, definition: &Value, depth: u8) -> Takes {
    let Some(properties) = schema.get("properties").and_then(Value::as_map) else {
        return Takes::Json;
    };
    let required = schema.get("required").and_then(Value::as_list);
    let is_required = |name: &str| {
        let mut names = required.iter().flat_map(|names| names.iter());
        names.any(|required| required.as_str() == Some(name))
    };
    let mut fields = Vec::new();
    let mut needed = Vec::new();
    for (name, schema) in properties {
        let takes = of_schema(schema, definition, depth);
        let kind = match &takes {
            Takes::Words => "text",
            Takes::Options { .. } => "select",
            Takes::Whole | Takes::Number => "number",
            Takes::YesNo => "checkbox",
            Takes::Form(_) | Takes::Json => return Takes::Json,
        };
        let texts = takes.options().iter().map(|choice| choice.value.as_str());
        let Some(options) = texts.collect::<Option<Vec<_>>>() else {
            return Takes::Json;
        };
        if is_required(name) {
            needed.push(kind);
        }
        let told = |key: &str| schema.get(key).and_then(Value::as_str);
        fields.push(json!({
            "name": &**name,
            "label": told("title"),
            "type": kind,
            "required": is_required(name) && schema.get("default").is_none(),
            "options": options,
            "placeholder": told("description"),
            "default": schema.get("default").map(Value::to_json),
        }));
    }
    // The definition has no order of its own; what is needed comes first.
    fields.sort_by_key(|field| field["required"] != true);
    match (needed.as_slice(), Form::read(&json!(fields))) {
        (["text"], _) if fields.len() == 1 => Takes::Words,
        (_, Ok(form)) if !form.fields().is_empty() => Takes::Form(form),
        _ => Takes::Json,
    }
}
