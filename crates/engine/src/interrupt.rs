//! Questions to the outside, and their answers.

use crate::value::Value;
use crate::world::Id;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Names one question: a hash of the checkpoint at which its task was planned, the task's path, the journaled call
/// that asks, and how many questions it asked before.
///
/// It stays the same over resumes and retries, and is another after an update, a fork or a later visit, so a stale
/// answer never meets a new question.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InterruptId(Hex);

impl InterruptId {
    pub(crate) fn of(checkpoint: Id, namespace: &str, path: &str, slot: &Slot) -> Self {
        let mut bytes = Vec::with_capacity(64);
        bytes.extend_from_slice(&checkpoint.0.to_be_bytes());
        for part in [namespace, path, &slot.call] {
            bytes.extend_from_slice(part.as_bytes());
            bytes.push(0xff); // in no UTF-8 text, so parts can not run into each other
        }
        bytes.extend_from_slice(&slot.ordinal.to_be_bytes());
        bytes.extend_from_slice(&slot.epoch.to_be_bytes());
        Self(Hex(xxhash_rust::xxh3::xxh3_128(&bytes)))
    }

    /// Parses 32 hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Hex::parse(text).map(Self)
    }
}

impl fmt::Display for InterruptId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:032x}", self.0.0)
    }
}

impl fmt::Debug for InterruptId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Hex(u128);

impl Hex {
    fn parse(text: &str) -> Option<Self> {
        (text.len() == 32)
            .then(|| u128::from_str_radix(text, 16).ok().map(Self))
            .flatten()
    }
}

impl Serialize for Hex {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:032x}", self.0))
    }
}

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            serde::de::Error::custom(format_args!("`{text}` is not an interrupt id"))
        })
    }
}

/// The place of a question within its task.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Slot {
    /// The key of the journaled call that asks; empty for the node itself.
    pub call: Arc<str>,
    /// How many questions that asker asked before.
    pub ordinal: u32,
    /// How many client commands had changed the state of the open step when it was asked: an answer given before such
    /// a change is no answer to what is asked after it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub epoch: u32,
}

impl Slot {
    /// The name of the record that keeps the question or its answer.
    pub(crate) fn name(&self, what: &str) -> String {
        match self.epoch {
            0 => format!("{what}/{}/{}", self.call, self.ordinal),
            epoch => format!("{what}/{}/{}/{epoch}", self.call, self.ordinal),
        }
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference"
)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// An open question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interrupt {
    /// Its name; what an answer refers to.
    pub id: InterruptId,
    /// The path of the node that asks: node names from the root down, joined with `/`.
    pub node: Arc<str>,
    /// What is asked.
    pub payload: Value,
}

/// Answers to open questions.
#[derive(Clone, Debug, PartialEq)]
pub struct Resume {
    pub(crate) answers: Answers,
    pub(crate) lenient: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answers {
    One(Value),
    ById(BTreeMap<String, Value>),
}

impl Resume {
    /// Answers the one open question. Null, false, 0 and empty values are answers.
    ///
    /// More than one open question makes this an error; use [`Resume::by_id`] then.
    pub fn value(answer: impl Into<Value>) -> Self {
        Self {
            answers: Answers::One(answer.into()),
            lenient: false,
        }
    }

    /// Answers questions by id; those not named stay open. An empty map is an error.
    pub fn by_id<K: ToString, V: Into<Value>>(answers: impl IntoIterator<Item = (K, V)>) -> Self {
        let answers = answers
            .into_iter()
            .map(|(id, answer)| (id.to_string(), answer.into()))
            .collect();
        Self {
            answers: Answers::ById(answers),
            lenient: false,
        }
    }

    /// Ignores ids that belong to no open question, and reports them in the outcome.
    #[must_use]
    pub fn lenient(mut self) -> Self {
        self.lenient = true;
        self
    }
}
