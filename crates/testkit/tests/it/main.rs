//! Tests of the conformance runner, of the engine by means of it, and of the reader of recorded traffic.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

mod conformance;
mod openai_rules;
mod runner;
mod traffic;

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
