//! `tine threads update`

use super::reopened;
use super::tree::Tree;
use crate::cli::Cx;
use crate::cli::failure::Failure;
use crate::cli::setup::Notes;
use crate::cli::status::Status;
use crate::cli::store::{Store, similar};
use crate::cli::terminal::line::{clean, resume_command};
use crate::cli::terminal::question;
use crate::cli::text_input;
use clap::Args;
use serde_json::json;
use tine::engine::run::{ThreadUpdate, UpdateAs};
use tine::engine::value::Map;
use tine::engine::world::Id;
use tine::engine::{END, Graph, Runner, START, ThreadKey, Update, Value};

/// Changes the state of a thread from outside, as if a node had
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct UpdateArgs {
    /// The thread
    thread: String,
    /// On top of an old checkpoint, as a branch: its id, the beginning of it, or `step:N`
    #[arg(long, value_name = "ID")]
    at: Option<String>,
    /// The node as which it is done, whose edges say what comes next; the one that ran last if not given
    #[arg(long = "as", value_name = "NODE")]
    by: Option<String>,
    /// Values for channels, a JSON object; `-` reads it from standard input, `@FILE` from a file
    #[arg(long, value_name = "JSON", required_unless_present = "by")]
    input: Option<String>,
    /// Takes the definition that the thread was last run with, even if the graph file has changed
    #[arg(long)]
    pin: bool,
    /// Prints the outcome as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
EXAMPLES
  tine threads update amber-heron-3f9c --input '{\"topic\": \"tea\"}'
  tine threads update amber-heron-3f9c --as agent --at step:3 --input @state.json

Values are folded into the channels as those that nodes write. What was planned before is dropped, open
questions included; `tine resume` goes on with what comes next. Nothing that was stored is changed.";

pub(crate) async fn update(cx: &mut Cx, args: &UpdateArgs) -> Result<Status, Failure> {
    let (store, info, _) = Store::find(cx, &args.thread).await?;
    let notes = Notes::from_map(&args.thread, &info.meta)?;
    let writes = match &args.input {
        None => Map::new(),
        Some(given) => object(cx, given)?,
    };
    let at = match &args.at {
        None => None,
        Some(said) => Some(Tree::load(&store, &info.key).await?.find(said)?),
    };
    let opened = reopened(cx, &args.thread, &notes, args.pin)?;
    let graph = opened.graph.graph;
    check(&graph, args.by.as_deref(), &writes)?;
    let by = match &args.by {
        None => UpdateAs::LastRan,
        Some(name) => name.as_str().into(),
    };
    let runner = Runner::new(graph, cx.world.clone()).with_checkpointer(store.0.clone());
    let update = ThreadUpdate::new(by, Update::from(writes));
    let id = runner
        .bulk_update(&info.key, at, vec![vec![update]])
        .await?;
    tell(cx, &store, &info.key, id, args.json, "updated").await
}

/// Says at which checkpoint a thread stands now, and what comes next.
pub(super) async fn tell(
    cx: &mut Cx,
    store: &Store,
    thread: &ThreadKey,
    id: Id,
    json: bool,
    what: &str,
) -> Result<Status, Failure> {
    let checkpoint = store.checkpoint(thread, id).await?;
    let next: Vec<_> = checkpoint.next.iter().map(|task| task.node()).collect();
    if json {
        let line = json!({
            "thread": thread.thread,
            "checkpoint": id,
            "parent": checkpoint.parent,
            "step": checkpoint.step,
            "source": checkpoint.source,
            "next": next,
        });
        cx.stdout.line(&line.to_string());
        return Ok(Status::Done);
    }
    let tree = Tree::load(store, thread).await?;
    let name = clean(&thread.thread);
    let step = checkpoint.step;
    cx.stdout.line(&format!(
        "{what} thread {name} at checkpoint {}, step {step}",
        tree.short(id)
    ));
    match next.is_empty() {
        true => cx.stdout.line("nothing comes next"),
        false if !checkpoint.open_questions().is_empty() => {
            cx.stdout.line("it waits for an answer");
            let open = question::in_order(&checkpoint.open_questions(), &checkpoint.values);
            question::print_commands(&mut cx.stdout, &thread.thread, &open);
        }
        false => {
            let next = super::tree::counted(&super::tree::nodes(&checkpoint.next));
            let command = resume_command(&thread.thread, "", "");
            cx.stdout
                .line(&format!("next {next}; go on with\n  {command}"));
        }
    }
    Ok(Status::Done)
}

/// The JSON object that the command gives, or that is where it says.
fn object(cx: &Cx, given: &str) -> Result<Map, Failure> {
    match text_input::json(cx, "--input", given)? {
        Value::Map(map) => Ok((*map).clone()),
        other => Err(Failure::usage(format!(
            "`--input` must be a JSON object of channels, not {}",
            other.kind()
        ))
        .hint("write it as `--input '{\"channel\": \"value\"}'`")),
    }
}

/// Refuses names that the graph does not have.
fn check(graph: &Graph, by: Option<&str>, writes: &Map) -> Result<(), Failure> {
    let unknown = |what: &str, name: &str, known: Vec<&str>| {
        let hint = match similar(name, known.iter().copied()).as_slice() {
            [] => format!("its {what}s are {}", known.join(", ")),
            near => format!("did you mean {}?", near.join(" or ")),
        };
        let message = format!("graph `{}` has no {what} `{}`", graph.name(), clean(name));
        Err(Failure::usage(message).hint(hint))
    };
    if let Some(by) = by {
        let nodes: Vec<&str> = graph.nodes().map(|name| &**name).collect();
        if ![START, END].contains(&by) && !nodes.contains(&by) {
            return unknown("node", by, nodes);
        }
    }
    let channels: Vec<&str> = graph.channels().map(|(name, _)| &**name).collect();
    for name in writes.keys() {
        if !channels.contains(&&**name) {
            return unknown("channel", name, channels);
        }
    }
    Ok(())
}
