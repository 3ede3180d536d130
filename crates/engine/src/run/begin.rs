//! Bringing an input into a thread.

use super::answers::{Matched, answer_anew, match_answers};
use super::base::{Base, Stands};
use super::budget::{Account, open_spend};
use super::command::{check_command, check_input, fold_command, input_writes, writes_of};
use super::execute::beside_steps;
use super::limits::{keep_began, keep_spent};
use super::options::{Exit, Input, InputPolicy, Outcome};
use super::steps::Session;
use super::task::{Recorded, TaskCx};
use crate::channel::Keep;
use crate::checkpoint::{ByTask, Record, RecordKind, RecordOp, Source, epoch};
use crate::command::{ClientCommand, Target, Update};
use crate::cx::NodeCx;
use crate::error::{ErrorClass, NodeError, RunError, panic_text};
use crate::event::{ChannelWrite, EventKind};
use crate::step::{Planned, plan_unlimited};
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// Brings the input into the thread, then steps.
pub(super) async fn begin(
    mut session: Session,
    base: Base,
    input: Input,
    policy: InputPolicy,
) -> Result<Outcome, RunError> {
    let exists = base.checkpoint.is_some();
    let graph = session.run.graph.clone();
    match input {
        Input::New(update) => {
            let writes = input_writes(&graph, update, policy)?;
            abandon_open(&mut session).await?;
            start(&mut session, writes, Vec::new()).await?;
            return Ok(session.steps().await);
        }
        Input::Command(command) if !exists && command.resume.is_none() => {
            check_command(&graph, &command)?;
            start(&mut session, writes_of(command.update), command.goto).await?;
            return Ok(session.steps().await);
        }
        _ if !exists => {
            if session.run.checkpointer.is_none() {
                return Err(RunError::NoCheckpointer {
                    what: "going on with a thread".into(),
                });
            }
            let thread = session.run.thread.to_string().into();
            return Err(RunError::EmptyInput { thread });
        }
        Input::Continue => {
            announce(&session);
            if base.is_replay() {
                fork(&mut session, Vec::new()).await?;
            }
        }
        Input::Resume(resume) => {
            let update = ClientCommand {
                resume: Some(resume),
                ..ClientCommand::default()
            };
            if !take_command(&mut session, &base, update).await? {
                return Ok(session.unanswered());
            }
        }
        Input::Command(command) => {
            if !take_command(&mut session, &base, command).await? {
                return Ok(session.unanswered());
            }
        }
    }
    session.goes_on = true;
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
    plan_start(session, writes, goto)?;
    session.thread.step += 1;
    announce(session);
    store(session, Source::Input, Vec::new()).await
}

/// Plans the start of a run: what lives as long as a run begins anew, and the input takes the place of open tasks.
///
/// # Errors
/// If a channel does not take its input.
pub(super) fn plan_start(
    session: &mut Session,
    writes: Vec<ChannelWrite>,
    goto: Vec<Target>,
) -> Result<(), RunError> {
    // The open step that the input takes the place of was paid for all the same.
    settle(session);
    let graph = session.run.graph.clone();
    let thread = &mut session.thread;
    let account = Account::of(&graph, thread).next();
    for (ix, spec) in (0..).zip(&graph.0.channels.specs) {
        if spec.keep == Keep::Run {
            crate::step::reset(&graph, thread, ix);
        }
    }
    if let Some(account) = account {
        account.keep(&graph, thread);
    }
    if let Some((began, _)) = session.deadline {
        keep_began(&graph, thread, began);
    }
    check_input(&graph, thread, &writes)?;
    thread.next = vec![Planned::Start { writes, goto }];
    Ok(())
}

/// Begins a branch: stores what is planned here as a checkpoint of its own, so that everything runs again under new
/// names; with the answers that hold there.
async fn fork(session: &mut Session, answers: Vec<RecordOp>) -> Result<(), RunError> {
    settle(session);
    session.thread.step += 1;
    let mut records = Vec::new();
    RecordOp::apply_all(answers, &mut records);
    store(session, Source::Fork, records).await
}

/// Adds what the open tasks have spent to the account of the run: their records end here.
pub(super) fn settle(session: &mut Session) {
    let spent = open_spend(&session.records);
    if !spent.is_zero() {
        let graph = session.run.graph.clone();
        keep_spent(&graph, &mut session.thread, spent);
    }
}

