//! What the nodes of an agent tell listeners while they work: the kinds of their custom events.

use crate::history::LeftOut;
use tine_engine::message::{ToolCall, ToolStatus};
use tine_engine::{NodeCx, Value};
use tine_models::{Delta, FinishReason};

/// A piece of what a model says: `{text}`.
pub const TOKEN: &str = "token";
/// A piece of what a model thinks: `{text}`.
pub const REASONING: &str = "reasoning";
/// A call of a tool begins: `{id, name, args}`.
pub const TOOL_CALL: &str = "tool_call";
/// A call of a tool ended: `{id, name, status, text}`.
pub const TOOL_RESULT: &str = "tool_result";
/// Something people should know: `{text}` of the node itself, `{id, name, text}` of a call of a tool.
pub const NOTE: &str = "note";

pub(crate) fn delta(cx: &NodeCx, delta: &Delta) {
    let (kind, text) = match delta {
        Delta::Text(text) => (TOKEN, text),
        Delta::Reasoning(text) => (REASONING, text),
        _ => return,
    };
    cx.emit(kind, || {
        Value::from_pairs([("text", text.as_str())].map(|(key, text)| (key, Value::from(text))))
    });
}

pub(crate) fn tool_call(cx: &NodeCx, call: &ToolCall) {
    cx.emit(TOOL_CALL, || {
        Value::from_pairs([
            ("id", Value::Text(call.id.clone())),
            ("name", Value::Text(call.name.clone())),
            ("args", call.args.clone()),
        ])
    });
}

pub(crate) fn tool_result(
    cx: &NodeCx,
    call: &ToolCall,
    status: ToolStatus,
    text: impl FnOnce() -> String,
) {
    cx.emit(TOOL_RESULT, || {
        let status = match status {
            ToolStatus::Success => "success",
            ToolStatus::Error => "error",
        };
        Value::from_pairs([
            ("id", Value::Text(call.id.clone())),
            ("name", Value::Text(call.name.clone())),
            ("status", status.into()),
            ("text", text().into()),
        ])
    });
}

pub(crate) fn note(cx: &NodeCx, call: &ToolCall, text: &str) {
    cx.emit(NOTE, || {
        Value::from_pairs([
            ("id", Value::Text(call.id.clone())),
            ("name", Value::Text(call.name.clone())),
            ("text", text.into()),
        ])
    });
}

/// That not all of a conversation is in a request.
pub(crate) fn left_out(cx: &NodeCx, left_out: &LeftOut) {
    cx.emit(NOTE, || {
        Value::from_pairs([("text", left_out.to_string().into())])
    });
}

/// A reply that may miss its end, or all of it.
pub(crate) fn cut_off(cx: &NodeCx, finish: &FinishReason) {
    cx.emit(NOTE, || {
        let text = format!("the reply was cut off ({})", finish.name());
        Value::from_pairs([("text", text.into())])
    });
}
