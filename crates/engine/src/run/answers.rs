//! Answers that come for open questions.

use crate::checkpoint::{Open, Record, RecordKind, RecordOp, open_questions};
use crate::error::RunError;
use crate::interrupt::{Answers, Resume, Slot};
use crate::value::Value;
use std::collections::BTreeMap;

/// What answers come to.
#[derive(Debug, Default)]
pub(super) struct Matched {
    /// The answers, to be recorded.
    pub(super) ops: Vec<RecordOp>,
    /// Ids that belong to no open question; only a lenient resume has them.
    pub(super) unknown_ids: Vec<String>,
}

/// Matches answers to open questions. They count from `epoch` on, which is one more than now if a command changes the
/// state together with its answers.
///
/// # Errors
/// An id map without answers, a plain answer to several questions, or an id of no open question.
pub(super) fn match_answers(
    records: &[Record],
    resume: Resume,
    epoch: u32,
) -> Result<Matched, RunError> {
    let open = open_questions(records);
    let ids = || {
        let ids = open.iter().map(|open| open.interrupt.id.to_string().into());
        ids.collect()
    };
    let mut matched = Matched::default();
    let mut given: Vec<(&Open, Value)> = Vec::new();
    match resume.answers {
        Answers::One(value) => match open.as_slice() {
            [] => {}
            [only] => given.push((only, value)),
            _ => return Err(RunError::MultipleInterrupts { open: ids() }),
        },
        Answers::ById(answers) if answers.is_empty() => return Err(RunError::EmptyResume),
        Answers::ById(answers) => {
            let by_id: BTreeMap<String, &Open> = open
                .iter()
                .map(|open| (open.interrupt.id.to_string(), open))
                .collect();
            for (id, value) in answers {
                match by_id.get(&id) {
                    Some(open) => given.push((open, value)),
                    None if resume.lenient => matched.unknown_ids.push(id),
                    None => {
                        let (id, open) = (id.into(), ids());
                        return Err(RunError::UnknownInterrupt { id, open });
                    }
                }
            }
        }
    }
    let answered = given.into_iter().map(|(open, value)| {
        let slot = Slot {
            epoch,
            ..open.slot.clone()
        };
        RecordOp::Put(Record {
            task: open.task.clone(),
            kind: RecordKind::Answered { slot, value },
        })
    });
    matched.ops = answered.collect();
    Ok(matched)
}
