//! Open questions among the records of a checkpoint.

use super::{HANDLER, Record, RecordKind};
use crate::interrupt::{Interrupt, Slot};
use std::collections::BTreeSet;
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

/// The questions at a checkpoint that have no answer yet, in the order of their tasks.
pub(crate) fn open_questions(records: &[Record]) -> Vec<Open> {
    let answered: BTreeSet<(&str, &Slot)> = records
        .iter()
        .filter_map(|record| match &record.kind {
            RecordKind::Answered { slot, .. } => Some((&*record.task, slot)),
            _ => None,
        })
        .collect();
    let asked = asked_questions(records).into_iter();
    asked
        .filter(|open| !answered.contains(&(&*open.task, &open.slot)))
        .collect()
}

/// The questions at a checkpoint, answered or not, in the order of their tasks. What was asked before a client command
/// changed the state is not among them: its task asks anew.
pub(crate) fn asked_questions(records: &[Record]) -> Vec<Open> {
    let now = epoch(records);
    let asked = records.iter().filter_map(|record| match &record.kind {
        RecordKind::Asked { slot, interrupt } if slot.epoch == now => Some(Open {
            task: record.task.clone(),
            slot: slot.clone(),
            interrupt: interrupt.clone(),
        }),
        _ => None,
    });
    let mut asked: Vec<Open> = asked.collect();
    asked.sort_by(|a, b| task_order(&a.task).cmp(&task_order(&b.task)));
    asked
}

/// All questions that were ever asked at a checkpoint, in the order of their tasks.
pub(super) fn all_questions(records: &[Record]) -> Vec<Interrupt> {
    let mut asked: Vec<(&Arc<str>, &Interrupt)> = records
        .iter()
        .filter_map(|record| match &record.kind {
            RecordKind::Asked { interrupt, .. } => Some((&record.task, interrupt)),
            _ => None,
        })
        .collect();
    asked.sort_by_key(|(task, _)| task_order(task));
    asked
        .into_iter()
        .map(|(_, interrupt)| interrupt.clone())
        .collect()
}

/// Where the task of this path stands in its step: nodes by name, then dispatches by number. The order of the records
/// is another one: that in which tasks happened to get there.
fn task_order(path: &str) -> (usize, &str) {
    // The handler of a task stands where that does.
    let task = path.strip_suffix(HANDLER).unwrap_or(path);
    let dispatched = task.rsplit_once('#');
    match dispatched.and_then(|(_, number)| number.parse::<usize>().ok()) {
        Some(number) => (number.saturating_add(1), ""),
        None => (0, path),
    }
}
