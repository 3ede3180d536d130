//! Opening a thread with an input: what is new, what goes on, what is refused.

use super::Runner;
use super::context::{RunCx, start_name};
use super::options::{Exit, Input, InputPolicy, Outcome, RunOptions};
use super::steps::{NO_HEAD, Session};
use crate::channel::Keep;
use crate::checkpoint::{Checkpoint, Record, RecordKind, RecordOp, Scope, Source, ThreadWriter};
use crate::command::{ClientCommand, Target, Update};
use crate::error::{NodeError, RunError};
use crate::event::{ChannelWrite, EventKind};
use crate::graph::{Breakpoints, Graph};
use crate::interrupt::{Answers, Interrupt, Resume, Slot};
use crate::step::{Done, Planned, ThreadState, fold_update, resolve_target, resolve_update};
use crate::value::Value;
use crate::world::Id;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Runs an input on a thread of a root graph or of a child.
pub(super) async fn invoke(
    runner: &Runner,
    scope: Scope,
    graph_path: Arc<str>,
    writer: Option<Arc<dyn ThreadWriter>>,
    input: Input,
    options: RunOptions,
) -> Result<Outcome, RunError> {
    let graph = &runner.graph;
    check_options(graph, &options)?;
    let loaded = match &runner.checkpointer {
        Some(checkpointer) => checkpointer.load(&scope, None).await?,
        None => None,
    };
    if matches!(input, Input::Resume(_)) {
        runner.stored("answering a question")?;
    }
    let stored = writer.is_some();
    let (thread, loaded) = match loaded {
        Some(checkpoint) => (load_thread(graph, &checkpoint)?, Some(checkpoint)),
        None => (ThreadState::new(graph, stored), None),
    };
    let new_run = matches!(input, Input::New(_)) || loaded.is_none();
    let run_id = match &loaded {
        Some(checkpoint) if !new_run => checkpoint.run,
        _ => runner.world.new_id(),
    };
    let run = Arc::new(RunCx {
        graph: graph.clone(),
        world: runner.world.clone(),
        thread: scope.thread.clone(),
        namespace: scope.namespace,
        graph_path,
        run: run_id,
        listener: options.listener,
        cancel: options.cancel,
        checkpointer: runner.checkpointer.clone(),
        writer,
        step_limit: options.step_limit,
        max_parallel: options.max_parallel,
        start_name: start_name(),
    });
    let limit = i64::try_from(options.step_limit).unwrap_or(i64::MAX);
    let session = Session {
        stop: thread.step.saturating_add(limit).saturating_add(2),
        head: loaded.as_ref().map_or(NO_HEAD, |checkpoint| checkpoint.id),
        records: loaded
            .as_ref()
            .map(|checkpoint| checkpoint.records.clone())
            .unwrap_or_default(),
        resuming: !new_run,
        before: effective(options.interrupt_before, &graph.0.before),
        after: effective(options.interrupt_after, &graph.0.after),
        answered: 0,
        unknown_ids: Vec::new(),
        run,
        thread,
    };
    begin(session, loaded.as_ref(), input, options.input_policy).await
}