/// Stores a checkpoint of a run that was announced. Who listens hears of its end, should that not work.
async fn store(
    session: &mut Session,
    source: Source,
    records: Vec<Record>,
) -> Result<(), RunError> {
    let stored = session.store_with(source, records).await;
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
pub(super) async fn abandon_open(session: &mut Session) -> Result<(), RunError> {
    let graph = session.run.graph.clone();
    let (view, info) = (session.view(), session.step_info(session.thread.step + 1));
    let records = session.records.clone();
    let records = ByTask::of(&records);
    let mut left = Update::new();
    for task in plan_unlimited(&graph, &session.thread) {
        let recorded = Recorded::of(&records, &task.path);
        let Some(node) = task.node() else { continue };
        let task = TaskCx::new(&session.run, view.clone(), info, &task, recorded);
        let cx = NodeCx::new(Arc::new(task), 1);
        let abandon = AssertUnwindSafe(graph.node(node).node.abandon(cx)).catch_unwind();
        let Some(abandoned) = beside_steps(&session.run, abandon).await else {
            return Err(RunError::Cancelled);
        };
        let update = abandoned.unwrap_or_else(|payload| {
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

/// Takes a client's command into the thread: answers are recorded in one commit with what it writes. False if it only
/// answers, nothing was asked, and the answer is strict: then nothing is to run.
///
/// At a checkpoint that the thread has moved past it is taken into a branch of its own.
async fn take_command(
    session: &mut Session,
    base: &Base,
    command: ClientCommand,
) -> Result<bool, RunError> {
    let graph = session.run.graph.clone();
    check_command(&graph, &command)?;
    let all = writes_of(command.update);
    let answers_only = all.is_empty() && command.goto.is_empty();
    // What may not be stored is folded into this invocation alone.
    let stored = graph.0.channels.stored(all.clone());
    // A command without an answer, addressed to the newest checkpoint by its id, is as a replay of it.
    let passed = base.stands == Stands::Passed || command.resume.is_none() && base.is_replay();
    // Those of a child were checked where they came in.
    let checks = session.run.namespace.is_empty().then_some(&graph);
    let matched = match command.resume {
        None => None,
        Some(resume) => Some((resume.lenient, {
            if passed {
                answer_anew(checks, base.records(), resume, stored.is_empty())?
            } else {
                // The answers are meant for the state that the command makes.
                let counts_from = epoch(&session.records) + u32::from(!stored.is_empty());
                match_answers(checks, &session.records, resume, counts_from)?
            }
        })),
    };
    let mut ops = Vec::new();
    if let Some((lenient, matched)) = matched {
        let Matched {
            ops: answers,
            answered,
            unknown_ids,
        } = matched;
        if answers_only && answered == 0 && !lenient {
            return Ok(false);
        }
        ops = answers;
        session.answered = answered;
        session.unknown_ids = unknown_ids;
    }
    if !answers_only {
        let id = session.run.world.new_id();
        let of = |writes| RecordKind::Command {
            id,
            writes,
            targets: command.goto.clone(),
        };
        fold_command(&graph, &mut session.thread, session.head, &of(all))?;
        // On a branch of its own it becomes part of that.
        if !passed && (!stored.is_empty() || !command.goto.is_empty()) {
            let (task, kind) = ("".into(), of(stored));
            ops.push(RecordOp::Put(Record { task, kind }));
        }
    }
    if passed {
        announce(session);
        fork(session, ops).await?;
    } else {
        note(session, ops).await?;
        announce(session);
    }
    Ok(true)
}

/// Stores records at the head and takes them into the session.
async fn note(session: &mut Session, ops: Vec<RecordOp>) -> Result<(), RunError> {
    session.run.record(session.head, ops.clone()).await?;
    RecordOp::apply_all(ops, &mut session.records);
    Ok(())
}

impl Session {
    /// The outcome of an answer where nothing was asked: nothing ran.
    fn unanswered(&self) -> Outcome {
        self.nothing_ran(match self.thread.next.is_empty() {
            true => Exit::Done,
            false => Exit::Paused,
        })
    }

    /// The outcome of a call that was made before and stopped at a breakpoint: nothing ran this time. Listeners hear of it.
    pub(super) fn still_paused(&self) -> Outcome {
        announce(self);
        self.emit_values();
        let exit = Exit::Paused;
        self.run
            .emit(self.thread.step + 1, || EventKind::Ended { exit });
        self.nothing_ran(Exit::Paused)
    }

    fn nothing_ran(&self, exit: Exit) -> Outcome {
        let graph = &self.run.graph;
        Outcome {
            values: self.thread.values(graph, &graph.0.output),
            exit,
            interrupts: Vec::new(),
            run: self.run.run,
            answered: 0,
            spent: self.run.ledger.spent(),
            deaf: None,
            to_parent: Vec::new(),
            unknown_ids: Vec::new(),
        }
    }
}
