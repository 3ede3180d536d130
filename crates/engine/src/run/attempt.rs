//! Running one task: attempts, timeouts, retries, and the routers that belong to it.

use super::ends::TaskEnd;
use super::task::TaskCx;
use crate::command::{Command, Output, Update};
use crate::cx::NodeCx;
use crate::error::{ErrorClass, NodeError, NodeErrorKind, RunError, panic_text};
use crate::event::EventKind;
use crate::graph::{Branch, Exits};
use crate::state::Overlay;
use crate::step::{Done, TaskKind, resolve_label, resolve_output, resolve_target};
use futures_util::FutureExt;
use futures_util::future::{Either, select};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// Runs a task to its end, attempts and all.
pub(crate) async fn run_task(task: Arc<TaskCx>, kind: &TaskKind) -> TaskEnd {
    let run = &task.run;
    let def = task.node.map(|node| run.graph.node(node));
    let mut number = 0;
    loop {
        number += 1;
        let cx = NodeCx {
            task: task.clone(),
            overlay: None,
            attempt: number,
            call: None,
        };
        if !task.is_start() {
            run.emit(task.info.step, || EventKind::TaskStarted {
                node: task.node_name().clone(),
                task: task.path.clone(),
                attempt: number,
            });
        }
        let attempt = AssertUnwindSafe(one_attempt(&cx, kind)).catch_unwind();
        let result = match def.and_then(|def| def.timeout) {
            None => attempt.await,
            Some(limit) => match select(pin!(attempt), run.world.sleep(limit)).await {
                Either::Left((result, _)) => result,
                Either::Right(_) => Ok(Err(timeout(&task, limit))),
            },
        };
        let error = match result {
            Ok(Ok(done)) => return TaskEnd::Done(done),
            Ok(Err(error)) => error,
            Err(payload) => NodeError::new(ErrorClass::Internal, panic_text(&*payload)),
        };
        let asked = task.take_asked(number);
        if error.is_interrupt() && !asked.is_empty() {
            return TaskEnd::Asked(asked);
        }
        let error = match error.into_kind() {
            NodeErrorKind::ToParent(command) if !run.graph_path.is_empty() => {
                return TaskEnd::ToParent(*command);
            }
            NodeErrorKind::ToParent(_) => NodeError::from_kind(NodeErrorKind::NoParent),
            kind => NodeError::from_kind(kind),
        };
        let policy = def.and_then(|def| def.retry.as_ref());
        // Random by the id of the checkpoint. Drawn from the world, it would go by which task fails first.
        let random = || task.hash(&["retry", &number.to_string()]) as u64;
        let delay = policy.and_then(|policy| policy.delay(number, error.class(), random));
        run.emit(task.info.step, || EventKind::TaskFailed {
            node: task.node_name().clone(),
            task: task.path.clone(),
            error: error.to_string(),
            retried: delay.is_some(),
        });
        match delay {
            Some(delay) => run.world.sleep(delay).await,
            None => return TaskEnd::Failed(run_error(&task, error)),
        }
    }
}

fn timeout(task: &TaskCx, limit: Duration) -> NodeError {
    let millis = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
    NodeError::from_kind(NodeErrorKind::Run(Box::new(RunError::NodeTimeout {
        location: task.location(),
        millis,
    })))
}

async fn one_attempt(cx: &NodeCx, kind: &TaskKind) -> Result<Done, NodeError> {
    let run = cx.run_cx();
    let (output, exits) = match kind {
        TaskKind::Start { writes, goto } => {
            let update = writes.iter().cloned().fold(Update::new(), |update, write| {
                update.with(write.channel, write.write)
            });
            let entry = if goto.is_empty() {
                &run.graph.0.entry
            } else {
                &NO_EXITS
            };
            let command = Command {
                goto: goto.clone(),
                ..Command::default()
            };
            (
                Output {
                    update,
                    commands: vec![command],
                },
                entry,
            )
        }
        TaskKind::Node { node, .. } => {
            let def = run.graph.node(*node);
            let output = match def.node.run(cx.clone()).await.map_err(NodeError::into_kind) {
                Ok(output) => output,
                // What a child graph sends up is as if this node had returned it.
                Err(NodeErrorKind::FromChild(commands)) => Output {
                    update: Update::new(),
                    commands: commands.into_iter().map(Command::here).collect(),
                },
                Err(kind) => return Err(NodeError::from_kind(kind)),
            };
            (output, &def.exits)
        }
    };
    finish(cx, exits, output).await
}

