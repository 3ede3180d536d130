use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::Value;

use super::form::{FieldKind, FormField};
use super::options;

const MOST_FIELDS: usize = 16;
const MOST_OPTIONS: usize = 24;
/// In characters.
const LONGEST_TEXT: usize = 200;
/// Of the whole form as JSON, in bytes.
const LARGEST_FORM: usize = 16 * 1024;

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

/// A field as front ends read it.
impl Serialize for FormField {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("label", &self.label)?;
        map.serialize_entry("type", self.kind.name())?;
        map.serialize_entry("required", &self.required)?;
        if !self.options.is_empty() {
            map.serialize_entry("options", &self.options)?;
        }
        if let Some(placeholder) = &self.placeholder {
            map.serialize_entry("placeholder", placeholder)?;
        }
        if let Some(default) = &self.default {
            map.serialize_entry("default", default)?;
        }
        map.end()
    }
}

/// Reads a form; a fault in one field leaves the whole form out, because half
/// a form would lose answers.
pub(super) fn read(value: Option<&Value>) -> Result<Vec<FormField>, String> {
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
    let mut fields: Vec<FormField> = Vec::new();
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

fn field(item: &Value) -> Result<FormField, String> {
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
    let choices = options::read(parts.get("options"), &format!("{name}-option"));
    if choices.list.len() + choices.left_out > MOST_OPTIONS {
        return Err(format!("`{name}` has more than {MOST_OPTIONS} options"));
    }
    let options = choices.list;
    let texts = [&name, &label]
        .into_iter()
        .chain(&placeholder)
        .chain(options.iter().map(|option| &option.value));
    if texts
        .into_iter()
        .any(|text| text.chars().count() > LONGEST_TEXT)
    {
        return Err(format!(
            "a text of `{name}` is longer than {LONGEST_TEXT} characters"
        ));
    }
    let kind = text("type").and_then(|kind| FieldKind::parse(&kind));
    let kind = match kind {
        // Nothing can be chosen from no options.
        Some(FieldKind::Select | FieldKind::MultiSelect) if options.is_empty() => FieldKind::Text,
        Some(kind) => kind,
        None => FieldKind::Text,
    };
    let required = match parts.get("required") {
        Some(Value::Bool(flag)) => *flag,
        Some(Value::Number(number)) => number.as_f64().is_some_and(|number| number != 0.0),
        Some(Value::String(text)) => text.trim().eq_ignore_ascii_case("true"),
        _ => false,
    };
    let field = FormField {
        name,
        label,
        kind,
        required,
        options,
        placeholder,
        default: None,
    };
    // A default that the field itself would not take is none.
    let default = parts.get("default").map(|default| field.accept(default));
    let default = default.and_then(|accepted| accepted.ok().flatten());
    Ok(FormField { default, ..field })
}
