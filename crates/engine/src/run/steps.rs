//! The loop: plan, run, apply, store, tell.

use super::attempt::TaskEnd;
use super::context::{Recorded, RunCx, StepInfo, TaskCx};
use super::execute::{Ends, announce_done, channel_writes, run_tasks};
use super::options::{Exit, Outcome};
use crate::checkpoint::{Record, RecordKey, RecordKind, RecordOp, Source};
use crate::command::{START, Target};
use crate::error::RunError;
use crate::event::EventKind;
use crate::graph::Breakpoints;
use crate::interrupt::Interrupt;
use crate::state::StateView;
use crate::step::{AdvanceHead, Done, Task, ThreadState, apply, plan};
use crate::world::Id;
use std::sync::Arc;

/// One invocation under way.
pub(crate) struct Session {
    pub(crate) run: Arc<RunCx>,
    pub(crate) thread: ThreadState,
    /// The newest checkpoint.
    pub(crate) head: Id,
    /// What the tasks planned at the head did so far.
    pub(crate) records: Vec<Record>,
    /// The number of the last step that may be made.
    pub(crate) stop: i64,
    /// Whether this goes on with what was planned before: breakpoints were met already then.
    pub(crate) resuming: bool,
    pub(crate) before: Breakpoints,
    pub(crate) after: Breakpoints,
    pub(crate) answered: usize,
    pub(crate) unknown_ids: Vec<String>,
}

impl Session {
    /// Steps until nothing is planned or something stops the run.
    pub(crate) async fn steps(mut self) -> Outcome {
        if self.resuming {
            self.emit_values();
        }
        let (exit, asked) = loop {
            match self.step().await {
                Ok(None) => {}
                Ok(Some(end)) => break end,
                // The thread is as it was last stored.
                Err(error) => break (Exit::Failed { error }, Vec::new()),
            }
        };
        self.run.emit(self.thread.step + 1, || EventKind::Ended {
            exit: exit.clone(),
        });
        Outcome {
            values: self
                .thread
                .values(&self.run.graph, &self.run.graph.0.output),
            exit,
            interrupts: asked,
            run: self.run.run,
            answered: self.answered,
            unknown_ids: self.unknown_ids,
        }
    }

    /// Makes one step. Gives how the run ends, if it does.
    async fn step(&mut self) -> Result<Option<(Exit, Vec<Interrupt>)>, RunError> {
        let run = self.run.clone();
        let number = self.thread.step + 1;
        let ends = |exit| Ok(Some((exit, Vec::new())));
        if number > self.stop {
            return ends(Exit::StepLimit {
                error: RunError::StepLimit {
                    limit: run.step_limit,
                },
            });
        }
        let tasks = match plan(&run.graph, &self.thread) {
            Ok(tasks) => tasks,
            Err(error) => return ends(Exit::StepLimit { error }),
        };
        if tasks.is_empty() {
            return ends(Exit::Done);
        }
        if run.cancel.is_cancelled() {
            return ends(Exit::Cancelled);
        }
        if !self.resuming && self.meets(&self.before, number, &tasks) {
            return ends(Exit::Paused);
        }
        let results = match self.run_step(number, &tasks).await? {
            Ok(results) => results,
            Err(end) => return Ok(Some(end)),
        };
        let written = match apply(&run.graph, &mut self.thread, &tasks, results) {
            Ok(written) => written,
            Err(error) => {
                let error = error.within(&run.graph_path);
                self.record_failed_application(&tasks, &error).await?;
                return ends(Exit::Failed { error });
            }
        };
        self.store(Source::Loop).await?;
        if written.iter().any(|ix| run.graph.is_output(*ix)) {
            self.emit_values();
        }
        self.resuming = false;
        if !self.thread.next.is_empty() && self.meets(&self.after, number, &tasks) {
            return ends(Exit::Paused);
        }
        Ok(None)
    }

