//! `tine explain`

use super::Cx;
use super::failure::Failure;
use super::status::Status;
use clap::Args;
use tine::graphfile::CHECKS;

/// Explains a finding of `tine validate`
#[derive(Args, Debug)]
#[command(after_help = "EXAMPLES\n  tine explain G302")]
pub(crate) struct ExplainArgs {
    /// The code of the finding, such as G302
    code: String,
}

pub(crate) fn explain(cx: &mut Cx, args: &ExplainArgs) -> Result<Status, Failure> {
    match tine::graphfile::explain(&args.code) {
        Some(page) => {
            cx.stdout.line(page.trim_end());
            Ok(Status::Done)
        }
        None => {
            let codes: Vec<_> = CHECKS.iter().map(|check| check.code).collect();
            Err(
                Failure::usage(format!("there is no finding `{}`", args.code))
                    .hint(format!("the codes are {}", codes.join(", "))),
            )
        }
    }
}
