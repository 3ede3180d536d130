//! The loop: plan, run, apply, store, tell.

use super::budget::{Spend, spent_records};
use super::context::RunCx;
use super::durable::caught;
use super::ends::{TaskEnd, all_done};
use super::execute::{announce_done, run_alone, run_tasks};
use super::limits::{StepBound, keep_spent, out_of_time};
use super::options::{Exit, Outcome};
use super::spans;
use super::task::{Recorded, StepInfo, TaskCx};
use crate::checkpoint::epoch;
use crate::checkpoint::{Advance, ByTask, Record, RecordKind, RecordOp, Source};
use crate::command::{Command, START};
use crate::error::RunError;
use crate::event::EventKind;
use crate::graph::Breakpoints;
use crate::interrupt::Interrupt;
use crate::state::StateView;
use crate::step::{AdvanceHead, Done, Results, Task, Tasks, ThreadState, apply, apply_one, plan};
use crate::world::{Id, Timestamp};
use std::sync::Arc;
use std::time::Duration;
use tracing::Instrument as _;

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
    /// How many steps may be made, the start of a run not counted.
    pub(crate) max_steps: Option<u64>,
    /// How many were.
    pub(crate) made: u64,
    /// Whether this goes on with what was planned before; listeners are then told the state first.
    pub(crate) goes_on: bool,
    /// Whether the next step passes breakpoints before it: one stopped there already.
    pub(crate) passes: bool,
    /// Those of the last step: their room for those of the next.
    pub(crate) tasks: Option<Box<Tasks>>,
    pub(crate) before: Breakpoints,
    pub(crate) after: Breakpoints,
    pub(crate) answered: usize,
    /// What tasks sent to the graph that contains this one.
    pub(crate) to_parent: Vec<Command>,
    pub(crate) unknown_ids: Vec<String>,
    /// When the run began and how long it may take, if that is bounded.
    pub(crate) deadline: Option<(Timestamp, Duration)>,
    /// When the head was stored, if that was in this invocation: the step after it begins then.
    pub(crate) now: Option<Timestamp>,
    /// What the tasks of the step just run have spent, and the records that say so.
    pub(crate) step_spent: Spend,
    pub(crate) spent_ops: Vec<RecordOp>,
}

/// How a run ends, and the questions that were asked.
pub(super) type End = (Exit, Vec<Interrupt>);

/// What comes of a plan.
enum Ready {
    /// Its tasks run.
    Run,
    /// The run ends.
    End(Box<Exit>),
    /// A breakpoint is at one of its tasks.
    Pause,
}

