//! Decodes a part of the tree into a closed struct, reporting every mistake and not only the first.

use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;
use serde_yaml::Value;

use crate::diag::{Diagnostic, G002, G004, G008};
use crate::report::{Report, nearest, one_of};
use crate::syntax::At;

/// Decodes the value at `at`.
///
/// Each mistake is reported and its entry left out, then the rest is tried again, so one pass
/// finds all mistakes. Returns `None` if what is left does not make a `T`. `also` are keys that
/// are allowed around this struct and hence good suggestions for an unknown one.
pub(crate) fn decode<T: DeserializeOwned>(
    report: &mut Report<'_>,
    at: &At,
    value: &Value,
    also: &[&str],
) -> Option<T> {
    let mut value = value.clone();
    let mut removed: Vec<At> = Vec::new();
    loop {
        // The clone is of the part that is being decoded; files are small.
        let error = match serde_path_to_error::deserialize::<_, T>(value.clone()) {
            Ok(decoded) => return Some(decoded),
            Err(error) => error,
        };
        let keys: Vec<Step> = error.path().iter().filter_map(Step::new).collect();
        let message = error.inner().to_string();
        let place = keys.iter().fold(at.clone(), |at, step| step.below(&at));
        if let Some(key) = between(&message, "missing field `", "`") {
            if !removed.contains(&place.key(key)) {
                report_missing(report, &place, key);
            }
            return None;
        }
        report_mistake(report, &place, &message, also);
        removed.push(place);
        // Taking an item out of a list would move the others: the whole list goes.
        let known = keys.iter().rposition(|step| matches!(step, Step::Key(_)))?;
        if !remove(&mut value, &keys[..=known]) {
            return None;
        }
        removed.push(
            keys[..=known]
                .iter()
                .fold(at.clone(), |at, step| step.below(&at)),
        );
    }
}

enum Step {
    Key(String),
    Item(usize),
}

impl Step {
    fn new(segment: &Segment) -> Option<Self> {
        match segment {
            Segment::Map { key } => Some(Self::Key(key.clone())),
            Segment::Seq { index } => Some(Self::Item(*index)),
            Segment::Enum { .. } | Segment::Unknown => None,
        }
    }

    fn below(&self, at: &At) -> At {
        match self {
            Self::Key(key) => at.key(key),
            Self::Item(index) => at.item(*index),
        }
    }
}

fn remove(value: &mut Value, path: &[Step]) -> bool {
    let Some((last, before)) = path.split_last() else {
        return false;
    };
    let mut inner = value;
    for step in before {
        let next = match step {
            Step::Key(key) => inner.get_mut(key.as_str()),
            Step::Item(index) => inner.get_mut(*index),
        };
        match next {
            Some(next) => inner = next,
            None => return false,
        }
    }
    match (inner, last) {
        (Value::Mapping(entries), Step::Key(key)) => entries.shift_remove(key.as_str()).is_some(),
        _ => false,
    }
}

fn between<'m>(message: &'m str, before: &str, after: &str) -> Option<&'m str> {
    message
        .strip_prefix(before)?
        .split_once(after)
        .map(|(inner, _)| inner)
}

/// Returns the names serde lists in backticks after `expected`.
fn expected_names(message: &str) -> Vec<&str> {
    let list = message
        .split_once(", expected ")
        .map_or("", |(_, list)| list);
    list.split('`').skip(1).step_by(2).collect()
}

pub(crate) fn report_missing(report: &mut Report<'_>, at: &At, key: &str) {
    let (title, label) = match at.name() {
        Some(name) => (
            format!("`{name}` has no `{key}`"),
            format!("`{key}` is required here"),
        ),
        None => (
            format!("the file has no `{key}`"),
            format!("`{key}` is required"),
        ),
    };
    let span = match at.name() {
        Some(_) => report.key(at),
        None => report.first_line(),
    };
    report.push(Diagnostic::new(&G008, title).at(span, label));
}

fn report_mistake(report: &mut Report<'_>, at: &At, message: &str, also: &[&str]) {
    if let Some(key) = between(message, "unknown field `", "`") {
        let mut names = expected_names(message);
        names.extend(also);
        let finding = Diagnostic::new(&G002, format!("no key named `{key}` here"))
            .at(report.key(at), "not a key of the format")
            .help(match nearest(key, names.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the keys here are {}", one_of(&names)),
            });
        report.push(finding);
        return;
    }
    if let Some(variant) = between(message, "unknown variant `", "`") {
        let names = expected_names(message);
        let finding = Diagnostic::new(&G004, format!("`{variant}` is not a value of this key"))
            .at(report.value(at), format!("expected {}", one_of(&names)))
            .help_if(
                nearest(variant, names.iter().copied()).map(|n| format!("did you mean `{n}`?")),
            );
        report.push(finding);
        return;
    }
    let (found, expected) = match message.split_once(", expected ") {
        Some((found, expected)) => (found, expected),
        None => (message, "another value"),
    };
    let found = found
        .trim_start_matches("invalid type: ")
        .trim_start_matches("invalid value: ");
    let (found, expected) = (plain_words(found), plain_words(expected));
    let finding = Diagnostic::new(&G004, format!("expected {expected}, found {found}"))
        .at(report.brief(at), format!("this is {found}"));
    report.push(finding);
}

/// Says in the words of the format what serde says in the words of Rust.
fn plain_words(words: &str) -> String {
    let word = match words {
        "map" => "a mapping",
        "sequence" | "a sequence" => "a list",
        "a map" => "a mapping",
        "unit value" | "unit" => "nothing",
        "a string" => "text",
        "a boolean" => "`true` or `false`",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number that is not negative",
        "a nonzero u32" => "a whole number above zero",
        "f64" => "a number",
        words => match words.split_once(' ') {
            Some(("string", text)) => return format!("the text `{}`", text.trim_matches('"')),
            Some(("integer", number)) => return format!("the number {number}"),
            Some(("floating", rest)) => {
                return rest
                    .strip_prefix("point ")
                    .map_or(rest.into(), |n| format!("the number {n}"));
            }
            Some(("boolean", value)) => return value.to_owned(),
            Some(("struct", _)) => "a mapping",
            _ => words,
        },
    };
    word.to_owned()
}
