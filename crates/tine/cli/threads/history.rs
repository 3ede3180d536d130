//! `tine threads history`

use super::tree::{Tree, counted, nodes, source_name};
use crate::cli::Cx;
use crate::cli::failure::Failure;
use crate::cli::output::{Stream, Tone};
use crate::cli::status::Status;
use crate::cli::store::Store;
use crate::cli::terminal::line::{clean, columns, one_line};
use crate::cli::terminal::question;
use clap::Args;
use serde_json::{Value as Json, json};
use tine::engine::checkpoint::{Advance, RecordKind};
use tine::engine::{RunError, Value};

/// Lists the checkpoints of a thread, the newest first
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct HistoryArgs {
    /// The thread
    thread: String,
    /// How many to list
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Prints one checkpoint a line as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
EXAMPLES
  tine threads history amber-heron-3f9c
  tine threads history amber-heron-3f9c --limit 1000 --json

A line is a checkpoint: the beginning of its id, its step, what made it, when, which nodes ran and which
come next. `*` marks those from which the newest came, `o` those of branches that were left; `from`
says where a branch begins.";

/// How much of a question, an answer or an error a line shows, in columns.
const SHOWN: usize = 40;

pub(crate) async fn history(cx: &mut Cx, args: &HistoryArgs) -> Result<Status, Failure> {
    let (store, info, _) = Store::find(cx, &args.thread).await?;
    let tree = Tree::load(&store, &info.key).await?;
    let all = tree.all();
    let first = all.len().saturating_sub(args.limit as usize);
    let listed: Vec<&Advance> = all[first..].iter().rev().collect();
    if args.json {
        for one in listed {
            cx.stdout.line(&json_of(&tree, one).to_string());
        }
        return Ok(Status::Done);
    }
    let out = &mut cx.stdout;
    let wide = |text: &dyn Fn(&Advance) -> String| {
        let widths = listed.iter().map(|one| columns(&text(one)));
        widths.max().unwrap_or(0)
    };
    let ids = wide(&|one| tree.short(one.id));
    let steps = wide(&|one| one.step.to_string());
    for one in &listed {
        let current = tree.is_current(one.id);
        let mark = if current { "*" } else { "o" };
        let mark = out.paint(if current { Tone::Good } else { Tone::Faint }, mark);
        let id = out.paint(Tone::Strong, &format!("{:ids$}", tree.short(one.id)));
        let when = out.paint(Tone::Faint, &second(one));
        let line = format!(
            "{mark} {id}  {:>steps$}  {:6}  {when}  {}",
            one.step,
            source_name(one.source),
            happened(&tree, one, out),
        );
        out.line(line.trim_end());
    }
    if first > 0 {
        out.line(&format!("and {first} older; `--limit` lists them"));
    }
    Ok(Status::Done)
}

/// When a checkpoint was stored, to the second.
pub(super) fn second(one: &Advance) -> String {
    let time = one.created.to_string();
    time.get(..19).unwrap_or(&time).replace('T', " ")
}

/// What ran, what comes next, what was asked and what failed.
fn happened(tree: &Tree, one: &Advance, out: &Stream) -> String {
    let ran = counted(&tree.ran(one));
    let next = match nodes(&one.next).as_slice() {
        [] => "end".to_owned(),
        next => counted(next),
    };
    let mut parts = vec![format!("{ran} → {next}").trim_start().to_owned()];
    for asked in questions(one) {
        let label = match (&asked.answer, tree.newest() == Some(one.id)) {
            (None, true) => out.paint(Tone::Hint, "asks:"),
            _ => out.paint(Tone::Faint, "asked:"),
        };
        parts.push(format!("{label} {}", one_line(&asked.text, SHOWN)));
        if let Some(answer) = asked.answer {
            let label = out.paint(Tone::Faint, "answered:");
            parts.push(format!("{label} {}", one_line(&answer, SHOWN)));
        }
    }
    if let Some(error) = failure(one) {
        let label = out.paint(Tone::Bad, "failed:");
        parts.push(format!("{label} {}", one_line(&error.to_string(), SHOWN)));
    }
    if let Some(from) = leaves(tree, one) {
        parts.push(out.paint(Tone::Faint, &from));
    }
    parts.join("  ")
}

/// Where a branch begins: said where the parent is not the one that was stored before.
fn leaves(tree: &Tree, one: &Advance) -> Option<String> {
    let all = tree.all();
    let place = all.iter().rposition(|other| other.id == one.id)?;
    let before = place.checked_sub(1).map(|before| all[before].id);
    match one.parent {
        parent if parent == before => None,
        Some(parent) => Some(format!("from {}", tree.short(parent))),
        None => Some("from the beginning".to_owned()),
    }
}

struct Asked {
    text: String,
    answer: Option<String>,
}

/// What was asked at a checkpoint, with the answers.
fn questions(one: &Advance) -> Vec<Asked> {
    let asked = one.records.iter().filter_map(|record| {
        let RecordKind::Asked { slot, interrupt } = &record.kind else {
            return None;
        };
        let answer = one.records.iter().find_map(|other| match &other.kind {
            RecordKind::Answered { slot: of, value } if of == slot && other.task == record.task => {
                Some(match value.as_str() {
                    Some(text) => text.to_owned(),
                    None => value.to_canonical(),
                })
            }
            _ => None,
        });
        Some(Asked {
            // What can be chosen from is told by `show`.
            text: question::text(interrupt, usize::MAX)
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned(),
            answer: answer.map(|answer| clean(&answer)),
        })
    });
    asked.collect()
}

fn failure(one: &Advance) -> Option<&RunError> {
    one.records.iter().find_map(|record| match &record.kind {
        RecordKind::Failed(error) => Some(error),
        _ => None,
    })
}

fn json_of(tree: &Tree, one: &Advance) -> Json {
    let asked = one.records.iter().filter_map(|record| match &record.kind {
        RecordKind::Asked { slot, interrupt } => {
            let answer = one.records.iter().find_map(|other| match &other.kind {
                RecordKind::Answered { slot: of, value }
                    if of == slot && other.task == record.task =>
                {
                    Some(value)
                }
                _ => None,
            });
            let mut line = serde_json::to_value(interrupt).unwrap_or_default();
            if let Some(answer) = answer {
                line["answer"] = json!(answer);
            }
            Some(line)
        }
        _ => None,
    });
    let planned = one.next.iter().map(|task| Value::from(task.node()));
    json!({
        "id": one.id,
        "parent": one.parent,
        "step": one.step,
        "source": one.source,
        "created": one.created.to_string(),
        "run": one.run,
        "ran": tree.ran(one),
        "next": planned.collect::<Vec<_>>(),
        "interrupts": asked.collect::<Vec<_>>(),
        "error": failure(one),
        "current": tree.is_current(one.id),
    })
}
