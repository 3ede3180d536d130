//! The cases of the repository over threads in memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use tine_engine::MemoryCheckpointer;
use tine_testkit::{Judgement, Options, Report, find_cases, run_suite};

fn run(areas: &[&str]) -> Report {
    let folder: PathBuf =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/conformance");
    let cases = find_cases(&[folder]).unwrap_or_else(|error| panic!("{error}"));
    let options = Options {
        areas: areas.iter().map(|area| (*area).to_owned()).collect(),
        ..Options::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let make = || Arc::new(MemoryCheckpointer::new()) as _;
    runtime.block_on(run_suite(&cases, &options, &make))
}

fn check_whole(area: &str, cases: usize) {
    let report = run(&[area]);
    let total = report.total();
    assert_eq!(total.failed, 0, "\n{report}");
    assert_eq!(total.passed + total.differ, cases, "\n{report}");
}

#[test]
fn basics_pass_whole() {
    check_whole("basics", 32);
}

#[test]
fn routing_passes_whole() {
    check_whole("routing", 31);
}

#[test]
fn reducers_pass_whole() {
    check_whole("reducers", 31);
}

#[test]
fn limits_pass_whole() {
    check_whole("limits", 17);
}

#[test]
fn interrupts_pass_whole() {
    check_whole("interrupts", 56);
}

#[test]
fn checkpoints_pass_whole() {
    check_whole("checkpoints", 79);
}

#[test]
fn streaming_passes_whole() {
    check_whole("streaming", 14);
}

/// The cases of an area that do not pass, each with what is missing; and how many pass.
fn check_rest(area: &str) -> String {
    let report = run(&[area]);
    let mut lines = Vec::new();
    for case in &report.cases {
        match &case.judgement {
            Judgement::Passed => {}
            Judgement::Failed(differences) => {
                let reasons: Vec<String> = differences.iter().map(ToString::to_string).collect();
                lines.push(format!("{}: {}", case.name, reasons.join("; ")));
            }
            other => lines.push(format!("{}: {other:?}", case.name)),
        }
    }
    lines.push(report.total().to_string());
    lines.join("\n").replace("not supported yet: ", "lacks ")
}

#[test]
fn failure_passes_but_for_handlers_and_caches() {
    insta::assert_snapshot!(check_rest("failure"), @r"
    cache-hit-counts-as-finished: lacks cache
    cached-node: lacks cache
    failure-is-not-cached: lacks cache
    handler-crashes-and-resumes: lacks error_handler
    handler-goes-on: lacks error_handler
    handler-replaces-continuation: lacks error_handler
    handler-with-sibling: lacks error_handler
    interrupt-is-not-an-error: lacks error_handler
    13 passed, 8 failed, 0 differ
    ");
}

#[test]
fn subgraphs_pass_but_for_breakpoints_and_no_memory() {
    insta::assert_snapshot!(check_rest("subgraphs"), @"
    breakpoint-in-child: lacks breakpoints of child graphs
    none-child-two-questions: lacks persistence: none
    persistence-none-restarts: lacks persistence: none
    read-and-update-child: lacks breakpoints of child graphs; lacks in
    12 passed, 4 failed, 0 differ
    ");
}
