//! Calls and their results.

use super::{Judge, Rule, shown};
use serde_json::Value;

/// Calls that wait for their results.
#[derive(Default)]
struct Turn<'a> {
    /// The message that calls.
    nth: usize,
    /// The ids, each with whether it is answered.
    calls: Vec<(&'a str, bool)>,
}

impl<'a> Turn<'a> {
    fn of(nth: usize, message: &'a Value) -> Self {
        let calls = message.get("tool_calls").and_then(Value::as_array);
        let ids = calls.into_iter().flatten();
        let ids = ids.filter_map(|call| call.get("id")?.as_str());
        Self {
            nth,
            calls: ids.map(|id| (id, false)).collect(),
        }
    }
}

impl Judge {
    /// Each call is answered once, by the messages right behind its own, and nothing else is.
    pub(super) fn pairing(&mut self, messages: &[Value]) {
        let mut turn = Turn::default();
        for (nth, message) in messages.iter().enumerate() {
            match message.get("role").and_then(Value::as_str) {
                Some("tool") => self.result(&mut turn, nth, message),
                Some("assistant") => {
                    self.end(&turn);
                    turn = Turn::of(nth, message);
                }
                _ => {
                    self.end(&turn);
                    turn = Turn::default();
                }
            }
        }
        self.end(&turn);
    }

    fn result(&mut self, turn: &mut Turn<'_>, nth: usize, message: &Value) {
        let id = message.get("tool_call_id");
        let text = id.and_then(Value::as_str).unwrap_or_default();
        let place = format!("messages[{nth}].tool_call_id");
        // Calls may share an id, which is another fault.
        let mut own = turn.calls.iter_mut().filter(|(id, _)| *id == text);
        match own.next() {
            Some((_, answered)) if !*answered => *answered = true,
            Some(_) => match own.find(|(_, answered)| !*answered) {
                Some((_, answered)) => *answered = true,
                None => self.breaks(Rule::TwoResults, place, format!("one more for `{text}`")),
            },
            None => {
                let found = format!("no call of the message before: {}", shown(id));
                self.breaks(Rule::NoCall, place, found);
            }
        }
    }

    fn end(&mut self, turn: &Turn<'_>) {
        for (id, _) in turn.calls.iter().filter(|(_, answered)| !answered) {
            let place = format!("messages[{}].tool_calls", turn.nth);
            let found = format!("no result for `{id}` right behind");
            self.breaks(Rule::NoResult, place, found);
        }
    }
}
