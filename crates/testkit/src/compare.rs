//! What was expected and what was found.

use crate::case::{Case, Observe};
use std::fmt;
use tine_engine::Value;
use tine_engine::value::{List, Map};

/// One difference between a case and what the engine did.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Difference {
    /// The case needs something that the engine or the runner does not have yet.
    Unsupported {
        /// What.
        feature: String,
    },
    /// A value is not the expected one.
    Value {
        /// The place of the action in the case.
        action: usize,
        /// The field of what was observed.
        field: String,
        /// What the case says; `None` if it says that there is nothing.
        expected: Option<Value>,
        /// What was seen.
        found: Option<Value>,
    },
    /// The case could not be run to its end.
    Broken {
        /// The place of the action in the case, if one is to blame.
        action: Option<usize>,
        /// Why.
        message: String,
    },
}

/// How much of a value a line of the report shows.
const SHOWN: usize = 160;

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |value: &Option<Value>| {
            let text = value
                .as_ref()
                .map_or_else(|| "nothing".to_owned(), Value::to_canonical);
            match text.char_indices().nth(SHOWN) {
                Some((end, _)) => format!("{}…", &text[..end]),
                None => text,
            }
        };
        match self {
            Self::Unsupported { feature } => write!(out, "not supported yet: {feature}"),
            Self::Value {
                action,
                field,
                expected,
                found,
            } => write!(
                out,
                "action {action} {field}\n      expected {}\n      found    {}",
                show(expected),
                show(found)
            ),
            Self::Broken {
                action: Some(action),
                message,
            } => write!(out, "action {action}: {message}"),
            Self::Broken {
                action: None,
                message,
            } => out.write_str(message),
        }
    }
}

/// The differences between what an action must show and what it showed.
pub(crate) fn compare(case: &Case, action: usize, found: &Map) -> Vec<Difference> {
    let expected = arranged(case, &case.run[action].expect);
    let mut found = arranged(case, found);
    forget_unrecorded(&expected, &mut found);
    // A read that fails says so in place of the state.
    let states = (expected.get("state"), found.get("state"));
    if let (Some(Value::Map(expected)), Some(Value::Map(state))) = states {
        let mut state = state.as_ref().clone();
        forget_unrecorded(expected, &mut state);
        found.insert("state".into(), state.into());
    }
    let mut differences = Vec::new();
    let mut report = |field: &str, expected: Option<&Value>, found: Option<&Value>| {
        differences.push(Difference::Value {
            action,
            field: field.to_owned(),
            expected: expected.cloned(),
            found: found.cloned(),
        });
    };
    compare_maps("", &expected, &found, &mut report);
    // What explains the rest comes first.
    differences.sort_by_key(|difference| match difference {
        Difference::Value { field, .. } if field == "status" => 0,
        Difference::Value { field, .. } if field.starts_with("error") => 1,
        _ => 2,
    });
    differences
}

/// Leaves of an error only what the case recorded.
fn forget_unrecorded(expected: &Map, found: &mut Map) {
    if let (Some(expected), Some(error)) = (expected.get("error"), found.get("error")) {
        let error = only_keys_of(expected, error);
        found.insert("error".into(), error);
    }
}

/// Of an error only what the case recorded counts.
fn only_keys_of(expected: &Value, found: &Value) -> Value {
    let (Some(expected), Some(found)) = (expected.as_map(), found.as_map()) else {
        return found.clone();
    };
    let kept = found.iter().filter(|(key, _)| expected.contains_key(*key));
    Value::from_pairs(kept.map(|(key, value)| (key.clone(), value.clone())))
}

/// Brings groups of events whose order does not count into one order.
fn arranged(case: &Case, observation: &Map) -> Map {
    let mut observation = observation.clone();
    if let Some(Value::Map(events)) = observation.get("events") {
        let events = events.iter().map(|(name, list)| {
            let unordered = (name.starts_with("updates")
                && !case.observes(Observe::CompletionOrder))
                || name.starts_with("tasks");
            let list = match list {
                Value::List(groups) if unordered => {
                    groups.iter().map(sorted).collect::<List>().into()
                }
                other => other.clone(),
            };
            (name.clone(), list)
        });
        let events = Value::from_pairs(events);
        observation.insert("events".into(), events);
    }
    observation
}

fn sorted(group: &Value) -> Value {
    let Value::List(rows) = group else {
        return group.clone();
    };
    let mut rows: Vec<Value> = rows.iter().cloned().collect();
    rows.sort_by_cached_key(Value::to_canonical);
    rows.into()
}

type Report<'a> = dyn FnMut(&str, Option<&Value>, Option<&Value>) + 'a;

fn compare_maps(place: &str, expected: &Map, found: &Map, report: &mut Report<'_>) {
    let within = |key: &str| {
        if place.is_empty() {
            key.to_owned()
        } else {
            format!("{place}.{key}")
        }
    };
    for (key, wanted) in expected {
        match found.get(key) {
            Some(found) => compare_values(&within(key), wanted, found, report),
            None => report(&within(key), Some(wanted), None),
        }
    }
    for (key, found) in found {
        if !expected.contains_key(key) {
            report(&within(key), None, Some(found));
        }
    }
}

fn compare_values(place: &str, expected: &Value, found: &Value, report: &mut Report<'_>) {
    match (expected, found) {
        (Value::Map(expected), Value::Map(found)) => {
            compare_maps(place, expected, found, report);
        }
        // Lists of one length are told apart item by item only if the items are large.
        (Value::List(wanted), Value::List(seen))
            if wanted.len() == seen.len() && expected.to_canonical().len() > SHOWN =>
        {
            for (at, (expected, found)) in wanted.iter().zip(seen.iter()).enumerate() {
                compare_values(&format!("{place}.{at}"), expected, found, report);
            }
        }
        _ if expected != found => report(place, Some(expected), Some(found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expected: &str, found: &str, differences: &[&str]) {
        let text = format!(
            "{{name: n, about: a, label: C, graph: {{channels: {{}}, nodes: {{}}}}, run: [{{do: state, expect: {expected}}}]}}"
        );
        let case = Case::parse(&text).unwrap();
        let found: Value = serde_yaml::from_str(found).unwrap();
        let fields: Vec<String> = compare(&case, 0, found.as_map().unwrap())
            .iter()
            .map(|difference| match difference {
                Difference::Value { field, .. } => field.clone(),
                other => panic!("{other}"),
            })
            .collect();
        assert_eq!(fields, differences, "{expected} against {found:?}");
    }

    #[test]
    fn of_an_error_only_what_was_recorded_counts() {
        let found = "{error: {code: c, message: m}}";
        check("{error: {code: c}}", found, &[]);
        check("{error: {code: d}}", found, &["error.code"]);
        check("{error: {code: c, node: n}}", found, &["error.node"]);
        let found = "{state: {error: {code: c, message: m}}}";
        check("{state: {error: {code: c}}}", found, &[]);
        check("{state: {error: {code: d}}}", found, &["state.error.code"]);
        check("{state: {step: 1}}", found, &["state.step", "state.error"]);
    }
}
