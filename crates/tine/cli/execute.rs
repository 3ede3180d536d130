//! One invocation of a graph: its events are shown, signals stop it, its end is told.

use super::Cx;
use super::artifact::{self, Artifact};
use super::failure::{Failure, print_error, print_note, run_hints};
use super::host::Host;
use super::output::Tone;
use super::setup::{Notes, Unsaid};
use super::signal::Stops;
use super::status::Status;
use super::store::Store;
use super::terminal::line::{one_line, resume_command};
use super::terminal::prompt::{Again, Dialog};
use super::terminal::{Mode, Screen, question};
use super::upload;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;
use tine::engine::checkpoint::ThreadInfo;
use tine::engine::world::Id;
use tine::engine::{
    Breakpoints, ClientCommand, Event, EventKind, Exit, Input, Listener, Outcome, RunError,
    RunOptions, Runner, START, ThreadKey, Update, World as _,
};
use tine::graphfile::LoadedGraph;
use tokio_util::sync::CancellationToken;

/// The channel that words are said in.
pub(crate) const MESSAGES: &str = "messages";

/// What is to be run.
pub(crate) struct Job {
    pub(crate) host: Host,
    pub(crate) graph: LoadedGraph,
    pub(crate) store: Store,
    pub(crate) thread: ThreadKey,
    pub(crate) notes: Notes,
    pub(crate) mode: Mode,
    pub(crate) max_steps: Option<u32>,
    /// The checkpoint at which to begin, if not at the newest.
    pub(crate) at: Option<Id>,
}

/// What it is run with.
pub(crate) enum Start {
    /// An input, as the engine takes it.
    Input(Input),
    /// A message that answers open questions.
    Reply(Reply),
}

impl Start {
    /// The words that are yet to be said.
    pub(crate) fn unsaid(&self) -> Option<&Unsaid> {
        match self {
            Self::Input(_) => None,
            Self::Reply(reply) => Some(&reply.said),
        }
    }
}

/// A plain message to a thread that asked: it answers the questions, and is kept as a message too.
pub(crate) struct Reply {
    /// What answers the questions, or goes on where they are answered; none if what came of that is stored.
    pub(crate) first: Option<Input>,
    /// The message.
    pub(crate) said: Unsaid,
}

/// An error that ended a job.
pub(crate) struct Broken {
    failure: Failure,
    /// Whether the thread is as it was before: nothing of the job was stored.
    pub(crate) refused: bool,
}

impl Broken {
    /// What came before anything was stored.
    pub(crate) fn refused(failure: impl Into<Failure>) -> Self {
        Self {
            failure: failure.into(),
            refused: true,
        }
    }

    /// What came when a part of it was stored, which stays.
    fn midway(job: &Job, error: RunError) -> Self {
        Self {
            failure: Failure::from(error).hint(go_on(job)),
            refused: false,
        }
    }
}

impl From<Broken> for Failure {
    fn from(broken: Broken) -> Self {
        broken.failure
    }
}

/// Runs a job to its end and tells it. Where somebody sits before it, its questions are asked on the way.
pub(crate) async fn execute(cx: &mut Cx, mut job: Job, start: Start) -> Result<Status, Broken> {
    let known = job.store.0.thread(&job.thread).await;
    let known = known.map_err(Broken::refused)?;
    note(&job).await.map_err(Broken::refused)?;
    let prompts = cx.prompts && job.mode == Mode::Text;
    let mut dialog = Dialog::new(job.graph.outline.definition.clone());
    let steps = Arc::new(Steps::default());
    // How the run stopped with what is being asked.
    let mut asking = None;
    let mut start = start;
    loop {
        let reached = Arc::new(Reached::default());
        let (ended, late) = invocation(cx, &job, start, &steps, &reached, asking.is_some()).await;
        if reached.said.load(Ordering::Relaxed) {
            // They belong to this branch and to no other one that the thread may go on with.
            job.notes.unsaid = None;
            if let Err(failure) = note(&job).await {
                let message = format!(
                    "the thread's notes are not up to date: {}",
                    failure.message()
                );
                print_note(&mut cx.stderr, &message);
            }
        }
        let mut told = Told {
            steps: steps.count.load(Ordering::Relaxed),
            late,
            asked: false,
        };
        let error = match ended {
            Some(Ok(outcome)) if prompts && outcome.exit == Exit::Interrupted => {
                if let Some(resume) = dialog.ask(cx, &outcome.interrupts).await {
                    asking = Some(outcome);
                    // The answer goes to what the branch asks, which is the newest now.
                    job.at = None;
                    start = Start::Input(resume.into());
                    continue;
                }
                told.asked = true;
                return Ok(tell(cx, &job, &outcome, &told));
            }
            Some(Ok(outcome)) => return Ok(tell(cx, &job, &outcome, &told)),
            Some(Err(error)) => error,
            None => return Ok(tell_broken_off(cx, &job)),
        };
        let Some(outcome) = &asking else {
            if reached.answered.load(Ordering::Relaxed) {
                return Err(Broken::midway(&job, error));
            }
            return Err(match take_back(&job, known).await {
                Ok(true) => Broken::refused(error),
                Ok(false) => Broken::midway(&job, error),
                Err(failure) => Broken {
                    failure,
                    refused: false,
                },
            });
        };
        match dialog.ask_again(cx, &error).await {
            Again::Resume(resume) => start = Start::Input(resume.into()),
            Again::Leave => {
                told.asked = true;
                return Ok(tell(cx, &job, outcome, &told));
            }
            Again::Other => return Err(Broken::midway(&job, error)),
        }
    }
}

