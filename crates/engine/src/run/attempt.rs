//! Running one task: attempts, timeouts, retries, and the routers that belong to it.

use super::bound::bounded;
use super::cached::{Lookup, keep, look_up, writes_of};
use super::context::RunCx;
use super::ends::TaskEnd;
use super::execute::beside_steps;
use super::spans;
use super::task::TaskCx;
use crate::cache::{CacheKey, CachePolicy};
use crate::checkpoint::{Record, RecordKind, RecordOp};
use crate::command::{Command, Output, Target, Update};
use crate::cx::NodeCx;
use crate::error::{ErrorClass, NodeError, NodeErrorKind, RunError, panic_text};
use crate::event::{ChannelWrite, EventKind};
use crate::graph::{Branch, Exits, Patience};
use crate::policy::RetryPolicy;
use crate::state::Overlay;
use crate::step::{
    Done, TaskKind, resolve_label, resolve_one_write, resolve_output, resolve_target,
};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tracing::Instrument as _;

/// What the attempts of a task run.
pub(crate) enum Work<'a> {
    /// The whole task, with the cache and the error handler of its node.
    Whole(&'a TaskKind),
    /// The same, in the span of the task.
    Spanned(&'a TaskKind),
    /// Its node, whose result is to be kept under this name.
    Node(Option<CacheKey>),
    /// The error handler of its node.
    Handler,
}

/// Runs a task whose node has an error handler or is to be cached. In a box, so that no other task is larger for it.
fn with_policies(task: Arc<TaskCx>) -> BoxFuture<'static, TaskEnd> {
    Box::pin(async move {
        let def = task.node.map(|node| task.run.graph.node(node));
        let handled = def.is_some_and(|def| def.handler.is_some());
        if let Some(error) = task.caught().filter(|_| handled) {
            return handle(&task, error).await;
        }
        let kept = match def.and_then(|def| def.cache.as_ref()) {
            None => None,
            Some(policy) => match cached(&task, policy).await {
                Ok(Lookup::Known(done)) => {
                    task.note_cached();
                    return TaskEnd::Done(done);
                }
                Ok(Lookup::Unknown(key)) => Some(key),
                Ok(Lookup::Off) => None,
                Err(error) => return TaskEnd::failed(run_error(&task, error)),
            },
        };
        match run_task(task.clone(), Work::Node(kept)).await {
            TaskEnd::Failed(error) if handled && is_for_handlers(&error) => {
                catch(&task, &error).await
            }
            end => end,
        }
    })
}

/// Runs a task in its span. In a box, for nearly all runs have none.
fn in_span(task: Arc<TaskCx>, kind: &TaskKind) -> BoxFuture<'_, TaskEnd> {
    let span = spans::task(&task);
    Box::pin(run_task(task, Work::Spanned(kind)).instrument(span))
}

/// The start of a run is tried once, and takes as long as it takes.
static NO_PATIENCE: Patience = Patience {
    retry: Vec::new(),
    timeout: None,
    idle_timeout: None,
};

/// Looks a task up in the cache. A key function may panic.
async fn cached(task: &Arc<TaskCx>, policy: &CachePolicy) -> Result<Lookup, NodeError> {
    let cx = NodeCx::new(task.clone(), 1);
    AssertUnwindSafe(look_up(&cx, policy))
        .catch_unwind()
        .await
        .unwrap_or_else(|payload| Err(panicked(&*payload)))
}

/// Whether an error is one that a handler is for: not what stops the whole run.
fn is_for_handlers(error: &RunError) -> bool {
    error.class() != ErrorClass::Canceled
        && !error.stops_run()
        && !matches!(error, RunError::Store(_))
}

/// Hands an error to the handler of its task: first for good, so that going on after a crash does not run the node again.
async fn catch(task: &Arc<TaskCx>, error: &RunError) -> TaskEnd {
    let caught = RecordOp::Put(Record {
        task: task.path.clone(),
        kind: RecordKind::Caught(error.clone()),
    });
    match task.run.record(task.info.checkpoint, vec![caught]).await {
        Ok(()) => handle(task, error).await,
        Err(error) => TaskEnd::failed(RunError::Store(error)),
    }
}

/// Runs the handler of a task that failed.
async fn handle(task: &Arc<TaskCx>, error: &RunError) -> TaskEnd {
    run_task(task.handler(error), Work::Handler).await
}

