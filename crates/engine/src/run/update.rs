//! Updates of a thread from outside, made as if nodes had returned them.

use super::Runner;
use super::attempt::finish_as;
use super::base::{Base, Stands};
use super::begin::{abandon_open, plan_start, settle};
use super::command::{fold_command, input_writes, nowhere};
use super::durable::Durable;
use super::infer::last_ran;
use super::open::{self, Invocation};
use super::options::{Durability, InputPolicy, RunOptions};
use super::steps::Session;
use super::task::TaskCx;
use crate::checkpoint::{
    Advance, ByTask, CallState, Checkpointer, HANDLER, Record, RecordKind, Scope, Source,
    ThreadKey, by_edges,
};
use crate::command::{END, Output, START};
use crate::error::RunError;
use crate::graph::Graph;
use crate::step::{Done, Planned, Results, Task, TaskKind, apply, plan_unlimited};
use crate::value::Value;
use crate::world::Id;
use std::collections::BTreeMap;
use std::sync::Arc;

/// As what an update is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpdateAs {
    /// The node that ran last; [`START`] if none did. Nodes reached by edges count, dispatches and updates do not.
    #[default]
    LastRan,
    /// The node of this name: its edges and routers say what runs next. The node itself does not run.
    Node(Arc<str>),
    /// The start: the entry edges say what runs next.
    Start,
    /// New input: it is planned, and going on brings it into the thread and starts a run.
    Input,
    /// The end, without any writes: what is planned is dropped. The writes of tasks that have finished are kept, and go
    /// where they lead.
    End,
    /// The end, without any writes: as [`End`](Self::End), and nothing runs after it. What finished tasks lead to is
    /// dropped too, and the input of a run that has not started is kept as if it had.
    Cancel,
    /// Nothing, without any writes: a copy of the checkpoint, with the parent that it has.
    Copy,
}

impl From<&str> for UpdateAs {
    /// The node of this name, or what [`START`] and [`END`] stand for.
    fn from(name: &str) -> Self {
        match name {
            START => Self::Start,
            END => Self::End,
            name => Self::Node(name.into()),
        }
    }
}

/// An update from outside.
#[derive(Clone, Debug, Default)]
pub struct ThreadUpdate {
    /// As what it is made.
    pub by: UpdateAs,
    /// The writes, and where to go beside the edges.
    pub output: Output,
}

impl ThreadUpdate {
    /// An update made as a node.
    pub fn new(by: impl Into<UpdateAs>, output: impl Into<Output>) -> Self {
        Self {
            by: by.into(),
            output: output.into(),
        }
    }
}

impl Runner {
    /// Updates a thread as if node `by` had just returned `output`: the writes are folded, the node's edges and routers
    /// say what runs next, and what was planned before is dropped, questions included. The node itself does not run.
    /// Gives the id of the new checkpoint.
    ///
    /// A task that is planned before and after keeps the results of its journaled calls.
    ///
    /// # Errors
    /// As [`Runner::bulk_update`].
    #[doc(alias = "update_state")]
    pub async fn update(
        &self,
        thread: &ThreadKey,
        by: impl Into<UpdateAs>,
        output: impl Into<Output>,
    ) -> Result<Id, RunError> {
        let update = ThreadUpdate::new(by, output);
        self.bulk_update(thread, None, vec![vec![update]]).await
    }

    /// Gives up what a thread has planned, asked and not finished: open tasks say what remains of them
    /// ([`Node::abandon`](crate::Node::abandon)), as when new input takes their place, and nothing is left to run. Gives
    /// the id of the new checkpoint; `None` if nothing was planned, or there is no such thread.
    ///
    /// # Errors
    /// As [`Runner::bulk_update`].
    pub async fn cancel(&self, thread: &ThreadKey) -> Result<Option<Id>, RunError> {
        let checkpointer = self.stored("cancelling a thread")?;
        let scope = Scope::root(thread.clone());
        let newest = checkpointer.load(&scope, None).await?;
        if newest.is_none_or(|newest| newest.next.is_empty()) {
            return Ok(None);
        }
        let update = ThreadUpdate::new(UpdateAs::Cancel, Output::default());
        self.bulk_update(thread, None, vec![vec![update]])
            .await
            .map(Some)
    }

