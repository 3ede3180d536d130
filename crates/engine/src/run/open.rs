//! Opening a thread: at which checkpoint, as what, within which limits.

use super::Runner;
use super::base::{Base, Stands};
use super::begin::begin;
use super::budget::{Ledger, Spend};
use super::command::{fold_command, nowhere};
use super::context::{RunCx, start_name};
use super::durable::Durable;
use super::limits::{account, began};
use super::options::{Input, Outcome, RunOptions};
use super::spans;
use super::steps::{NO_HEAD, Session};
use super::task::TaskCx;
use crate::checkpoint::{Checkpoint, Scope};
use crate::error::RunError;
use crate::graph::{Breakpoints, Graph};
use crate::step::ThreadState;
use crate::text::nearest;
use crate::world::Id;
use std::sync::Arc;
use tracing::debug;

/// Where and as what a graph is invoked.
pub(super) struct Invocation {
    pub(super) scope: Scope,
    /// The path of the graph: the names of the nodes above.
    pub(super) graph_path: Arc<str>,
    /// The thread's lease, held until the invocation ends.
    pub(super) writer: Option<Arc<Durable>>,
    /// The id of a new run, if it is not to be drawn.
    pub(super) run: Option<Id>,
    /// The task in which a child runs, and what the run of the root graph has spent.
    pub(super) host: Option<(Arc<TaskCx>, Arc<Ledger>)>,
}

/// Runs an input on a thread of a root graph or of a child.
pub(super) async fn invoke(
    runner: &Runner,
    invocation: Invocation,
    input: Input,
    options: RunOptions,
) -> Result<Outcome, RunError> {
    check_options(&runner.graph, &options)?;
    if matches!(input, Input::Resume(_)) {
        runner.stored("answering a question")?;
    }
    let checkpointer = runner.checkpointer.as_deref();
    let base = Base::load(checkpointer, &invocation.scope, options.at).await?;
    let (input, repeated) = match (&base.checkpoint, input) {
        // The same call once more.
        (Some(checkpoint), Input::New(_))
            if options.invocation.is_some() && options.invocation == checkpoint.invocation =>
        {
            (Input::Continue, true)
        }
        (_, input) => (input, false),
    };
    let run = match &base.checkpoint {
        Some(checkpoint) if !matches!(input, Input::New(_)) => checkpoint.run,
        _ => invocation.run.unwrap_or_else(|| runner.world.new_id()),
    };
    let goes_on = !matches!(input, Input::New(_));
    debug!(target: "tine::run", %run, goes_on, "begins");
    let policy = options.input_policy;
    let mut session = session(runner, &invocation, &base, run, options).await?;
    session.passes = match input {
        Input::New(_) => false,
        Input::Continue => base.passes_breakpoints(),
        Input::Resume(_) | Input::Command(_) => true,
    };
    if repeated && base.is_paused() && !base.is_replay() {
        // It stopped at a breakpoint, and nobody said to go on.
        return Ok(session.still_paused());
    }
    begin(session, base, input, policy).await
}

