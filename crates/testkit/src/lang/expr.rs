//! Values with references and calls.

use crate::case::Condition;
use crate::neutral::{call, target};
use std::collections::BTreeMap;
use tine_engine::value::{List, Map, Number};
use tine_engine::{Target, Value};

/// A case that says something that has no meaning.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the case is wrong: {0}")]
pub(crate) struct CaseError(pub(crate) String);

/// What references stand for: `in`, `var`, `visit`, ...
#[derive(Clone, Debug, Default)]
pub(crate) struct Env {
    values: BTreeMap<&'static str, Value>,
}

impl Env {
    pub(crate) fn set(&mut self, name: &'static str, value: impl Into<Value>) {
        self.values.insert(name, value.into());
    }

    /// Binds variables.
    pub(crate) fn bind(&mut self, variables: Map) {
        let mut all = match self.values.remove("var") {
            Some(Value::Map(known)) => Map::clone(&known),
            _ => Map::new(),
        };
        all.extend(variables);
        self.set("var", all);
    }

    fn with_item(&self, item: Value) -> Self {
        let mut env = self.clone();
        env.set("item", item);
        env
    }

    fn get(&self, reference: &str) -> Result<Value, CaseError> {
        let mut parts = reference.split('.');
        let head = parts.next().unwrap_or_default();
        let value = self
            .values
            .get(head)
            .ok_or_else(|| CaseError(format!("`${reference}` refers to nothing known here")))?;
        Ok(parts
            .try_fold(value, |value, part| match value {
                Value::Map(entries) => entries.get(part),
                Value::List(items) => item_at(items, part),
                _ => None,
            })
            .cloned()
            .unwrap_or_default())
    }
}

fn item_at<'a>(items: &'a List, place: &str) -> Option<&'a Value> {
    let place: i64 = place.parse().ok()?;
    let place = if place < 0 {
        place + i64::try_from(items.len()).ok()?
    } else {
        place
    };
    items.get(usize::try_from(place).ok()?)
}

/// Replaces references and calls in a value. Typed writes (`$overwrite`, `$remove`, `$remove_all`) stay as they are
/// written, with their arguments evaluated.
pub(crate) fn eval(value: &Value, env: &Env) -> Result<Value, CaseError> {
    if let Some((name, argument)) = call(value) {
        return apply(name, &eval(argument, env)?);
    }
    match value {
        Value::Text(text) => match text.strip_prefix('$') {
            None => Ok(value.clone()),
            Some(rest) if rest.starts_with('$') => Ok(rest.into()),
            Some(reference) => env.get(reference),
        },
        Value::List(items) => {
            let items: Result<List, CaseError> = items.iter().map(|item| eval(item, env)).collect();
            Ok(items?.into())
        }
        Value::Map(entries) => Ok(eval_map(entries, env)?.into()),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(value.clone()),
    }
}

/// [`eval`] for every entry of a map.
pub(crate) fn eval_map(entries: &Map, env: &Env) -> Result<Map, CaseError> {
    entries
        .iter()
        .map(|(key, value)| Ok((key.clone(), eval(value, env)?)))
        .collect()
}

fn apply(name: &str, argument: &Value) -> Result<Value, CaseError> {
    let wrong = || CaseError(format!("`{name}` can not take {argument}"));
    match name {
        "$cat" => {
            let items = argument.as_list().ok_or_else(wrong)?;
            let texts = items.iter().map(|item| match item {
                Value::Text(text) => text.to_string(),
                other => other.to_canonical(),
            });
            Ok(texts.collect::<String>().into())
        }
        "$add" => {
            let items = argument.as_list().ok_or_else(wrong)?;
            add(items).ok_or_else(wrong)
        }
        "$len" => match argument {
            Value::List(items) => Ok(items.len().into()),
            Value::Map(entries) => Ok(entries.len().into()),
            Value::Text(text) => Ok(text.chars().count().into()),
            _ => Err(wrong()),
        },
        "$overwrite" | "$remove" | "$remove_all" => {
            Ok(Value::from_pairs([(name, argument.clone())]))
        }
        _ => Err(CaseError(format!("there is no function `{name}`"))),
    }
}

fn add(items: &List) -> Option<Value> {
    let integers: Option<i64> = items
        .iter()
        .try_fold(0_i64, |sum, item| sum.checked_add(item.as_i64()?));
    if let Some(sum) = integers {
        return Some(sum.into());
    }
    let sum: Option<f64> = items.iter().map(Value::as_f64).sum();
    Number::from_f64(sum?).map(Value::Number)
}

