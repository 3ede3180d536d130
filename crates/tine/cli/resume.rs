//! `tine resume`

use super::Cx;
use super::execute::{Job, Start, execute};
use super::failure::Failure;
use super::host::Host;
use super::setup::{Notes, Setup};
use super::status::Status;
use super::store::Store;
use super::terminal::Mode;
use super::terminal::line::quoted;
use super::threads::tree::Tree;
use clap::Args;
use tine::engine::world::Id;
use tine::engine::{Checkpoint, Input, Interrupt, Resume, ThreadKey, Value};
use tine::graphfile::LoadedGraph;

/// Goes on with a thread: answers what it asks, or picks up where it was stopped
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ResumeArgs {
    /// The thread
    thread: String,
    /// The answer to the one open question; its words need no quotes
    #[arg(value_name = "ANSWER")]
    answer: Vec<String>,
    /// Answers one question by its id, or the start of it
    #[arg(long = "answer", value_name = "ID=VALUE", conflicts_with = "answer")]
    answers: Vec<String>,
    /// Answers with JSON: the one open question, or one by its id
    #[arg(long, value_name = "[ID=]JSON", conflicts_with = "answer")]
    answer_json: Vec<String>,
    /// Sets one value of the configuration, on top of what the thread was run with
    #[arg(long, value_name = "SECTION.NAME.KEY=VALUE")]
    set: Vec<String>,
    /// Begins at an old checkpoint: its id, the beginning of it, or `step:N`
    #[arg(long, value_name = "ID")]
    at: Option<String>,
    /// Prints one event a line as JSON, and the outcome last
    #[arg(long)]
    pub(crate) json: bool,
    /// How many steps this run may make, in place of the graph's own limit
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_steps: Option<u32>,
}

const EXAMPLES: &str = "\
EXAMPLES
  tine resume amber-heron-3f9c \"battery technology\"
  tine resume amber-heron-3f9c --answer-json '{\"approved\": true}'
  tine resume amber-heron-3f9c --answer 8c1f=yes --answer 02aa=no
  tine resume amber-heron-3f9c
  tine resume amber-heron-3f9c --at step:3

Graph file, configuration and settings are those that the thread was last run with. Without an answer
the thread goes on with what is pending: after a crash, a failure, a limit, a breakpoint.
With --at everything after that checkpoint runs again, or is answered anew, on a branch of its own, and the
thread goes on with that. `tine threads history` lists the checkpoints; nothing that was is changed.";

pub(crate) async fn resume(cx: &mut Cx, args: ResumeArgs) -> Result<Status, Failure> {
    let (store, info, checkpoint) = Store::find(cx, &args.thread).await?;
    let notes = Notes::from_map(&args.thread, &info.meta)?;
    let begins = Beginning::find(&store, &info.key, checkpoint, args.at.as_deref()).await?;
    let Beginning {
        at,
        checkpoint,
        questions,
    } = begins;
    let again = format!(
        "`tine run GRAPH TEXT --thread {}` starts another run on it",
        quoted(&args.thread)
    );
    let input = match given(&args, &questions)? {
        Some(_) if questions.is_empty() => {
            let failure = Failure::usage(format!(
                "thread `{}` asks nothing, so there is nothing to answer",
                args.thread
            ));
            // What was stopped in the middle is better gone on with than left.
            let pending = checkpoint.is_some_and(|checkpoint| !checkpoint.next.is_empty());
            return Err(match pending {
                true => failure.hint(format!(
                    "`tine resume {}` goes on with what is pending",
                    quoted(&args.thread)
                )),
                false => failure.hint(again),
            });
        }
        Some(resume) => Input::Resume(resume),
        None if checkpoint.is_none_or(|checkpoint| checkpoint.next.is_empty()) => {
            return Err(Failure::usage(format!(
                "thread `{}` is done; nothing is left to go on with",
                args.thread
            ))
            .hint(again));
        }
        None => Input::Continue,
    };
    let opened = reopen(cx, &args.thread, &notes, args.set)?;
    let job = Job {
        host: opened.host,
        notes: Notes::new(opened.setup, &opened.graph.outline),
        graph: opened.graph,
        store,
        thread: info.key,
        mode: match args.json {
            true => Mode::Json,
            false => Mode::Text,
        },
        max_steps: args.max_steps,
        at,
    };
    execute(cx, job, Start::Input(input)).await
}

/// Where an invocation begins.
pub(crate) struct Beginning {
    /// The checkpoint, if it was asked for.
    pub(crate) at: Option<Id>,
    pub(crate) checkpoint: Option<Checkpoint>,
    /// The questions that can be answered there: at the newest those that are open, at an old one all.
    pub(crate) questions: Vec<Interrupt>,
}

