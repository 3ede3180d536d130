//! `tine run`

use super::Cx;
use super::execute::{Job, Reply, Start, execute};
use super::failure::Failure;
use super::host::Host;
use super::resume::Beginning;
use super::setup::{ConfigArgs, Notes, RunSwitch, Setup};
use super::status::Status;
use super::store::Store;
use super::terminal::line::quoted;
use super::terminal::{Mode, question};
use super::thread_name;
use clap::Args;
use std::path::PathBuf;
use tine::engine::checkpoint::Scope;
use tine::engine::{Input, Message, ThreadKey, Update, Value};
use tine::graphfile::LoadedGraph;

/// Runs a graph file on a thread
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArgs {
    /// The graph file
    graph: PathBuf,
    /// What to say to it: one message, whose words need no quotes
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
    /// Values of input channels, as a JSON object
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// Prints one event a line as JSON, and the outcome last
    #[arg(long)]
    pub(crate) json: bool,
    /// How many steps this run may make, in place of the graph's own limit
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_steps: Option<u32>,
    /// Switches something of the run on
    #[arg(long = "option", value_name = "NAME")]
    options: Vec<RunSwitch>,
}

const EXAMPLES: &str = "\
EXAMPLES
  tine run graphs/news_report.yaml \"find AI news and save it as Markdown\"
  tine run graphs/news_report.yaml \"tea\" --thread tea --set tools.web_search.path=notes/
  tine run graphs/triage.yaml --input '{\"ticket\": \"it does not start\"}' --json

If the thread waits for answers to questions that the agent asked, the text answers them. Questions of
`interrupt` nodes are answered with `tine resume`.";

/// The channel that a text is said in.
const MESSAGES: &str = "messages";

pub(crate) async fn run(cx: &mut Cx, args: RunArgs) -> Result<Status, Failure> {
    let setup = Setup::new(cx, &args.graph, &args.config, &args.options);
    let host = Host::open(cx, &setup)?;
    let graph = host.load(cx, &setup.graph)?;
    let input = input(&args, &graph)?;
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
    if let Some(info) = store.0.thread(&thread).await?
        && !info.meta.is_empty()
    {
        Notes::from_map(&thread.thread, &info.meta)?.check(&thread.thread, &graph.outline)?;
    }
    let newest = store.0.load(&Scope::root(thread.clone()), None).await?;
    let begins = Beginning::find(&store, &thread, newest, args.at.as_deref()).await?;
    let at = begins.at;
    let start = start(begins, &thread, input, args.input.is_none())?;
    let notes = Notes::new(setup, &graph.outline);
    let mode = match args.json {
        true => Mode::Json,
        false => Mode::Text,
    };
    let job = Job {
        host,
        graph,
        store,
        thread,
        notes,
        mode,
        max_steps: args.max_steps,
        at,
    };
    execute(cx, job, start).await
}

async fn new_thread(cx: &Cx, store: &Store) -> Result<ThreadKey, Failure> {
    loop {
        let key = ThreadKey::local(thread_name::new(&*cx.world));
        if store.0.thread(&key).await?.is_none() {
            return Ok(key);
        }
    }
}

/// What the command says to the graph.
fn input(args: &RunArgs, graph: &LoadedGraph) -> Result<Update, Failure> {
    let outline = &graph.outline;
    let takes = || match outline.input.as_slice() {
        [] => format!("the graph `{}` takes no input", outline.name),
        input => format!("the graph `{}` takes {}", outline.name, input.join(", ")),
    };
    let mut update = match &args.input {
        None => Update::new(),
        Some(json) => match serde_json::from_str::<Value>(json) {
            Ok(Value::Map(map)) => Update::from((*map).clone()),
            Ok(other) => {
                return Err(Failure::usage(format!(
                    "`--input` must be a JSON object of channels, not {}",
                    other.kind()
                ))
                .hint(takes()));
            }
            Err(error) => {
                return Err(Failure::usage(format!("`--input` is not JSON: {error}"))
                    .hint("write it as `--input '{\"channel\": \"value\"}'`"));
            }
        },
    };
    let text = args.text.join(" ");
    if !text.trim().is_empty() {
        if !outline.input.iter().any(|name| name == MESSAGES) {
            return Err(Failure::usage(format!(
                "the graph `{}` has no input `{MESSAGES}` to take a text",
                outline.name
            ))
            .hint(format!("{}; give it with `--input JSON`", takes())));
        }
        let message = Message::human(text)
            .to_value()
            .map_err(|error| Failure::usage(format!("the text can not be sent: {error}")))?;
        update = update.set(MESSAGES, vec![message]);
    }
    if update.is_empty() && args.input.is_none() && !outline.input.is_empty() {
        let way = match outline.input.iter().any(|name| name == MESSAGES) {
            true => "say something: `tine run GRAPH TEXT`",
            false => "give it with `--input JSON`",
        };
        return Err(Failure::usage("there is nothing to run the graph on")
            .hint(format!("{}; {way}", takes()))
            .hint("`tine resume THREAD` goes on with a thread that was stopped"));
    }
    Ok(update)
}

/// New input; or, if the thread waits for the user's words and the input is just that, the answers.
///
/// Words that are `only_said` do not pass over the question of an `interrupt` node; an input that is spelled out does.
fn start(
    begins: Beginning,
    thread: &ThreadKey,
    input: Update,
    only_said: bool,
) -> Result<Start, Failure> {
    let questions = begins.questions;
    let Some(answer) = only_message(&input) else {
        return Ok(Start::Input(Input::New(input)));
    };
    let node = questions.first().map(|question| question.node.clone());
    let answers: Vec<_> = questions
        .into_iter()
        .filter(question::is_clarification)
        .map(|question| (question, Value::from(answer.as_str())))
        .collect();
    match node {
        Some(_) if !answers.is_empty() => Ok(Start::Reply(Reply {
            answers,
            message: input,
        })),
        // Whether the words were meant as the answer, only the user knows.
        Some(node) if only_said => {
            let name = quoted(&thread.thread);
            Err(Failure::usage(format!(
                "thread `{}` waits for an answer to what node `{node}` asks",
                thread.thread
            ))
            .hint(format!("answer with `tine resume {name} \"ANSWER\"`; `tine threads show {name}` shows the question"))
            .hint("`--input JSON` leaves the question unanswered and starts anew"))
        }
        _ => Ok(Start::Input(Input::New(input))),
    }
}

/// The text of an input that is one human message and nothing else.
fn only_message(input: &Update) -> Option<String> {
    let mut writes = input.iter();
    let (Some((channel, tine::engine::Write::Value(value))), None) = (writes.next(), writes.next())
    else {
        return None;
    };
    let items = value.as_list()?;
    let (MESSAGES, 1, Some(item)) = (&**channel, items.len(), items.iter().next()) else {
        return None;
    };
    let message = Message::from_value(item).ok()?;
    (message.role == tine::engine::message::Role::Human).then(|| message.content.text())
}
