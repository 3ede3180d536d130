//! Scalars without quotes.

use serde_yaml::{Number, Value};

/// Reads a plain scalar as YAML's core schema has it.
pub(super) fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let starts_like_number = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let leading_zero =
        digits.len() > 1 && digits.starts_with('0') && digits.as_bytes()[1].is_ascii_digit();
    if !starts_like_number || leading_zero {
        return Value::String(text.to_owned());
    }
    if let Ok(integer) = text.parse::<i64>() {
        return Value::Number(integer.into());
    }
    let floats = digits
        .chars()
        .all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'));
    match text.parse::<f64>() {
        Ok(float) if floats && float.is_finite() => Value::Number(Number::from(float)),
        _ => Value::String(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_read_as_serde_yaml_reads_them() {
        for text in [
            "1",
            "-7",
            "+3",
            "1.5",
            "-0.25",
            "1e3",
            "1.2.3",
            "007",
            "0",
            "0.5",
            ".5",
            "~",
            "null",
            "true",
            "True",
            "yes",
            "no",
            "text",
            "12abc",
            "2024-01-01",
            "30s",
            "graph/v1",
            "9223372036854775807",
            "a b",
            ".",
            "1_000",
            "-.5",
            "1.",
            "e5",
        ] {
            let expected: Value = serde_yaml::from_str(text).unwrap_or(Value::String(text.into()));
            assert_eq!(plain(text), expected, "{text}");
        }
    }
}
