//! What a request does not hold of its conversation.

use std::fmt;

/// Why an entry of a conversation is left out of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Reason {
    /// It is no message.
    NoMessage,
    /// It is the result of a call that no message makes.
    NoCall,
    /// It is a result of a call that was answered again later.
    AnsweredAgain,
    /// It says nothing and calls nothing.
    Empty,
}

/// The entries of a conversation that are left out of a request, by their places in it.
///
/// As text it is one line for people: how many, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut(Vec<(usize, Reason)>);

impl LeftOut {
    pub(super) fn add(&mut self, place: usize, reason: Reason) {
        self.0.push((place, reason));
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether all of the conversation is in the request.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Why the entries at these places are left out, by place.
    pub fn iter(&self) -> impl Iterator<Item = (usize, Reason)> {
        let mut places = self.0.clone();
        places.sort_unstable();
        places.into_iter()
    }

    /// Those from a place on.
    #[must_use]
    pub fn since(mut self, place: usize) -> Self {
        self.0.retain(|(at, _)| *at >= place);
        self
    }

    fn count(&self, reason: Reason) -> usize {
        self.0.iter().filter(|(_, why)| *why == reason).count()
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reasons = [
            (Reason::NoMessage, "is no message", "are no messages"),
            (
                Reason::NoCall,
                "is the result of no call",
                "are results of no call",
            ),
            (
                Reason::AnsweredAgain,
                "is an earlier result of its call",
                "are earlier results of their calls",
            ),
            (Reason::Empty, "says nothing", "say nothing"),
        ];
        let mut parts = Vec::new();
        for (reason, one, several) in reasons {
            match self.count(reason) {
                0 => {}
                1 => parts.push(format!("1 {one}")),
                count => parts.push(format!("{count} {several}")),
            }
        }
        let noun = if self.len() == 1 { "entry" } else { "entries" };
        write!(
            out,
            "{} {noun} of the conversation left out of the request: {}",
            self.len(),
            parts.join(", ")
        )
    }
}
