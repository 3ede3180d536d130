//! `tine threads diff`

use super::tree::{Tree, counted, nodes, source_name};
use crate::cli::Cx;
use crate::cli::failure::Failure;
use crate::cli::output::Tone;
use crate::cli::status::Status;
use crate::cli::store::Store;
use crate::cli::terminal::line::{clean_name, columns, one_line};
use clap::Args;
use serde_json::json;
use tine::engine::value::{Change, ChangeKind, Part, diff as differences};
use tine::engine::{Checkpoint, Message, Value};

/// Shows what changed between two checkpoints of a thread
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DiffArgs {
    /// The thread
    thread: String,
    /// The older checkpoint: its id, the beginning of it, or `step:N`
    #[arg(value_name = "A")]
    from: String,
    /// The newer one; the newest of the thread if not given
    #[arg(value_name = "B")]
    to: Option<String>,
    /// Prints it as JSON, with all values whole
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
EXAMPLES
  tine threads diff amber-heron-3f9c step:2
  tine threads diff amber-heron-3f9c 01a2301f-a2cc 01a2301f-b7e0 --json

`+` is what came, `-` what went, `~` what changed. Items of lists that have an id, such as messages, are
the same if their ids are. In the JSON form places in lists are those in B; the last of a removal is that
in A.";

pub(crate) async fn diff(cx: &mut Cx, args: &DiffArgs) -> Result<Status, Failure> {
    let (store, info, newest) = Store::find(cx, &args.thread).await?;
    let tree = Tree::load(&store, &info.key).await?;
    let from = store.checkpoint(&info.key, tree.find(&args.from)?).await?;
    let to = match (&args.to, newest) {
        (None, Some(newest)) => newest,
        (None, None) => from.clone(),
        (Some(to), _) => store.checkpoint(&info.key, tree.find(to)?).await?,
    };
    let changes = differences(&from.values, &to.values);
    if args.json {
        let end = |checkpoint: &Checkpoint| {
            json!({
                "id": checkpoint.id,
                "step": checkpoint.step,
                "source": checkpoint.source,
                "created": checkpoint.created.to_string(),
                "next": checkpoint.next.iter().map(|task| task.node()).collect::<Vec<_>>(),
            })
        };
        let line = json!({
            "thread": info.key.thread,
            "from": end(&from),
            "to": end(&to),
            "changes": changes,
        });
        cx.stdout.line(&line.to_string());
        return Ok(Status::Done);
    }
    let out = &mut cx.stdout;
    for (tone, mark, one) in [(Tone::Bad, "---", &from), (Tone::Good, "+++", &to)] {
        let next = match nodes(&one.next).as_slice() {
            [] => "end".to_owned(),
            next => counted(next),
        };
        let mark = out.paint(tone, mark);
        out.line(&format!(
            "{mark} {}  {}  {}  → {next}",
            tree.short(one.id),
            one.step,
            source_name(one.source)
        ));
    }
    let mut channel = "";
    let mut told = false;
    for change in &changes {
        let [Part::Key(name), rest @ ..] = change.path.as_slice() else {
            continue;
        };
        // What the engine counts is for the JSON form.
        if name.starts_with("__") {
            continue;
        }
        told = true;
        if **name != *channel {
            channel = name;
            let title = out.paint(Tone::Strong, &clean_name(name));
            out.line(&format!("\n{title}"));
        }
        let (tone, mark) = match change.kind {
            ChangeKind::Added { .. } => (Tone::Good, "+"),
            ChangeKind::Removed { .. } => (Tone::Bad, "-"),
            ChangeKind::Changed { .. } => (Tone::Hint, "~"),
        };
        let place = place(rest);
        let room = out.device().width.saturating_sub(columns(&place) + 6);
        let text = text(change, room.max(8));
        let mark = out.paint(tone, mark);
        let line = match place.is_empty() {
            true => format!("  {mark} {text}"),
            false => format!("  {mark} {}  {text}", out.paint(Tone::Faint, &place)),
        };
        out.line(&line);
    }
    if !told {
        out.line("\nnothing changed");
    }
    Ok(Status::Done)
}

/// Where in a channel: `[3].content`.
fn place(path: &[Part]) -> String {
    let mut text = String::new();
    for part in path {
        match part {
            Part::Place(place) => text.push_str(&format!("[{place}]")),
            Part::Key(key) if text.is_empty() => text.push_str(&clean_name(key)),
            Part::Key(key) => text.push_str(&format!(".{}", clean_name(key))),
        }
    }
    text
}

/// What changed, on a line of so many columns.
fn text(change: &Change, room: usize) -> String {
    match &change.kind {
        ChangeKind::Added { after: value } | ChangeKind::Removed { before: value } => {
            one_line(&shown(value), room)
        }
        ChangeKind::Changed { before, after } => {
            let half = room.saturating_sub(3) / 2;
            let before = one_line(&shown(before), half.max(4));
            let rest = room.saturating_sub(columns(&before) + 3);
            format!("{before} → {}", one_line(&shown(after), rest.max(4)))
        }
    }
}

/// A message as it was said, anything else as JSON.
fn shown(value: &Value) -> String {
    let is_message = value.get("role").is_some() || value.get("type").is_some();
    let message = is_message
        .then(|| Message::from_value(value).ok())
        .flatten();
    let Some(message) = message else {
        return value.to_canonical();
    };
    let mut parts = Vec::new();
    let text = message.content.text();
    if !text.is_empty() || message.tool_calls.is_empty() {
        parts.push(text);
    }
    for call in &message.tool_calls {
        parts.push(format!("calls {}({})", call.name, call.args.to_canonical()));
    }
    let who = super::show::role(message.role);
    let who = match &message.name {
        Some(name) => format!("{who} {name}"),
        None => who.to_owned(),
    };
    format!("{who}: {}", parts.join("; "))
}
