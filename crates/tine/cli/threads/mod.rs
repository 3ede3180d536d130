//! `tine threads`

mod delete;
mod list;
mod show;
mod state;

use super::Cx;
use super::failure::Failure;
use super::status::Status;
use clap::{Args, Subcommand};

/// Lists, shows and deletes threads
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
  tine threads delete amber-heron-3f9c";

#[derive(Subcommand, Debug)]
enum Command {
    List(list::ListArgs),
    Show(show::ShowArgs),
    Delete(delete::DeleteArgs),
}

impl ThreadsArgs {
    /// Whether standard output is for programs.
    pub(crate) fn json(&self) -> bool {
        match &self.command {
            None => self.list.json,
            Some(Command::List(args)) => args.json,
            Some(Command::Show(args)) => args.json,
            Some(Command::Delete(_)) => false,
        }
    }
}

pub(crate) async fn threads(cx: &mut Cx, args: ThreadsArgs) -> Result<Status, Failure> {
    match args.command {
        None => list::list(cx, &args.list).await,
        Some(Command::List(args)) => list::list(cx, &args).await,
        Some(Command::Show(args)) => show::show(cx, &args).await,
        Some(Command::Delete(args)) => delete::delete(cx, &args).await,
    }
}
