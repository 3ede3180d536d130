//! `tine tools`

use super::Cx;
use super::failure::Failure;
use super::host;
use super::place;
use super::setup::ConfigArgs;
use super::status::Status;
use clap::Args;
use tine::tools::assemble::Scene;

/// Says which tools agents have, and why
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ToolsArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Takes only the configured tools of these groups
    #[arg(long, value_name = "GROUP,...", value_delimiter = ',')]
    groups: Option<Vec<String>>,
    /// Prints the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
EXAMPLES
  tine tools
  tine tools --groups web,file:read
  tine tools --config other.yaml --json";

pub(crate) fn tools(cx: &mut Cx, args: &ToolsArgs) -> Result<Status, Failure> {
    let scene = Scene {
        groups: args.groups.clone(),
        ..Scene::default()
    };
    let config = place::config(&cx.env, args.config.config.as_deref(), None);
    let report = host::report(cx, &config, &args.config.set, &scene)?;
    if args.json {
        let json = serde_json::to_string(&report)
            .map_err(|error| Failure::usage(format!("the report can not be printed: {error}")))?;
        cx.stdout.line(&json);
    } else {
        cx.stdout.write(&report.to_string());
    }
    Ok(Status::Done)
}
