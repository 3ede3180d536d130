//! Opening a thread with an input: what is new, what goes on, what is refused.

use super::Runner;
use super::answers::match_answers;
use super::budget::{Ledger, Spend};
use super::command::{check_command, check_input, fold_command, input_writes, nowhere, writes_of};
use super::context::{RunCx, start_name};
use super::limits::{account, began, keep_began};
use super::options::{Exit, Input, InputPolicy, Outcome, RunOptions};
use super::steps::{NO_HEAD, Session};
use super::task::{Recorded, TaskCx};
use crate::channel::Keep;
use crate::checkpoint::epoch;
use crate::checkpoint::{Checkpoint, Record, RecordKind, RecordOp, Scope, Source, ThreadWriter};
use crate::command::{ClientCommand, Target, Update};
use crate::cx::NodeCx;
use crate::error::{ErrorClass, NodeError, RunError, panic_text};
use crate::event::{ChannelWrite, EventKind};
use crate::graph::{Breakpoints, Graph};
use crate::interrupt::Resume;
use crate::step::{Planned, ThreadState, plan};
use crate::world::Id;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// Where and as what a graph is invoked.
pub(super) struct Invocation {
    pub(super) scope: Scope,
    /// The path of the graph: the names of the nodes above.
    pub(super) graph_path: Arc<str>,
    /// The thread's lease, held until the invocation ends.
    pub(super) writer: Option<Arc<dyn ThreadWriter>>,
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
    let graph = &runner.graph;
    check_options(graph, &options)?;
    let Invocation {
        scope,
        graph_path,
        writer,
        run,
        host,
    } = invocation;
    if matches!(input, Input::Resume(_)) {
        runner.stored("answering a question")?;
    }
    let loaded = match &runner.checkpointer {
        Some(checkpointer) => checkpointer.load(&scope, None).await?,
        None => None,
    };
    let mut thread = match &loaded {
        Some(checkpoint) => load_thread(graph, checkpoint)?,
        None => ThreadState::new(graph, writer.is_some()),
    };
    let run_id = match &loaded {
        Some(checkpoint) if !matches!(input, Input::New(_)) => checkpoint.run,
        _ => run.unwrap_or_else(|| runner.world.new_id()),
    };
    let goes_on = loaded
        .as_ref()
        .filter(|checkpoint| checkpoint.run == run_id);
    let (host, ledger) = match host {
        Some((task, ledger)) => (Some(task), ledger),
        None => (None, account(graph, &thread, goes_on, options.budget)),
    };
    let deadline = match (options.budget.wall, &host) {
        (Some(wall), None) => {
            let began = began(runner, &scope, graph, &mut thread, goes_on).await?;
            Some((began, wall))
        }
        _ => None,
    };
    let run = Arc::new(RunCx {
        graph: graph.clone(),
        world: runner.world.clone(),
        thread: scope.thread,
        namespace: scope.namespace,
        graph_path,
        run: run_id,
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
        host,
    });
    let limit = i64::try_from(options.step_limit).unwrap_or(i64::MAX);
    let records = loaded.as_ref().map(|checkpoint| checkpoint.records.clone());
    let session = Session {
        stop: thread.step.saturating_add(limit).saturating_add(2),
        max_steps: options.max_steps,
        made: 0,
        head: loaded.as_ref().map_or(NO_HEAD, |checkpoint| checkpoint.id),
        records: records.unwrap_or_default(),
        goes_on: false,
        before: effective(options.interrupt_before, &graph.0.before),
        after: effective(options.interrupt_after, &graph.0.after),
        answered: 0,
        to_parent: Vec::new(),
        unknown_ids: Vec::new(),
        deadline,
        step_spent: Spend::default(),
        spent_ops: Vec::new(),
        run,
        thread,
    };
    let outcome = begin(session, loaded.is_some(), input, options.input_policy).await;
    drop(writer);
    outcome
}

/// Brings the input into the thread, then steps.
async fn begin(
    mut session: Session,
    exists: bool,
    input: Input,
    policy: InputPolicy,
) -> Result<Outcome, RunError> {
    let graph = session.run.graph.clone();
    let thread = session.run.thread.to_string();
    let empty = || RunError::EmptyInput {
        thread: thread.as_str().into(),
    };
    // A start tells listeners of itself.
    let mut starts = false;
    match input {
        Input::New(update) => {
            starts = true;
            let writes = input_writes(&graph, update, policy)?;
            abandon_open(&mut session).await?;
            start(&mut session, writes, Vec::new()).await?;
        }
        Input::Command(command) if !exists && command.resume.is_none() => {
            starts = true;
            check_command(&graph, &command)?;
            start(&mut session, writes_of(command.update), command.goto).await?;
        }
        _ if !exists => return Err(empty()),
        Input::Continue => {}
        Input::Resume(resume) => {
            if !take_answers(&mut session, resume).await? {
                return Ok(unanswered(&session));
            }
        }
        Input::Command(ClientCommand {
            update,
            goto,
            resume: Some(resume),
        }) if update.is_empty() && goto.is_empty() => {
            if !take_answers(&mut session, resume).await? {
                return Ok(unanswered(&session));
            }
        }
        Input::Command(command) => take_command(&mut session, command).await?,
    }
    session.goes_on = !starts;
    if !starts {
        announce(&session);
    }
    Ok(session.steps().await)
}

