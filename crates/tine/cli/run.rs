//! `tine run`

use super::Cx;
use super::execute::{Broken, Job, MESSAGES, Reply, Start, execute};
use super::failure::Failure;
use super::host::Host;
use super::place;
use super::resume::Beginning;
use super::setup::{ConfigArgs, Notes, RunSwitch, Setup, Unsaid, without_secrets};
use super::status::Status;
use super::store::Store;
use super::terminal::line::{quoted, resume_command};
use super::terminal::{Mode, question};
use super::text_input;
use super::upload::{self, Sources, Uploads};
use super::{resume, thread_name};
use clap::Args;
use std::path::PathBuf;
use tine::engine::checkpoint::Scope;
use tine::engine::message::Role;
use tine::engine::world::Id;
use tine::engine::{
    Input, Interrupt, Message, Resume, ThreadKey, Update, Value, World as _, Write,
};
use tine::graphfile::LoadedGraph;

/// Runs a graph file on a thread
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArgs {
    /// The graph: a file, or the name of one that ships with tine
    graph: PathBuf,
    /// What to say to it: one message, whose words need no quotes; `-` reads it from standard input
    #[arg(value_name = "TEXT")]
    text: Vec<String>,
    /// The thread; a new one if not given
    #[arg(long, value_name = "ID")]
    thread: Option<String>,
    /// Begins at an old checkpoint of the thread: its id, the beginning of it, or `step:N`
    #[arg(long, value_name = "ID", requires = "thread")]
    at: Option<String>,
    #[command(flatten)]
    config: ConfigArgs,
    /// Values of input channels, as a JSON object, written out, in a file (@FILE) or from standard
    /// input (-)
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// Hands a file in with the message, as /mnt/user-data/uploads/NAME; may be given several times
    #[arg(long, value_name = "FILE")]
    upload: Vec<PathBuf>,
    /// Prints one event a line as JSON, and the outcome last
    #[arg(long)]
    pub(crate) json: bool,
    /// How many steps this run may make, in place of the graph's own limit
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_steps: Option<u32>,
    /// Switches something of the run on
    #[arg(long = "option", value_name = "NAME")]
    options: Vec<RunSwitch>,
    /// Asks nothing here, also in a terminal: a run that stops with questions ends with status 3
    #[arg(long)]
    no_prompt: bool,
}

const EXAMPLES: &str = "\
EXAMPLES
  tine run graphs/news_report.yaml \"find AI news and save it as Markdown\"
  tine run graphs/news_report.yaml \"tea\" --thread tea --set tools.web_search.path=notes/
  tine run graphs/triage.yaml --input '{\"ticket\": \"it does not start\"}' --json
  tine run graphs/news_report.yaml \"sum it up\" --upload notes.md
  git log -20 | tine run graphs/news_report.yaml -

In a terminal the command asks what the run asks, unless --no-prompt is given. If the thread waits for
answers to questions that the agent asked, the text answers them. Questions of `interrupt` nodes are
answered with `tine resume`.";

pub(crate) async fn run(cx: &mut Cx, args: RunArgs) -> Result<Status, Failure> {
    cx.prompts &= !args.no_prompt;
    without_secrets(&args.config.set)?;
    let setup = Setup::new(cx, &args.graph, &args.config, &args.options);
    place::tell(cx, &setup, &args.config);
    let host = Host::open(cx, &setup)?;
    let graph = host.load(cx, &setup.graph)?;
    let said = said(cx, &args, &graph)?;
    let sources = Sources::open(cx, &host, &args.upload)?;
    let store = Store::open(cx)?;
    let thread = match &args.thread {
        Some(thread) if thread.is_empty() => {
            return Err(
                Failure::usage("a thread needs a name, and `--thread` has none")
                    .hint("leave `--thread` out for a new thread"),
            );
        }
        Some(thread) => ThreadKey::local(thread.as_str()),
        None => new_thread(cx, &store).await?,
    };
    let known = store.0.thread(&thread).await?;
    if let Some(info) = &known
        && !info.meta.is_empty()
    {
        Notes::from_map(&thread.thread, &info.meta)?.check(&thread.thread, &graph.outline)?;
    }
    let newest = store.0.load(&Scope::root(thread.clone()), None).await?;
    let head = newest.as_ref().map(|newest| newest.id);
    let begins = Beginning::find(&store, &thread, newest, args.at.as_deref()).await?;
    let asked = Asked {
        place: begins.checkpoint.map(|checkpoint| checkpoint.id).zip(head),
        questions: begins.questions,
    };
    let folders = host.shared_home();
    let uploads = sources.bring(&host, &thread)?;
    let store_of_refused = store.0.clone();
    let job = Job {
        notes: Notes::new(setup, &graph.outline),
        host,
        graph,
        store,
        thread: thread.clone(),
        mode: match args.json {
            true => Mode::Json,
            false => Mode::Text,
        },
        max_steps: args.max_steps,
        at: begins.at,
    };
    let ended = begin(cx, job, asked, said, &uploads, args.input.is_none()).await;
    if ended.as_ref().is_err_and(|broken| broken.refused) && !uploads.is_empty() {
        uploads.take_back();
        // A refused run leaves no thread, so it leaves no folders of one either.
        if known.is_none() && store_of_refused.thread(&thread).await?.is_none() {
            folders.remove_thread(&thread)?;
        }
    }
    Ok(ended?)
}

