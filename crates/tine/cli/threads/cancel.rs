//! `tine threads cancel`

use super::state::{CANCELLED, State};
use super::tree::{counted, nodes};
use crate::cli::Cx;
use crate::cli::failure::Failure;
use crate::cli::resume::{Reopen, reopen};
use crate::cli::setup::Notes;
use crate::cli::status::Status;
use crate::cli::store::Store;
use crate::cli::terminal::line::{clean, resume_command, thread_command};
use clap::Args;
use serde_json::json;
use std::time::Duration;
use tine::engine::checkpoint::{Scope, ThreadInfo};
use tine::engine::value::Map;
use tine::engine::{Checkpoint, Runner, StoreError, Value, World as _};

/// Stops the run of a thread, or gives up what a thread that waits has planned
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CancelArgs {
    /// The thread
    thread: String,
    /// How long to wait for a run to stop
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    wait: u32,
    /// Prints the outcome as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
EXAMPLES
  tine threads cancel amber-heron-3f9c

A run under way, of whatever process, is asked to stop as by Ctrl-C: what is done is kept, and `tine
resume` goes on. A thread that nobody runs, because it waits for an answer, failed or was stopped, is
cancelled for good: open calls are answered as cancelled, and nothing is left to go on with. Its state and
its files stay.";

/// How often is looked whether a run has ended.
const LOOK: Duration = Duration::from_millis(50);

pub(crate) async fn cancel(cx: &mut Cx, args: &CancelArgs) -> Result<Status, Failure> {
    let (store, info, checkpoint) = Store::find(cx, &args.thread).await?;
    if let Some(holder) = store.0.ask_to_stop(&info.key).await? {
        return stop(cx, &store, &info, &holder, args).await;
    }
    let name = clean(&args.thread);
    let Some(checkpoint) = checkpoint.filter(|checkpoint| !checkpoint.next.is_empty()) else {
        return Ok(tell(
            cx,
            args,
            "nothing",
            None,
            &[format!("thread {name} is done; there is nothing to cancel")],
        ));
    };
    let notes = Notes::from_map(&args.thread, &info.meta)?;
    // To give up takes no more than the graph that planned it, whatever became of its file.
    let with = Reopen {
        pin: true,
        ..Reopen::default()
    };
    let opened = reopen(cx, &args.thread, &notes, with)?;
    let runner =
        Runner::new(opened.graph.graph, cx.world.clone()).with_checkpointer(store.0.clone());
    let Some(id) = runner.cancel(&info.key).await? else {
        return Ok(tell(
            cx,
            args,
            "nothing",
            None,
            &[format!("thread {name} is done; there is nothing to cancel")],
        ));
    };
    let writer = store.0.open(&info.key).await?;
    let note = Map::from([(CANCELLED.into(), Value::from(id.to_string()))]);
    writer.note(note).await?;
    let state = State::of(&info.meta, Some(&checkpoint));
    let was = match state {
        State::Asks => ", which asked",
        State::Failed(_) => ", which failed",
        _ => "",
    };
    let planned = counted(&nodes(&checkpoint.next));
    let lines = [
        format!("cancelled thread {name}{was}: {planned} will not run"),
        "its state and its files are kept".to_owned(),
    ];
    Ok(tell(cx, args, "pending", None, &lines))
}

/// Waits for who was asked to stop.
async fn stop(
    cx: &mut Cx,
    store: &Store,
    info: &ThreadInfo,
    holder: &str,
    args: &CancelArgs,
) -> Result<Status, Failure> {
    let name = clean(&args.thread);
    let end = cx.world.now().0 + u64::from(args.wait) * 1000;
    // Asked again each time, for a run may let the thread go between two invocations. Who comes next is not meant.
    while store.0.ask_again_to_stop(&info.key, holder).await? {
        if cx.world.now().0 >= end {
            let failure = Failure::from(StoreError::Held {
                thread: info.key.to_string().into(),
                holder: holder.to_owned(),
            });
            return Err(failure.instead(
                Status::Failed,
                &format!(
                    "thread `{name}` is still being run by {holder}, {} s after it was asked to stop",
                    args.wait
                ),
                "it stays asked; `--wait` waits longer, and a process that does not listen can be killed: what was done is kept",
            ));
        }
        cx.world.sleep(LOOK).await;
    }
    let newest: Option<Checkpoint> = store.0.load(&Scope::root(info.key.clone()), None).await?;
    let mut lines = vec![format!("stopped thread {name}, which {holder} was running")];
    if newest.is_some_and(|newest| !newest.next.is_empty()) {
        lines.push(format!(
            "go on with\n  {}\ngive up what is left with\n  {}",
            resume_command(&args.thread, "", ""),
            thread_command("cancel", &args.thread)
        ));
    }
    Ok(tell(cx, args, "run", Some(holder), &lines))
}

fn tell(
    cx: &mut Cx,
    args: &CancelArgs,
    cancelled: &str,
    holder: Option<&str>,
    lines: &[String],
) -> Status {
    if args.json {
        let line = json!({"thread": args.thread, "cancelled": cancelled, "holder": holder});
        cx.stdout.line(&line.to_string());
    } else {
        lines.iter().for_each(|line| cx.stdout.line(line));
    }
    Status::Done
}
