//! The engine through its public API, on a simulated clock.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

mod abandon;
mod answer_checks;
mod answers;
mod bad_input;
mod bad_store;
mod blocking;
mod branches;
mod budgets;
mod building;
mod cache;
mod children;
mod commands;
mod contexts;
mod drain;
mod durability;
mod export;
mod extremes;
mod faults;
mod handlers;
mod journal;
mod laws;
mod limits;
mod parent_commands;
mod scene;
mod schedules;
mod spans;
mod spy;
mod steps;
mod store;
mod timeouts;
mod torn;

use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn every_file_of_this_folder_is_a_module_of_this_test() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let main = std::fs::read_to_string(folder.join("main.rs")).unwrap();
    let listed: BTreeSet<String> = main
        .lines()
        .filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'))
        .map(str::to_owned)
        .collect();
    let present: BTreeSet<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "rs"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .filter(|name| name != "main")
        .collect();
    assert_eq!(listed, present);
}