/// Runs a task to its end: makes attempts until one ends well, or none is left.
pub(crate) async fn run_task(task: Arc<TaskCx>, work: Work<'_>) -> TaskEnd {
    let run = &task.run;
    if run.spans
        && let Work::Whole(kind) = work
    {
        return in_span(task.clone(), kind).await;
    }
    let def = task.node.map(|node| run.graph.node(node));
    if let (Work::Whole(_) | Work::Spanned(_), Some(def)) = (&work, def)
        && (def.handler.is_some() || def.cache.is_some())
    {
        return with_policies(task.clone()).await;
    }
    let handler = def.and_then(|def| def.handler.as_ref());
    let patience = match (&work, handler) {
        (Work::Handler, Some(handler)) => &handler.handler.patience,
        _ => def.map_or(&NO_PATIENCE, |def| &def.patience),
    };
    let mut number = 0;
    loop {
        number += 1;
        let cx = NodeCx::new(task.clone(), number);
        if !task.is_start() {
            run.emit(task.info.step, || EventKind::TaskStarted {
                node: task.node_name().clone(),
                task: task.path.clone(),
                attempt: number,
            });
        }
        let result = match patience.is_bounded() {
            false => {
                // Not moved once it is made, for it has the room that any of its ways needs.
                let attempt = pin!(one_attempt(&cx, &work));
                AssertUnwindSafe(attempt).catch_unwind().await
            }
            true => Box::pin(bounded_attempt(&cx, &work, patience)).await,
        };
        task.end_attempt(number);
        let error = match result {
            Ok(Ok(done)) if !task.asks(number) => return TaskEnd::Done(done),
            Ok(Ok(_)) => NodeError::new(
                ErrorClass::Internal,
                "asked a question and went on without the answer; hand the error of `interrupt` on with `?`",
            ),
            Ok(Err(error)) => error,
            Err(payload) => panicked(&*payload),
        };
        let asked = task.take_asked(number);
        if error.is_interrupt() && !asked.is_empty() {
            return TaskEnd::Asked(asked);
        }
        let error = match error.into_kind() {
            NodeErrorKind::ToParent(command) if !run.graph_path.is_empty() => {
                return TaskEnd::ToParent(command);
            }
            NodeErrorKind::ToParent(_) => NodeError::from_kind(NodeErrorKind::NoParent),
            kind => NodeError::from_kind(kind),
        };
        if error.stops_run() {
            return TaskEnd::failed(run_error(&task, error));
        }
        // Random by the id of the checkpoint. Drawn from the world, it would go by which task fails first.
        let random = || task.hash(&["retry", &number.to_string()]) as u64;
        let delay = delay(&patience.retry, number, &error, random);
        run.emit(task.info.step, || EventKind::TaskFailed {
            node: task.node_name().clone(),
            task: task.path.clone(),
            error: error.to_string(),
            retried: delay.is_some(),
        });
        spans::attempt_failed(number, &error, delay);
        match delay {
            Some(delay) => run.world.sleep(delay).await,
            None => return TaskEnd::failed(run_error(&task, error)),
        }
    }
}

/// An attempt that may take only so long. In a box of its own, for a future has room for all that it may await.
async fn bounded_attempt(
    cx: &NodeCx,
    work: &Work<'_>,
    patience: &Patience,
) -> std::thread::Result<Result<Done, NodeError>> {
    let attempt = AssertUnwindSafe(one_attempt(cx, work)).catch_unwind();
    let result = bounded(&cx.task, patience, attempt).await;
    result.unwrap_or_else(|error| Ok(Err(error)))
}

/// How long to wait before another attempt, as the first policy for the error says; `None` if there is none.
fn delay(
    policies: &[RetryPolicy],
    attempt: u32,
    error: &NodeError,
    random: impl FnOnce() -> u64,
) -> Option<Duration> {
    let class = error.class();
    let policy = policies.iter().find(|policy| policy.on.contains(&class))?;
    policy.delay(attempt, class, random)
}

fn panicked(payload: &(dyn std::any::Any + Send)) -> NodeError {
    NodeError::new(ErrorClass::Internal, panic_text(payload))
}

