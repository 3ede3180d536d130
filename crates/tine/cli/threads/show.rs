//! `tine threads show`

use super::state::State;
use super::tree::Tree;
use crate::cli::Cx;
use crate::cli::artifact;
use crate::cli::failure::Failure;
use crate::cli::output::{Stream, Tone};
use crate::cli::status::Status;
use crate::cli::store::Store;
use crate::cli::terminal::line::{clean, one_line, quoted};
use crate::cli::terminal::question;
use clap::Args;
use serde_json::json;
use tine::engine::checkpoint::ThreadInfo;
use tine::engine::message::Role;
use tine::engine::world::Id;
use tine::engine::{Checkpoint, Interrupt, Message, Value};
use tine::tools::paths::Home;

/// Shows one thread: where it stands, what it asks, what was said and made
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ShowArgs {
    /// The thread
    thread: String,
    /// Shows an old checkpoint: its id, the beginning of it, or `step:N`
    #[arg(long, value_name = "ID")]
    at: Option<String>,
    /// Prints it as JSON, with the values of all channels
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
EXAMPLES
  tine threads show amber-heron-3f9c
  tine threads show amber-heron-3f9c --at step:3";

pub(crate) async fn show(cx: &mut Cx, args: &ShowArgs) -> Result<Status, Failure> {
    let (store, info, newest) = Store::find(cx, &args.thread).await?;
    let (checkpoint, old) = match &args.at {
        None => (newest, false),
        Some(said) => {
            let id = Tree::load(&store, &info.key).await?.find(said)?;
            let old = newest.is_none_or(|newest| newest.id != id);
            (Some(store.checkpoint(&info.key, id).await?), old)
        }
    };
    let state = match old {
        true => State::at(&info.meta, checkpoint.as_ref()),
        false => State::of(&info.meta, checkpoint.as_ref()),
    };
    let questions = checkpoint
        .as_ref()
        .map(|checkpoint| checkpoint.open_questions())
        .unwrap_or_default();
    let home = Home::open(&cx.env.home)?;
    let made = checkpoint
        .as_ref()
        .map(|checkpoint| artifact::of(&home, &info.key, &checkpoint.values))
        .unwrap_or_default();
    if args.json {
        let error = match &state {
            State::Failed(error) => Some(error),
            _ => None,
        };
        let next = checkpoint.iter().flat_map(|checkpoint| &checkpoint.next);
        let line = json!({
            "thread": info.key.thread,
            "status": state.name(),
            "error": error,
            "graph": info.meta.get("graph"),
            "name": info.meta.get("name"),
            "created": info.created.to_string(),
            "updated": info.updated.to_string(),
            "checkpoint": checkpoint.as_ref().map(|checkpoint| checkpoint.id),
            "run": checkpoint.as_ref().map(|checkpoint| checkpoint.run),
            "step": checkpoint.as_ref().map(|checkpoint| checkpoint.step),
            "checkpoints": info.checkpoints,
            "next": next.map(|task| task.node()).collect::<Vec<_>>(),
            "interrupts": questions,
            "artifacts": made,
            "values": checkpoint.as_ref().map(|checkpoint| &checkpoint.values),
        });
        cx.stdout.line(&line.to_string());
        return Ok(Status::Done);
    }
    head(cx, &info, &state, checkpoint.as_ref());
    let out = &mut cx.stdout;
    if let Some(checkpoint) = &checkpoint {
        messages(out, checkpoint);
    }
    artifact::print(out, &made);
    match (&checkpoint, old) {
        _ if questions.is_empty() => {}
        (Some(checkpoint), true) => asked(out, &info, checkpoint.id, &questions),
        _ => question::print(out, &info.key.thread, &questions),
    }
    Ok(Status::Done)
}

/// Questions of an old checkpoint that nobody answered.
fn asked(out: &mut Stream, info: &ThreadInfo, at: Id, questions: &[Interrupt]) {
    title(out, "asked");
    for interrupt in questions {
        for line in question::text(interrupt).lines() {
            out.line(format!("  {line}").trim_end());
        }
    }
    let command = format!(
        "tine resume {} \"ANSWER\" --at {at}",
        quoted(&info.key.thread)
    );
    let command = out.paint(Tone::Hint, &command);
    out.line(&format!("\nanswer on a branch with\n  {command}"));
}

fn title(out: &mut Stream, text: &str) {
    let text = out.paint(Tone::Strong, text);
    out.line(&format!("\n{text}"));
}

fn head(cx: &mut Cx, info: &ThreadInfo, state: &State, checkpoint: Option<&Checkpoint>) {
    let noted = |key: &str| info.meta.get(key).and_then(Value::as_str);
    let file = noted("graph").map(|file| cx.env.shown(file.as_ref()));
    let graph = format!(
        "{}  {}",
        noted("name").unwrap_or("?"),
        file.unwrap_or_default()
    );
    let out = &mut cx.stdout;
    let status = out.paint(state.tone(), state.name());
    let status = match state {
        State::Failed(error) => format!("{status}: {}", clean(&error.to_string())),
        State::Pending | State::Passed => {
            let next = checkpoint.iter().flat_map(|checkpoint| &checkpoint.next);
            let next: Vec<_> = next.map(|task| task.node()).collect();
            match next.is_empty() {
                true => status,
                false => format!("{status}, next {}", next.join(", ")),
            }
        }
        State::Done | State::Asks | State::Cancelled => status,
    };
    let name = out.paint(Tone::Strong, &clean(&info.key.thread));
    let steps = checkpoint.map_or(0, |checkpoint| checkpoint.step.max(0));
    for (key, value) in [
        ("thread", name),
        ("status", status),
        ("graph", graph.trim_end().to_owned()),
        ("step", steps.to_string()),
        ("created", info.created.to_string()),
        ("updated", info.updated.to_string()),
    ] {
        let key = out.paint(Tone::Faint, &format!("{key:8}"));
        out.line(&format!("{key} {value}"));
    }
}

/// The conversation, a line for each message and call.
fn messages(out: &mut Stream, checkpoint: &Checkpoint) {
    let Some(list) = checkpoint.values.get("messages").and_then(Value::as_list) else {
        return;
    };
    if list.is_empty() {
        return;
    }
    title(out, "messages");
    let room = out.device().width.saturating_sub(10).max(8);
    for message in list
        .iter()
        .filter_map(|item| Message::from_value(item).ok())
    {
        let who = role(message.role);
        let mut lines = Vec::new();
        let text = message.content.text();
        match &message.name {
            Some(name) => lines.push(format!("{name}: {text}")),
            None if !text.is_empty() => lines.push(text),
            None => {}
        }
        for call in &message.tool_calls {
            lines.push(format!("calls {}({})", call.name, call.args.to_canonical()));
        }
        for line in lines {
            let who = out.paint(Tone::Faint, &format!("{who:6}"));
            out.line(&format!("  {who}  {}", one_line(&line, room)));
        }
    }
}

/// Who said a message.
pub(super) fn role(role: Role) -> &'static str {
    match role {
        Role::Human => "human",
        Role::Ai => "ai",
        Role::Tool => "tool",
        Role::System => "system",
    }
}