/// Whether a condition holds.
pub(crate) fn holds(condition: &Condition, env: &Env) -> Result<bool, CaseError> {
    match condition {
        Condition::Not(inner) => Ok(!holds(inner, env)?),
        Condition::Eq(left, right) => Ok(eval(left, env)? == eval(right, env)?),
        Condition::Lt(left, right) => {
            let (left, right) = (eval(left, env)?, eval(right, env)?);
            match (&left, &right) {
                (Value::Text(a), Value::Text(b)) => Ok(a < b),
                _ => left
                    .as_f64()
                    .zip(right.as_f64())
                    .map(|(a, b)| a < b)
                    .ok_or_else(|| CaseError(format!("`lt` can not compare {left} and {right}"))),
            }
        }
        Condition::In(item, list) => {
            let (item, list) = (eval(item, env)?, eval(list, env)?);
            match &list {
                Value::List(items) => Ok(items.iter().any(|known| *known == item)),
                _ => Err(CaseError(format!("`in` wants a list, not {list}"))),
            }
        }
    }
}

/// The targets that the operand of `goto` or `route` stands for.
pub(crate) fn targets(value: &Value, env: &Env) -> Result<Vec<Target>, CaseError> {
    if let Value::List(items) = value {
        let nested: Result<Vec<Vec<Target>>, CaseError> =
            items.iter().map(|item| targets(item, env)).collect();
        return Ok(nested?.concat());
    }
    if let Some(node) = value.get("send") {
        return sends(node, value, env);
    }
    match eval(value, env)? {
        Value::List(names) => names.iter().map(by_name).collect(),
        name => Ok(vec![by_name(&name)?]),
    }
}

fn by_name(name: &Value) -> Result<Target, CaseError> {
    name.as_str()
        .map(target)
        .ok_or_else(|| CaseError(format!("{name} is no name of a node")))
}

fn sends(node: &Value, send: &Value, env: &Env) -> Result<Vec<Target>, CaseError> {
    let node = node
        .as_str()
        .ok_or_else(|| CaseError(format!("{node} is no name of a node")))?;
    let node = crate::neutral::engine_name(node);
    let Some(each) = send.get("each") else {
        let argument = send.get("arg").cloned().unwrap_or_default();
        return Ok(vec![Target::dispatch(node, eval(&argument, env)?)]);
    };
    let items: Vec<Value> = match eval(each, env)? {
        Value::List(items) => items.iter().cloned().collect(),
        count => {
            let count = count
                .as_i64()
                .ok_or_else(|| CaseError(format!("`each` wants a list or a count, not {count}")))?;
            (0..count).map(Value::from).collect()
        }
    };
    items
        .into_iter()
        .map(|item| {
            let argument = match send.get("arg") {
                Some(argument) => eval(argument, &env.with_item(item))?,
                None => item,
            };
            Ok(Target::dispatch(node, argument))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(expression: serde_json::Value, expected: Result<serde_json::Value, &str>) {
        let mut env = Env::default();
        env.set(
            "in",
            Value::from_json(json!({"n": 3, "list": [1, {"k": "v"}]})),
        );
        env.set("visit", 2_i64);
        env.bind([("who".into(), "me".into())].into());
        let found = eval(&expression.into(), &env)
            .map(|value| value.to_json())
            .map_err(|error| error.0);
        assert_eq!(found, expected.map_err(str::to_owned));
    }

    #[test]
    fn references_reach_into_maps_and_lists() {
        check(json!("$in.n"), Ok(json!(3)));
        check(json!("$in.list.-1.k"), Ok(json!("v")));
        check(json!("$in.list.7"), Ok(json!(null)));
        check(json!("$in.n.deeper"), Ok(json!(null)));
        check(
            json!(["$visit", "$var.who", "plain"]),
            Ok(json!([2, "me", "plain"])),
        );
        check(json!("$$x"), Ok(json!("$x")));
        check(json!("$lost"), Err("`$lost` refers to nothing known here"));
    }

    #[test]
    fn calls_join_add_and_count() {
        check(
            json!({"$cat": ["a", "$in.n", [1, null]]}),
            Ok(json!("a3[1,null]")),
        );
        check(json!({"$add": ["$in.n", 4]}), Ok(json!(7)));
        check(json!({"$len": "$in.list"}), Ok(json!(2)));
        check(
            json!({"$overwrite": ["$visit"]}),
            Ok(json!({"$overwrite": [2]})),
        );
        check(json!({"$add": ["x"]}), Err(r#"`$add` can not take ["x"]"#));
        check(json!({"$no": 1}), Err("there is no function `$no`"));
    }

    #[test]
    fn targets_are_names_sends_and_lists_of_both() {
        let mut env = Env::default();
        env.set("in", Value::from_json(json!(["a", "END"])));
        let value =
            Value::from_json(json!(["$in", {"each": 2, "send": "w", "arg": {"i": "$item"}}]));
        let found = targets(&value, &env).unwrap();
        let input = |i: i64| Value::from_pairs([("i", i.into())]);
        let expected = [
            Target::from("a"),
            Target::End,
            Target::dispatch("w", input(0)),
            Target::dispatch("w", input(1)),
        ];
        assert_eq!(found, expected);
    }
}
