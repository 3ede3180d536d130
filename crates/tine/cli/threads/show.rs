//! `tine threads show`

use super::state::State;
use super::tree::Tree;
use crate::cli::Cx;
use crate::cli::artifact;
use crate::cli::failure::Failure;
use crate::cli::output::{Stream, Tone};
use crate::cli::status::Status;
use crate::cli::store::Store;
use crate::cli::terminal::line::{clean, one_line, resume_command};
use crate::cli::terminal::{arguments, question};
use crate::cli::usage::Usage;
use clap::Args;
use serde_json::json;
use tine::agent::cut_off;
use tine::engine::checkpoint::{CallState, RecordKind, ThreadInfo};
use tine::engine::message::{Role, ToolCall};
use tine::engine::value::Map;
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
        .map(|checkpoint| question::in_order(&checkpoint.open_questions(), &checkpoint.values))
        .unwrap_or_default();
    let unknown = unknown_calls(checkpoint.as_ref(), &questions);
    let cut_off = checkpoint
        .as_ref()
        .map(cut_off::messages)
        .unwrap_or_default();
    let home = Home::open(&cx.env.home)?;
    let made = checkpoint
        .as_ref()
        .map(|checkpoint| artifact::of(&home, &info.key, &checkpoint.values))
        .unwrap_or_default();
    let usage = checkpoint
        .as_ref()
        .map(|checkpoint| Usage::of(checkpoint, old));
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
            "unknown_calls": unknown.iter().map(Unknown::to_json).collect::<Vec<_>>(),
            "artifacts": made,
            "usage": usage,
            "cut_off": cut_off,
            "values": checkpoint.as_ref().map(declared),
        });
        cx.stdout.line(&line.to_string());
        return Ok(Status::Done);
    }
    head(cx, &info, &state, checkpoint.as_ref(), usage.as_ref());
    let out = &mut cx.stdout;
    if let Some(checkpoint) = &checkpoint {
        messages(out, checkpoint, &cut_off);
    }
    artifact::print(out, &made);
    if !unknown.is_empty() && !old {
        print_unknown(out, &info.key.thread, &unknown);
    }
    match (&checkpoint, old) {
        _ if questions.is_empty() => {}
        (Some(checkpoint), true) => asked(out, &info, checkpoint.id, &questions),
        _ => question::print(out, &info.key.thread, &questions),
    }
    Ok(Status::Done)
}

/// A call that began and is not known to have ended, and that nobody was asked about yet.
struct Unknown {
    key: String,
    /// What the conversation says of it.
    call: Option<ToolCall>,
}

impl Unknown {
    fn to_json(&self) -> serde_json::Value {
        let call = self.call.as_ref();
        json!({
            "call": self.key,
            "name": call.map(|call| &call.name),
            "args": call.map(|call| &call.args),
        })
    }
}

fn unknown_calls(checkpoint: Option<&Checkpoint>, questions: &[Interrupt]) -> Vec<Unknown> {
    let Some(checkpoint) = checkpoint else {
        return Vec::new();
    };
    let conversation = conversation(checkpoint);
    let started = checkpoint
        .records
        .iter()
        .filter_map(|record| match &record.kind {
            RecordKind::Call(call) if call.state == CallState::Started => Some(&call.key),
            _ => None,
        });
    let is_asked = |key: &str| {
        let mut asked = questions
            .iter()
            .map(|question| question.payload.get("call"));
        asked.any(|asked| asked.and_then(Value::as_str) == Some(key))
    };
    let unknown = started.filter(|key| !is_asked(key)).map(|key| {
        let mut calls = conversation
            .iter()
            .rev()
            .flat_map(|message| &message.tool_calls);
        Unknown {
            // Calls of tools are kept under their ids, with more behind it.
            call: calls.find(|call| is_of(key, call)).cloned(),
            key: key.to_string(),
        }
    });
    unknown.collect()
}

fn is_of(key: &str, call: &ToolCall) -> bool {
    let rest = key.strip_prefix(&*call.id);
    rest.is_some_and(|rest| rest.starts_with([':', '#']))
}

fn print_unknown(out: &mut Stream, thread: &str, unknown: &[Unknown]) {
    title(out, "began, and is not known to have ended");
    let room = out.device().width.saturating_sub(2).max(8);
    for unknown in unknown {
        let shown = match &unknown.call {
            Some(call) => format!("{}({})", call.name, arguments(Some(&call.args))),
            None => unknown.key.clone(),
        };
        out.line(&format!("  {}", one_line(&shown, room)));
    }
    let command = resume_command(thread, "", "");
    let command = out.paint(Tone::Hint, &command);
    out.line(&format!(
        "\nunless it is being run, this asks what to do about it\n  {command}"
    ));
}

/// Whether a run was cancelled while a model said this.
fn is_cut_off(message: &Message) -> bool {
    let metadata = message.response_metadata.as_ref();
    let reason = metadata.and_then(|metadata| metadata.get("finish_reason"));
    reason.and_then(Value::as_str) == Some(cut_off::CANCELLED)
}

/// Questions of an old checkpoint that nobody answered.
fn asked(out: &mut Stream, info: &ThreadInfo, at: Id, questions: &[Interrupt]) {
    title(out, "asked");
    for interrupt in questions {
        if questions.len() > 1 {
            out.line(&format!("  {}", interrupt.id));
        }
        for line in question::text(interrupt, out.device().width).lines() {
            out.line(format!("  {line}").trim_end());
        }
    }
    question::print_commands_at(out, &info.key.thread, Some(at), questions);
}

fn title(out: &mut Stream, text: &str) {
    let text = out.paint(Tone::Strong, text);
    out.line(&format!("\n{text}"));
}

fn head(
    cx: &mut Cx,
    info: &ThreadInfo,
    state: &State,
    checkpoint: Option<&Checkpoint>,
    usage: Option<&Usage>,
) {
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
    let usage = usage.map(Usage::lines).unwrap_or_default();
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
    for (at, line) in usage.iter().enumerate() {
        let key = out.paint(Tone::Faint, if at == 0 { "usage   " } else { "        " });
        out.line(&format!("{key} {line}"));
    }
}

/// The values of the channels that the graph declares; what the engine keeps for itself is told in other ways.
fn declared(checkpoint: &Checkpoint) -> Map {
    let values = checkpoint.values.iter();
    let declared = values.filter(|(name, _)| !name.starts_with("__"));
    declared
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn conversation(checkpoint: &Checkpoint) -> Vec<Message> {
    let list = checkpoint.values.get("messages").and_then(Value::as_list);
    let items = list.into_iter().flat_map(|list| list.iter());
    let read = items.filter_map(|item| Message::from_value(item).ok());
    read.collect()
}

/// The conversation, a line for each message and call.
fn messages(out: &mut Stream, checkpoint: &Checkpoint, cut_off: &[Message]) {
    let conversation = conversation(checkpoint);
    if conversation.is_empty() && cut_off.is_empty() {
        return;
    }
    title(out, "messages");
    let room = out.device().width.saturating_sub(10).max(8);
    for message in conversation.iter().chain(cut_off) {
        let who = role(message.role);
        let mut lines = Vec::new();
        let text = message.content.text();
        match &message.name {
            Some(name) => lines.push(format!("{name}: {text}")),
            None if is_cut_off(message) => lines.push(format!("(cut off) {text}")),
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