fn announce(session: &Session) {
    let run = &session.run;
    run.emit(session.thread.step + 1, || EventKind::Started {
        thread: run.thread.thread.clone(),
        run: run.run,
    });
}

/// Plans the start of a run and stores that as a checkpoint, so that the input outlives a crash.
async fn start(
    session: &mut Session,
    writes: Vec<ChannelWrite>,
    goto: Vec<Target>,
) -> Result<(), RunError> {
    let graph = session.run.graph.clone();
    let thread = &mut session.thread;
    for (ix, spec) in (0..).zip(&graph.0.channels.specs) {
        if spec.keep == Keep::Run {
            crate::step::reset(&graph, thread, ix);
        }
    }
    if let Some((began, _)) = session.deadline {
        keep_began(&graph, thread, began);
    }
    check_input(&graph, thread, &writes)?;
    thread.next = vec![Planned::Start { writes, goto }];
    thread.step += 1;
    announce(session);
    let stored = session.store(Source::Input).await;
    if let Err(error) = &stored {
        let exit = Exit::Failed {
            error: error.clone(),
        };
        let step = session.thread.step;
        session.run.emit(step, || EventKind::Ended { exit });
    }
    stored
}

/// Lets open tasks say what remains of them, before new input takes their place.
async fn abandon_open(session: &mut Session) -> Result<(), RunError> {
    let graph = session.run.graph.clone();
    let (view, info) = (session.view(), session.step_info(session.thread.step + 1));
    let mut left = Update::new();
    for task in plan(&graph, &session.thread)? {
        let recorded = Recorded::of(&session.records, &task.path);
        let Some(node) = task.node() else { continue };
        let task = TaskCx::new(&session.run, &view, info, &task, recorded);
        let cx = NodeCx::new(Arc::new(task), 1);
        let abandon = AssertUnwindSafe(graph.node(node).node.abandon(cx)).catch_unwind();
        let update = abandon.await.unwrap_or_else(|payload| {
            Err(NodeError::new(ErrorClass::Internal, panic_text(&*payload)))
        });
        let update = update.map_err(|error| RunError::Node {
            location: session.run.location(&graph.node(node).name),
            class: error.class(),
            message: error.to_string(),
        })?;
        left = left.and(update);
    }
    drop(view);
    let id = session.run.world.new_id();
    let kind = RecordKind::Command {
        id,
        writes: writes_of(left),
        targets: Vec::new(),
    };
    fold_command(&graph, &mut session.thread, session.head, &kind)
}

/// Records answers. False if there was nothing to answer, and the resume is strict: then nothing is to run.
async fn take_answers(session: &mut Session, resume: Resume) -> Result<bool, RunError> {
    let lenient = resume.lenient;
    let matched = match_answers(&session.records, resume, epoch(&session.records))?;
    session.answered = matched.ops.len();
    session.unknown_ids = matched.unknown_ids;
    if matched.ops.is_empty() && !lenient {
        return Ok(false);
    }
    note(session, matched.ops).await?;
    Ok(true)
}

/// Folds a command into the thread and records it with its answers, in one commit.
async fn take_command(session: &mut Session, command: ClientCommand) -> Result<(), RunError> {
    let graph = session.run.graph.clone();
    check_command(&graph, &command)?;
    let all = writes_of(command.update);
    // What may not be stored is folded into this invocation alone.
    let stored = graph.0.channels.stored(all.clone());
    let mut ops = Vec::new();
    if let Some(resume) = command.resume {
        // The answers are meant for the state that the command makes.
        let counts_from = epoch(&session.records) + u32::from(!stored.is_empty());
        let matched = match_answers(&session.records, resume, counts_from)?;
        session.answered = matched.ops.len();
        session.unknown_ids = matched.unknown_ids;
        ops = matched.ops;
    }
    let id = session.run.world.new_id();
    let of = |writes| RecordKind::Command {
        id,
        writes,
        targets: command.goto.clone(),
    };
    fold_command(&graph, &mut session.thread, session.head, &of(all))?;
    if !stored.is_empty() || !command.goto.is_empty() {
        let (task, kind) = ("".into(), of(stored));
        ops.push(RecordOp::Put(Record { task, kind }));
    }
    note(session, ops).await
}

/// Stores records at the head and takes them into the session.
async fn note(session: &mut Session, ops: Vec<RecordOp>) -> Result<(), RunError> {
    session.run.record(session.head, ops.clone()).await?;
    RecordOp::apply_all(ops, &mut session.records);
    Ok(())
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
    if options.max_steps == Some(0) {
        return invalid("`max_steps` of 0 lets nothing run; the least is 1".to_owned());
    }
    for breakpoints in [&options.interrupt_before, &options.interrupt_after] {
        if let Breakpoints::Nodes(nodes) = breakpoints
            && let Some(node) = nodes.iter().find(|node| graph.find(node).is_none())
        {
            return invalid(format!(
                "a breakpoint names `{node}`, and graph `{}` has no such node",
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

/// The outcome of an answer where nothing was asked: nothing ran.
fn unanswered(session: &Session) -> Outcome {
    let graph = &session.run.graph;
    Outcome {
        values: session.thread.values(graph, &graph.0.output),
        exit: match session.thread.next.is_empty() {
            true => Exit::Done,
            false => Exit::Paused,
        },
        interrupts: Vec::new(),
        run: session.run.run,
        answered: 0,
        spent: session.run.ledger.spent(),
        to_parent: Vec::new(),
        unknown_ids: Vec::new(),
    }
}
