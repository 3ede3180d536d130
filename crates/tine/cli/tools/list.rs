//! `tine tools` without more: the report of assembly.

use crate::cli::Cx;
use crate::cli::failure::Failure;
use crate::cli::host;
use crate::cli::place;
use crate::cli::setup::ConfigArgs;
use crate::cli::status::Status;
use clap::Args;
use tine::tools::assemble::Scene;

#[derive(Args, Debug)]
pub(super) struct ListArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Takes only the configured tools of these groups
    #[arg(long, value_name = "GROUP,...", value_delimiter = ',')]
    groups: Option<Vec<String>>,
    /// Prints the report as JSON
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn list(cx: &mut Cx, args: &ListArgs) -> Result<Status, Failure> {
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