/// The questions that words may answer.
struct Asked {
    questions: Vec<Interrupt>,
    /// The checkpoint that has them, and the thread's newest one.
    place: Option<(Id, Id)>,
}

/// Runs it with what was said and handed in.
async fn begin(
    cx: &mut Cx,
    mut job: Job,
    asked: Asked,
    said: Said,
    uploads: &Uploads,
    only_said: bool,
) -> Result<Status, Broken> {
    let input = input(said, uploads, &job.graph).map_err(Broken::refused)?;
    let start = start(cx, &job, asked, input, only_said).map_err(Broken::refused)?;
    // Said or not: a crash may come before it is.
    job.notes.unsaid = start.unsaid().cloned();
    execute(cx, job, start).await
}

fn sendable(message: &Message) -> Result<Value, Failure> {
    let value = message.to_value();
    value.map_err(|error| Failure::usage(format!("the text can not be sent: {error}")))
}

async fn new_thread(cx: &Cx, store: &Store) -> Result<ThreadKey, Failure> {
    loop {
        let key = ThreadKey::local(thread_name::new(&*cx.world));
        if store.0.thread(&key).await?.is_none() {
            return Ok(key);
        }
    }
}

/// What the command says to the graph: values of channels, and a text.
struct Said {
    values: Update,
    text: String,
}

fn takes(graph: &LoadedGraph) -> String {
    let outline = &graph.outline;
    match outline.input.as_slice() {
        [] => format!("the graph `{}` takes no input", outline.name),
        input => format!("the graph `{}` takes {}", outline.name, input.join(", ")),
    }
}

fn has_input(graph: &LoadedGraph, channel: &str) -> bool {
    graph.outline.input.iter().any(|name| name == channel)
}

fn said(cx: &Cx, args: &RunArgs, graph: &LoadedGraph) -> Result<Said, Failure> {
    let outline = &graph.outline;
    let takes = || takes(graph);
    if text_input::is_stdin(&args.text) && args.input.as_deref() == Some("-") {
        return Err(
            Failure::usage("both the text and `--input` are to come from standard input")
                .hint("give the values in a file: `--input @FILE`"),
        );
    }
    let values = match &args.input {
        None => Update::new(),
        Some(json) => match text_input::json(cx, "--input", json)? {
            Value::Map(map) => Update::from((*map).clone()),
            other => {
                return Err(Failure::usage(format!(
                    "`--input` must be a JSON object of channels, not {}",
                    other.kind()
                ))
                .hint(takes()));
            }
        },
    };
    let text = text_input::words(&args.text)?;
    let has_text = !text.trim().is_empty();
    if has_text && !has_input(graph, MESSAGES) {
        return Err(Failure::usage(format!(
            "the graph `{}` has no input `{MESSAGES}` to take a text",
            outline.name
        ))
        .hint(format!("{}; give it with `--input JSON`", takes())));
    }
    if !args.upload.is_empty() && !has_input(graph, MESSAGES) && !has_input(graph, upload::CHANNEL)
    {
        return Err(Failure::usage(format!(
            "the graph `{}` has no input `{MESSAGES}` or `{}` to take files",
            outline.name,
            upload::CHANNEL
        ))
        .hint(takes()));
    }
    let is_empty = values.is_empty() && !has_text && args.upload.is_empty();
    if is_empty && args.input.is_none() && !outline.input.is_empty() {
        let way = match has_input(graph, MESSAGES) {
            true => "say something: `tine run GRAPH TEXT`",
            false => "give it with `--input JSON`",
        };
        return Err(Failure::usage("there is nothing to run the graph on")
            .hint(format!("{}; {way}", takes()))
            .hint("`tine resume THREAD` goes on with a thread that was stopped"));
    }
    Ok(Said { values, text })
}

