//! `tine resume`

use super::Cx;
use super::answer::Takes;
use super::execute::{Job, MESSAGES, Reply, Start, execute};
use super::failure::{Failure, print_note};
use super::host::Host;
use super::setup::Notes;
use super::status::Status;
use super::store::Store;
use super::terminal::Mode;
use super::terminal::line::{quoted, resume_command};
use super::text_input;
use clap::Args;
use std::io::ErrorKind;
use std::path::PathBuf;
use tine::engine::{Checkpoint, Input, Interrupt, Resume, Value};
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
  tine resume amber-heron-3f9c --pin

A number stands for an option of the question, and so does its text in any case. A form is answered
with a JSON object. In a terminal the command asks what is open, unless --no-prompt is given.

Graph file, configuration and settings are those that the thread was last run with, from whatever
directory. Without an answer the thread goes on with what is pending: after a crash, a failure, a
limit, a breakpoint. A graph file may have grown meanwhile; one that lost a node or a channel is
refused, and one that is gone is replaced by its definition, which is kept with the thread.";

pub(crate) async fn resume(cx: &mut Cx, args: ResumeArgs) -> Result<Status, Failure> {
    cx.prompts &= !args.no_prompt;
    let (store, info, checkpoint) = Store::find(cx, &args.thread).await?;
    let notes = Notes::from_map(&args.thread, &info.meta)?.found_again(cx);
    let questions = checkpoint
        .as_ref()
        .map(|checkpoint| checkpoint.open_questions())
        .unwrap_or_default();
    let again = format!(
        "`tine run GRAPH TEXT --thread={}` starts another run on it",
        quoted(&args.thread)
    );
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
        None if checkpoint
            .as_ref()
            .is_none_or(|checkpoint| checkpoint.next.is_empty()) =>
        {
            return Err(Failure::usage(format!(
                "thread `{}` is done; nothing is left to go on with",
                args.thread
            ))
            .hint(again));
        }
        None => match checkpoint.and_then(|checkpoint| unsaid(&notes, &checkpoint)) {
            Some(reply) if questions.is_empty() => Start::Reply(reply),
            _ => Start::Input(Input::Continue),
        },
    };
    let mut setup = notes.setup.clone();
    if setup.set.is_empty() {
        setup.directory = cx.env.directory.clone();
    } else if !args.set.is_empty() && setup.directory != cx.env.directory {
        return Err(Failure::usage(format!(
            "thread `{}` was run with `--set` in {}, and relative paths in more of it would be taken from there",
            args.thread,
            setup.directory.display()
        ))
        .hint(format!(
            "go there first: `cd {}`",
            quoted(&setup.directory.display().to_string())
        )));
    }
    setup.set.extend(args.set.iter().cloned());
    if let Some(config) = &args.config {
        setup.config = cx.env.absolute(config);
    }
    let host = Host::open(cx, &setup)?;
    let graph = load(cx, &host, &notes, &args)?;
    let mut notes = Notes::new(setup, &graph.outline);
    notes.unsaid = start.unsaid().cloned();
    let job = Job {
        host,
        notes,
        graph,
        store,
        thread: info.key,
        mode: match args.json {
            true => Mode::Json,
            false => Mode::Text,
        },
        max_steps: args.max_steps,
    };
    execute(cx, job, start).await
}

/// Words that answered questions, if a crash came before they were said in the conversation.
fn unsaid(notes: &Notes, checkpoint: &Checkpoint) -> Option<Reply> {
    let said = notes.unsaid.clone()?;
    let id = said.message.get("id").and_then(Value::as_str);
    let messages = checkpoint.values.get(MESSAGES).and_then(Value::as_list);
    let mut ids = messages
        .iter()
        .flat_map(|messages| messages.iter())
        .map(|message| message.get("id").and_then(Value::as_str));
    if ids.any(|known| known == id) {
        return None;
    }
    let mut pending = checkpoint.next.iter().map(|task| task.node());
    let first = pending
        .any(|node| said.nodes.iter().any(|name| *name == *node))
        .then_some(Input::Continue);
    Some(Reply { first, said })
}

/// The graph that the thread goes on with: its file, or what was kept of it if that is wanted or the file is gone.
fn load(
    cx: &mut Cx,
    host: &Host,
    notes: &Notes,
    args: &ResumeArgs,
) -> Result<LoadedGraph, Failure> {
    let file = &notes.setup.graph;
    let found = std::fs::metadata(file);
    let gone = found.is_err_and(|error| error.kind() == ErrorKind::NotFound);
    if gone && !args.pin {
        let shown = cx.env.shown(file);
        let name = quoted(&args.thread);
        print_note(
            &mut cx.stderr,
            &format!(
                "{shown} is gone; going on with the definition that thread {name} was last run with"
            ),
        );
    }
    if gone || args.pin {
        return host.load_kept(cx, notes);
    }
    let pin = || {
        format!(
            "`tine resume {} --pin` goes on with the definition that the thread was last run with",
            quoted(&args.thread)
        )
    };
    let graph = host.load(cx, file).map_err(|failure| failure.hint(pin()))?;
    notes
        .check(&args.thread, &graph.outline)
        .map_err(|failure| failure.hint(pin()))?;
    Ok(graph)
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
