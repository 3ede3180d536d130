//! The engine's conformance cases, with their threads on disk.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tine_engine::{Checkpointer, MemoryCheckpointer};
use tine_stores::{SqliteCheckpointer, SqliteOptions};
use tine_testkit::{Options, Report, find_cases, run_suite};

fn run(make: &(dyn Fn() -> Arc<dyn Checkpointer> + Sync)) -> Report {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/conformance");
    let cases = find_cases(&[folder]).unwrap_or_else(|error| panic!("{error}"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(run_suite(&cases, &Options::default(), make))
}

#[test]
fn every_case_ends_as_it_does_in_memory() {
    let disk = tempfile::tempdir().unwrap();
    let made = AtomicUsize::new(0);
    let sqlite = || {
        let number = made.fetch_add(1, Ordering::Relaxed);
        let path = disk.path().join(format!("{number}.db"));
        Arc::new(SqliteCheckpointer::open(path, SqliteOptions::default()).unwrap()) as _
    };
    let on_disk = run(&sqlite).to_string();
    let in_memory = run(&|| Arc::new(MemoryCheckpointer::new()) as _).to_string();
    similar(&on_disk, &in_memory);
}

fn similar(found: &str, expected: &str) {
    let differing = found
        .lines()
        .zip(expected.lines())
        .find(|(found, expected)| found != expected);
    assert!(
        differing.is_none() && found.lines().count() == expected.lines().count(),
        "{differing:?}\n{found}"
    );
}
