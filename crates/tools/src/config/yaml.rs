//! YAML text to JSON values; the only place that knows the YAML reader.

use std::sync::Arc;

use serde_json::{Map, Number, Value};
use serde_yaml::Value as Yaml;

use super::place::Places;
use super::{ConfigError, Place};

/// Reads one document: its top-level mapping, and the places of all in it.
pub(super) fn read(
    file: &Arc<str>,
    text: &str,
) -> Result<(Vec<(String, Value)>, Places), ConfigError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let places = Places::read(file, text);
    if let Some(place) = places.as_ref().ok().and_then(Places::second_document) {
        return Err(ConfigError::SecondDocument { place });
    }
    // A duplicate key is told with both its places, which the reader of
    // values does not know; broken YAML only that reader can explain.
    let mut yaml: Yaml = match (serde_yaml::from_str(text), &places) {
        (Ok(yaml), _) => yaml,
        (Err(_), Err(twice)) => return Err(twice.clone().into()),
        (Err(error), Ok(_)) => return Err(broken(file, text, &error)),
    };
    let places = places?;
    yaml.apply_merge()
        .map_err(|error| broken(file, text, &error))?;
    let mapping = match yaml {
        Yaml::Null => serde_yaml::Mapping::new(),
        Yaml::Mapping(mapping) => mapping,
        other => {
            let found = to_json(other, "", &places).map_or_else(
                |_| "something else".to_owned(),
                |value| crate::schema::describe(&value),
            );
            return Err(ConfigError::Value {
                place: places.at(""),
                what: "a configuration".to_owned(),
                expected: "a mapping of sections",
                found,
            });
        }
    };
    let mut sections = Vec::with_capacity(mapping.len());
    for (key, value) in mapping {
        let key = key_text(&key, "", &places)?;
        let value = to_json(value, &key, &places)?;
        sections.push((key, value));
    }
    Ok((sections, places))
}

/// Reads a value from the command line: YAML if it is, else the text itself.
pub(super) fn read_scalar(text: &str) -> Value {
    let nowhere: Arc<str> = Arc::from("");
    let Ok(places) = Places::read(&nowhere, text) else {
        return Value::String(text.to_owned());
    };
    serde_yaml::from_str::<Yaml>(text)
        .ok()
        .and_then(|yaml| to_json(yaml, "", &places).ok())
        .unwrap_or_else(|| Value::String(text.to_owned()))
}

fn broken(file: &Arc<str>, text: &str, error: &serde_yaml::Error) -> ConfigError {
    let (line, column) = error
        .location()
        .map_or((1, 1), |at| (at.line(), at.column()));
    let full = error.to_string();
    let mut message = match full.split_once(" at line ") {
        Some((what, _)) => what.to_owned(),
        None => full,
    };
    let indented_by_tab = text
        .lines()
        .nth(line.saturating_sub(1))
        .is_some_and(|line| {
            line.chars()
                .take_while(|c| c.is_whitespace())
                .any(|c| c == '\t')
        });
    if indented_by_tab {
        message.push_str("; the line is indented with a tab: use spaces");
    }
    ConfigError::Yaml {
        place: Place::File {
            file: Arc::clone(file),
            line,
            column,
        },
        message,
    }
}

fn to_json(yaml: Yaml, path: &str, places: &Places) -> Result<Value, ConfigError> {
    let wrong = |expected: &'static str, found: String| ConfigError::Value {
        place: places.at(path),
        what: format!("`{}`", path.replace('/', ".")),
        expected,
        found,
    };
    Ok(match yaml {
        Yaml::Null => Value::Null,
        Yaml::Bool(flag) => Value::Bool(flag),
        Yaml::Number(number) => {
            let json = number
                .as_i64()
                .map(Number::from)
                .or_else(|| number.as_u64().map(Number::from))
                .or_else(|| number.as_f64().and_then(Number::from_f64));
            match json {
                Some(json) => Value::Number(json),
                None => return Err(wrong("a finite number", number.to_string())),
            }
        }
        Yaml::String(text) => Value::String(text),
        Yaml::Sequence(items) => Value::Array(
            items
                .into_iter()
                .enumerate()
                .map(|(index, item)| to_json(item, &format!("{path}/{index}"), places))
                .collect::<Result<_, _>>()?,
        ),
        Yaml::Mapping(fields) => {
            let mut object = Map::new();
            for (key, field) in fields {
                let key = key_text(&key, path, places)?;
                let field = to_json(field, &format!("{path}/{key}"), places)?;
                object.insert(key, field);
            }
            Value::Object(object)
        }
        Yaml::Tagged(tagged) => return Err(wrong("a plain value", format!("{}", tagged.tag))),
    })
}

fn key_text(key: &Yaml, path: &str, places: &Places) -> Result<String, ConfigError> {
    match key {
        Yaml::String(text) => Ok(text.clone()),
        Yaml::Number(number) => Ok(number.to_string()),
        Yaml::Bool(flag) => Ok(flag.to_string()),
        _ => Err(ConfigError::Value {
            place: places.at(path),
            what: "a key".to_owned(),
            expected: "a text",
            found: "something else".to_owned(),
        }),
    }
}