/// Invokes the graph once and shows it. Gives how it ended, `None` if it was broken off; and whether it was late.
async fn invocation(
    cx: &mut Cx,
    job: &Job,
    start: Start,
    steps: &Arc<Steps>,
    reached: &Arc<Reached>,
    goes_on: bool,
) -> (Option<Result<Outcome, RunError>>, bool) {
    let limits = &job.graph.outline.limits;
    let cancel = CancellationToken::new();
    let screen = Screen::open(cx, job.mode, &job.graph.outline.name, cancel.clone());
    let mut listener = counting(screen.listener(), steps.clone());
    if goes_on {
        // The head of the run stands above already.
        listener = without(listener, |kind| matches!(kind, EventKind::Started { .. }));
    }
    let options = RunOptions {
        step_limit: u64::from(u32::MAX),
        max_steps: Some(u64::from(job.max_steps.unwrap_or(limits.max_steps))),
        max_parallel: limits.max_parallel as usize,
        listener: Some(listener),
        cancel: cancel.clone(),
        at: job.at,
        ..RunOptions::default()
    };
    let runner = Runner::new(job.graph.graph.clone(), cx.world.clone())
        .with_checkpointer(job.store.0.clone());

    let mut stops = Stops::listen();
    let mut run = Box::pin(invoke(&runner, &job.thread, start, reached, options));
    let world = cx.world.clone();
    let deadline = async {
        match limits.deadline {
            Some(deadline) => world.sleep(deadline).await,
            None => std::future::pending().await,
        }
    };
    let mut late = false;
    let ended = tokio::select! {
        ended = &mut run => Some(ended),
        () = stops.next() => None,
        () = asked_to_stop(cx, job) => None,
        () = deadline => { late = true; None }
    };
    let ended = match ended {
        Some(ended) => Some(ended),
        // Asked once, the run stops where nothing is lost; asked twice, where it is.
        None => {
            cancel.cancel();
            tokio::select! {
                ended = &mut run => Some(ended),
                () = stops.next() => None,
            }
        }
    };
    drop(run);
    screen.close(cx);
    let mut ended = ended;
    if let Some(Ok(outcome)) = &mut ended {
        outcome.interrupts = question::in_order(&outcome.interrupts, &outcome.values);
    }
    (ended, late)
}

/// How far an answer in words has come.
#[derive(Default)]
struct Reached {
    /// The questions are answered, and that is stored.
    answered: AtomicBool,
    /// The words are said too, or have no place to stand in.
    said: AtomicBool,
}

/// How many steps of the root graph were made.
struct Steps {
    count: AtomicU64,
    /// The last one: a step that asked is gone on with, and is no new one.
    last: AtomicI64,
}

impl Default for Steps {
    fn default() -> Self {
        Self {
            count: AtomicU64::new(0),
            last: AtomicI64::new(i64::MIN),
        }
    }
}

/// How often is looked whether somebody asked for the thread.
const LOOK: Duration = Duration::from_millis(200);

/// Waits until somebody asks that the thread be let go, as `tine threads cancel` does.
async fn asked_to_stop(cx: &Cx, job: &Job) {
    loop {
        cx.world.sleep(LOOK).await;
        // A store that can not tell hinders no run.
        if job.store.0.is_asked_to_stop(&job.thread).await == Ok(true) {
            return;
        }
    }
}

struct Told {
    steps: u64,
    /// Whether the deadline of the graph stopped the run.
    late: bool,
    /// Whether its questions were shown already.
    asked: bool,
}

