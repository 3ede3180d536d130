//! Child graphs: graphs that run inside a task of another one.

use super::options::{Exit, Input, Outcome, RunOptions};
use super::{Runner, open, spans};
use crate::checkpoint::open_questions;
use crate::checkpoint::{Checkpointer, Scope};
use crate::command::{Output, Update};
use crate::cx::NodeCx;
use crate::error::{ErrorClass, NodeError, NodeErrorKind, RunError};
use crate::graph::Graph;
use crate::interrupt::{Resume, Slot};
use crate::node::Node;
use crate::run::task::Asked;
use crate::value::{Map, Value};
use crate::world::Id;
use async_trait::async_trait;
use std::sync::Arc;
use tracing::Instrument as _;

/// How long a child graph keeps its state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChildMemory {
    /// As long as the task that runs it: every visit starts empty, and interrupts and retries go on inside.
    #[default]
    Run,
    /// As long as the thread: every visit goes on from the last one.
    Thread,
}

/// Where a child graph is stored, and which visit of it this is.
struct Place {
    scope: Scope,
    /// The id of the child's run: of this task and name, so that the child knows its own state from that of another
    /// visit.
    run: Id,
}

impl NodeCx {
    /// Runs a child graph to its end and gives its output channels.
    ///
    /// A question inside the child stops this task as one of its own would; when it is answered, the node runs again
    /// from its top and the child goes on where it asked. `name` tells children of one node apart; several of one name
    /// are told apart by their order.
    ///
    /// # Errors
    /// The child's failure, or its open questions; a name that holds one of `/ : | #`.
    pub async fn child(
        &self,
        graph: &Graph,
        name: &str,
        input: Update,
        memory: ChildMemory,
    ) -> Result<Map, NodeError> {
        if name.contains(['/', ':', '|', '#']) {
            let message = format!("`{name}` can not be the name of a child: it has one of / : | #");
            return Err(NodeError::new(ErrorClass::Internal, message));
        }
        if !graph.0.before.is_none() || !graph.0.after.is_none() {
            return Err(failed(RunError::InvalidOption {
                message: format!(
                    "graph `{}` has breakpoints, and a child graph can not stop at one yet",
                    graph.name()
                ),
            }));
        }
        self.check_attempt()?;
        let run = self.run_cx();
        let place = self.child_place(name, memory);
        let runner = Runner {
            graph: graph.clone(),
            checkpointer: run.checkpointer.clone(),
            world: run.world.clone(),
            cache: run.cache.clone(),
        };
        let writer = run
            .writer()
            .map_err(|error| failed(RunError::Store(error)))?;
        if let Some(writer) = &writer {
            // An earlier attempt may have left something.
            let flushed = writer.flush_held(&place.scope.namespace).await;
            flushed.map_err(|error| failed(RunError::Store(error)))?;
        }
        let input = match &run.checkpointer {
            Some(checkpointer) => self.child_input(&**checkpointer, &place, input).await?,
            None => Input::New(input),
        };
        let options = RunOptions {
            step_limit: run.step_limit,
            max_parallel: run.max_parallel,
            listener: run.listener.clone(),
            cancel: run.cancel.clone(),
            drain: run.drain.clone(),
            ..RunOptions::default()
        };
        let namespace = place.scope.namespace.clone();
        let graph_path = self.path().into();
        let invocation = open::Invocation {
            scope: place.scope,
            graph_path,
            writer,
            run: Some(place.run),
            host: Some((self.task.clone(), run.ledger.clone())),
        };
        let outcome = Box::pin(open::invoke(&runner, invocation, input, options))
            .instrument(spans::child(&runner.graph))
            .await
            .map_err(failed)?;
        self.child_end(outcome, &namespace)
    }

    fn child_place(&self, name: &str, memory: ChildMemory) -> Place {
        let run = self.run_cx();
        let name = match self.task.next_child(self.attempt, name) {
            0 => name.to_owned(),
            more => format!("{name}#{more}"),
        };
        let namespace = child_namespace(
            &run.namespace,
            &self.task.path,
            &name,
            self.task.info.checkpoint,
            memory,
        );
        Place {
            scope: Scope {
                thread: run.thread.clone(),
                namespace,
            },
            run: Id(self.task.hash(&["child", &name])),
        }
    }