/// What becomes of an output: its names resolved, its routers asked.
async fn finish(cx: &NodeCx, exits: &Exits, output: Output) -> Result<Done, NodeError> {
    let run = cx.run_cx();
    let mut ordinal = 0_u32;
    let mut new_id = || {
        ordinal += 1;
        format!("{:032x}", cx.task.hash(&["message", &ordinal.to_string()])).into()
    };
    let (mut done, routed) = resolve_output(&run.graph, exits, output, &mut new_id)?;
    let defaults = if routed {
        &[]
    } else {
        exits.default_branches.as_slice()
    };
    if !exits.branches.is_empty() || !defaults.is_empty() {
        route(cx, exits, exits.branches.iter().chain(defaults), &mut done).await?;
    }
    Ok(done)
}

/// What becomes of an output that did not come from the node but is to count as its own.
pub(super) async fn finish_as(
    task: Arc<TaskCx>,
    kind: &TaskKind,
    output: Output,
) -> Result<Done, RunError> {
    let graph = task.run.graph.clone();
    let exits = match kind {
        TaskKind::Start { .. } => &graph.0.entry,
        TaskKind::Node { node, .. } => &graph.node(*node).exits,
    };
    let cx = NodeCx {
        task: task.clone(),
        overlay: None,
        attempt: 1,
        call: None,
    };
    let finished = AssertUnwindSafe(finish(&cx, exits, output)).catch_unwind();
    finished
        .await
        .unwrap_or_else(|payload| Err(NodeError::new(ErrorClass::Internal, panic_text(&*payload))))
        .map_err(|error| run_error(&task, error))
}

/// A start that goes somewhere by command follows no edge.
static NO_EXITS: Exits = Exits {
    edges: Vec::new(),
    joins: Vec::new(),
    waited: Vec::new(),
    branches: Vec::new(),
    default_edges: Vec::new(),
    default_branches: Vec::new(),
};

/// Asks the routers, which see the state with the task's own writes.
async fn route(
    cx: &NodeCx,
    exits: &Exits,
    branches: impl Iterator<Item = &Branch>,
    done: &mut Done,
) -> Result<(), NodeError> {
    let graph = &cx.run_cx().graph;
    let overlay = Arc::new(Overlay::new(graph.0.channels.len(), done.writes.clone()));
    for branch in branches {
        let view = NodeCx {
            overlay: Some(overlay.clone()),
            ..cx.clone()
        };
        let targets = branch.router.route(view).await;
        // A write that can not be folded is the cause of whatever the router made of it.
        if let Some((ix, error)) = overlay.take_error() {
            let error = RunError::Reducer {
                location: cx.task.location(),
                channel: graph.0.channels.name(ix).clone(),
                message: error.to_string(),
            };
            return Err(NodeError::from_kind(NodeErrorKind::Run(Box::new(error))));
        }
        for target in targets?.0 {
            let target = resolve_label(branch.labels.as_ref(), target)?;
            resolve_target(graph, exits, target, done)?;
        }
    }
    Ok(())
}

/// What a node's error is to the run.
fn run_error(task: &TaskCx, error: NodeError) -> RunError {
    let location = task.location();
    match error.into_kind() {
        NodeErrorKind::Failed { class, message } => RunError::Node {
            location,
            class,
            message,
        },
        NodeErrorKind::UnknownNode { target } => RunError::UnknownNode { location, target },
        NodeErrorKind::UnmappedRoute { label } => RunError::UnmappedRoute { location, label },
        NodeErrorKind::InvalidUpdate { message } => RunError::InvalidUpdate { location, message },
        NodeErrorKind::NoParent | NodeErrorKind::ToParent(_) | NodeErrorKind::FromChild(_) => {
            RunError::NoParent { location }
        }
        NodeErrorKind::Run(error) => *error,
        // Said to wait, and asked nothing: an interrupt kept from an earlier attempt.
        NodeErrorKind::Interrupted => RunError::Node {
            location,
            class: ErrorClass::Internal,
            message: "gave back an interrupt that it did not raise in this attempt".to_owned(),
        },
    }
}
