//! The history that a model is sent: valid, whatever state a thread is in.
//!
//! Providers refuse a conversation in which a tool call has no result or a result no call. A thread can hold such a one
//! after a cancel, a crash, a trim or an import, so every request is built from a repaired copy; the thread itself is
//! left as it is.

use std::collections::BTreeMap;
use std::sync::Arc;
use tine_engine::Message;
use tine_engine::message::{Role, ToolCall, ToolStatus};

/// What stands in for a result that never came. It may be lost by a crash, a cancel or a trim, so nothing is said about
/// the call itself.
const NO_RESULT: &str = "The result of this call was never recorded, so it is unknown whether the call took place. \
                         Assume neither; find out before you rely on it or make the call again.";

/// Makes a valid history of any list of messages: each tool call has exactly one result, right behind its message and
/// in the order of the calls.
///
/// Results are moved to their call; a missing one is filled in; of several for one call the last counts; calls of one
/// message that share an id have its results in their order; results without a call, and AI messages that say and call nothing, are dropped. Total: it works for every input, and a valid
/// history comes out as it went in.
#[must_use]
pub fn valid(messages: Vec<Message>) -> Vec<Message> {
    let results = Results::of(&messages);
    let mut valid = Vec::with_capacity(messages.len());
    for (place, message) in messages.into_iter().enumerate() {
        match message.role {
            Role::Tool => {}
            Role::Ai if message.content.is_empty() && calls(&message).next().is_none() => {}
            Role::Ai => {
                let calls: Vec<ToolCall> = calls(&message).collect();
                valid.push(message);
                results.answer(place, &calls, &mut valid);
            }
            Role::Human | Role::System => valid.push(message),
        }
    }
    valid
}

/// The calls of a message that want a result: the valid ones, then those whose arguments could not be read.
pub(crate) fn calls(message: &Message) -> impl Iterator<Item = ToolCall> {
    let invalid = message.invalid_tool_calls.iter().filter_map(|call| {
        Some(ToolCall {
            name: call.name.clone().unwrap_or_else(|| "unknown".into()),
            args: tine_engine::Value::map(),
            id: call.id.clone()?,
        })
    });
    let calls: Vec<ToolCall> = message.tool_calls.iter().cloned().chain(invalid).collect();
    calls.into_iter()
}

/// The results of a conversation, by call id and place.
struct Results {
    results: BTreeMap<Arc<str>, Vec<(usize, Message)>>,
    /// The messages in which each id is called; some models use an id again in a later one.
    called: BTreeMap<Arc<str>, Vec<usize>>,
}

impl Results {
    fn of(messages: &[Message]) -> Self {
        let mut found = Self {
            results: BTreeMap::new(),
            called: BTreeMap::new(),
        };
        for (place, message) in messages.iter().enumerate() {
            if let (Role::Tool, Some(id)) = (message.role, &message.tool_call_id) {
                found
                    .results
                    .entry(id.clone())
                    .or_default()
                    .push((place, message.clone()));
            }
            for call in calls(message) {
                let called = found.called.entry(call.id).or_default();
                if called.last() != Some(&place) {
                    called.push(place);
                }
            }
        }
        found
    }

    /// Answers the calls made at `place`. The last call of an id takes the last result, as it may have been answered
    /// again; calls of the same id before it take what comes before, each its own.
    fn answer(&self, place: usize, calls: &[ToolCall], answers: &mut Vec<Message>) {
        // How many calls of an id are answered, of how many.
        let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for call in calls {
            counts.entry(&call.id).or_default().1 += 1;
        }
        for call in calls {
            let (answered, of) = counts.entry(&call.id).or_default();
            let own = self.own(place, &call.id);
            *answered += 1;
            let nth = if answered == of {
                own.len().max(*of)
            } else {
                *answered
            };
            let answer = own.get(nth - 1).map(|(_, message)| message.clone());
            answers.push(answer.unwrap_or_else(|| missing(call)));
        }
    }

    /// The results of an id that is called at `place`: those between that place and the next call. The first call of
    /// an id also has what stands before it.
    fn own(&self, place: usize, id: &str) -> &[(usize, Message)] {
        let (Some(called), Some(results)) = (self.called.get(id), self.results.get(id)) else {
            return &[];
        };
        let next = called.partition_point(|at| *at <= place);
        let from = if next <= 1 { 0 } else { place };
        let to = called.get(next).copied().unwrap_or(usize::MAX);
        let before = |place: usize| results.partition_point(|(at, _)| *at < place);
        results.get(before(from)..before(to)).unwrap_or_default()
    }
}

