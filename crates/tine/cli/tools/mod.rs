//! `tine tools`

mod call;
mod explain;
mod list;

use super::Cx;
use super::failure::Failure;
use super::status::Status;
use clap::{Args, Subcommand};

/// Says which tools agents have, and why; explains and calls one of them
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct ToolsArgs {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: list::ListArgs,
}

const EXAMPLES: &str = "\
EXAMPLES
  tine tools
  tine tools --groups web,file:read
  tine tools --config other.yaml --json
  tine tools explain web_search
  tine tools call web_search --args '{\"query\": \"tea\"}'";

#[derive(Subcommand, Debug)]
enum Command {
    Explain(explain::ExplainArgs),
    Call(call::CallArgs),
}

impl ToolsArgs {
    /// Whether standard output is for programs.
    pub(crate) fn json(&self) -> bool {
        match &self.command {
            None => self.list.json,
            Some(Command::Explain(args)) => args.json,
            Some(Command::Call(args)) => args.json,
        }
    }
}

pub(crate) async fn tools(cx: &mut Cx, args: ToolsArgs) -> Result<Status, Failure> {
    match args.command {
        None => list::list(cx, &args.list),
        Some(Command::Explain(args)) => explain::explain(cx, &args),
        Some(Command::Call(args)) => call::call(cx, args).await,
    }
}
