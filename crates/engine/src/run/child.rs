//! Child graphs: graphs that run inside a task of another one.

use super::options::{Exit, Input, InputPolicy, Outcome, RunOptions};
use super::{Runner, open};
use crate::checkpoint::{RecordKind, Scope};
use crate::command::{Output, Update};
use crate::cx::NodeCx;
use crate::error::{NodeError, NodeErrorKind, RunError};
use crate::graph::Graph;
use crate::interrupt::{Interrupt, Resume, Slot};
use crate::node::Node;
use crate::run::context::Asked;
use crate::value::{Map, Value};
use crate::world::Id;
use async_trait::async_trait;
use std::sync::Arc;

/// How long a child graph keeps its state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChildMemory {
    /// As long as the task that runs it: every visit starts empty, and interrupts and retries go on inside.
    #[default]
    Run,
    /// As long as the thread: every visit goes on from the last one.
    Thread,
}

impl NodeCx {
    /// Runs a child graph to its end and gives its output channels.
    ///
    /// A question inside the child stops this task as one of its own would; when it is answered, the node runs again
    /// from its top and the child goes on where it asked. `name` tells children of one node apart.
    ///
    /// # Errors
    /// The child's failure, or its open questions.
    pub async fn child(
        &self,
        graph: &Graph,
        name: &str,
        input: Update,
        memory: ChildMemory,
    ) -> Result<Map, NodeError> {
        let run = self.run_cx();
        let graph_path: Arc<str> = self.path().into();
        let place = if name.is_empty() {
            self.task.path.to_string()
        } else {
            format!("{}.{name}", self.task.path)
        };
        let namespace = child_namespace(&run.namespace, &place, self.task.checkpoint, memory);
        let scope = Scope {
            thread: run.thread.clone(),
            namespace: namespace.clone(),
        };
        let runner = Runner {
            graph: graph.clone(),
            checkpointer: run.checkpointer.clone(),
            world: run.world.clone(),
        };
        let input = self.child_input(&scope, input).await?;
        let options = RunOptions {
            step_limit: run.step_limit,
            max_parallel: run.max_parallel,
            input_policy: InputPolicy::Reject,
            listener: run.listener.clone(),
            cancel: run.cancel.clone(),
            ..RunOptions::default()
        };
        let outcome = open::invoke(
            &runner,
            scope,
            graph_path,
            run.writer.clone(),
            input,
            options,
        );
        let outcome = Box::pin(outcome).await.map_err(failed)?;
        self.child_end(outcome, &namespace)
    }

    /// New input for a child that has not begun, else what goes on with it: the answers this task got for it.
    async fn child_input(&self, scope: &Scope, input: Update) -> Result<Input, NodeError> {
        let Some(checkpointer) = &self.run_cx().checkpointer else {
            return Ok(Input::New(input));
        };
        let stored = checkpointer
            .load(scope, None)
            .await
            .map_err(|error| failed(RunError::Store(error)))?;
        let Some(child) = stored else {
            return Ok(Input::New(input));
        };
        let of_this_visit = scope.namespace.ends_with(&self.task.checkpoint.to_string());
        if child.next.is_empty() && !of_this_visit {
            return Ok(Input::New(input));
        }
        let asked = child
            .records
            .iter()
            .filter_map(|record| match &record.kind {
                RecordKind::Asked { interrupt, .. } => Some(interrupt.id),
                _ => None,
            });
        let answers: Vec<(String, Value)> = asked
            .filter_map(|id| {
                let slot = bubbled(&scope.namespace, &id.to_string());
                self.task
                    .answer(&slot)
                    .map(|answer| (id.to_string(), answer))
            })
            .collect();
        Ok(if answers.is_empty() {
            Input::Continue
        } else {
            Input::Resume(Resume::by_id(answers).lenient())
        })
    }

    fn child_end(&self, outcome: Outcome, namespace: &Arc<str>) -> Result<Map, NodeError> {
        match outcome.exit {
            Exit::Done => Ok(outcome.values),
            Exit::Interrupted => {
                for interrupt in outcome.interrupts {
                    let slot = bubbled(namespace, &interrupt.id.to_string());
                    self.task.ask(
                        self.attempt,
                        Asked {
                            slot,
                            interrupt: Interrupt { ..interrupt },
                        },
                    );
                }
                Err(NodeError::from_kind(NodeErrorKind::Interrupted))
            }
            Exit::StepLimit { error } | Exit::Failed { error } => Err(failed(error)),
            Exit::Cancelled => Err(failed(RunError::Cancelled)),
            Exit::Paused => Err(failed(RunError::InvalidOption {
                message: format!(
                    "graph `{}` has a breakpoint, which a child graph can not stop at yet",
                    self.node()
                ),
            })),
        }
    }
}

/// Where the checkpoints of a child are stored: below its task, and for a child that lives as long as the task below
/// the checkpoint at which that was planned.
pub(super) fn child_namespace(
    above: &str,
    place: &str,
    checkpoint: Id,
    memory: ChildMemory,
) -> Arc<str> {
    match memory {
        ChildMemory::Run => format!("{above}/{place}:{checkpoint}").into(),
        ChildMemory::Thread => format!("{above}/{place}").into(),
    }
}

/// Where the task above keeps a question of a child.
fn bubbled(namespace: &str, id: &str) -> Slot {
    Slot {
        call: format!("{namespace}?{id}").into(),
        ordinal: 0,
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
