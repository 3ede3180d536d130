//! `tine resume`

use super::Cx;
use super::answer::Takes;
use super::execute::{Job, MESSAGES, Reply, Start, execute};
use super::failure::{Failure, print_note};
use super::host::Host;
use super::setup::{Notes, Setup, without_secrets};
use super::status::Status;
use super::store::Store;
use super::terminal::Mode;
use super::terminal::line::{quoted, resume_command};
use super::text_input;
use super::threads::tree::Tree;
use clap::Args;
use std::io::ErrorKind;
use std::path::PathBuf;
use tine::engine::checkpoint::RecordKind;
use tine::engine::world::Id;
use tine::engine::{Checkpoint, Input, Interrupt, Resume, ThreadKey, Value, Write};
use tine::graphfile::LoadedGraph;

/// Goes on with a thread: answers what it asks, or picks up where it was stopped
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ResumeArgs {
    /// The thread
    thread: String,
    /// The answer to the one open question: the number of an option, or words, which need no quotes;
    /// `-` reads them from standard input
    #[arg(value_name = "ANSWER")]
    answer: Vec<String>,
    /// Answers one question by its id, or the start of it
    #[arg(long = "answer", value_name = "ID=VALUE", conflicts_with = "answer")]
    answers: Vec<String>,
    /// Answers with JSON, written out, in a file (@FILE) or from standard input (-): the one open
    /// question, or one by its id
    #[arg(long, value_name = "[ID=]JSON", conflicts_with = "answer")]
    answer_json: Vec<String>,
    /// Sets one value of the configuration, on top of what the thread was run with
    #[arg(long, value_name = "SECTION.NAME.KEY=VALUE")]
    set: Vec<String>,
    /// Goes on with the definition that the thread was last run with, even if the graph file has changed
    #[arg(long)]
    pin: bool,
    /// Another configuration than the thread was last run with
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Begins at an old checkpoint: its id, the beginning of it, or `step:N`
    #[arg(long, value_name = "ID")]
    at: Option<String>,
    /// Prints one event a line as JSON, and the outcome last
    #[arg(long)]
    pub(crate) json: bool,
    /// How many steps this run may make, in place of the graph's own limit
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_steps: Option<u32>,
    /// Asks nothing here, also in a terminal: open questions end the command with status 3
    #[arg(long)]
    no_prompt: bool,
}

const EXAMPLES: &str = "\
EXAMPLES
  tine resume amber-heron-3f9c 2
  tine resume amber-heron-3f9c \"battery technology\"
  tine resume amber-heron-3f9c --answer-json '{\"approved\": true}'
  tine resume amber-heron-3f9c --answer 8c1f=yes --answer 02aa=no
  tine resume amber-heron-3f9c
  tine resume amber-heron-3f9c --at step:3
  tine resume amber-heron-3f9c --pin

A number stands for an option of the question, and so does its text in any case. A form is answered
with a JSON object. In a terminal the command asks what is open, unless --no-prompt is given.

Graph file, configuration and settings are those that the thread was last run with, from whatever
directory. Without an answer the thread goes on with what is pending: after a crash, a failure, a
limit, a breakpoint. A graph file may have grown meanwhile; one that lost a node or a channel is
refused, and one that is gone is replaced by its definition, which is kept with the thread.

With --at everything after that checkpoint runs again, or is answered anew, on a branch of its own,
and the thread goes on with that. `tine threads history` lists the checkpoints; nothing that was is
changed.";

