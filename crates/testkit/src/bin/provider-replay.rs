//! Reads recorded traffic of model providers with the code that reads their replies.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use tine_testkit::traffic::{Count, Verdict, replay_all};

/// Reads recorded traffic of model providers with the code that reads their replies.
///
/// Prints one JSON line an exchange, then a line for each provider and the total. An exchange passes if its reply was
/// read, or its error told clearly and in the right class; it fails if what the provider sent could not be read; it is
/// skipped if nothing speaks to its endpoint, which is named. Exits with 1 if one failed, with 2 if there is nothing to
/// read.
#[derive(Debug, Parser)]
#[command(
    name = "provider-replay",
    after_help = "Examples:
  provider-replay crates/testkit/tests/traffic
  provider-replay recordings/openai --failed"
)]
struct Args {
    /// Folders `PROVIDER/TOPIC/*.yaml`, or single files
    #[arg(required = true, value_name = "DIR")]
    paths: Vec<PathBuf>,
    /// Print only the exchanges that failed
    #[arg(long)]
    failed: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = match tokio::runtime::Builder::new_current_thread().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    let mut total = Count::default();
    for path in &args.paths {
        let tell = |line: &tine_testkit::traffic::Line| {
            if args.failed && line.verdict != Verdict::Failed {
                return;
            }
            match serde_json::to_string(line) {
                Ok(line) => println!("{line}"),
                Err(error) => eprintln!("error: {error}"),
            }
        };
        let counts = match runtime.block_on(replay_all(path, tell)) {
            Ok(counts) => counts,
            Err(error) => {
                eprintln!("error: {error}");
                return ExitCode::from(2);
            }
        };
        for (provider, count) in &counts {
            eprintln!("{provider}: {count}");
            total.passed += count.passed;
            total.failed += count.failed;
            total.skipped += count.skipped;
        }
    }
    if total == Count::default() {
        eprintln!("error: no exchange is there; files are DIR/PROVIDER/TOPIC/*.yaml");
        return ExitCode::from(2);
    }
    println!("{total}");
    match total.failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(1),
    }
}
