//! How tasks ended, and what that means for their step.

use super::context::RunCx;
use super::execute::channel_writes;
use super::options::Exit;
use super::task::{Asked, TaskCx};
use crate::checkpoint::{Record, RecordKey, RecordKind, RecordOp};
use crate::command::{Command, Target};
use crate::error::{ErrorClass, RunError};
use crate::interrupt::Interrupt;
use crate::step::{Done, Results};

/// How a task ended.
#[derive(Debug)]
pub(crate) enum TaskEnd {
    Done(Done),
    Asked(Vec<Asked>),
    /// It sent a command to the graph that contains this one, which ends the run of this one.
    ToParent(Box<Command>),
    Failed(Box<RunError>),
}

impl TaskEnd {
    pub(super) fn failed(error: RunError) -> Self {
        Self::Failed(Box::new(error))
    }
}

/// How the tasks of a step ended; `None` for those that a cancellation stopped.
pub(crate) type Ends = Vec<Option<TaskEnd>>;

/// The results of a step whose tasks all finished; else the ends as they are.
pub(super) fn all_done(ends: Ends) -> Result<Results, Ends> {
    if !ends.iter().all(|end| matches!(end, Some(TaskEnd::Done(_)))) {
        return Err(ends);
    }
    let done = ends.into_iter().filter_map(|end| match end {
        Some(TaskEnd::Done(done)) => Some(done),
        _ => None,
    });
    Ok(done.collect())
}

/// What is recorded of a task that ended while its step did not.
pub(super) fn end_records(run: &RunCx, cx: &TaskCx, end: &TaskEnd) -> Vec<RecordOp> {
    let put = |kind| {
        RecordOp::Put(Record {
            task: cx.path.clone(),
            kind,
        })
    };
    let asker = cx.asker();
    let dropped = |asked: &[Asked]| -> Vec<RecordOp> {
        // Those of the node too, once its handler runs: nobody will ask them again.
        let node = (!std::ptr::eq(asker, cx)).then(|| cx.dropped_questions(&[]));
        let node = node.into_iter().flatten().map(|slot| (&cx.path, slot));
        let own = asker.dropped_questions(asked);
        node.chain(own.map(|slot| (&asker.path, slot)))
            .map(|(path, slot)| RecordOp::Remove(RecordKey::asked(path, slot)))
            .collect()
    };
    match end {
        TaskEnd::Done(done) => {
            let mut ops = dropped(&[]);
            ops.push(put(done_record(run, done)));
            ops
        }
        TaskEnd::Asked(asked) => {
            let mut ops = dropped(asked);
            ops.push(RecordOp::Remove(RecordKey::failed(&cx.path)));
            ops.extend(asked.iter().map(|asked| {
                RecordOp::Put(Record {
                    task: asker.path.clone(),
                    kind: RecordKind::Asked {
                        slot: asked.slot.clone(),
                        interrupt: asked.interrupt.clone(),
                    },
                })
            }));
            ops
        }
        TaskEnd::ToParent(_) => Vec::new(),
        TaskEnd::Failed(error) if stopped(run, error) => Vec::new(),
        TaskEnd::Failed(error) => vec![put(RecordKind::Failed((**error).clone()))],
    }
}

pub(super) fn done_record(run: &RunCx, done: &Done) -> RecordKind {
    let nodes = done
        .nodes
        .iter()
        .map(|ix| Target::Node(run.graph.node(*ix).name.clone()));
    let dispatches = done
        .dispatches()
        .iter()
        .map(|(ix, input)| Target::dispatch(run.graph.node(*ix).name.clone(), input.clone()));
    let joins = done
        .joins()
        .iter()
        .map(|ix| run.graph.0.joins[*ix as usize].name.clone());
    RecordKind::Done {
        writes: run.graph.0.channels.stored(channel_writes(run, done)),
        targets: nodes.chain(dispatches).collect(),
        joins: joins.collect(),
    }
}

/// Whether a task did not fail but was stopped with its run.
fn stopped(run: &RunCx, error: &RunError) -> bool {
    error.stops_run() || run.cancel.is_cancelled() && error.class() == ErrorClass::Canceled
}

/// How a step ends that is not complete: by the first error in task order, else by questions, else by a command for the
/// parent graph. Questions are told in
/// either case, for they are open.
pub(super) fn verdict(run: &RunCx, ends: &Ends) -> (Exit, Vec<Interrupt>) {
    let asked = ends.iter().flatten().flat_map(|end| match end {
        TaskEnd::Asked(asked) => asked.as_slice(),
        _ => &[],
    });
    let asked = asked.map(|asked| asked.interrupt.clone()).collect();
    let errors = ends.iter().flatten().filter_map(|end| match end {
        TaskEnd::Failed(error) => Some(&**error),
        _ => None,
    });
    let (stops, mut failures): (Vec<&RunError>, Vec<&RunError>) =
        errors.partition(|error| stopped(run, error));
    let exit = match failures.drain(..).next() {
        Some(error) => Exit::Failed {
            error: error.clone(),
        },
        None if !stops.is_empty() || ends.iter().any(Option::is_none) => {
            let spent = stops
                .iter()
                .find(|error| matches!(error, RunError::Budget { .. }));
            match spent {
                Some(error) => Exit::Budget {
                    error: RunError::clone(error),
                },
                None if run.cancel.is_cancelled() => Exit::Cancelled,
                None => Exit::Drained,
            }
        }
        // A command for the parent waits until nothing is open any more; its task then sends it again.
        None if ends
            .iter()
            .flatten()
            .any(|end| matches!(end, TaskEnd::Asked(_))) =>
        {
            Exit::Interrupted
        }
        None => Exit::Done,
    };
    (exit, asked)
}