    /// Updates a thread in several steps, each of one or several updates that are folded together; on top of the
    /// checkpoint `at`, or of the newest. Gives the id of the last checkpoint, which is then the newest.
    ///
    /// At a checkpoint that the thread has moved past this begins a branch (LangGraph: a fork). Nothing is stored before
    /// every update is known to fit.
    ///
    /// # Errors
    /// If there is nothing to do, no such node or checkpoint, the writes do not fit, a router fails, an update does not
    /// say as which node it is made and several are possible, or the thread is held.
    #[doc(alias("bulk_update_state", "update_state"))]
    pub async fn bulk_update(
        &self,
        thread: &ThreadKey,
        at: Option<Id>,
        steps: Vec<Vec<ThreadUpdate>>,
    ) -> Result<Id, RunError> {
        check(&self.graph, &steps)?;
        let checkpointer = self.stored("updating a thread")?;
        let writer = checkpointer.open(thread).await?;
        let scope = Scope::root(thread.clone());
        let base = Base::load(Some(&**checkpointer), &scope, at).await?;
        let run = base.checkpoint.as_ref().map(|checkpoint| checkpoint.run);
        let invocation = Invocation {
            scope,
            graph_path: "".into(),
            writer: Some(Arc::new(Durable::new(writer.clone(), Durability::Sync))),
            run: None,
            host: None,
        };
        let mut session = open::session(
            self,
            &invocation,
            &base,
            run.unwrap_or_else(|| self.world.new_id()),
            RunOptions::default(),
        )
        .await?;
        // What routers do in an update is no part of the step that is open.
        Arc::make_mut(&mut session.run).writer = None;
        let mut updating = Updating {
            checkpointer: &**checkpointer,
            scope: &invocation.scope,
            base: &base,
            session,
        };
        let mut advances = Vec::new();
        for step in steps {
            advances.push(updating.step(step).await?);
        }
        let head = updating.session.head;
        for advance in advances {
            writer.advance(&invocation.scope.namespace, advance).await?;
        }
        Ok(head)
    }
}

/// Refuses updates that make no sense, whatever the thread holds.
fn check(graph: &Graph, steps: &[Vec<ThreadUpdate>]) -> Result<(), RunError> {
    if steps.is_empty() || steps.iter().any(Vec::is_empty) {
        return Err(refused(graph, "there is nothing to update"));
    }
    for update in steps.iter().flatten() {
        if let UpdateAs::Node(name) = &update.by {
            kind(graph, name)?;
        }
    }
    for (number, updates) in steps.iter().enumerate() {
        let alone = updates.len() == 1;
        for update in updates {
            let empty = update.output.update.is_empty() && update.output.commands.is_empty();
            let name = match update.by {
                UpdateAs::LastRan if alone => continue,
                UpdateAs::LastRan => {
                    let message =
                        "each of several updates of one step must say as which node it is made";
                    return Err(refused(graph, message));
                }
                UpdateAs::Node(_) | UpdateAs::Start => continue,
                UpdateAs::Input if update.output.commands.is_empty() => "the input",
                UpdateAs::Input => {
                    let message = "an update as the input can not go anywhere; its writes are what the run starts with";
                    return Err(refused(graph, message));
                }
                UpdateAs::End | UpdateAs::Cancel if empty => "the end",
                UpdateAs::Copy if empty && number == 0 => "a copy",
                UpdateAs::End | UpdateAs::Cancel => {
                    let message =
                        "an update as the end can not write or go anywhere; make it as a node";
                    return Err(refused(graph, message));
                }
                UpdateAs::Copy if empty => {
                    let message = "only the first of several steps can be a copy";
                    return Err(refused(graph, message));
                }
                UpdateAs::Copy => {
                    let message = "a copy can not write or go anywhere; update it in another step";
                    return Err(refused(graph, message));
                }
            };
            if !alone {
                let message = format!("an update as {name} must be alone in its step");
                return Err(refused(graph, &message));
            }
        }
    }
    Ok(())
}