/// Notes beside the thread how it is run, before anything can be lost.
async fn note(job: &Job) -> Result<(), Failure> {
    let writer = job.store.0.open(&job.thread).await?;
    writer.note(job.notes.to_map()?).await?;
    Ok(())
}

/// Leaves a thread as it was when its run was refused: a known one with its old notes, a new one not at all.
/// Gives whether that could be: what was stored already stays.
async fn take_back(job: &Job, known: Option<ThreadInfo>) -> Result<bool, Failure> {
    let now = job.store.0.thread(&job.thread).await?;
    let checkpoints = |info: &Option<ThreadInfo>| info.as_ref().map_or(0, |info| info.checkpoints);
    if checkpoints(&now) != checkpoints(&known) {
        return Ok(false);
    }
    if let Some(known) = known {
        let writer = job.store.0.open(&job.thread).await?;
        writer.note(known.meta).await?;
    } else {
        job.store.0.delete(&job.thread).await?;
    }
    Ok(true)
}

async fn invoke(
    runner: &Runner,
    thread: &ThreadKey,
    start: Start,
    reached: &Reached,
    options: RunOptions,
) -> Result<Outcome, RunError> {
    match start {
        Start::Input(input) => runner.invoke(thread, input, options).await,
        Start::Reply(reply) => answer(runner, thread, reply, reached, options).await,
    }
}

/// Answers questions with a message, which stands behind the results it brought about.
///
/// The message can not be written together with the answers: it would come between the model's calls and their
/// results. So the answers go first, with a breakpoint after the nodes that asked, and the message follows as a
/// client's update; to listeners the two invocations are one. Breakpoints of the graph itself right behind those nodes
/// are passed by. If questions stay open in that step, there are no results yet to stand behind, and the words live on
/// in the answers only. A crash between the two is made good by `resume`: the thread's notes have the words.
async fn answer(
    runner: &Runner,
    thread: &ThreadKey,
    reply: Reply,
    reached: &Reached,
    options: RunOptions,
) -> Result<Outcome, RunError> {
    let Reply { first, said } = reply;
    let mut update = Update::new().set(MESSAGES, vec![said.message]);
    if let Some(uploaded) = said.uploaded {
        update = update.set(upload::CHANNEL, uploaded);
    }
    let command = ClientCommand {
        update,
        ..ClientCommand::default()
    };
    let Some(input) = first else {
        let outcome = runner.invoke(thread, command, options).await?;
        reached.said.store(true, Ordering::Relaxed);
        return Ok(outcome);
    };
    let first = RunOptions {
        interrupt_after: Breakpoints::at(said.nodes),
        listener: options.listener.clone().map(|listener| {
            without(listener, |kind| {
                matches!(
                    kind,
                    EventKind::Breakpoint { .. }
                        | EventKind::Ended {
                            exit: Exit::Paused | Exit::Done
                        }
                )
            })
        }),
        ..options.clone()
    };
    let outcome = runner.invoke(thread, input, first).await?;
    reached.answered.store(true, Ordering::Relaxed);
    if outcome.exit == Exit::Interrupted {
        reached.said.store(true, Ordering::Relaxed);
    }
    if !matches!(outcome.exit, Exit::Paused | Exit::Done) {
        return Ok(outcome);
    }
    let second = RunOptions {
        listener: options
            .listener
            .clone()
            .map(|listener| without(listener, |kind| matches!(kind, EventKind::Started { .. }))),
        at: None,
        ..options
    };
    let mut end = runner.invoke(thread, command, second).await?;
    reached.said.store(true, Ordering::Relaxed);
    end.answered += outcome.answered;
    Ok(end)
}

/// Hands on all events but some of the root graph's.
fn without(listener: Arc<dyn Listener>, left_out: fn(&EventKind) -> bool) -> Arc<dyn Listener> {
    Arc::new(move |event: &Event| {
        if !(event.namespace.is_empty() && left_out(&event.kind)) {
            listener.on_event(event);
        }
    })
}

/// Counts the steps of the root graph on their way.
fn counting(listener: Arc<dyn Listener>, steps: Arc<Steps>) -> Arc<dyn Listener> {
    Arc::new(move |event: &Event| {
        if let EventKind::Step { tasks } = &event.kind
            && event.namespace.is_empty()
            && tasks.iter().any(|task| &**task != START)
            && steps.last.fetch_max(event.step, Ordering::Relaxed) < event.step
        {
            steps.count.fetch_add(1, Ordering::Relaxed);
        }
        listener.on_event(event);
    })
}

