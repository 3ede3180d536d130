//! `tine threads list`

use super::state::State;
use crate::cli::Cx;
use crate::cli::failure::Failure;
use crate::cli::output::Tone;
use crate::cli::status::Status;
use crate::cli::store::Store;
use crate::cli::terminal::line::{clean_name, columns, one_line};
use clap::Args;
use serde_json::{Value as Json, json};
use tine::engine::checkpoint::{Scope, ThreadInfo};
use tine::engine::{Checkpoint, Message, ThreadKey, Value};

/// Lists threads, the newest first
#[derive(Args, Debug)]
#[command(after_help = "EXAMPLES\n  tine threads\n  tine threads list --limit 100 --json")]
pub(crate) struct ListArgs {
    /// How many to list
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Prints one thread a line as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

struct Row {
    info: ThreadInfo,
    state: State,
    graph: String,
    /// What was said first.
    about: String,
}

pub(crate) async fn list(cx: &mut Cx, args: &ListArgs) -> Result<Status, Failure> {
    let mut rows = Vec::new();
    let mut left = 0;
    if let Some(store) = Store::open_existing(cx)? {
        let threads = store.0.threads(ThreadKey::LOCAL).await?;
        left = threads.len().saturating_sub(args.limit as usize);
        for info in threads.into_iter().take(args.limit as usize) {
            let checkpoint = store.0.load(&Scope::root(info.key.clone()), None).await?;
            rows.push(row(info, checkpoint.as_ref()));
        }
    }
    if args.json {
        for row in &rows {
            cx.stdout.line(&json_of(row).to_string());
        }
        return Ok(Status::Done);
    }
    if rows.is_empty() {
        let home = cx.env.home.display().to_string();
        cx.stdout.line(&format!("no threads in {home}"));
        return Ok(Status::Done);
    }
    let out = &mut cx.stdout;
    let wide = |text: fn(&Row) -> String| rows.iter().map(|row| columns(&text(row))).max();
    let names = wide(|row| clean_name(&row.info.key.thread)).unwrap_or(0);
    let graphs = wide(|row| row.graph.clone()).unwrap_or(0);
    for row in &rows {
        let name = clean_name(&row.info.key.thread);
        let pad = |text: &str, width: usize| " ".repeat(width.saturating_sub(columns(text)));
        let state = format!("{:11}", row.state.name());
        // 19 columns of time, and two between any two.
        let used = names + graphs + 11 + 16 + 8;
        let about = one_line(&row.about, out.device().width.saturating_sub(used).max(8));
        let line = format!(
            "{}{}  {}  {}{}  {}  {about}",
            out.paint(Tone::Strong, &name),
            pad(&name, names),
            out.paint(row.state.tone(), &state),
            row.graph,
            pad(&row.graph, graphs),
            out.paint(Tone::Faint, &minute(&row.info)),
        );
        out.line(line.trim_end());
    }
    if left > 0 {
        out.line(&format!("and {left} more; `--limit` lists them"));
    }
    Ok(Status::Done)
}

/// When the thread last moved, to the minute.
fn minute(info: &ThreadInfo) -> String {
    let time = info.updated.to_string();
    time.get(..16).unwrap_or(&time).replace('T', " ")
}

fn row(info: ThreadInfo, checkpoint: Option<&Checkpoint>) -> Row {
    let noted = |key: &str| {
        info.meta
            .get(key)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let first = checkpoint
        .and_then(|checkpoint| checkpoint.values.get("messages")?.as_list()?.iter().next())
        .and_then(|message| Message::from_value(message).ok())
        .map(|message| message.content.text());
    Row {
        state: State::of(&info.meta, checkpoint),
        graph: noted("name").unwrap_or_else(|| "?".to_owned()),
        about: first.unwrap_or_default(),
        info,
    }
}

fn json_of(row: &Row) -> Json {
    json!({
        "thread": row.info.key.thread,
        "status": row.state.name(),
        "graph": row.graph,
        "created": row.info.created.to_string(),
        "updated": row.info.updated.to_string(),
        "checkpoints": row.info.checkpoints,
        "about": row.about,
    })
}