fn refused(graph: &Graph, message: &str) -> RunError {
    RunError::InvalidUpdate {
        location: nowhere(graph),
        message: format!("update: {message}"),
    }
}

/// A thread being updated, in memory.
struct Updating<'a> {
    checkpointer: &'a dyn Checkpointer,
    scope: &'a Scope,
    base: &'a Base,
    session: Session,
}

impl Updating<'_> {
    /// Makes one step. Gives the checkpoint that stores it.
    async fn step(&mut self, mut updates: Vec<ThreadUpdate>) -> Result<Advance, RunError> {
        let by = updates[0].by.clone();
        let mut ran = Vec::new();
        let source = match by {
            UpdateAs::Input => {
                self.input(updates.remove(0).output).await?;
                Source::Input
            }
            UpdateAs::End => {
                self.end().await?;
                Source::Update
            }
            UpdateAs::Cancel => {
                self.cancel().await?;
                Source::Update
            }
            UpdateAs::Copy => {
                ran = self.copy().await?;
                Source::Fork
            }
            UpdateAs::LastRan | UpdateAs::Node(_) | UpdateAs::Start => {
                self.nodes(updates).await?;
                Source::Update
            }
        };
        let session = &mut self.session;
        let records = std::mem::take(&mut session.records);
        let mut advance = session.advance(source, records.clone());
        advance.ran = ran;
        session.head = advance.id;
        session.records = records;
        Ok(advance)
    }

    async fn input(&mut self, output: Output) -> Result<(), RunError> {
        let session = &mut self.session;
        let graph = session.run.graph.clone();
        let writes = input_writes(&graph, output.update, InputPolicy::Reject)?;
        abandon_open(session).await?;
        plan_start(session, writes, Vec::new())?;
        session.thread.step += 1;
        session.records.clear();
        let run = session.run.world.new_id();
        Arc::make_mut(&mut session.run).run = run;
        Ok(())
    }

    async fn end(&mut self) -> Result<(), RunError> {
        self.skip_input();
        settle(&mut self.session);
        let session = &mut self.session;
        let graph = session.run.graph.clone();
        let records = session.records.clone();
        let records = ByTask::of(&records);
        let mut finished: Vec<(Task, Done)> = Vec::new();
        let mut open = Vec::new();
        for (task, planned) in plan_unlimited(&graph, &session.thread)
            .into_iter()
            .zip(std::mem::take(&mut session.thread.next))
        {
            match session.finished(&records, &task)? {
                Some(done) => finished.push((task, done)),
                None => open.push(planned),
            }
        }
        session.thread.next = open;
        abandon_open(session).await?;
        session.thread.next.clear();
        let (tasks, results): (Vec<Task>, Results) = finished.into_iter().unzip();
        apply(&graph, &mut session.thread, &tasks, results)?;
        session.records.clear();
        Ok(())
    }

    async fn cancel(&mut self) -> Result<(), RunError> {
        let session = &mut self.session;
        let graph = session.run.graph.clone();
        let planned = session.thread.next.clone();
        for planned in planned {
            if let Planned::Start { writes, .. } = planned {
                let id = session.run.world.new_id();
                let targets = Vec::new();
                let input = RecordKind::Command {
                    id,
                    writes,
                    targets,
                };
                fold_command(&graph, &mut session.thread, session.head, &input)?;
            }
        }
        self.end().await?;
        let thread = &mut self.session.thread;
        thread.next.clear();
        thread.deferred.clear();
        Ok(())
    }

    async fn copy(&mut self) -> Result<Vec<Arc<str>>, RunError> {
        let session = &mut self.session;
        let graph = &session.run.graph;
        let Some(base) = &self.base.checkpoint else {
            return Err(refused(graph, "there is nothing to copy"));
        };
        let before = match base.parent {
            None => None,
            Some(parent) => self.checkpointer.load(self.scope, Some(parent)).await?,
        };
        let ran = match (&before, base.source) {
            (Some(before), Source::Loop) if base.ran.is_empty() => by_edges(&before.next),
            _ => base.ran.clone(),
        };
        let values = before.map(|before| before.values).unwrap_or_default();
        session.thread.record_against(&graph.clone(), &values);
        session.head = base.parent.unwrap_or(super::steps::NO_HEAD);
        session.thread.step += 1;
        session.records.clear();
        Ok(ran)
    }

    async fn nodes(&mut self, updates: Vec<ThreadUpdate>) -> Result<(), RunError> {
        let graph = self.session.run.graph.clone();
        let mut before = self.planned();
        let info = self.session.step_info(self.session.thread.step + 1);
        let view = self.session.view();
        let (mut tasks, mut results) = (Vec::new(), Results::new());
        for ThreadUpdate { by, output } in updates {
            let name = match by {
                UpdateAs::Node(name) => name,
                UpdateAs::LastRan => {
                    let base = self.base.checkpoint.as_ref();
                    last_ran(self.checkpointer, self.scope, base).await?
                }
                _ => START.into(),
            };
            // What is made in its place has been; if it is planned again, that is another visit.
            before.remove(&name);
            let again = tasks
                .iter()
                .filter(|task: &&Task| *task.name(&graph) == name)
                .count();
            let path = match again {
                0 => name.clone(),
                more => format!("{name}#update{more}").into(),
            };
            let task = Task {
                kind: kind(&graph, &name)?,
                path,
                visits: 0,
            };
            let cx = TaskCx::new(&self.session.run, view.clone(), info, &task, None);
            results.push(finish_as(Arc::new(cx), &task.kind, output).await?);
            tasks.push(task);
        }
        drop(view);
        self.skip_input();
        settle(&mut self.session);
        self.session.thread.next.clear();
        apply(&graph, &mut self.session.thread, &tasks, results)?;
        let after = self.planned();
        let stays = |record: &Record| {
            let task = record.task.strip_suffix(HANDLER).unwrap_or(&record.task);
            before
                .get(task)
                .is_some_and(|input| after.get(task) == Some(input))
        };
        let records = std::mem::take(&mut self.session.records);
        let carried = records.into_iter().filter(stays).filter_map(carried);
        self.session.records = match self.base.stands {
            // A branch does everything anew.
            Stands::Passed => Vec::new(),
            Stands::Newest | Stands::NewestById => carried.collect(),
        };
        Ok(())
    }

    /// On a new thread the first number is that of the input, which this is not.
    fn skip_input(&mut self) {
        let step = &mut self.session.thread.step;
        *step = (*step).max(-1);
    }

    /// The planned tasks, by their paths: what they were dispatched with.
    fn planned(&self) -> BTreeMap<Arc<str>, Option<Value>> {
        let tasks = plan_unlimited(&self.session.run.graph, &self.session.thread);
        let tasks = tasks.into_iter().map(|task| match task.kind {
            TaskKind::Start { .. } => (task.path, None),
            TaskKind::Node { input, .. } => (task.path, input),
        });
        tasks.collect()
    }
}

/// What a task that is planned again keeps: the calls that were made, or may have been.
fn carried(mut record: Record) -> Option<Record> {
    match &mut record.kind {
        RecordKind::Call(call) if call.state != CallState::Idle => {
            call.carried = true;
            Some(record)
        }
        _ => None,
    }
}

fn kind(graph: &Graph, name: &Arc<str>) -> Result<TaskKind, RunError> {
    if **name == *START {
        return Ok(TaskKind::Start {
            writes: Vec::new(),
            goto: Vec::new(),
        });
    }
    let node = graph.find(name).ok_or_else(|| RunError::UnknownNode {
        location: nowhere(graph),
        target: name.clone(),
    })?;
    Ok(TaskKind::Node { node, input: None })
}