async fn one_attempt(cx: &NodeCx, work: &Work<'_>) -> Result<Done, NodeError> {
    let run = cx.run_cx();
    let def = cx.task.node.map(|node| run.graph.node(node));
    if let (Work::Whole(TaskKind::Node { .. }) | Work::Spanned(TaskKind::Node { .. }), Some(def)) =
        (work, def)
    {
        let mut output = match def.node.run(cx.clone()).await {
            Ok(output) => output,
            Err(error) => from_child(error)?,
        };
        let Output { update, commands } = &mut output;
        if update.error.is_none()
            && update.writes.len() == 1
            && commands.is_empty()
            && def.exits.are_edges()
            && let Some(write) = update.writes.pop()
        {
            let new_id = &mut cx.message_ids();
            return resolve_one_write(&run.graph, &def.exits, write, new_id);
        }
        return finish(cx, &def.exits, output).await;
    }
    Box::pin(other_attempt(cx, work)).await
}

/// What a child graph sends up is as if the node had returned it.
fn from_child(error: NodeError) -> Result<Output, NodeError> {
    match error.into_kind() {
        NodeErrorKind::FromChild(commands) => Ok(Output {
            update: Update::new(),
            commands: commands.into_iter().map(Command::here).collect(),
        }),
        kind => Err(NodeError::from_kind(kind)),
    }
}

/// An attempt of the start, of a node whose result is to be kept, or of an error handler.
async fn other_attempt(cx: &NodeCx, work: &Work<'_>) -> Result<Done, NodeError> {
    let run = cx.run_cx();
    let def = cx.task.node.map(|node| run.graph.node(node));
    let handler = match work {
        Work::Whole(_) | Work::Spanned(_) | Work::Node(_) => None,
        Work::Handler => def.and_then(|def| def.handler.as_ref()),
    };
    let (output, exits) = match (work, def) {
        (
            Work::Whole(TaskKind::Start { writes, goto })
            | Work::Spanned(TaskKind::Start { writes, goto }),
            _,
        ) => start_output(run, writes, goto),
        (_, None) => (Output::default(), &NO_EXITS),
        (_, Some(def)) => {
            let (node, exits) = match handler {
                None => (&def.node, &def.exits),
                Some(handler) => (&handler.handler.node, &handler.exits),
            };
            let output = match node.run(cx.clone()).await {
                Ok(output) => output,
                Err(error) => from_child(error)?,
            };
            (output, exits)
        }
    };
    let kept = match work {
        Work::Node(Some(key)) => Some((key, writes_of(&output))),
        _ => None,
    };
    let done = finish(cx, exits, output).await?;
    if let Some((key, writes)) = kept
        && let Some(policy) = def.and_then(|def| def.cache.as_ref())
    {
        Box::pin(keep(cx, policy, key, writes, &done)).await?;
    }
    Ok(done)
}

/// What the start of a run writes, and where it goes.
fn start_output<'a>(
    run: &'a RunCx,
    writes: &[ChannelWrite],
    goto: &[Target],
) -> (Output, &'a Exits) {
    let update = writes.iter().cloned().fold(Update::new(), |update, write| {
        update.with(write.channel, write.write)
    });
    let entry = match goto.is_empty() {
        true => &run.graph.0.entry,
        false => &NO_EXITS,
    };
    let command = Command {
        goto: goto.to_vec(),
        ..Command::default()
    };
    let output = Output {
        update,
        commands: vec![command],
    };
    (output, entry)
}

/// What becomes of an output: its names resolved, its routers asked.
async fn finish(cx: &NodeCx, exits: &Exits, output: Output) -> Result<Done, NodeError> {
    let run = cx.run_cx();
    let mut done = Done::default();
    let routed = resolve_output(&run.graph, exits, output, &mut cx.message_ids(), &mut done)?;
    if exits.branches.is_empty() && exits.default_branches.is_empty() {
        return Ok(done);
    }
    let defaults = if routed {
        &[]
    } else {
        exits.default_branches.as_slice()
    };
    if !exits.branches.is_empty() || !defaults.is_empty() {
        let branches = exits.branches.iter().chain(defaults);
        Box::pin(route(cx, exits, branches, &mut done)).await?;
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
    let cx = NodeCx::new(task.clone(), 1);
    let finished = AssertUnwindSafe(finish(&cx, exits, output)).catch_unwind();
    let Some(finished) = beside_steps(&task.run, finished).await else {
        return Err(RunError::Cancelled);
    };
    finished
        .unwrap_or_else(|payload| Err(panicked(&*payload)))
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
    let overlay = Arc::new(Overlay::new(graph.0.declared, done.writes.clone()));
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
