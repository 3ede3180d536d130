//! `tine tools call`

use super::explain::unknown;
use crate::cli::Cx;
use crate::cli::failure::{Failure, print_error, print_note};
use crate::cli::setup::ConfigArgs;
use crate::cli::signal::Stops;
use crate::cli::status::Status;
use crate::cli::store::Store;
use crate::cli::terminal::line::clean;
use crate::cli::{host, place, text_input};
use async_trait::async_trait;
use clap::Args;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tempfile::TempDir;
use tine::engine::message::Content;
use tine::engine::{ThreadKey, World as _};
use tine::tools::assemble::{BoundTool, Scene, Verdict, assemble};
use tine::tools::paths::{Home, ThreadFolders};
use tine::tools::{Ask, Blocking, Listen, Source, ToolCx, ToolError, ToolOutput};
use tokio_util::sync::CancellationToken;

/// Calls one tool, as an agent would
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct CallArgs {
    /// The tool, by the name that models call it by
    name: String,
    /// The arguments, a JSON object; `@FILE` reads them from a file, `-` from standard input
    #[arg(long, value_name = "JSON", default_value = "{}")]
    args: String,
    /// Works in the folders of this thread, in place of temporary ones
    #[arg(long, value_name = "ID")]
    thread: Option<String>,
    #[command(flatten)]
    config: ConfigArgs,
    /// Prints the whole output as JSON
    #[arg(long)]
    pub(super) json: bool,
}

const EXAMPLES: &str = "\
EXAMPLES
  tine tools call web_search --args '{\"query\": \"tea\"}'
  tine tools call ls --args '{\"description\": \"look\", \"path\": \"/mnt/user-data\"}' --thread tea
  tine tools call write_file --args @call.json --json

The arguments are checked, and the tool works as when a model calls it: its effects are real.
Without --thread its folders are new and empty, and gone afterwards. With it, files of the thread
change, and its state does not: what the tool would write to channels is only said.

Exit status: 0 the tool gave a result, 2 it was not called (unknown, or wrong arguments),
3 it asks, 4 it failed, 130 cancelled.";

/// How long a tool that was told to stop may take to.
const GRACE: Duration = Duration::from_secs(2);

/// What came of the call.
enum Ended {
    Output(ToolOutput),
    /// It would ask this.
    Asks(Value),
    Failed(ToolError),
    Panicked,
    Cancelled,
}

pub(super) async fn call(cx: &mut Cx, args: CallArgs) -> Result<Status, Failure> {
    let path = place::config(&cx.env, args.config.config.as_deref(), None);
    crate::cli::shipped::restore(cx, [&path])?;
    let config = host::configure(
        Path::new(&cx.env.shown(&path)),
        &args.config.set,
        Path::new(""),
    )?;
    let (toolbox, report) = assemble(&config, &host::extensions(cx), &Scene::default())?;
    let Some(tool) = toolbox.get(&args.name).cloned() else {
        let dropped = report
            .about(&args.name)
            .find(|decision| decision.verdict == Verdict::Dropped);
        return Err(match dropped {
            Some(decision) => Failure::usage(format!(
                "agents do not have the tool `{}`: {}",
                clean(&args.name),
                decision.reason
            ))
            .hint(format!(
                "`tine tools explain {}` says more",
                clean(&args.name)
            )),
            None => unknown(&args.name, &report),
        });
    };
    let given = text_input::json(cx, "--args", &args.args)?.to_json();
    let hint = format!("`tine tools explain {}` lists the arguments", args.name);
    if let Err(error) = tool.prepare(given.clone()) {
        return Err(Failure::usage(error).hint(hint));
    }
    let (folders, temporary) = folders(cx, args.thread.as_deref()).await?;
    let notes = Arc::new(Notes::default());
    let ended = run(cx, &tool, given, folders, notes.clone()).await;
    for note in notes
        .0
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .iter()
    {
        print_note(&mut cx.stderr, note);
    }
    let status = match args.json {
        true => tell_json(cx, &args.name, &ended),
        false => tell(cx, &ended),
    };
    if let Some(temporary) = temporary
        && holds_files(temporary.path())
    {
        print_note(
            &mut cx.stderr,
            "what it wrote is gone with its temporary folder; `--thread ID` works in the folders of a thread",
        );
    }
    Ok(status)
}

/// The folders to work in, and the temporary one that they are in, if they are.
async fn folders(
    cx: &Cx,
    thread: Option<&str>,
) -> Result<(ThreadFolders, Option<TempDir>), Failure> {
    if let Some(thread) = thread {
        let (_, info, _) = Store::find(cx, thread).await?;
        let home = Home::open(&cx.env.home)?;
        return Ok((home.thread(&info.key)?, None));
    }
    let temporary = tempfile::Builder::new()
        .prefix("tine-call-")
        .tempdir()
        .map_err(|error| {
            Failure::usage(format!("no temporary folder can be made: {error}"))
                .hint("TMPDIR names the folder for it; `--thread ID` needs none")
        })?;
    let home = Home::open(temporary.path())?;
    Ok((home.thread(&ThreadKey::local("call"))?, Some(temporary)))
}