    /// Runs the tasks that have not finished yet. Gives the results of all, in task order, or how the run ends.
    async fn run_step(
        &mut self,
        number: i64,
        tasks: &[Task],
    ) -> Result<Result<Vec<Done>, (Exit, Vec<Interrupt>)>, RunError> {
        let run = &self.run;
        let info = StepInfo {
            checkpoint: self.head,
            step: number,
            remaining: u64::try_from(self.stop - number).unwrap_or(0),
            now: run.world.now(),
        };
        let view = StateView {
            table: run.graph.0.channels.clone(),
            state: self.thread.state.clone(),
            overlay: None,
            reads: None,
        };
        let contexts: Vec<Arc<TaskCx>> = tasks
            .iter()
            .map(|task| {
                Arc::new(TaskCx::new(
                    run,
                    &view,
                    info,
                    task,
                    recorded(&self.records, &task.path),
                ))
            })
            .collect();
        run.emit(number, || EventKind::Step {
            tasks: tasks
                .iter()
                .map(|task| task.name(&run.graph).clone())
                .collect(),
        });
        if self.records.is_empty() {
            // The common case: nothing of this step was done before.
            let ends = run_tasks(run, &contexts, tasks).await?;
            return match all_done(ends) {
                Ok(results) => Ok(Ok(results)),
                Err(ends) => {
                    let finished = tasks.iter().map(|_| None).collect();
                    let open: Vec<usize> = (0..tasks.len()).collect();
                    let end = self.break_off(tasks, &contexts, finished, &open, ends);
                    Ok(Err(end.await?))
                }
            };
        }
        let mut finished: Vec<Option<Done>> =
            tasks.iter().map(|task| self.finished(task)).collect();
        for (cx, done) in contexts.iter().zip(&finished) {
            if let Some(done) = done {
                announce_done(run, cx, done, true);
            }
        }
        let open = (0..tasks.len()).filter(|at| finished[*at].is_none());
        let open: Vec<usize> = open.collect();
        let open_contexts: Vec<Arc<TaskCx>> = open.iter().map(|at| contexts[*at].clone()).collect();
        let open_tasks: Vec<Task> = open.iter().map(|at| tasks[*at].clone()).collect();
        let ends = run_tasks(run, &open_contexts, &open_tasks).await?;
        match all_done(ends) {
            Ok(results) => {
                for (at, done) in open.into_iter().zip(results) {
                    finished[at] = Some(done);
                }
                Ok(Ok(finished.into_iter().flatten().collect()))
            }
            Err(ends) => {
                let end = self.break_off(tasks, &contexts, finished, &open, ends);
                Ok(Err(end.await?))
            }
        }
    }

