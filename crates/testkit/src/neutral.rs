//! Between the engine's forms and the neutral ones of cases: names, messages, typed writes, errors.

use tine_engine::value::{List, Map};
use tine_engine::{END, Op, RunError, START, Target, Update, Value, Write};

/// The engine's name of a node of a case.
pub(crate) fn engine_name(name: &str) -> &str {
    match name {
        "START" => START,
        "END" => END,
        other => other,
    }
}

/// The case's name of a node of the engine.
pub(crate) fn neutral_name(name: &str) -> &str {
    match name {
        START => "START",
        END => "END",
        other => other,
    }
}

/// The case's form of a path: node names joined with `/`. The error handler of a node `a` is `handler:a`.
pub(crate) fn neutral_path(path: &str) -> String {
    let names = path
        .split('/')
        .map(|name| match name.strip_suffix("#handler") {
            Some(node) => format!("handler:{node}"),
            None => neutral_name(name).to_owned(),
        });
    names.collect::<Vec<String>>().join("/")
}

/// A target by the name that a case gives it.
pub(crate) fn target(name: &str) -> Target {
    Target::from(engine_name(name))
}

/// The one entry of a map that has a single key which begins with `$`: a call of the mini-language.
pub(crate) fn call(value: &Value) -> Option<(&str, &Value)> {
    let entries = value.as_map()?;
    let (name, argument) = entries.iter().next()?;
    (entries.len() == 1 && name.starts_with('$')).then_some((&**name, argument))
}

/// A value with messages in the form of cases: `{role, content, id}`.
pub(crate) fn neutral(value: &Value) -> Value {
    match value {
        Value::List(items) => items.iter().map(neutral).collect::<List>().into(),
        Value::Map(entries) => message(entries).unwrap_or_else(|| {
            entries
                .iter()
                .map(|(key, value)| (key.clone(), neutral(value)))
                .collect::<Map>()
                .into()
        }),
        other => other.clone(),
    }
}

fn message(entries: &Map) -> Option<Value> {
    let role = match entries.get("type")?.as_str()? {
        "human" => "user",
        "ai" => "assistant",
        "system" => "system",
        "tool" => "tool",
        _ => return None,
    };
    let content = entries.get("content")?.clone();
    let id = entries.get("id")?.clone();
    Some(Value::from_pairs([
        ("role", role.into()),
        ("content", content),
        ("id", id),
    ]))
}

/// An evaluated write in the engine's typed form.
pub(crate) fn typed_write(value: Value) -> Write {
    match call(&value) {
        Some(("$overwrite", inner)) => return Write::Overwrite(inner.clone()),
        Some(_) => return Write::Ops(vec![typed_op(&value)]),
        None => {}
    }
    match &value {
        Value::List(items) if items.iter().any(|item| call(item).is_some()) => {
            Write::Ops(items.iter().map(typed_op).collect())
        }
        _ => Write::Value(value),
    }
}

fn typed_op(value: &Value) -> Op {
    match call(value) {
        Some(("$remove", Value::Text(id))) => Op::Remove(id.clone()),
        Some(("$remove_all", _)) => Op::Clear,
        _ => Op::Add(value.clone()),
    }
}

/// Evaluated writes by channel, as an update.
pub(crate) fn typed_update(writes: Map) -> Update {
    writes
        .into_iter()
        .fold(Update::new(), |update, (channel, value)| {
            update.with(channel, typed_write(value))
        })
}

/// A write of the engine in the form of cases.
pub(crate) fn neutral_write(write: &Write) -> Value {
    match write {
        Write::Value(value) => neutral(value),
        Write::Overwrite(value) => Value::from_pairs([("$overwrite", neutral(value))]),
        Write::Ops(ops) => ops
            .iter()
            .map(|op| match op {
                Op::Add(value) => neutral(value),
                Op::Remove(id) => Value::from_pairs([("$remove", Value::Text(id.clone()))]),
                Op::Clear => Value::from_pairs([("$remove_all", true.into())]),
            })
            .collect::<List>()
            .into(),
    }
}

/// An error in the form of cases: `{code, node?, message?, target?}`.
pub(crate) fn neutral_error(error: &RunError) -> Value {
    let mut found = Map::new();
    found.insert("code".into(), code(error).into());
    if let Some(node) = error.node() {
        found.insert("node".into(), neutral_path(node).into());
    }
    let message = match error {
        RunError::Node { message, .. } => message.clone(),
        other => other.to_string(),
    };
    found.insert("message".into(), message.into());
    if let RunError::UnknownNode { target, .. } = error {
        found.insert("target".into(), Value::Text(target.clone()));
    }
    found.into()
}

fn code(error: &RunError) -> String {
    let code = match error {
        RunError::Node { .. } => "node_error",
        RunError::Reducer { .. } => "reducer_error",
        // All others are called the same on both sides.
        other => return other.code(),
    };
    code.to_owned()
}
