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
    check_whole("basics", 25);
}

#[test]
fn routing_passes_whole() {
    check_whole("routing", 23);
}

#[test]
fn reducers_pass_whole() {
    check_whole("reducers", 21);
}

#[test]
fn limits_pass_whole() {
    check_whole("limits", 10);
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
fn interrupts_pass_but_for_old_checkpoints() {
    insta::assert_snapshot!(check_rest("interrupts"), @r"
    answered-question-at-old-checkpoint: lacks at
    old-checkpoint-asks-again: lacks at
    resume-with-heads-own-id: lacks at
    31 passed, 3 failed, 0 differ
    ");
}

#[test]
fn failure_passes_whole() {
    check_whole("failure", 21);
}

#[test]
fn checkpoints_pass_as_far_as_they_stay_on_one_line() {
    insta::assert_snapshot!(check_rest("checkpoints"), @r"
    bulk-update-needs-names: lacks bulk_update
    bulk-update: lacks bulk_update
    clear-pending-tasks: lacks as_node: END
    copy-checkpoint: lacks as_node: COPY
    delta-fork: lacks at
    delta-replay: lacks at
    durability-exit-failure: lacks durability: exit
    durability-exit: lacks durability: exit
    durability-sync-and-async: lacks durability: async
    fork-with-update: lacks at
    input-at-old-checkpoint: lacks at
    read-old-state: lacks at
    replay-final-checkpoint: lacks at
    replay-from-the-middle: lacks at
    same-run-id-continues: lacks run_id
    sends-do-not-count-for-inference: lacks an update that does not say as which node
    unknown-checkpoint-id: lacks at
    update-as-input: lacks as_node: INPUT
    update-fresh-thread: lacks an update that does not say as which node
    update-state-ambiguous: lacks an update that does not say as which node
    update-state-infers-node: lacks an update that does not say as which node
    updates-do-not-count-for-inference: lacks an update that does not say as which node
    6 passed, 22 failed, 0 differ
    ");
}

#[test]
fn subgraphs_pass_but_for_breakpoints_and_time_travel() {
    insta::assert_snapshot!(check_rest("subgraphs"), @"
    breakpoint-in-child: lacks breakpoints of child graphs
    none-child-two-questions: lacks persistence: none
    persistence-none-restarts: lacks persistence: none
    read-and-update-child: lacks breakpoints of child graphs; lacks in
    replay-before-child: lacks at
    11 passed, 5 failed, 0 differ
    ");
}
