use serde::Serialize;
use serde_json::Value;

use super::options::{self, Choice};

const MOST_FIELDS: usize = 16;
const MOST_OPTIONS: usize = 24;
/// In characters.
const LONGEST_TEXT: usize = 200;
/// Of the whole form as JSON, in bytes.
const LARGEST_FORM: usize = 16 * 1024;

const TYPES: [&str; 7] = [
    "text",
    "textarea",
    "number",
    "select",
    "multi_select",
    "checkbox",
    "date",
];

/// Names that would change the objects of a JavaScript front end.
const RESERVED: [&str; 13] = [
    "__proto__",
    "constructor",
    "prototype",
    "toString",
    "toLocaleString",
    "valueOf",
    "hasOwnProperty",
    "isPrototypeOf",
    "propertyIsEnumerable",
    "__defineGetter__",
    "__defineSetter__",
    "__lookupGetter__",
    "__lookupSetter__",
];

/// One field of a form, as front ends read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) label: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) required: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) options: Vec<Choice>,
    #[serde(skip)]
    pub(super) choices: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    placeholder: Option<String>,
}

/// Reads a form; a fault in one field leaves the whole form out, because half
/// a form would lose answers.
pub(super) fn read(value: Option<&Value>) -> Result<Vec<Field>, String> {
    let parsed;
    let value = match value {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::String(text)) => {
            parsed = serde_json::from_str(text).map_err(|_| "it is not a list".to_owned())?;
            &parsed
        }
        Some(value) => value,
    };
    let Value::Array(items) = value else {
        return Err("it is not a list".to_owned());
    };
    if items.len() > MOST_FIELDS {
        return Err(format!("it has more than {MOST_FIELDS} fields"));
    }
    let mut fields: Vec<Field> = Vec::new();
    for item in items {
        let field = field(item)?;
        if fields.iter().any(|other| other.name == field.name) {
            return Err(format!("two fields are named `{}`", field.name));
        }
        fields.push(field);
    }
    match serde_json::to_string(&fields) {
        Ok(text) if text.len() <= LARGEST_FORM => Ok(fields),
        _ => Err(format!("it is larger than {LARGEST_FORM} bytes")),
    }
}

fn field(item: &Value) -> Result<Field, String> {
    let Value::Object(parts) = item else {
        return Err("a field is not an object".to_owned());
    };
    let text = |key: &str| match parts.get(key) {
        Some(Value::String(text)) if !text.trim().is_empty() => Some(text.trim().to_owned()),
        _ => None,
    };
    let name = text("name").ok_or("a field has no name")?;
    if RESERVED.contains(&name.as_str()) {
        return Err(format!("a field may not be named `{name}`"));
    }
    let label = text("label").unwrap_or_else(|| name.clone());
    let placeholder = text("placeholder");
    let choices = options::read(parts.get("options"));
    if choices.len() > MOST_OPTIONS {
        return Err(format!("`{name}` has more than {MOST_OPTIONS} options"));
    }
    let texts = [&name, &label]
        .into_iter()
        .chain(&placeholder)
        .chain(&choices);
    if texts
        .into_iter()
        .any(|text| text.chars().count() > LONGEST_TEXT)
    {
        return Err(format!(
            "a text of `{name}` is longer than {LONGEST_TEXT} characters"
        ));
    }
    let kind = text("type").filter(|kind| TYPES.contains(&kind.as_str()));
    let kind = match kind {
        // Nothing can be chosen from no options.
        Some(kind) if kind.ends_with("select") && choices.is_empty() => "text".to_owned(),
        Some(kind) => kind,
        None => "text".to_owned(),
    };
    let required = match parts.get("required") {
        Some(Value::Bool(flag)) => *flag,
        Some(Value::Number(number)) => number.as_f64().is_some_and(|number| number != 0.0),
        Some(Value::String(text)) => text.trim().eq_ignore_ascii_case("true"),
        _ => false,
    };
    Ok(Field {
        options: options::with_ids(&format!("{name}-option"), &choices),
        name,
        label,
        kind,
        required,
        choices,
        placeholder,
    })
}
