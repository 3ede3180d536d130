//! Which result answers which call.

use super::left_out::{LeftOut, Reason};
use std::collections::BTreeMap;
use std::sync::Arc;
use tine_engine::Message;
use tine_engine::message::ToolCall;

/// The results of a conversation, by call id and place. A call without an id has an empty one, and so has a result.
#[derive(Default)]
pub(super) struct Results {
    /// By id, in order; taken by the calls.
    results: BTreeMap<Arc<str>, Vec<(usize, Option<Message>)>>,
    /// The messages in which each id is called; some models use an id again in a later one.
    called: BTreeMap<Arc<str>, Vec<usize>>,
}

impl Results {
    /// Notes the result at `place`. Places only grow.
    pub(super) fn add(&mut self, place: usize, result: Message) {
        let id = result.tool_call_id.clone().unwrap_or_default();
        let results = self.results.entry(id).or_default();
        results.push((place, Some(result)));
    }

    /// Notes the calls made at `place`. Places only grow.
    pub(super) fn call(&mut self, place: usize, calls: &[ToolCall]) {
        for call in calls {
            let called = self.called.entry(call.id.clone()).or_default();
            if called.last() != Some(&place) {
                called.push(place);
            }
        }
    }

    /// Takes the answers of the calls made at `place`. The last call of an id takes the last result, as it may have been
    /// answered again; calls of the same id before it take what comes before, each its own.
    pub(super) fn answer(&mut self, place: usize, calls: &[ToolCall]) -> Vec<Option<Message>> {
        // How many calls of an id are answered, of how many.
        let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for call in calls {
            counts.entry(&call.id).or_default().1 += 1;
        }
        let mut answers = Vec::with_capacity(calls.len());
        for call in calls {
            let (answered, of) = counts.entry(&call.id).or_default();
            let own = self.own(place, &call.id);
            let nth = if *answered + 1 == *of {
                own.len().max(*of) - 1
            } else {
                *answered
            };
            *answered += 1;
            answers.push(own.get_mut(nth).and_then(|(_, result)| result.take()));
        }
        answers
    }

    /// The results that no call has taken.
    pub(super) fn rest(self, left_out: &mut LeftOut) {
        for (id, results) in self.results {
            let reason = match self.called.contains_key(&id) {
                true => Reason::AnsweredAgain,
                false => Reason::NoCall,
            };
            let left = results.into_iter().filter(|(_, result)| result.is_some());
            for (place, _) in left {
                left_out.add(place, reason);
            }
        }
    }

    /// The results of an id that is called at `place`: those between that place and the next call. The first call of
    /// an id also has what stands before it.
    fn own(&mut self, place: usize, id: &str) -> &mut [(usize, Option<Message>)] {
        let (Some(called), Some(results)) = (self.called.get(id), self.results.get_mut(id)) else {
            return &mut [];
        };
        let next = called.partition_point(|at| *at <= place);
        let from = if next <= 1 { 0 } else { place };
        let to = called.get(next).copied().unwrap_or(usize::MAX);
        let from = results.partition_point(|(at, _)| *at < from);
        let to = results.partition_point(|(at, _)| *at < to);
        results.get_mut(from..to).unwrap_or_default()
    }
}
