//! Open questions, and answers that come for them.

use crate::checkpoint::{Record, RecordKind, RecordOp};
use crate::error::RunError;
use crate::interrupt::{Answers, Interrupt, Resume, Slot};
use crate::value::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// An open question and where it was asked.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    pub(crate) task: Arc<str>,
    pub(crate) slot: Slot,
    pub(crate) interrupt: Interrupt,
}

/// How many client commands changed the state since the checkpoint that these records stand at.
pub(crate) fn epoch(records: &[Record]) -> u32 {
    let changes = records.iter().filter(
        |record| matches!(&record.kind, RecordKind::Command { writes, .. } if !writes.is_empty()),
    );
    u32::try_from(changes.count()).unwrap_or(u32::MAX)
}

/// The questions at a checkpoint that have no answer yet, in the order they were asked. What was asked before a client
/// command changed the state is not open: its task asks anew.
pub(crate) fn open_questions(records: &[Record]) -> Vec<Open> {
    let now = epoch(records);
    let answered: BTreeSet<(&str, &Slot)> = records
        .iter()
        .filter_map(|record| match &record.kind {
            RecordKind::Answered { slot, .. } => Some((&*record.task, slot)),
            _ => None,
        })
        .collect();
    let asked = records.iter().filter_map(|record| match &record.kind {
        RecordKind::Asked { slot, interrupt } if slot.epoch == now => Some(Open {
            task: record.task.clone(),
            slot: slot.clone(),
            interrupt: interrupt.clone(),
        }),
        _ => None,
    });
    asked
        .filter(|open| !answered.contains(&(&*open.task, &open.slot)))
        .collect()
}

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