/// The input of the graph: the values, and a message with the text and word of the files.
fn input(said: Said, uploads: &Uploads, graph: &LoadedGraph) -> Result<Update, Failure> {
    let mut update = said.values;
    if !uploads.is_empty() && has_input(graph, upload::CHANNEL) {
        update = update.set(upload::CHANNEL, uploads.value());
    }
    let message = match uploads.is_empty() {
        true if said.text.trim().is_empty() => return Ok(update),
        true => Message::human(said.text),
        false if !has_input(graph, MESSAGES) => return Ok(update),
        false => uploads.message(&said.text),
    };
    let message = message
        .to_value()
        .map_err(|error| Failure::usage(format!("the text can not be sent: {error}")))?;
    // Behind the messages that were spelled out, if there are any.
    Ok(update.set(MESSAGES, vec![message]))
}

/// The message with what was chosen in place of a number: that says nothing to whoever reads the conversation later.
fn meant(mut message: Message, words: &str, answers: &[(Interrupt, Value)]) -> Message {
    let chosen = answers.first().and_then(|(_, answer)| answer.as_str());
    let by_all = answers
        .iter()
        .all(|(_, answer)| answer.as_str() == chosen && chosen.is_some());
    // With files, the text tells of them too.
    if let Some(chosen) = chosen
        && by_all
        && chosen != words
        && message.additional_kwargs.is_none()
    {
        message.content = chosen.into();
    }
    message
}

/// New input; or, if the thread waits for the user's words and the input is just that, the answers.
///
/// Words that are `only_said` do not pass over the question of an `interrupt` node; an input that is spelled out does.
fn start(
    cx: &Cx,
    job: &Job,
    asked: Asked,
    input: Update,
    only_said: bool,
) -> Result<Start, Failure> {
    let thread = &job.thread;
    let Asked { questions, place } = asked;
    let Some(message) = only_message(&input) else {
        return Ok(Start::Input(Input::New(input)));
    };
    let node = questions.first().map(|question| question.node.clone());
    let definition = &job.graph.outline.definition;
    let words = message.words();
    let mut answers = Vec::new();
    for question in questions.into_iter().filter(question::is_clarification) {
        if words.trim().is_empty() {
            return Err(Failure::usage(format!(
                "thread `{}` waits for an answer in words, and files are none",
                thread.thread
            ))
            .hint(
                "say the answer with them: `tine run GRAPH TEXT --thread THREAD --upload FILE`",
            ));
        }
        let answer = resume::read(&question, definition, &words)?;
        answers.push((question, answer));
    }
    match node {
        Some(_) if !answers.is_empty() => {
            let message = match &message.id {
                Some(_) => message,
                None => message.with_id(cx.world.new_id().to_string()),
            };
            let message = meant(message, &words, &answers);
            let root = |path: &str| path.split('/').next().unwrap_or_default().to_owned();
            let nodes = answers.iter().map(|(question, _)| root(&question.node));
            let uploaded = input.iter().find(|(name, _)| &***name == upload::CHANNEL);
            let said = Unsaid {
                nodes: nodes.collect(),
                asked_at: place.map(|(at, _)| at.to_string()),
                newest: place.map(|(_, newest)| newest.to_string()),
                message: sendable(&message)?,
                uploaded: uploaded.and_then(|(_, write)| match write {
                    Write::Value(value) => Some(value.clone()),
                    _ => None,
                }),
            };
            let answers = answers
                .into_iter()
                .map(|(question, answer)| (question.id, answer));
            let first = Some(Input::Resume(Resume::by_id(answers)));
            Ok(Start::Reply(Reply { first, said }))
        }
        // Whether the words were meant as the answer, only the user knows.
        Some(node) if only_said => {
            let answer = resume_command(&thread.thread, "", "\"ANSWER\"");
            let dashes = if thread.thread.starts_with('-') {
                "-- "
            } else {
                ""
            };
            let name = quoted(&thread.thread);
            Err(Failure::usage(format!(
                "thread `{}` waits for an answer to what node `{node}` asks",
                thread.thread
            ))
            .hint(format!(
                "answer with `{answer}`; `tine threads show {dashes}{name}` shows the question"
            ))
            .hint("`--input JSON` leaves the question unanswered and starts anew"))
        }
        _ => Ok(Start::Input(Input::New(input))),
    }
}

/// The message of an input that is one of the user's, and what came with it.
fn only_message(input: &Update) -> Option<Message> {
    let mut writes = input.iter().filter(|(name, _)| &***name != upload::CHANNEL);
    let (Some((channel, Write::Value(value))), None) = (writes.next(), writes.next()) else {
        return None;
    };
    let items = value.as_list()?;
    let (MESSAGES, 1, Some(item)) = (&**channel, items.len(), items.iter().next()) else {
        return None;
    };
    let message = Message::from_value(item).ok()?;
    (message.role == Role::Human).then_some(message)
}