async fn run(
    cx: &Cx,
    tool: &BoundTool,
    given: Value,
    folders: ThreadFolders,
    notes: Arc<Notes>,
) -> Ended {
    let cancel = CancellationToken::new();
    let question = Arc::new(Question::default());
    let manifest = &tool.spec().manifest;
    let channels = manifest.writes.iter().chain(&manifest.may_write);
    let mut tool_cx = ToolCx::new("call_1", folders, cx.world.clone())
        .with_cancellation(cancel.clone())
        .with_channels(channels.cloned().collect())
        .with_listen(notes)
        .with_blocking(Blocking::Threads);
    // As for an agent: any other tool is told that nobody can be asked.
    if tool.id().source == Source::Builtin && tool.id().name == "ask_clarification" {
        tool_cx = tool_cx.with_ask(question.clone());
    }
    let tool = tool.clone();
    let mut stops = Stops::listen();
    let mut task = tokio::spawn(async move { tool.call(&tool_cx, given).await });
    let ended = tokio::select! {
        ended = &mut task => ended,
        () = stops.next() => {
            cancel.cancel();
            let ended = tokio::select! {
                ended = &mut task => Some(ended),
                () = stops.next() => None,
                () = cx.world.sleep(GRACE) => None,
            };
            task.abort();
            match ended {
                // It was done all the same.
                Some(Ok(Ok(output))) => Ok(Ok(output)),
                _ => return Ended::Cancelled,
            }
        }
    };
    match ended {
        Ok(Ok(output)) => Ended::Output(output),
        Ok(Err(ToolError::Interrupted)) => {
            let asked = question.0.lock().unwrap_or_else(PoisonError::into_inner);
            Ended::Asks(asked.clone().unwrap_or_default())
        }
        Ok(Err(ToolError::Cancelled)) => Ended::Cancelled,
        Ok(Err(error)) => Ended::Failed(error),
        Err(_) => Ended::Panicked,
    }
}

/// Prints what the model would see.
fn tell(cx: &mut Cx, ended: &Ended) -> Status {
    match ended {
        Ended::Output(output) => {
            match output.reply() {
                Some(Content::Text(text)) => cx.stdout.line(&clean(text.trim_end_matches('\n'))),
                Some(Content::Blocks(blocks)) => {
                    for block in &blocks {
                        cx.stdout.line(&block.to_canonical());
                    }
                }
                None => print_note(
                    &mut cx.stderr,
                    "the model is told nothing; the graph answers the call",
                ),
            }
            if let ToolOutput::Command(command) = output {
                for (channel, write) in command.update.iter() {
                    let json = serde_json::to_string(write).unwrap_or_default();
                    print_note(
                        &mut cx.stderr,
                        &format!("in a graph it would write to `{channel}`: {json}"),
                    );
                }
                if let Some(route) = &command.route {
                    print_note(
                        &mut cx.stderr,
                        &format!("in a graph it would go where the node maps `{route}`"),
                    );
                }
            }
            Status::Done
        }
        Ended::Asks(payload) => {
            let text = payload.get("text").and_then(Value::as_str);
            let text = text.map_or_else(|| payload.to_string(), str::to_owned);
            cx.stdout.line(&clean(text.trim_end()));
            print_note(
                &mut cx.stderr,
                "it asks this; in a graph the run waits for the answer, which is the result of the call",
            );
            Status::Interrupted
        }
        Ended::Failed(error) => {
            let hint = "the model is told this, and may try again".to_owned();
            print_error(&mut cx.stderr, &error.with_causes(), &[hint]);
            Status::Failed
        }
        Ended::Panicked => {
            let hint = "that is a mistake in the tool: please report it".to_owned();
            print_error(&mut cx.stderr, "the tool panicked", &[hint]);
            Status::Failed
        }
        Ended::Cancelled => {
            print_error(&mut cx.stderr, "the call was cancelled", &[]);
            Status::Cancelled
        }
    }
}

/// Prints the outcome as one line of JSON.
fn tell_json(cx: &mut Cx, name: &str, ended: &Ended) -> Status {
    let (status, exit, more) = match ended {
        Ended::Output(output) => (
            Status::Done,
            "done",
            ("output", serde_json::to_value(output).unwrap_or_default()),
        ),
        Ended::Asks(payload) => (
            Status::Interrupted,
            "interrupted",
            ("question", payload.clone()),
        ),
        Ended::Failed(error) => (
            Status::Failed,
            "failed",
            ("error", json!(error.with_causes())),
        ),
        Ended::Panicked => (
            Status::Failed,
            "failed",
            ("error", json!("the tool panicked")),
        ),
        Ended::Cancelled => (Status::Cancelled, "cancelled", ("error", Value::Null)),
    };
    let mut line = json!({"event": "outcome", "tool": name, "exit": exit});
    line[more.0] = more.1;
    cx.stdout.line(&line.to_string());
    status
}

fn holds_files(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return false;
    };
    entries.flatten().any(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => holds_files(&entry.path()),
        _ => true,
    })
}

/// Takes down what is asked; nobody answers.
#[derive(Default)]
struct Question(Mutex<Option<Value>>);

#[async_trait]
impl Ask for Question {
    async fn ask(&self, payload: Value) -> Result<Value, ToolError> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(payload);
        Err(ToolError::Interrupted)
    }
}

/// Takes down what the tool says to people.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Listen for Notes {
    fn note(&self, text: &str) {
        let mut notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        notes.push(text.to_owned());
    }
}