fn missing(call: &ToolCall) -> Message {
    Message::tool(call, NO_RESULT, ToolStatus::Error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tine_engine::Value;
    use tine_engine::message::InvalidToolCall;

    fn call(id: &str) -> ToolCall {
        ToolCall {
            name: "t".into(),
            args: Value::map(),
            id: id.into(),
        }
    }

    fn ai(ids: &[&str]) -> Message {
        let mut message = Message::ai("");
        message.tool_calls = ids.iter().map(|id| call(id)).collect();
        message
    }

    fn result(id: &str, text: &str) -> Message {
        Message::tool(&call(id), text, ToolStatus::Success)
    }

    /// One letter a message, the id and text of results in brackets.
    fn sketch(messages: &[Message]) -> String {
        let one = |message: &Message| match message.role {
            Role::Human => "H".to_owned(),
            Role::System => "S".to_owned(),
            Role::Ai => "A".to_owned(),
            Role::Tool => {
                let id = message.tool_call_id.as_deref().unwrap_or("-");
                let text = message.content.text();
                format!("T[{id}:{}]", if text == NO_RESULT { "none" } else { &text })
            }
        };
        messages.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    fn check(messages: Vec<Message>, expected: &str) {
        assert_eq!(sketch(&valid(messages)), expected);
    }

    #[test]
    fn results_stand_behind_their_calls() {
        let hi = || Message::human("hi");
        check(
            vec![hi(), ai(&["a", "b"]), result("a", "1"), result("b", "2")],
            "H A T[a:1] T[b:2]",
        );
        check(
            vec![
                hi(),
                ai(&["a", "b"]),
                result("b", "2"),
                hi(),
                result("a", "1"),
            ],
            "H A T[a:1] T[b:2] H",
        );
        check(vec![hi(), ai(&["a"]), hi()], "H A T[a:none] H");
        check(vec![result("x", "1"), hi()], "H");
        check(
            vec![hi(), ai(&["a"]), result("a", "old"), result("a", "new")],
            "H A T[a:new]",
        );
        check(vec![hi(), Message::ai(""), hi()], "H H");
        check(vec![result("a", "1"), hi(), ai(&["a"])], "H A T[a:1]");
        let twice = vec![
            ai(&["a"]),
            result("a", "1"),
            ai(&["a"]),
            result("a", "2"),
            ai(&["a"]),
        ];
        check(twice, "A T[a:1] A T[a:2] A T[a:none]");
    }

    #[test]
    fn calls_of_one_id_have_each_their_own_result() {
        let both = || ai(&["a", "b", "a"]);
        let [one, two, three] = ["1", "2", "3"].map(|text| result("a", text));
        let b = || result("b", "b");
        check(
            vec![both(), one.clone(), b(), two.clone()],
            "A T[a:1] T[b:b] T[a:2]",
        );
        check(vec![both(), one.clone()], "A T[a:1] T[b:none] T[a:none]");
        check(
            vec![both(), one.clone(), two.clone(), three.clone()],
            "A T[a:1] T[b:none] T[a:3]",
        );
        check(
            vec![both(), one, two, ai(&["a"]), three],
            "A T[a:1] T[b:none] T[a:2] A T[a:3]",
        );
    }

    #[test]
    fn an_invalid_call_wants_a_result_too() {
        let mut message = Message::ai("");
        message.invalid_tool_calls.push(InvalidToolCall {
            name: Some("t".into()),
            args: Some("{".into()),
            id: Some("a".into()),
            error: None,
        });
        check(vec![message, result("a", "not JSON")], "A T[a:not JSON]");
    }

    /// What every provider asks for.
    fn assert_valid(messages: &[Message]) {
        let mut open: Vec<Arc<str>> = Vec::new();
        for message in messages {
            if message.role == Role::Tool {
                let id = message
                    .tool_call_id
                    .clone()
                    .expect("a result names its call");
                assert_eq!(open.first(), Some(&id), "a result is not next to its call");
                open.remove(0);
                continue;
            }
            assert!(open.is_empty(), "a call has no result");
            open = calls(message).map(|call| call.id).collect();
            assert!(message.role != Role::Ai || !message.content.is_empty() || !open.is_empty());
        }
        assert!(open.is_empty(), "the last call has no result");
    }

    fn any_message() -> impl Strategy<Value = Message> {
        let id = || prop::sample::select(vec!["a", "b", "c", "d"]);
        prop_oneof![
            Just(Message::human("h")),
            Just(Message::system("s")),
            Just(Message::ai("said")),
            prop::collection::vec(id(), 0..4).prop_map(|ids| ai(&ids)),
            (id(), 0_u8..3).prop_map(|(id, text)| result(id, &text.to_string())),
        ]
    }

    proptest! {
        #[test]
        fn any_history_becomes_a_valid_one(messages in prop::collection::vec(any_message(), 0..20)) {
            let once = valid(messages);
            assert_valid(&once);
            prop_assert_eq!(valid(once.clone()), once);
        }
    }
}
