//! The history that a model is sent: valid, whatever state a thread is in.
//!
//! Providers refuse a conversation in which a tool call has no result or a result no call, and then they refuse every
//! later one of the thread too. A thread can hold such a conversation after a cancel, a crash, a trim or an import, so
//! every request is built from a repaired copy; the thread itself is left as it is.

mod left_out;
mod results;
mod shape;

pub use left_out::{LeftOut, Reason};

use results::Results;
use shape::Ids;
use std::collections::BTreeSet;
use std::sync::Arc;
use tine_engine::Message;
use tine_engine::message::{MessageError, Role, ToolCall, ToolStatus};
use tine_models::{ModelRequest, ToolChoice};

/// What stands in for a result that never came. It may be lost by a crash, a cancel or a trim, so nothing is said about
/// the call itself.
const NO_RESULT: &str = "The result of this call was never recorded, so it is unknown whether the call took place. \
                         Assume neither; find out before you rely on it or make the call again.";

/// What stands in for a result without content, which some providers refuse.
const NO_OUTPUT: &str = "(no output)";

/// A conversation as every provider takes it.
///
/// - It has no system messages: they are instructions, and stand apart.
/// - Each call has one result. The results of a message stand right behind it, in the order of its calls.
/// - Ids of calls are there, and no two calls have the same; names of calls match `^[A-Za-z0-9_-]{1,64}$`, and their
///   arguments are maps.
/// - There are no invalid calls: they are calls, without arguments unless those are whole, and their results say what
///   was wrong.
/// - Every message says or calls something.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// What the system messages say, in their order.
    pub instructions: Vec<Arc<str>>,
    /// The others, oldest first.
    pub messages: Vec<Message>,
    /// The entries that are not in it.
    pub left_out: LeftOut,
}

/// Makes a valid history of the entries of a conversation, whatever they are. A valid one comes out as it went in.
///
/// Results are moved to their call; a missing one is filled in; of several for one call the last counts; calls of one
/// message that share an id have its results in their order. Entries that are no messages, results without a call, and
/// messages without content are left out. Ids, names and arguments that no provider takes are replaced by such that
/// stand for them.
pub fn valid(entries: impl IntoIterator<Item = Result<Message, MessageError>>) -> History {
    let mut history = History::default();
    let mut conversation = Vec::new();
    let mut results = Results::default();
    for (place, entry) in entries.into_iter().enumerate() {
        let Ok(message) = entry else {
            history.left_out.add(place, Reason::NoMessage);
            continue;
        };
        match message.role {
            Role::Tool => results.add(place, message),
            Role::Ai => {
                results.call(place, &calls(&message));
                conversation.push((place, message));
            }
            Role::Human | Role::System => conversation.push((place, message)),
        }
    }
    let mut ids = Ids::default();
    for (place, mut message) in conversation {
        let calls = match message.role {
            Role::Ai => calls(&message),
            _ => Vec::new(),
        };
        let answers = results.answer(place, &calls);
        message.invalid_tool_calls.clear();
        message.tool_calls.clear();
        shape::content(&mut message);
        if calls.is_empty() && !shape::says_something(&message) {
            history.left_out.add(place, Reason::Empty);
            continue;
        }
        if message.role == Role::System {
            history.instructions.push(message.content.text().into());
            continue;
        }
        let mut behind = Vec::with_capacity(calls.len());
        for (call, answer) in calls.into_iter().zip(answers) {
            let call = shape::call(call, &mut ids);
            behind.push(result(&call, answer));
            message.tool_calls.push(call);
        }
        history.messages.push(message);
        history.messages.append(&mut behind);
    }
    results.rest(&mut history.left_out);
    history
}

/// Makes a request valid that somebody has changed since its history was made, or made by hand.
///
/// Instructions among the messages join the system prompt; of tools with one name the first stays; a choice of a tool
/// that is not offered is left to the model.
pub fn repair(request: &mut ModelRequest) -> LeftOut {
    let messages = std::mem::take(&mut request.messages);
    let history = valid(messages.into_iter().map(Ok));
    request.messages = history.messages;
    instruct(request, history.instructions);
    let mut names = BTreeSet::new();
    request.tools.retain(|tool| names.insert(tool.name.clone()));
    request.tool_choice = match std::mem::take(&mut request.tool_choice) {
        ToolChoice::Tool(name) if !names.contains(&name) => ToolChoice::Auto,
        _ if names.is_empty() => ToolChoice::Auto,
        choice => choice,
    };
    history.left_out
}

/// Adds instructions of the conversation to those of the node. Many models take one system message only, at the very
/// beginning.
pub(crate) fn instruct(request: &mut ModelRequest, instructions: Vec<Arc<str>>) {
    let own = request.system.take();
    let mut all: Vec<Arc<str>> = own.into_iter().chain(instructions).collect();
    all.retain(|text| !text.trim().is_empty());
    request.system = match all.as_slice() {
        [] => None,
        [alone] => Some(alone.clone()),
        all => Some(all.join("\n\n").into()),
    };
}

/// The calls of a message that want a result: the valid ones, then those that could not be read.
fn calls(message: &Message) -> Vec<ToolCall> {
    let invalid = message.invalid_tool_calls.iter().map(|call| ToolCall {
        name: call.name.clone().unwrap_or_default(),
        args: shape::raw_arguments(call.args.as_deref().unwrap_or_default()),
        id: call.id.clone().unwrap_or_default(),
    });
    message.tool_calls.iter().cloned().chain(invalid).collect()
}

/// The result of a call: what answers it, or what is said in its place.
fn result(call: &ToolCall, answer: Option<Message>) -> Message {
    let Some(mut answer) = answer else {
        return Message::tool(call, NO_RESULT, ToolStatus::Error);
    };
    answer.tool_call_id = Some(call.id.clone());
    answer.name = Some(call.name.clone());
    answer.tool_calls.clear();
    answer.invalid_tool_calls.clear();
    shape::content(&mut answer);
    if !shape::says_something(&answer) {
        answer.content = NO_OUTPUT.into();
    }
    answer
}

#[cfg(test)]
mod tests;
