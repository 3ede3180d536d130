//! Runs conformance cases over the engine, with threads in memory or in a SQLite file.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use clap::{Parser, ValueEnum};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tine_engine::{Checkpointer, MemoryCheckpointer};
use tine_stores::{SqliteCheckpointer, SqliteOptions};
use tine_testkit::{CaseFile, Options, Report, find_cases, run_suite};

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
  conformance tests/fixtures/conformance --only join-in-loop
  conformance tests/fixtures/conformance --store memory,sqlite"
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
    /// Where threads are stored; each case has a fresh store
    #[arg(
        long,
        value_name = "STORE",
        value_delimiter = ',',
        default_value = "memory"
    )]
    store: Vec<Store>,
    /// List the cases, run nothing
    #[arg(long)]
    list: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Store {
    Memory,
    Sqlite,
}

impl Store {
    fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sqlite => "sqlite",
        }
    }

    /// Runs the selected cases over it.
    fn run(self, cases: &[CaseFile], options: &Options) -> std::io::Result<Report> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()?;
        match self {
            Self::Memory => {
                let make = || Arc::new(MemoryCheckpointer::new()) as _;
                Ok(runtime.block_on(run_suite(cases, options, &make)))
            }
            Self::Sqlite => {
                let folder = tempfile::tempdir()?;
                let (path, number) = (folder.path(), AtomicUsize::new(0));
                let make = || {
                    let number = number.fetch_add(1, Ordering::Relaxed);
                    let file = path.join(format!("{number}.db"));
                    let store = SqliteCheckpointer::open(file, SqliteOptions::default())
                        .expect("a folder made just now takes a database");
                    Arc::new(store) as Arc<dyn Checkpointer>
                };
                Ok(runtime.block_on(run_suite(cases, options, &make)))
            }
        }
    }
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
    let mut failed = 0;
    for store in &args.store {
        let report = match store.run(&cases, &options) {
            Ok(report) => report,
            Err(error) => {
                eprintln!(
                    "error: the store `{}` can not be made: {error}",
                    store.name()
                );
                return ExitCode::from(2);
            }
        };
        if args.store.len() > 1 {
            println!("store {}", store.name());
        }
        println!("{report}");
        failed += report.total().failed;
    }
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    }
}
