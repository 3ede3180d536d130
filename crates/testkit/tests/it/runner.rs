//! What the runner itself says: it must not pass what does not.

use std::path::PathBuf;
use std::sync::Arc;
use tine_engine::MemoryCheckpointer;
use tine_testkit::case::Case;
use tine_testkit::{CaseFile, Options, run_suite};

const CASE: &str = "
name: two-steps
about: b sees what a wrote.
label: LABEL
graph:
  channels: {x: {reducer: append}, n: {reducer: add}}
  nodes:
    a: {do: [{write: {x: [a], n: 1}}]}
    b: {do: [{if: {eq: [$in.n, 1]}, then: [{write: {x: [{$cat: [b, $in.x]}]}}], else: [{fail: {message: no}}]}]}
  edges: [[START, a], [a, b]]
run:
  - do: invoke
    input: {x: [i]}
    expect:
      status: done
      result: {x: [i, a, 'b[\"i\",\"a\"]'], n: 1}
      calls: {'1': [a], '2': [b]}
      events:
        values: [{x: [i], n: 0}, {x: [i, a], n: 1}, {x: [i, a, 'b[\"i\",\"a\"]'], n: 1}]
        updates: [[{a: {x: [a], n: 1}}], [{b: {x: ['b[\"i\",\"a\"]']}}]]
      state: {values: {x: [i, a, 'b[\"i\",\"a\"]'], n: 1}, next: [], step: 2, source: loop}
";

/// Runs the case with replacements, as if a list gave `differs` as the reason why it may fail.
fn check(changes: &[(&str, &str)], differs: Option<&str>) -> String {
    let text = changes
        .iter()
        .chain(&[("LABEL", "C")])
        .fold(CASE.to_owned(), |text, (from, to)| {
            assert!(
                text.contains(from) || *from == "LABEL",
                "{from} is not in the case"
            );
            text.replace(from, to)
        });
    let case = match Case::parse(&text) {
        Ok(case) => case,
        Err(error) => return error,
    };
    let file = CaseFile {
        path: PathBuf::from("area/two-steps.yaml"),
        area: "area".to_owned(),
        case,
        differs: differs.map(str::to_owned),
    };
    let make = || Arc::new(MemoryCheckpointer::new()) as _;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime
        .block_on(run_suite(&[file], &Options::default(), &make))
        .to_string()
}