impl Session {
    /// Steps until nothing is planned or something stops the run.
    pub(crate) async fn steps(mut self) -> Outcome {
        if self.goes_on {
            self.emit_values();
        }
        let end = loop {
            match self.step().await {
                Ok(None) => {}
                Ok(Some(end)) => break Ok(end),
                Err(error) => break Err(error),
            }
        };
        let end = match self.run.flush().await {
            Ok(()) => end,
            // Nobody may believe what is not stored.
            Err(error) => end.and(Err(RunError::Store(error))),
        };
        // After an error the thread is as it was last stored.
        let (exit, asked) = end.unwrap_or_else(|error| (Exit::Failed { error }, Vec::new()));
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
            spent: self.run.ledger.spent(),
            deaf: None,
            to_parent: self.to_parent,
            unknown_ids: self.unknown_ids,
        }
    }

    /// Makes one step. Gives how the run ends, if it does.
    async fn step(&mut self) -> Result<Option<End>, RunError> {
        // Their room is kept from step to step.
        let mut tasks = self.tasks.take().unwrap_or_default();
        match self.ready(&mut tasks) {
            Ready::Run => {}
            Ready::End(exit) => return Ok(Some((*exit, Vec::new()))),
            Ready::Pause => {
                let before = self.before.clone();
                let number = self.thread.step + 1;
                return Box::pin(self.pause(&before, number, &tasks))
                    .await
                    .map(Some);
            }
        }
        let applied = match &tasks[..] {
            [task] if self.records.is_empty() && !self.run.spans => match self.run_one(task).await?
            {
                Ok(done) => apply_one(&self.run.graph, &mut self.thread, task, done),
                Err(end) => return Ok(Some(*end)),
            },
            tasks => {
                let span = spans::step(&self.run, self.thread.step + 1, tasks);
                match Box::pin(self.run_step(tasks)).instrument(span).await? {
                    Ok(results) => apply(&self.run.graph, &mut self.thread, tasks, results),
                    Err(end) => return Ok(Some(*end)),
                }
            }
        };
        let written = match applied {
            Ok(written) => written,
            Err(error) => {
                let error = error.within(&self.run.graph_path);
                Box::pin(self.fail_application(&tasks, &error)).await?;
                return Ok(Some((Exit::Failed { error }, Vec::new())));
            }
        };
        if !self.step_spent.is_zero() {
            let spent = std::mem::take(&mut self.step_spent);
            keep_spent(&self.run.graph, &mut self.thread, spent);
        }
        // The start of a run is no step of it.
        self.made += u64::from(tasks[0].node().is_some());
        if self.run.writer.is_none() {
            self.head = self.run.unstored_id(self.head);
            self.records.clear();
        } else {
            self.store(Source::Loop).await?;
        }
        if self.run.listener.is_some() && written.iter().any(|ix| self.run.graph.is_output(*ix)) {
            self.emit_values();
        }
        if !self.after.is_none() && !self.thread.next.is_empty() && self.meets(&self.after, &tasks)
        {
            let after = self.after.clone();
            let number = self.thread.step;
            return Box::pin(self.pause(&after, number, &tasks)).await.map(Some);
        }
        self.tasks = Some(tasks);
        Ok(None)
    }

    /// Plans a step, and asks everyone who may stop the run before it.
    fn ready(&mut self, tasks: &mut Tasks) -> Ready {
        let ends = |exit| Ready::End(Box::new(exit));
        let run = &*self.run;
        let number = self.thread.step + 1;
        if number > self.stop {
            let limit = run.step_limit;
            return ends(Exit::StepLimit {
                error: RunError::StepLimit { limit },
            });
        }
        if let Err(error) = plan(&run.graph, &self.thread, tasks) {
            let error = error.within(&run.graph_path);
            return ends(Exit::StepLimit { error });
        }
        let Some(first) = tasks.first() else {
            return ends(Exit::Done);
        };
        if let Some(limit) = self.max_steps
            && self.made >= limit
            && first.node().is_some()
        {
            return ends(Exit::StepLimit {
                error: RunError::StepLimit { limit },
            });
        }
        if (run.ledger.bounded || self.deadline.is_some())
            && let Some(error) = self.over_budget()
        {
            return ends(Exit::Budget { error });
        }
        if run.cancel.is_cancelled() {
            return ends(Exit::Cancelled);
        }
        let passes = std::mem::take(&mut self.passes);
        if !passes && !self.before.is_none() && self.meets(&self.before, tasks) {
            return Ready::Pause;
        }
        if self.run.drains && self.run.drain.is_requested() {
            return ends(Exit::Drained);
        }
        Ready::Run
    }

    /// The error of a run that has spent more than it may.
    fn over_budget(&self) -> Option<RunError> {
        let run = &self.run;
        let ledger = &run.ledger;
        let spent = ledger.bounded.then(|| ledger.exceeded(run.location("")));
        spent.flatten().or_else(|| out_of_time(run, self.deadline))
    }

    /// Whether a breakpoint is at one of these tasks.
    fn meets(&self, breakpoints: &Breakpoints, tasks: &[Task]) -> bool {
        let mut names = tasks.iter().map(|task| task.name(&self.run.graph));
        names.any(|name| **name != *START && breakpoints.includes(name))
    }

    /// Stops at a breakpoint, and marks that it was: going on passes it.
    async fn pause(
        &self,
        breakpoints: &Breakpoints,
        number: i64,
        tasks: &[Task],
    ) -> Result<End, RunError> {
        let (task, kind) = ("".into(), RecordKind::Paused);
        let mark = RecordOp::Put(Record { task, kind });
        self.run.record(self.head, vec![mark]).await?;
        self.run.emit(number, || {
            let names = tasks.iter().map(|task| task.name(&self.run.graph));
            let listed = names.filter(|name| breakpoints.includes(name));
            EventKind::Breakpoint {
                nodes: listed.cloned().collect(),
            }
        });
        Ok((Exit::Paused, Vec::new()))
    }

    /// The frozen state that the tasks of a step see.
    pub(crate) fn view(&self) -> StateView {
        StateView {
            table: self.run.graph.0.channels.clone(),
            state: self.thread.state.clone(),
            overlay: None,
            reads: None,
        }
    }

    /// How many steps fit after the one of this number, under either limit.
    fn remaining(&self, number: i64) -> u64 {
        let left = u64::try_from(self.stop.saturating_sub(number)).unwrap_or(0);
        match self.max_steps {
            // The last step is the one after which nothing fits, and a node is told on it that one is left: its own.
            Some(limit) => left.min(limit.saturating_sub(self.made)),
            None => left,
        }
    }

    /// What the tasks of the step of this number have in common.
    pub(crate) fn step_info(&self, number: i64) -> StepInfo {
        StepInfo {
            checkpoint: self.head,
            step: number,
            remaining: self.remaining(number),
            now: self.now.unwrap_or_else(|| self.run.world.now()),
            epoch: epoch(&self.records),
        }
    }

    /// Runs the one task of a step, of which nothing was done before. As [`Session::run_step`].
    async fn run_one(&mut self, task: &Task) -> Result<Result<Done, Box<End>>, RunError> {
        let number = self.thread.step + 1;
        let info = self.step_info(number);
        let run = &self.run;
        let cx = Arc::new(TaskCx::new(run, self.view(), info, task, None));
        run.emit(number, || EventKind::Step {
            tasks: vec![task.name(&run.graph).clone()],
        });
        let bound = match (run.step_timeout, self.deadline) {
            (None, None) => None,
            _ => StepBound::of(run, self.deadline),
        };
        let end = run_alone(run, &cx, &task.kind, bound).await;
        if self.run.ledger.touched() {
            self.note_spent(std::slice::from_ref(&cx));
        }
        match end {
            Some(TaskEnd::Done(done)) => Ok(Ok(done)),
            end => {
                let task = std::slice::from_ref(task);
                let cx = std::slice::from_ref(&cx);
                let end = self.break_off(task, cx, vec![None], &[0], vec![end]);
                Ok(Err(Box::new(Box::pin(end).await?)))
            }
        }
    }

    /// Runs the tasks that have not finished yet. Gives the results of all, in task order, or how the run ends.
    async fn run_step(&mut self, tasks: &[Task]) -> Result<Result<Results, Box<End>>, RunError> {
        let number = self.thread.step + 1;
        let run = &self.run;
        let (view, info) = (self.view(), self.step_info(number));
        let records = ByTask::of(&self.records);
        let contexts: Vec<Arc<TaskCx>> = tasks
            .iter()
            .map(|task| {
                Arc::new(TaskCx::new(
                    run,
                    view.clone(),
                    info,
                    task,
                    Recorded::of(&records, &task.path),
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
            let bound = StepBound::of(run, self.deadline);
            let ends = run_tasks(run, &contexts, tasks, bound).await?;
            self.note_spent(&contexts);
            return match all_done(ends) {
                Ok(results) => Ok(Ok(results)),
                Err(ends) => {
                    let finished = tasks.iter().map(|_| None).collect();
                    let open: Vec<usize> = (0..tasks.len()).collect();
                    let end = self.break_off(tasks, &contexts, finished, &open, ends);
                    Ok(Err(Box::new(Box::pin(end).await?)))
                }
            };
        }
        let finished: Result<Vec<Option<Done>>, RunError> = tasks
            .iter()
            .map(|task| self.finished(&records, task))
            .collect();
        let mut finished = finished?;
        for (cx, done) in contexts.iter().zip(&finished) {
            if let Some(done) = done {
                announce_done(run, cx, done, true);
            }
        }
        let open = (0..tasks.len()).filter(|at| finished[*at].is_none());
        let open: Vec<usize> = open.collect();
        let open_contexts: Vec<Arc<TaskCx>> = open.iter().map(|at| contexts[*at].clone()).collect();
        let open_tasks: Vec<Task> = open.iter().map(|at| tasks[*at].clone()).collect();
        let bound = StepBound::of(run, self.deadline);
        let ends = run_tasks(run, &open_contexts, &open_tasks, bound).await?;
        self.note_spent(&contexts);
        match all_done(ends) {
            Ok(results) => {
                for (at, done) in open.into_iter().zip(results) {
                    finished[at] = Some(done);
                }
                Ok(Ok(finished.into_iter().flatten().collect()))
            }
            Err(ends) => {
                let end = self.break_off(tasks, &contexts, finished, &open, ends);
                Ok(Err(Box::new(Box::pin(end).await?)))
            }
        }
    }

    /// Notes what the tasks of a step have spent, in task order.
    fn note_spent(&mut self, contexts: &[Arc<TaskCx>]) {
        if !self.run.ledger.touched() {
            return;
        }
        let spent = contexts.iter().map(|cx| cx.spent());
        self.step_spent = spent.fold(Spend::default(), Spend::and);
        self.spent_ops.clear();
        let ops = contexts.iter().flat_map(|cx| spent_records(cx));
        self.spent_ops.extend(ops);
    }

    /// Stores what happened since the head as a new checkpoint.
    ///
    /// # Errors
    /// If it could not be made durable.
    pub(crate) async fn store(&mut self, source: Source) -> Result<(), RunError> {
        self.store_with(source, Vec::new()).await
    }

    /// As [`Session::store`], with records that stand at the new checkpoint from its first moment on.
    pub(crate) async fn store_with(
        &mut self,
        source: Source,
        records: Vec<Record>,
    ) -> Result<(), RunError> {
        let run = self.run.clone();
        let writer = run.writer()?;
        let kept = match records.is_empty() {
            true => Vec::new(),
            false => records.clone(),
        };
        let id = match writer {
            None => run.unstored_id(self.head),
            Some(writer) => {
                let advance = self.advance(source, records);
                let id = advance.id;
                match writer.at_once() {
                    Some(writer) => caught(writer.advance(&run.namespace, advance)).await?,
                    None => Box::pin(writer.advance(&run.namespace, advance)).await?,
                }
                id
            }
        };
        if run.writer.is_some() {
            run.emit(self.thread.step, || {
                let next = self.thread.next.iter();
                let next = next.map(|planned| planned.named(&run.graph).node().into());
                EventKind::Checkpoint {
                    id,
                    source,
                    next: next.collect(),
                }
            });
        }
        self.head = id;
        self.records = kept;
        Ok(())
    }

    /// The checkpoint that stores what happened since the head.
    pub(crate) fn advance(&mut self, source: Source, records: Vec<Record>) -> Advance {
        let run = &self.run;
        let (now, id) = run.stamp(self.head);
        self.now = Some(now);
        let head = AdvanceHead {
            id,
            parent: Some(self.head).filter(|head| *head != NO_HEAD),
            source,
            created: now,
            run: run.run,
            invocation: run.invocation,
        };
        self.thread.advance(&run.graph, head, records)
    }

    pub(crate) fn emit_values(&self) {
        let run = &self.run;
        run.emit(self.thread.step, || EventKind::Values {
            values: self.thread.values(&run.graph, &run.graph.0.output),
        });
    }
}

/// Stands for the head of a thread without a checkpoint.
pub(crate) const NO_HEAD: Id = Id(0);