    /// Ends a step that is not complete: records what its tasks did, and shows what the finished ones wrote.
    async fn break_off(
        &mut self,
        tasks: &[Task],
        contexts: &[Arc<TaskCx>],
        mut finished: Vec<Option<Done>>,
        open: &[usize],
        ends: Ends,
    ) -> Result<(Exit, Vec<Interrupt>), RunError> {
        let mut ops = Vec::new();
        for (at, end) in open.iter().zip(&ends) {
            if let Some(end) = end {
                ops.extend(end_records(&self.run, &contexts[*at], end));
            }
        }
        self.run.record(self.head, ops).await?;
        let (exit, asked) = verdict(&ends);
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
        let (done_tasks, results): (Vec<Task>, Vec<Done>) = tasks
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
    fn finished(&self, task: &Task) -> Option<Done> {
        self.records.iter().find_map(|record| match &record.kind {
            RecordKind::Done {
                writes,
                targets,
                joins,
            } if record.task == task.path => {
                let graph = &self.run.graph;
                let mut done = Done::default();
                for write in writes {
                    done.writes
                        .push((graph.0.channels.find(&write.channel)?, write.write.clone()));
                }
                for target in targets {
                    match target {
                        Target::Node(name) => done.nodes.push(graph.find(name)?),
                        Target::Dispatch(dispatch) => {
                            done.dispatches
                                .push((graph.find(&dispatch.node)?, dispatch.input.clone()));
                        }
                        Target::End => {}
                    }
                }
                for name in joins {
                    let ix = graph.0.joins.iter().position(|join| join.name == *name)?;
                    done.joins.push(ix as u32);
                }
                Some(done)
            }
            _ => None,
        })
    }

    /// Keeps the thread readable after a step whose writes can not be folded: its tasks are pending and failed.
    async fn record_failed_application(
        &mut self,
        tasks: &[Task],
        error: &RunError,
    ) -> Result<(), RunError> {
        let ops = tasks
            .iter()
            .flat_map(|task| {
                let done = RecordKey {
                    task: task.path.clone(),
                    name: "done".to_owned(),
                };
                let failed = Record {
                    task: task.path.clone(),
                    kind: RecordKind::Failed(error.clone()),
                };
                [RecordOp::Remove(done), RecordOp::Put(failed)]
            })
            .collect();
        Ok(self.run.record(self.head, ops).await?)
    }

    /// Stores what happened since the head as a new checkpoint.
    ///
    /// # Errors
    /// If it could not be made durable.
    pub(crate) async fn store(&mut self, source: Source) -> Result<(), RunError> {
        let run = self.run.clone();
        let id = run.world.new_id();
        if let Some(writer) = &run.writer {
            let parent = Some(self.head).filter(|head| *head != NO_HEAD);
            let head = AdvanceHead {
                id,
                parent,
                source,
                created: run.world.now(),
                run: run.run,
            };
            let advance = self.thread.advance(&run.graph, head);
            writer.advance(&run.namespace, advance).await?;
            run.emit(self.thread.step, || EventKind::Checkpoint {
                id,
                source,
                next: self
                    .thread
                    .next
                    .iter()
                    .map(|planned| planned.named(&run.graph).node().into())
                    .collect(),
            });
        }
        self.head = id;
        self.records.clear();
        Ok(())
    }

    fn emit_values(&self) {
        let run = &self.run;
        run.emit(self.thread.step, || EventKind::Values {
            values: self.thread.values(&run.graph, &run.graph.0.output),
        });
    }

    /// Whether a breakpoint is met by one of these tasks; tells listeners if so.
    fn meets(&self, breakpoints: &Breakpoints, number: i64, tasks: &[Task]) -> bool {
        if breakpoints.is_none() {
            return false;
        }
        let names = tasks.iter().map(|task| task.name(&self.run.graph));
        let nodes: Vec<Arc<str>> = names
            .filter(|name| &***name != START && breakpoints.includes(name))
            .cloned()
            .collect();
        if !nodes.is_empty() {
            self.run.emit(number, || EventKind::Breakpoint {
                nodes: nodes.clone(),
            });
        }
        !nodes.is_empty()
    }
}

/// The results of a step whose tasks all finished; else the ends as they are.
fn all_done(ends: Ends) -> Result<Vec<Done>, Ends> {
    if !ends.iter().all(|end| matches!(end, Some(TaskEnd::Done(_)))) {
        return Err(ends);
    }
    let done = ends.into_iter().filter_map(|end| match end {
        Some(TaskEnd::Done(done)) => Some(done),
        _ => None,
    });
    Ok(done.collect())
}

/// Stands for the head of a thread without a checkpoint.
pub(crate) const NO_HEAD: Id = Id(0);

/// What was recorded of one task before.
fn recorded(records: &[Record], path: &str) -> Recorded {
    let mut recorded = Recorded::default();
    for record in records.iter().filter(|record| &*record.task == path) {
        match &record.kind {
            RecordKind::Answered { slot, value } => {
                recorded.answers.insert(slot.clone(), value.clone());
            }
            RecordKind::Call(call) => {
                recorded.calls.insert(call.key.clone(), call.clone());
            }
            _ => {}
        }
    }
    recorded
}

/// What is recorded of a task that ended while its step did not.
pub(crate) fn end_records(run: &RunCx, cx: &TaskCx, end: &TaskEnd) -> Vec<RecordOp> {
    let put = |kind| {
        RecordOp::Put(Record {
            task: cx.path.clone(),
            kind,
        })
    };
    let recovered = RecordOp::Remove(RecordKey {
        task: cx.path.clone(),
        name: "failed".to_owned(),
    });
    match end {
        TaskEnd::Done(done) => {
            let nodes = done
                .nodes
                .iter()
                .map(|ix| Target::Node(run.graph.node(*ix).name.clone()));
            let dispatches = done.dispatches.iter().map(|(ix, input)| {
                Target::dispatch(run.graph.node(*ix).name.clone(), input.clone())
            });
            let kind = RecordKind::Done {
                writes: channel_writes(run, done),
                targets: nodes.chain(dispatches).collect(),
                joins: done
                    .joins
                    .iter()
                    .map(|ix| run.graph.0.joins[*ix as usize].name.clone())
                    .collect(),
            };
            vec![recovered, put(kind)]
        }
        TaskEnd::Asked(asked) => {
            let asked = asked.iter().map(|asked| {
                put(RecordKind::Asked {
                    slot: asked.slot.clone(),
                    interrupt: asked.interrupt.clone(),
                })
            });
            std::iter::once(recovered).chain(asked).collect()
        }
        TaskEnd::Failed(error) => {
            let reopened = cx.given_up().into_iter().map(|slot| {
                let [_, answer] = RecordKey::question(&cx.path, &slot);
                RecordOp::Remove(answer)
            });
            let failed = put(RecordKind::Failed(error.clone()));
            std::iter::once(failed).chain(reopened).collect()
        }
    }
}

/// How a step ends that is not complete: by the first error in task order, else by questions.
fn verdict(ends: &Ends) -> (Exit, Vec<Interrupt>) {
    let error = ends.iter().flatten().find_map(|end| {
        if let TaskEnd::Failed(error) = end {
            Some(error)
        } else {
            None
        }
    });
    if let Some(error) = error {
        return (
            Exit::Failed {
                error: error.clone(),
            },
            Vec::new(),
        );
    }
    if ends.iter().any(Option::is_none) {
        return (Exit::Cancelled, Vec::new());
    }
    let asked = ends.iter().flatten().flat_map(|end| match end {
        TaskEnd::Asked(asked) => asked.iter().map(|asked| asked.interrupt.clone()).collect(),
        _ => Vec::new(),
    });
    (Exit::Interrupted, asked.collect())
}