#[test]
fn a_case_passes() {
    insta::assert_snapshot!(check(&[], None), @r"
    area         1 passed, 0 failed, 0 differ
    1 passed, 0 failed, 0 differ
    ");
}

#[test]
fn a_wrong_value_is_shown_with_its_place() {
    insta::assert_snapshot!(check(&[("result: {x: [i, a,", "result: {x: [i, z,")], None), @r#"
    FAILED area/two-steps.yaml
      action 0 result.x
          expected ["i","z","b[\"i\",\"a\"]"]
          found    ["i","a","b[\"i\",\"a\"]"]
    area         0 passed, 1 failed, 0 differ
    0 passed, 1 failed, 0 differ
    "#);
}

#[test]
fn what_is_missing_and_what_is_too_much_is_shown() {
    insta::assert_snapshot!(check(&[("'2': [b]", "'3': [b]")], None), @r#"
    FAILED area/two-steps.yaml
      action 0 calls.3
          expected ["b"]
          found    nothing
      action 0 calls.2
          expected nothing
          found    ["b"]
    area         0 passed, 1 failed, 0 differ
    0 passed, 1 failed, 0 differ
    "#);
}

#[test]
fn a_missing_feature_fails_by_name() {
    insta::assert_snapshot!(check(&[("a: {do:", "a: {persistence: none, do:")], None), @r"
    FAILED area/two-steps.yaml
      not supported yet: persistence: none
    area         0 passed, 1 failed, 0 differ
    0 passed, 1 failed, 0 differ
    ");
}

#[test]
fn a_case_that_fails_tells_the_error() {
    insta::assert_snapshot!(check(&[("eq: [$in.n, 1]", "eq: [$in.n, 2]")], None), @r#"
    FAILED area/two-steps.yaml
      action 0 status
          expected "done"
          found    "error"
      action 0 error
          expected nothing
          found    {"code":"node_error","message":"no","node":"b"}
      action 0 events.updates
          expected [[{"a":{"n":1,"x":["a"]}}],[{"b":{"x":["b[\"i\",\"a\"]"]}}]]
          found    [[{"a":{"n":1,"x":["a"]}}]]
      action 0 events.values
          expected [{"n":0,"x":["i"]},{"n":1,"x":["i","a"]},{"n":1,"x":["i","a","b[\"i\",\"a\"]"]}]
          found    [{"n":0,"x":["i"]},{"n":1,"x":["i","a"]}]
      action 0 result
          expected {"n":1,"x":["i","a","b[\"i\",\"a\"]"]}
          found    nothing
      action 0 state.next
          expected []
          found    ["b"]
      action 0 state.step
          expected 2
          found    1
      action 0 state.values.x
          expected ["i","a","b[\"i\",\"a\"]"]
          found    ["i","a"]
      action 0 state.failed
          expected nothing
          found    ["b"]
    area         0 passed, 1 failed, 0 differ
    0 passed, 1 failed, 0 differ
    "#);
}

#[test]
fn a_reference_to_nothing_is_a_mistake_of_the_case() {
    insta::assert_snapshot!(check(&[("eq: [$in.n, 1]", "eq: [$out.n, 1]")], None), @r#"
    FAILED area/two-steps.yaml
      action 0 status
          expected "done"
          found    "error"
      action 0 error
          expected nothing
          found    {"code":"node_error","message":"the case is wrong: `$out.n` refers to nothing known here","node":"b"}
      action 0 events.updates
          expected [[{"a":{"n":1,"x":["a"]}}],[{"b":{"x":["b[\"i\",\"a\"]"]}}]]
          found    [[{"a":{"n":1,"x":["a"]}}]]
      action 0 events.values
          expected [{"n":0,"x":["i"]},{"n":1,"x":["i","a"]},{"n":1,"x":["i","a","b[\"i\",\"a\"]"]}]
          found    [{"n":0,"x":["i"]},{"n":1,"x":["i","a"]}]
      action 0 result
          expected {"n":1,"x":["i","a","b[\"i\",\"a\"]"]}
          found    nothing
      action 0 state.next
          expected []
          found    ["b"]
      action 0 state.step
          expected 2
          found    1
      action 0 state.values.x
          expected ["i","a","b[\"i\",\"a\"]"]
          found    ["i","a"]
      action 0 state.failed
          expected nothing
          found    ["b"]
      action 0: the case is wrong: `$out.n` refers to nothing known here
    area         0 passed, 1 failed, 0 differ
    0 passed, 1 failed, 0 differ
    "#);
}

#[test]
fn only_accidents_may_differ() {
    let wrong = ("result: {x: [i, a,", "result: {x: [i, z,");
    insta::assert_snapshot!(check(&[wrong, ("LABEL", "Q")], Some("we do better")), @r"
    differs area/two-steps.yaml: we do better
    area         0 passed, 0 failed, 1 differ
    0 passed, 0 failed, 1 differ
    ");
    insta::assert_snapshot!(check(&[wrong], Some("we do better")), @r"
    FAILED area/two-steps.yaml
      differs.yaml lists it, and only cases labelled Q without a decision may differ
    area         0 passed, 1 failed, 0 differ
    0 passed, 1 failed, 0 differ
    ");
    insta::assert_snapshot!(check(&[("LABEL", "Q")], Some("we do better")), @r"
    STALE  area/two-steps.yaml: it passes; take it out of differs.yaml
    area         0 passed, 1 failed, 0 differ
    0 passed, 1 failed, 0 differ
    ");
}

#[test]
fn an_unknown_key_is_no_case() {
    insta::assert_snapshot!(check(&[("about:", "colour: red\nabout:")], None), @"unknown field `colour`, expected one of `name`, `about`, `tags`, `label`, `decision`, `checkpointer`, `observe`, `graph`, `graphs`, `run`");
}