    /// New input for a child that has not begun in this visit, else what goes on with it: the answers that this task
    /// got for it.
    async fn child_input(
        &self,
        checkpointer: &dyn Checkpointer,
        place: &Place,
        input: Update,
    ) -> Result<Input, NodeError> {
        let stored = checkpointer.load(&place.scope, None).await;
        let stored = stored.map_err(|error| failed(RunError::Store(error)))?;
        let Some(child) = stored.filter(|child| child.run == place.run) else {
            return Ok(Input::New(input));
        };
        let answers: Vec<(String, Value)> = open_questions(&child.records)
            .into_iter()
            .filter_map(|open| {
                let id = open.interrupt.id.to_string();
                let slot = self.bubbled(&place.scope.namespace, &id);
                self.task.answer(&slot).map(|answer| (id, answer.clone()))
            })
            .collect();
        Ok(match answers.is_empty() {
            true => Input::Continue,
            false => Input::Resume(Resume::by_id(answers)),
        })
    }

    fn child_end(&self, outcome: Outcome, namespace: &str) -> Result<Map, NodeError> {
        match outcome.exit {
            Exit::Done if outcome.to_parent.is_empty() => Ok(outcome.values),
            Exit::Done => Err(NodeError::from_kind(NodeErrorKind::FromChild(
                outcome.to_parent,
            ))),
            Exit::Interrupted => {
                for interrupt in outcome.interrupts {
                    let slot = self.bubbled(namespace, &interrupt.id.to_string());
                    self.task.ask(self.attempt, Asked { slot, interrupt });
                }
                Err(NodeError::interrupted())
            }
            Exit::StepLimit { error } | Exit::Budget { error } | Exit::Failed { error } => {
                Err(failed(error))
            }
            Exit::Drained => Err(failed(RunError::Drained)),
            Exit::Cancelled => Err(failed(RunError::Cancelled)),
            // A child has no breakpoints.
            Exit::Paused => Err(NodeError::new(
                ErrorClass::Internal,
                "a child graph stopped at a breakpoint",
            )),
        }
    }

    /// Where this task keeps a question of a child.
    fn bubbled(&self, namespace: &str, id: &str) -> Slot {
        self.task.slot(&format!("{namespace}?{id}"), 0)
    }
}

/// Where the checkpoints of a child are stored: below its task, and for a child that lives as long as the task below
/// the checkpoint at which that was planned. Names hold none of the signs between them.
pub(super) fn child_namespace(
    above: &str,
    path: &str,
    name: &str,
    checkpoint: Id,
    memory: ChildMemory,
) -> Arc<str> {
    let name = if name.is_empty() {
        String::new()
    } else {
        format!(":{name}")
    };
    match memory {
        ChildMemory::Run => format!("{above}/{path}{name}|{checkpoint}").into(),
        ChildMemory::Thread => format!("{above}/{path}{name}").into(),
    }
}

fn failed(error: RunError) -> NodeError {
    NodeError::from_kind(NodeErrorKind::Run(Box::new(error)))
}

/// A node that is a graph. Channels that both graphs declare under one name are shared: the child gets their values as
/// input, and what it ends with is written back.
#[derive(Debug)]
pub struct Subgraph {
    pub(super) graph: Graph,
    pub(super) memory: ChildMemory,
}

impl Subgraph {
    /// A node that runs `graph`.
    #[must_use]
    pub fn new(graph: Graph) -> Self {
        Self {
            graph,
            memory: ChildMemory::Run,
        }
    }

    /// Sets how long the child keeps its state.
    #[must_use]
    pub fn memory(mut self, memory: ChildMemory) -> Self {
        self.memory = memory;
        self
    }
}

#[async_trait]
impl Node for Subgraph {
    fn subgraph(&self) -> Option<&Subgraph> {
        Some(self)
    }
    async fn run(&self, cx: NodeCx) -> Result<Output, NodeError> {
        let view = cx.state();
        let mut input = Update::new();
        for name in self.graph.input() {
            let value = match cx.dispatched() {
                Some(dispatched) => dispatched.get(name),
                None => view.value(name),
            };
            if let Some(value) = value {
                input = input.set(name.clone(), value.clone());
            }
        }
        let values = cx.child(&self.graph, "", input, self.memory).await?;
        let shared = values.into_iter().filter(|(name, _)| view.declares(name));
        Ok(Output::from(
            shared.fold(Update::new(), |update, (name, value)| {
                update.set(name, value)
            }),
        ))
    }
}
