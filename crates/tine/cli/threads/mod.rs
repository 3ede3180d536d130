//! `tine threads`

mod cancel;
mod delete;
mod diff;
mod export;
mod fork;
mod history;
mod import;
mod list;
mod show;
mod state;
pub(crate) mod tree;
mod trust;
mod update;

use super::Cx;
use super::failure::Failure;
use super::resume::{Reopen, Reopened, reopen};
use super::setup::Notes;
use super::status::Status;
use clap::{Args, Subcommand};

/// Lists threads, looks into them, changes, copies and deletes them
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct ThreadsArgs {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: list::ListArgs,
}

const EXAMPLES: &str = "\
EXAMPLES
  tine threads
  tine threads show amber-heron-3f9c
  tine threads history amber-heron-3f9c
  tine threads delete amber-heron-3f9c";

#[derive(Subcommand, Debug)]
enum Command {
    List(list::ListArgs),
    Show(show::ShowArgs),
    History(history::HistoryArgs),
    Diff(diff::DiffArgs),
    Update(update::UpdateArgs),
    Fork(fork::ForkArgs),
    Cancel(cancel::CancelArgs),
    Delete(delete::DeleteArgs),
    Export(export::ExportArgs),
    Import(import::ImportArgs),
}

/// Loads the graph of a thread for a command that has `--pin`.
fn reopened(cx: &mut Cx, thread: &str, notes: &Notes, pin: bool) -> Result<Reopened, Failure> {
    let with = Reopen {
        pin,
        ..Reopen::default()
    };
    reopen(cx, thread, notes, with).map_err(|failure| {
        let changed = failure.hints().iter().any(|hint| hint.contains("--pin`"));
        match changed {
            true => failure
                .hint("with `--pin` this command takes that definition, too, and runs nothing"),
            false => failure,
        }
    })
}

impl ThreadsArgs {
    /// Whether standard output is for programs.
    pub(crate) fn json(&self) -> bool {
        match &self.command {
            None => self.list.json,
            Some(Command::List(args)) => args.json,
            Some(Command::Show(args)) => args.json,
            Some(Command::History(args)) => args.json,
            Some(Command::Diff(args)) => args.json,
            Some(Command::Update(args)) => args.json,
            Some(Command::Fork(args)) => args.json,
            Some(Command::Cancel(args)) => args.json,
            Some(Command::Delete(args)) => args.json,
            Some(Command::Export(args)) => args.json,
            Some(Command::Import(args)) => args.json,
        }
    }
}

pub(crate) async fn threads(cx: &mut Cx, args: ThreadsArgs) -> Result<Status, Failure> {
    match args.command {
        None => list::list(cx, &args.list).await,
        Some(Command::List(args)) => list::list(cx, &args).await,
        Some(Command::Show(args)) => show::show(cx, &args).await,
        Some(Command::History(args)) => history::history(cx, &args).await,
        Some(Command::Diff(args)) => diff::diff(cx, &args).await,
        Some(Command::Update(args)) => update::update(cx, &args).await,
        Some(Command::Fork(args)) => fork::fork(cx, &args).await,
        Some(Command::Cancel(args)) => cancel::cancel(cx, &args).await,
        Some(Command::Delete(args)) => delete::delete(cx, &args).await,
        Some(Command::Export(args)) => export::export(cx, &args).await,
        Some(Command::Import(args)) => import::import(cx, &args).await,
    }
}