pub(crate) async fn resume(cx: &mut Cx, args: ResumeArgs) -> Result<Status, Failure> {
    cx.prompts &= !args.no_prompt;
    let (store, info, checkpoint) = Store::find(cx, &args.thread).await?;
    let notes = Notes::from_map(&args.thread, &info.meta)?;
    let begins = Beginning::find(&store, &info.key, checkpoint, args.at.as_deref()).await?;
    let Beginning {
        at,
        checkpoint,
        questions,
    } = begins;
    let again = format!(
        "`tine run GRAPH TEXT --thread={}` starts another run on it",
        quoted(&args.thread)
    );
    let unsaid = match &checkpoint {
        Some(newest) if at.is_none() && questions.is_empty() => {
            unsaid(&store, &info.key, &notes, newest).await?
        }
        _ => None,
    };
    let start = match given(cx, &args, &questions, &notes.definition)? {
        Some(_) if questions.is_empty() => {
            let failure = Failure::usage(format!(
                "thread `{}` asks nothing, so there is nothing to answer",
                args.thread
            ));
            // What was stopped in the middle is better gone on with than left.
            let pending = checkpoint.is_some_and(|checkpoint| !checkpoint.next.is_empty());
            return Err(match pending {
                true => failure.hint(format!(
                    "`{}` goes on with what is pending",
                    resume_command(&args.thread, "", "")
                )),
                false => failure.hint(again),
            });
        }
        Some(resume) => Start::Input(Input::Resume(resume)),
        None if unsaid.is_none()
            && checkpoint
                .as_ref()
                .is_none_or(|checkpoint| checkpoint.next.is_empty()) =>
        {
            return Err(Failure::usage(format!(
                "thread `{}` is done; nothing is left to go on with",
                args.thread
            ))
            .hint(again));
        }
        None => match unsaid {
            Some(reply) => Start::Reply(reply),
            None => Start::Input(Input::Continue),
        },
    };
    let with = Reopen {
        set: args.set,
        config: args.config,
        pin: args.pin,
    };
    let opened = reopen(cx, &args.thread, &notes, with)?;
    let mut notes = Notes::new(opened.setup, &opened.graph.outline);
    notes.unsaid = start.unsaid().cloned();
    let job = Job {
        host: opened.host,
        notes,
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
    Ok(execute(cx, job, start).await?)
}

/// Words that answered questions, if a crash came before they were said in the conversation.
///
/// They are said on the branch that the answer made and nowhere else, and only if no checkpoint of it has them.
async fn unsaid(
    store: &Store,
    thread: &ThreadKey,
    notes: &Notes,
    newest: &Checkpoint,
) -> Result<Option<Reply>, Failure> {
    let Some(said) = notes.unsaid.clone() else {
        return Ok(None);
    };
    let id = said.message.get("id").and_then(Value::as_str);
    let is_among = |messages: &Value| {
        let mut messages = messages.as_list().into_iter().flat_map(|list| list.iter());
        messages.any(|message| message.get("id").and_then(Value::as_str) == id)
    };
    let has_them = |checkpoint: &Checkpoint| {
        let updates = checkpoint.records.iter().map(|record| &record.kind);
        let mut updates = updates.flat_map(|kind| match kind {
            RecordKind::Command { writes, .. } => writes.as_slice(),
            _ => &[],
        });
        checkpoint.values.get(MESSAGES).is_some_and(is_among)
            || updates.any(|update| match &update.write {
                Write::Value(value) => &*update.channel == MESSAGES && is_among(value),
                _ => false,
            })
    };
    let mut before = newest.clone();
    loop {
        if has_them(&before) {
            return Ok(None);
        }
        let at = Some(before.id.to_string());
        if at == said.asked_at {
            break;
        }
        match before.parent {
            Some(parent) if at != said.newest => {
                before = store.checkpoint(thread, parent).await?;
            }
            _ => return Ok(None),
        }
    }
    let mut pending = newest.next.iter().map(|task| task.node());
    let first = pending
        .any(|node| said.nodes.iter().any(|name| *name == *node))
        .then_some(Input::Continue);
    Ok(Some(Reply { first, said }))
}

/// The graph that the thread goes on with: its file, or what was kept of it if that is wanted or the file is gone.
fn load(
    cx: &mut Cx,
    host: &Host,
    thread: &str,
    notes: &Notes,
    pin: bool,
) -> Result<LoadedGraph, Failure> {
    let file = &notes.setup.graph;
    let found = std::fs::metadata(file);
    let gone = found.is_err_and(|error| error.kind() == ErrorKind::NotFound);
    if gone && !pin {
        let shown = cx.env.shown(file);
        let name = quoted(thread);
        print_note(
            &mut cx.stderr,
            &format!(
                "{shown} is gone; going on with the definition that thread {name} was last run with"
            ),
        );
    }
    if gone || pin {
        return host.load_kept(cx, notes);
    }
    let pinned = || {
        format!(
            "`{}` goes on with the definition that the thread was last run with",
            resume_command(thread, "--pin", "")
        )
    };
    let graph = host
        .load(cx, file)
        .map_err(|failure| failure.hint(pinned()))?;
    notes
        .check(thread, &graph.outline)
        .map_err(|failure| failure.hint(pinned()))?;
    Ok(graph)
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
            // What begins at the newest goes on with the thread and makes no branch.
            at: (!is_newest).then_some(id),
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

/// What a thread is opened with beside what is noted of it.
#[derive(Debug, Default)]
pub(crate) struct Reopen {
    /// Settings on top of its own.
    pub(crate) set: Vec<String>,
    /// Another configuration.
    pub(crate) config: Option<PathBuf>,
    /// Whether its kept definition is wanted, whatever became of the graph file.
    pub(crate) pin: bool,
}

/// Loads the graph that a thread was last run with.
pub(crate) fn reopen(
    cx: &mut Cx,
    thread: &str,
    notes: &Notes,
    with: Reopen,
) -> Result<Reopened, Failure> {
    without_secrets(&with.set)?;
    let notes = notes.clone().found_again(cx);
    let mut setup = notes.setup.clone();
    if setup.set.is_empty() {
        setup.directory = cx.env.directory.clone();
    } else if !with.set.is_empty() && setup.directory != cx.env.directory {
        return Err(Failure::usage(format!(
            "thread `{thread}` was run with `--set` in {}, and relative paths in more of it would be taken from there",
            setup.directory.display()
        ))
        .hint(format!(
            "go there first: `cd {}`",
            quoted(&setup.directory.display().to_string())
        )));
    }
    setup.set.extend(with.set);
    if let Some(config) = &with.config {
        setup.config = cx.env.absolute(config);
    }
    let host = Host::open(cx, &setup)?;
    let graph = load(cx, &host, thread, &notes, with.pin)?;
    Ok(Reopened { host, graph, setup })
}

/// The answers that the command gives, if it gives any.
fn given(
    cx: &Cx,
    args: &ResumeArgs,
    questions: &[Interrupt],
    definition: &Value,
) -> Result<Option<Resume>, Failure> {
    if !args.answer.is_empty() {
        let text = text_input::words(&args.answer)?;
        let answer = match questions {
            [question] => read(question, definition, &text)?,
            // The engine says that there are several, or none.
            _ => text.into(),
        };
        return Ok(Some(Resume::value(answer)));
    }
    let mut by_id: Vec<(String, Value)> = Vec::new();
    for given in &args.answers {
        let Some((id, text)) = given.split_once('=') else {
            return Err(
                Failure::usage(format!("`--answer {given}` names no question")).hint(
                    "write it as `--answer ID=VALUE`; `tine threads show THREAD` lists the ids",
                ),
            );
        };
        let id = full(id, questions);
        let question = questions
            .iter()
            .find(|question| question.id.to_string() == id);
        let answer = match question {
            Some(question) => read(question, definition, text)?,
            None => text.into(),
        };
        by_id.push((id, answer));
    }
    for given in &args.answer_json {
        let (id, json) = match given.split_once('=') {
            Some((id, json)) if !id.is_empty() && id.bytes().all(|b| b.is_ascii_hexdigit()) => {
                (Some(id), json)
            }
            _ => (None, given.as_str()),
        };
        let value = text_input::json(cx, "--answer-json", json)
            .map_err(|failure| failure.hint("plain text is given as `tine resume THREAD TEXT`"))?;
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

/// Reads what the user wrote as the answer to a question.
pub(crate) fn read(question: &Interrupt, definition: &Value, text: &str) -> Result<Value, Failure> {
    let takes = Takes::of(question, definition);
    takes.read(text).map_err(|problem| {
        let failure = Failure::usage(format!("{problem}; nothing was recorded"));
        match takes {
            Takes::Options { only: false, .. } => failure.hint(format!(
                "what is meant as words and not as the number of an option is put in double quotes: `'\"{}\"'`",
                text.trim()
            )),
            takes => failure.hint(format!("it takes {}", takes.told())),
        }
    })
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
