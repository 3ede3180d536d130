//! What tine does, told on standard error to those who ask.

use super::Cx;
use super::failure::Failure;
use std::io;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::{EnvFilter, fmt};

/// Starts to tell what this filter lets through; that of `TINE_LOG` if none is given, nothing if there is none.
///
/// # Errors
/// If the filter can not be read.
pub(crate) fn start(cx: &Cx, given: Option<&str>) -> Result<(), Failure> {
    let (filter, origin) = match (given, &cx.env.log) {
        (Some(filter), _) => (filter, "--log"),
        (None, Some(filter)) => (filter.as_str(), "TINE_LOG"),
        (None, None) => return Ok(()),
    };
    let filter = EnvFilter::builder().parse(filter).map_err(|error| {
        Failure::usage(format!("`{origin}` is `{filter}`, and {error}"))
            .hint("a filter is a level (`info`, `debug`), or levels by target: `tine::tool=debug,tine::model=info`")
    })?;
    let subscriber = fmt()
        .with_env_filter(filter)
        .with_span_events(FmtSpan::CLOSE)
        .with_ansi(cx.env.stderr.colour)
        .with_writer(io::stderr)
        .finish();
    // There is none yet: a process runs one command.
    tracing::subscriber::set_global_default(subscriber)
        .map_err(|error| Failure::usage(format!("the log can not be started: {error}")))
}