/// A thread opened at a checkpoint, with nothing brought into it yet.
///
/// # Errors
/// If what is stored does not fit the graph.
pub(super) async fn session(
    runner: &Runner,
    invocation: &Invocation,
    base: &Base,
    run: Id,
    options: RunOptions,
) -> Result<Session, RunError> {
    let graph = &runner.graph;
    let Invocation {
        scope,
        graph_path,
        writer,
        host,
        ..
    } = invocation;
    let loaded = base.checkpoint.as_ref();
    let mut thread = match loaded {
        Some(checkpoint) => load_thread(graph, checkpoint)?,
        None => ThreadState::new(graph, writer.is_some()),
    };
    let records = match base.stands {
        // They are those of another branch.
        Stands::Passed => &[],
        Stands::Newest | Stands::NewestById => base.records(),
    };
    let goes_on = loaded.filter(|checkpoint| checkpoint.run == run);
    let (host, ledger) = match host {
        Some((task, ledger)) => (Some(task.clone()), ledger.clone()),
        None => {
            let open = goes_on.map(|_| records);
            (None, account(graph, &thread, open, options.budget))
        }
    };
    let deadline = match (options.budget.wall, &host) {
        (Some(wall), None) => {
            let began = began(runner, scope, graph, &mut thread, goes_on).await?;
            Some((began, wall))
        }
        _ => None,
    };
    let run = Arc::new(RunCx {
        graph: graph.clone(),
        world: runner.world.clone(),
        thread: scope.thread.clone(),
        namespace: scope.namespace.clone(),
        graph_path: graph_path.clone(),
        run,
        invocation: options.invocation,
        listener: options.listener,
        cancel: options.cancel,
        checkpointer: runner.checkpointer.clone(),
        writer: writer.as_ref().map(Arc::downgrade),
        cache: runner.cache.clone(),
        step_limit: options.step_limit,
        max_parallel: options.max_parallel,
        start_name: start_name(),
        step_timeout: options.step_timeout,
        drain: options.drain,
        drains: host.is_none() || runner.checkpointer.is_some(),
        ledger,
        spans: spans::are_on(),
        host,
    });
    let limit = i64::try_from(options.step_limit).unwrap_or(i64::MAX);
    Ok(Session {
        stop: thread.step.saturating_add(limit).saturating_add(2),
        max_steps: options.max_steps,
        made: 0,
        head: loaded.map_or(NO_HEAD, |checkpoint| checkpoint.id),
        records: records.to_vec(),
        goes_on: false,
        passes: false,
        tasks: None,
        before: effective(options.interrupt_before, &graph.0.before),
        after: effective(options.interrupt_after, &graph.0.after),
        answered: 0,
        to_parent: Vec::new(),
        unknown_ids: Vec::new(),
        deadline,
        now: None,
        step_spent: Spend::default(),
        spent_ops: Vec::new(),
        run,
        thread,
    })
}

fn effective(given: Breakpoints, own: &Breakpoints) -> Breakpoints {
    if given.is_none() { own.clone() } else { given }
}

fn check_options(graph: &Graph, options: &RunOptions) -> Result<(), RunError> {
    let invalid = |message: String| Err(RunError::InvalidOption { message });
    if options.step_limit == 0 {
        return invalid("a limit of 0 steps lets nothing run; the least is 1".to_owned());
    }
    if options.step_timeout.is_some_and(|limit| limit.is_zero()) {
        return invalid(
            "`step_timeout` of 0 lets nothing run; leave it out, or make it longer".to_owned(),
        );
    }
    if options.max_parallel == 0 {
        return invalid("`max_parallel` of 0 lets no task run; the least is 1".to_owned());
    }
    if options.max_steps == Some(0) {
        return invalid("`max_steps` of 0 lets nothing run; the least is 1".to_owned());
    }
    for breakpoints in [&options.interrupt_before, &options.interrupt_after] {
        if let Breakpoints::Nodes(nodes) = breakpoints
            && let Some(node) = nodes.iter().find(|node| graph.find(node).is_none())
        {
            let known = graph.nodes().map(|known| &**known);
            let meant = nearest(node, known);
            let meant = meant.map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
            return invalid(format!(
                "a breakpoint names `{node}`, and graph `{}` has no such node{meant}",
                graph.name()
            ));
        }
    }
    Ok(())
}

/// A stored thread in the places of the graph, with the client commands that came since its checkpoint.
pub(super) fn load_thread(graph: &Graph, checkpoint: &Checkpoint) -> Result<ThreadState, RunError> {
    let loaded = ThreadState::load(graph, checkpoint);
    let mut thread = loaded.map_err(|homeless| RunError::Mismatch {
        location: nowhere(graph),
        message: homeless.join("; "),
    })?;
    for record in &checkpoint.records {
        fold_command(graph, &mut thread, checkpoint.id, &record.kind)?;
    }
    Ok(thread)
}