/// Tells how a run ended.
fn tell(cx: &mut Cx, job: &Job, outcome: &Outcome, told: &Told) -> Status {
    let status = match told.late && outcome.exit == Exit::Cancelled {
        true => Status::Limit,
        false => Status::of(&outcome.exit),
    };
    let artifacts = artifact::of(job.host.home(), &job.thread, &outcome.values);
    match job.mode {
        Mode::Json => {
            let mut line = serde_json::to_value(outcome).unwrap_or_default();
            line["event"] = json!("outcome");
            line["thread"] = json!(job.thread.thread);
            line["steps"] = json!(told.steps);
            line["artifacts"] = json!(artifacts);
            if status == Status::Limit && outcome.exit == Exit::Cancelled {
                line["exit"] = json!("deadline");
            }
            cx.stdout.line(&line.to_string());
        }
        Mode::Text => tell_text(cx, job, outcome, told, &artifacts),
    }
    if let Some(error) = outcome.exit.error() {
        let file = cx.env.shown(&job.notes.setup.graph);
        let mut hints = run_hints(error);
        hints.push(go_on(job));
        print_error(&mut cx.stderr, &format!("{file}: {error}"), &hints);
    } else if status == Status::Limit {
        let file = cx.env.shown(&job.notes.setup.graph);
        let message = format!("{file}: the run took longer than its `limits.deadline`");
        print_error(&mut cx.stderr, &message, &[go_on(job)]);
    } else if status == Status::Cancelled && !cx.stdout.closed() {
        print_error(&mut cx.stderr, "the run was cancelled", &[go_on(job)]);
    }
    status
}

fn go_on(job: &Job) -> String {
    format!(
        "`{}` goes on from here",
        resume_command(&job.thread.thread, "", "")
    )
}

fn tell_text(cx: &mut Cx, job: &Job, outcome: &Outcome, told: &Told, artifacts: &[Artifact]) {
    let out = &mut cx.stdout;
    let width = out.device().width;
    for (name, value) in &outcome.values {
        let shown_already = matches!(&**name, "messages" | "artifacts");
        if outcome.exit == Exit::Done && !shown_already && !value.is_null() {
            let text = match value.as_str() {
                Some(text) => text.to_owned(),
                None => value.to_canonical(),
            };
            let room = width.saturating_sub(name.len() + 2).max(8);
            let name = out.paint(Tone::Strong, name);
            out.line(&format!("{name}: {}", one_line(&text, room)));
        }
    }
    artifact::print(out, artifacts);
    match outcome.exit {
        Exit::Interrupted if told.asked => {
            question::print_commands(out, &job.thread.thread, &outcome.interrupts);
        }
        Exit::Interrupted => question::print(out, &job.thread.thread, &outcome.interrupts),
        _ => {}
    }
    let (tone, words) = match &outcome.exit {
        Exit::Done => (Tone::Good, "done"),
        Exit::Interrupted => (Tone::Hint, "waiting for an answer"),
        Exit::Paused => (Tone::Hint, "stopped at a breakpoint"),
        Exit::StepLimit { .. } => (Tone::Bad, "stopped at a limit"),
        Exit::Budget { .. } => (Tone::Bad, "stopped at a budget"),
        Exit::Drained => (Tone::Hint, "stopped between two steps, as asked"),
        Exit::Cancelled if told.late => (Tone::Bad, "stopped at the deadline"),
        Exit::Cancelled => (Tone::Bad, "cancelled"),
        _ => (Tone::Bad, "failed"),
    };
    let words = out.paint(tone, words);
    let after = match told.steps {
        1 => "after 1 step".to_owned(),
        steps => format!("after {steps} steps"),
    };
    out.line(&format!("\n{words} {after}"));
    if matches!(outcome.exit, Exit::Paused | Exit::Drained) {
        let command = resume_command(&job.thread.thread, "", "");
        let command = out.paint(Tone::Hint, &command);
        out.line(&format!("go on with\n  {command}"));
    }
}

/// Tells that a run was dropped where it stood; the thread is as its last record left it.
fn tell_broken_off(cx: &mut Cx, job: &Job) -> Status {
    if job.mode == Mode::Json {
        let line = json!({"event": "outcome", "exit": "cancelled", "thread": job.thread.thread});
        cx.stdout.line(&line.to_string());
    }
    print_error(&mut cx.stderr, "the run was broken off", &[go_on(job)]);
    Status::Cancelled
}
