//! Open questions among the records of a checkpoint.

use super::{Record, RecordKind};
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

/// The questions at a checkpoint that have no answer yet, in the order they were asked.
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

/// The questions at a checkpoint, answered or not, in the order they were asked. What was asked before a client command
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
    asked.collect()
}
