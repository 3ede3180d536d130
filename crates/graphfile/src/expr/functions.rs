//! The functions of expressions beside CEL's own.

use std::sync::{Arc, LazyLock};

use cel::common::types::{CelBool, CelString, DYN_TYPE};
use cel::common::value::CowVal;
use cel::{Env, ExecutionError};
use tine_engine::Value;
use tine_engine::value::List;

use super::lazy::{to_val, to_value};

/// Returns the environment all expressions are parsed and evaluated in.
pub(super) fn env() -> Arc<Env> {
    static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| {
        let mut env = Env::stdlib().with_optional_support(false);
        let functions: [(&str, &str, cel::common::functions::Function); 5] = [
            ("last", "last_list", last),
            ("first", "first_list", first),
            ("text", "text_message", text),
            ("has_tool_calls", "has_tool_calls_message", has_tool_calls),
            ("tool_calls", "tool_calls_message", tool_calls),
        ];
        for (name, id, function) in functions {
            env.add_overload(name, id, vec![DYN_TYPE], function)
                .expect("the names are new and stand once");
        }
        Arc::new(env)
    });
    Arc::clone(&ENV)
}

type Args<'b, 'v> = Vec<CowVal<'b, 'v>>;
type Out<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

fn argument(function: &str, args: &Args<'_, '_>) -> Result<Value, ExecutionError> {
    let argument = args
        .first()
        .ok_or(ExecutionError::MissingArgumentOrTarget)?;
    to_value(argument.as_ref()).map_err(|error| ExecutionError::function_error(function, error))
}

fn end<'b, 'v>(name: &str, args: &Args<'b, 'v>, pick: fn(&List) -> Option<&Value>) -> Out<'b, 'v> {
    let value = argument(name, args)?;
    let Value::List(items) = &value else {
        return Err(ExecutionError::function_error(name, "takes a list"));
    };
    match pick(items) {
        Some(item) => Ok(CowVal::Owned(to_val(item))),
        None => Err(ExecutionError::function_error(name, "the list is empty")),
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the signature of the interpreter"
)]
fn last<'b, 'v>(args: Args<'b, 'v>) -> Out<'b, 'v> {
    end("last", &args, List::last)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the signature of the interpreter"
)]
fn first<'b, 'v>(args: Args<'b, 'v>) -> Out<'b, 'v> {
    end("first", &args, List::first)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the signature of the interpreter"
)]
fn text<'b, 'v>(args: Args<'b, 'v>) -> Out<'b, 'v> {
    let message = argument("text", &args)?;
    Ok(CowVal::owned(CelString::from(message_text(&message))))
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the signature of the interpreter"
)]
fn tool_calls<'b, 'v>(args: Args<'b, 'v>) -> Out<'b, 'v> {
    let message = argument("tool_calls", &args)?;
    let calls = message
        .get("tool_calls")
        .cloned()
        .unwrap_or_else(Value::list);
    Ok(CowVal::Owned(to_val(&calls)))
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the signature of the interpreter"
)]
fn has_tool_calls<'b, 'v>(args: Args<'b, 'v>) -> Out<'b, 'v> {
    let message = argument("has_tool_calls", &args)?;
    Ok(CowVal::owned(CelBool::from(message_has_calls(&message))))
}

/// Whether a message has calls to answer. Those that can not be read are among them: they go back to the model as
/// errors, as long as they have the id that an answer needs.
pub(super) fn message_has_calls(message: &Value) -> bool {
    let list = |key: &str| message.get(key).and_then(Value::as_list);
    let answerable = |call: &Value| call.get("id").and_then(Value::as_str).is_some();
    list("tool_calls").is_some_and(|calls| !calls.is_empty())
        || list("invalid_tool_calls").is_some_and(|calls| calls.iter().any(answerable))
}

/// Joins the text of a message: its content, or the text blocks of it.
fn message_text(message: &Value) -> String {
    match message.get("content") {
        Some(Value::Text(text)) => text.to_string(),
        Some(Value::List(blocks)) => blocks
            .iter()
            .filter_map(|block| match block {
                Value::Text(text) => Some(&**text),
                block => block.get("text").and_then(Value::as_str),
            })
            .collect(),
        _ => String::new(),
    }
}
