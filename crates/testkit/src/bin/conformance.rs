//! Runs conformance cases over the engine, with threads in memory.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tine_engine::MemoryCheckpointer;
use tine_testkit::{Options, find_cases, run_suite};

/// Runs conformance cases over the engine.
///
/// Every failure is shown with its file, the place of the action, the field, and what was expected and found. Then
/// comes a line for each area, and the total. A case that `differs.yaml` beside the cases lists counts as differing,
/// if its label allows that. Exits with 1 if a case failed, with 2 if the cases could not be read.
#[derive(Debug, Parser)]
#[command(
    name = "conformance",
    after_help = "Examples:
  conformance tests/fixtures/conformance
  conformance tests/fixtures/conformance --area basics,routing
  conformance tests/fixtures/conformance --only join-in-loop"
)]
struct Args {
    /// Folders with cases, or single case files
    #[arg(required = true, value_name = "DIR")]
    paths: Vec<PathBuf>,
    /// Run only the case of this name, given as `name` or `area/name`
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Run only cases of these areas
    #[arg(long, value_name = "AREA", value_delimiter = ',')]
    area: Vec<String>,
    /// List the cases, run nothing
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let cases = match find_cases(&args.paths) {
        Ok(cases) => cases,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    let options = Options {
        only: args.only,
        areas: args.area,
    };
    let mut selected = cases.iter().filter(|case| options.selects(case)).peekable();
    if selected.peek().is_none() {
        eprintln!("error: no case is selected; --list without --only and --area shows all");
        return ExitCode::from(2);
    }
    if args.list {
        for case in selected {
            println!("{}: {}", case.id(), case.case.about);
        }
        return ExitCode::SUCCESS;
    }
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: no runtime: {error}");
            return ExitCode::from(2);
        }
    };
    let make = || Arc::new(MemoryCheckpointer::new()) as _;
    let report = runtime.block_on(run_suite(&cases, &options, &make));
    println!("{report}");
    if report.total().failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    }
}