impl Beginning {
    /// At the newest checkpoint, or at the one that is meant by `at`.
    pub(crate) async fn find(
        store: &Store,
        thread: &ThreadKey,
        newest: Option<Checkpoint>,
        at: Option<&str>,
    ) -> Result<Self, Failure> {
        let Some(said) = at else {
            let open = newest.as_ref().map(Checkpoint::open_questions);
            return Ok(Self {
                at: None,
                questions: open.unwrap_or_default(),
                checkpoint: newest,
            });
        };
        let id = Tree::load(store, thread).await?.find(said)?;
        let is_newest = newest.is_some_and(|newest| newest.id == id);
        let checkpoint = store.checkpoint(thread, id).await?;
        Ok(Self {
            at: Some(id),
            questions: match is_newest {
                true => checkpoint.open_questions(),
                false => checkpoint.all_questions(),
            },
            checkpoint: Some(checkpoint),
        })
    }
}

/// The graph of a thread, loaded as it was last run.
pub(crate) struct Reopened {
    pub(crate) host: Host,
    pub(crate) graph: LoadedGraph,
    pub(crate) setup: Setup,
}

/// Loads the graph that a thread was last run with, with settings on top.
pub(crate) fn reopen(
    cx: &mut Cx,
    thread: &str,
    notes: &Notes,
    set: Vec<String>,
) -> Result<Reopened, Failure> {
    let mut setup = notes.setup.clone();
    if !setup.set.is_empty() && setup.directory != cx.env.directory {
        return Err(Failure::usage(format!(
            "thread `{thread}` was run with `--set` in {}, where its relative paths are taken from",
            setup.directory.display()
        ))
        .hint(format!(
            "go there first: `cd {}`",
            quoted(&setup.directory.display().to_string())
        )));
    }
    setup.set.extend(set);
    setup.directory = cx.env.directory.clone();
    let host = Host::open(cx, &setup)?;
    let graph = host.load(cx, &setup.graph)?;
    notes.check(thread, &graph.outline)?;
    Ok(Reopened { host, graph, setup })
}

/// The answers that the command gives, if it gives any.
fn given(args: &ResumeArgs, questions: &[Interrupt]) -> Result<Option<Resume>, Failure> {
    if !args.answer.is_empty() {
        return Ok(Some(Resume::value(args.answer.join(" "))));
    }
    let mut by_id: Vec<(String, Value)> = Vec::new();
    for given in &args.answers {
        let Some((id, value)) = given.split_once('=') else {
            return Err(
                Failure::usage(format!("`--answer {given}` names no question")).hint(
                    "write it as `--answer ID=VALUE`; `tine threads show THREAD` lists the ids",
                ),
            );
        };
        by_id.push((full(id, questions), value.into()));
    }
    for given in &args.answer_json {
        let (id, json) = match given.split_once('=') {
            Some((id, json)) if !id.is_empty() && id.bytes().all(|b| b.is_ascii_hexdigit()) => {
                (Some(id), json)
            }
            _ => (None, given.as_str()),
        };
        let value = serde_json::from_str::<Value>(json).map_err(|error| {
            Failure::usage(format!("`--answer-json {given}` is not JSON: {error}"))
                .hint("plain text is given as `tine resume THREAD TEXT`")
        })?;
        match id {
            Some(id) => by_id.push((full(id, questions), value)),
            None if args.answer_json.len() + args.answers.len() == 1 => {
                return Ok(Some(Resume::value(value)));
            }
            None => {
                return Err(
                    Failure::usage("several answers are given, and one names no question")
                        .hint("write each with its id: `--answer-json ID=JSON`"),
                );
            }
        }
    }
    for (at, (id, _)) in by_id.iter().enumerate() {
        if by_id[..at].iter().any(|(earlier, _)| earlier == id) {
            return Err(Failure::usage(format!("question `{id}` is answered twice"))
                .hint("give one answer to each question"));
        }
    }
    Ok((!by_id.is_empty()).then(|| Resume::by_id(by_id)))
}

/// The id that begins so, if it is the only one.
fn full(start: &str, questions: &[Interrupt]) -> String {
    let mut ids = questions
        .iter()
        .map(|question| question.id.to_string())
        .filter(|id| !start.is_empty() && id.starts_with(start));
    match (ids.next(), ids.next()) {
        (Some(id), None) => id,
        _ => start.to_owned(),
    }
}