/// Brings the input into the thread, then steps.
async fn begin(
    mut session: Session,
    loaded: Option<&Checkpoint>,
    input: Input,
    policy: InputPolicy,
) -> Result<Outcome, RunError> {
    let run = session.run.clone();
    let empty = || RunError::EmptyInput {
        thread: run.thread.to_string().into(),
    };
    match input {
        Input::New(update) => {
            let writes = input_writes(&run.graph, update, policy)?;
            start(&mut session, writes, Vec::new()).await?;
        }
        Input::Continue if loaded.is_none() => return Err(empty()),
        Input::Resume(_) if loaded.is_none() => return Err(empty()),
        Input::Continue => announce(&session),
        Input::Resume(resume) => {
            let lenient = resume.lenient;
            let ops = answers(&mut session, resume)?;
            if ops.is_empty() && !lenient {
                return Ok(unanswered(&session));
            }
            announce(&session);
            note(&mut session, ops).await?;
        }
        Input::Command(command) if loaded.is_none() => {
            check_command(&run.graph, &command)?;
            start(&mut session, channel_writes(command.update), command.goto).await?;
        }
        Input::Command(command) => {
            let mut ops = match &command.resume {
                Some(resume) => answers(&mut session, resume.clone())?,
                None => Vec::new(),
            };
            if !command.update.is_empty() || !command.goto.is_empty() {
                let id = run.world.new_id();
                let writes = channel_writes(command.update);
                let kind = RecordKind::Command {
                    id,
                    writes,
                    targets: command.goto,
                };
                fold_command(&run.graph, &mut session.thread, session.head, &kind)?;
                ops.push(RecordOp::Put(Record {
                    task: "".into(),
                    kind,
                }));
            }
            announce(&session);
            note(&mut session, ops).await?;
        }
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
    reset_run_channels(&graph, thread);
    thread.next = vec![Planned::Start { writes, goto }];
    thread.step += 1;
    session.stop = session.stop.max(thread.step);
    session.resuming = false;
    announce(session);
    session.store(Source::Input).await
}

/// Takes the channels that live as long as a run back to their start.
fn reset_run_channels(graph: &Graph, thread: &mut ThreadState) {
    let table = &graph.0.channels;
    for (ix, spec) in (0..).zip(&table.specs) {
        if spec.keep == Keep::Run {
            crate::step::reset(graph, thread, ix);
        }
    }
}

fn effective(given: Breakpoints, own: &Breakpoints) -> Breakpoints {
    if given.is_none() { own.clone() } else { given }
}

fn check_options(graph: &Graph, options: &RunOptions) -> Result<(), RunError> {
    let invalid = |message: String| Err(RunError::InvalidOption { message });
    if options.step_limit == 0 {
        return invalid("a limit of 0 steps lets nothing run; the least is 1".to_owned());
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
    let mut thread =
        ThreadState::load(graph, checkpoint).map_err(|homeless| RunError::Mismatch {
            location: crate::error::Location {
                graph: graph.name().clone(),
                node: "".into(),
            },
            message: homeless.join("; "),
        })?;
    for record in &checkpoint.records {
        if matches!(record.kind, RecordKind::Command { .. }) {
            fold_command(graph, &mut thread, checkpoint.id, &record.kind)?;
        }
    }
    Ok(thread)
}

fn fold_command(
    graph: &Graph,
    thread: &mut ThreadState,
    head: Id,
    command: &RecordKind,
) -> Result<(), RunError> {
    let RecordKind::Command {
        id,
        writes,
        targets,
    } = command
    else {
        return Ok(());
    };
    let mut done = Done::default();
    let mut ordinal = 0_u32;
    let mut new_id = || {
        ordinal += 1;
        let bytes = [
            head.0.to_be_bytes(),
            id.0.to_be_bytes(),
            u128::from(ordinal).to_be_bytes(),
        ]
        .concat();
        format!("{:032x}", xxhash_rust::xxh3::xxh3_128(&bytes)).into()
    };
    let update = writes.iter().cloned().fold(Update::new(), |update, write| {
        update.with(write.channel, write.write)
    });
    resolve_update(graph, update, &mut new_id, &mut done.writes)
        .map_err(|error| refused(graph, &error))?;
    for target in targets {
        resolve_target(graph, &graph.0.entry, target.clone(), &mut done)
            .map_err(|error| refused(graph, &error))?;
    }
    fold_update(graph, thread, done).map(|_| ())
}

fn refused(graph: &Graph, error: &NodeError) -> RunError {
    let location = crate::error::Location {
        graph: graph.name().clone(),
        node: "".into(),
    };
    match error.kind() {
        crate::error::NodeErrorKind::UnknownNode { target } => RunError::UnknownNode {
            location: crate::error::Location {
                node: "command".into(),
                ..location
            },
            target: target.clone(),
        },
        _ => RunError::InvalidUpdate {
            location,
            message: format!("the command {error}"),
        },
    }
}

/// Refuses a command that could not be carried out, before anything is stored.
fn check_command(graph: &Graph, command: &ClientCommand) -> Result<(), RunError> {
    let mut done = Done::default();
    let mut no_id = || "".into();
    resolve_update(graph, command.update.clone(), &mut no_id, &mut done.writes)
        .map_err(|error| refused(graph, &error))?;
    for target in &command.goto {
        resolve_target(graph, &graph.0.entry, target.clone(), &mut done)
            .map_err(|error| refused(graph, &error))?;
    }
    Ok(())
}

fn channel_writes(update: Update) -> Vec<ChannelWrite> {
    update
        .writes
        .into_iter()
        .map(|(channel, write)| ChannelWrite {
            channel: channel.name,
            write,
        })
        .collect()
}

/// The writes of an input, if its keys are input channels.
fn input_writes(
    graph: &Graph,
    update: Update,
    policy: InputPolicy,
) -> Result<Vec<ChannelWrite>, RunError> {
    if let Some((channel, error)) = &update.error {
        let location = crate::error::Location {
            graph: graph.name().clone(),
            node: "".into(),
        };
        return Err(RunError::InvalidUpdate {
            location,
            message: format!("the input `{channel}` can not be stored: {error}"),
        });
    }
    let mut writes = channel_writes(update);
    let known = |write: &ChannelWrite| graph.input().any(|name| *name == write.channel);
    match policy {
        InputPolicy::Ignore => writes.retain(known),
        InputPolicy::Reject => {
            if let Some(write) = writes.iter().find(|write| !known(write)) {
                return Err(RunError::UnknownInput {
                    location: crate::error::Location {
                        graph: graph.name().clone(),
                        node: "".into(),
                    },
                    key: write.channel.clone(),
                    known: graph.input().cloned().collect(),
                });
            }
        }
    }
    Ok(writes)
}

/// An open question and where it was asked.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    pub(super) task: Arc<str>,
    pub(super) slot: Slot,
    pub(crate) interrupt: Interrupt,
}

/// The questions at a checkpoint that have no answer yet, in the order they were asked.
pub(crate) fn open_questions(records: &[Record]) -> Vec<Open> {
    let answered = |task: &Arc<str>, slot: &Slot| {
        records.iter().any(|record| {
            record.task == *task
                && matches!(&record.kind, RecordKind::Answered { slot: known, .. } if known == slot)
        })
    };
    records
        .iter()
        .filter_map(|record| match &record.kind {
            RecordKind::Asked { slot, interrupt } if !answered(&record.task, slot) => Some(Open {
                task: record.task.clone(),
                slot: slot.clone(),
                interrupt: interrupt.clone(),
            }),
            _ => None,
        })
        .collect()
}

/// Matches answers to open questions.
fn answers(session: &mut Session, resume: Resume) -> Result<Vec<RecordOp>, RunError> {
    let open = open_questions(&session.records);
    let ids = || {
        open.iter()
            .map(|open| open.interrupt.id.to_string().into())
            .collect()
    };
    let mut given: Vec<(&Open, Value)> = Vec::new();
    match resume.answers {
        Answers::One(value) => match open.as_slice() {
            [] => {}
            [only] => given.push((only, value)),
            _ => return Err(RunError::MultipleInterrupts { open: ids() }),
        },
        Answers::ById(answers) if answers.is_empty() => return Err(RunError::EmptyResume),
        Answers::ById(answers) => {
            let by_id: BTreeMap<String, &Open> = open
                .iter()
                .map(|open| (open.interrupt.id.to_string(), open))
                .collect();
            for (id, value) in answers {
                match by_id.get(&id) {
                    Some(open) => given.push((open, value)),
                    None if resume.lenient => session.unknown_ids.push(id),
                    None => {
                        return Err(RunError::UnknownInterrupt {
                            id: id.into(),
                            open: ids(),
                        });
                    }
                }
            }
        }
    }
    session.answered = given.len();
    let records = given.into_iter().map(|(open, value)| {
        RecordOp::Put(Record {
            task: open.task.clone(),
            kind: RecordKind::Answered {
                slot: open.slot.clone(),
                value,
            },
        })
    });
    Ok(records.collect())
}

/// Stores records at the head and takes them into the session.
async fn note(session: &mut Session, ops: Vec<RecordOp>) -> Result<(), RunError> {
    session.run.record(session.head, ops.clone()).await?;
    RecordOp::apply_all(ops, &mut session.records);
    Ok(())
}

/// The outcome of an answer where nothing was asked: nothing ran.
fn unanswered(session: &Session) -> Outcome {
    let graph = &session.run.graph;
    Outcome {
        values: session.thread.values(graph, &graph.0.output),
        exit: if session.thread.next.is_empty() {
            Exit::Done
        } else {
            Exit::Paused
        },
        interrupts: Vec::new(),
        run: session.run.run,
        answered: 0,
        unknown_ids: Vec::new(),
    }
}
