//! Steps that are not complete: what is kept of them, and what is shown.

use super::ends::{Ends, TaskEnd, end_records, verdict};
use super::execute::announce_asked;
use super::open::load_thread;
use super::options::Exit;
use super::steps::{End, Session};
use super::stored::stored_result;
use super::task::TaskCx;
use crate::channel::Slot;
use crate::checkpoint::{ByTask, Record, RecordKey, RecordKind, RecordOp, Scope};
use crate::error::RunError;
use crate::step::{Done, Results, Task, ThreadState, apply};
use std::sync::Arc;

impl Session {
    /// Ends a step that is not complete: records what its tasks did, and shows what the finished ones wrote.
    pub(super) async fn break_off(
        &mut self,
        tasks: &[Task],
        contexts: &[Arc<TaskCx>],
        mut finished: Vec<Option<Done>>,
        open: &[usize],
        ends: Ends,
    ) -> Result<End, RunError> {
        let mut ops = std::mem::take(&mut self.spent_ops);
        for (at, end) in open.iter().zip(&ends) {
            match end {
                Some(end) => ops.extend(end_records(&self.run, &contexts[*at], end)),
                None => ops.extend(contexts[*at].left()),
            }
        }
        self.run.record(self.head, ops).await?;
        // Nobody may hear of a question that a crash could take back.
        for (at, end) in open.iter().zip(&ends) {
            if let Some(TaskEnd::Asked(asked)) = end {
                announce_asked(&self.run, &contexts[*at], asked);
            }
        }
        let (exit, asked) = verdict(&self.run, &ends);
        if exit == Exit::Done {
            // Nothing else of this graph counts then, and it is over.
            let sent = ends.into_iter().flatten().filter_map(|end| match end {
                TaskEnd::ToParent(command) => Some(*command),
                _ => None,
            });
            self.to_parent = sent.collect();
            return Ok((exit, asked));
        }
        for (at, end) in open.iter().zip(ends) {
            if let Some(TaskEnd::Done(done)) = end {
                finished[*at] = Some(done);
            }
        }
        self.show_finished(tasks, finished, matches!(exit, Exit::Interrupted));
        Ok((exit, asked))
    }

    /// Lets the outcome, and after an interrupt the listeners, see what the finished tasks of an open step wrote. It is
    /// stored with them and not yet part of the thread.
    fn show_finished(&mut self, tasks: &[Task], finished: Vec<Option<Done>>, tell: bool) {
        let (done_tasks, results): (Vec<Task>, Results) = tasks
            .iter()
            .zip(finished)
            .filter_map(|(task, done)| Some((task.clone(), done?)))
            .unzip();
        if done_tasks.is_empty() {
            return;
        }
        let mut seen = ThreadState {
            effects: None,
            ..self.thread.clone()
        };
        // Results that conflict are told as an error when the step is applied.
        if let Ok(written) = apply(&self.run.graph, &mut seen, &done_tasks, results) {
            self.thread.state = seen.state;
            if tell && written.iter().any(|ix| self.run.graph.is_output(*ix)) {
                self.emit_values();
            }
        }
    }

    /// The result of a task that finished before, if it did.
    ///
    /// # Errors
    /// If it wrote or went where the graph has nothing any more.
    pub(crate) fn finished(
        &self,
        records: &ByTask<'_>,
        task: &Task,
    ) -> Result<Option<Done>, RunError> {
        let mut records = records.task(&task.path).iter();
        let done = records.find_map(|record| match &record.kind {
            RecordKind::Done {
                writes,
                targets,
                joins,
            } => Some(stored_result(&self.run, task, writes, targets, joins)),
            _ => None,
        });
        done.transpose()
    }

    /// Keeps the thread readable after a step whose writes can not be folded: its tasks are pending and failed, and the
    /// state is what was last stored.
    pub(super) async fn fail_application(
        &mut self,
        tasks: &[Task],
        error: &RunError,
    ) -> Result<(), RunError> {
        let ops = tasks.iter().flat_map(|task| {
            let done = RecordKey {
                task: task.path.clone(),
                name: "done".to_owned(),
            };
            let failed = Record {
                task: task.path.clone(),
                kind: RecordKind::Failed(error.clone()),
            };
            [RecordOp::Remove(done), RecordOp::Put(failed)]
        });
        let ops = ops.chain(std::mem::take(&mut self.spent_ops));
        self.run.record(self.head, ops.collect()).await?;
        let run = &self.run;
        let stored = match &run.checkpointer {
            Some(checkpointer) => {
                let scope = Scope {
                    thread: run.thread.clone(),
                    namespace: run.namespace.clone(),
                };
                checkpointer.load(&scope, Some(self.head)).await?
            }
            None => None,
        };
        match stored {
            Some(checkpoint) => self.thread = load_thread(&run.graph, &checkpoint)?,
            // Some of the writes are folded and some are not; that is no state to show.
            None => Arc::make_mut(&mut self.thread.state)
                .slots
                .iter_mut()
                .for_each(|slot| *slot = Slot::default()),
        }
        Ok(())
    }
}
