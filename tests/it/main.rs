//! The integration tests: the command as users run it, and the crates together as programs use them.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

mod anywhere;
mod archive;
mod bad_input;
mod changed;
mod clarification;
mod command;
mod corpus;
mod cut_off;
mod desk;
mod examples;
mod help;
mod inputs;
mod inspect;
mod json;
mod kills;
mod main_job;
mod not_implemented;
mod notes;
mod observe;
mod project;
mod provider;
mod questions;
mod readme;
mod shell;
mod stopping;
mod terminal;
mod threads;
mod tool;
mod transcript;
mod transcripts;
mod unknown_outcome;
mod uploads;

use std::collections::BTreeSet;

#[test]
fn no_file_of_tests_is_forgotten() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it");
    let files: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir() || path.extension().is_some_and(|end| end == "rs"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .filter(|name| !matches!(name.as_str(), "main" | "snapshots"))
        .collect();
    let listed: BTreeSet<String> = include_str!("main.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'))
        .map(str::to_owned)
        .collect();
    assert_eq!(
        files, listed,
        "what lies in {folder}, and what main.rs lists"
    );
}
