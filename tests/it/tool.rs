//! `tine tools explain` and `tine tools call`.

use crate::command::{Desk, finish, shipped};
use serde_json::json;
use std::io::Write as _;
use std::process::Stdio;

#[test]
fn tools_are_explained() {
    let mut desk = Desk::new();
    for name in [
        "web_search",
        "write_file",
        "present_files",
        "ask_clarification",
    ] {
        assert_eq!(desk.record(&["tools", "explain", name]).code, 0);
    }
    // Not there, and why.
    desk.record(&["tools", "explain", "write_file", "--groups", "web"]);
    desk.record(&["tools", "explain", "task"]);
    assert_eq!(desk.record(&["tools", "explain", "web_serch"]).code, 2);
    assert_eq!(desk.record(&["tools", "explain", "x"]).code, 2);
    desk.assert("tools_explain");
}

#[test]
fn what_a_configuration_drops_and_shadows_is_explained() {
    let mut desk = Desk::new();
    desk.file(
        "config.yaml",
        "\
tools:
  - { name: web_search, group: web, use: 'deerflow.community.tavily.tools:web_search_tool' }
  - { name: bash, group: bash, use: 'deerflow.sandbox.tools:bash_tool' }
  - { name: look, group: file, use: 'deerflow.sandbox.tools:ls_tool' }
  - { name: look, group: file, use: 'deerflow.sandbox.tools:read_file_tool' }
  - { name: present_files, group: file, use: 'deerflow.sandbox.tools:read_file_tool' }
sandbox: { use: 'deerflow.sandbox.local:LocalSandboxProvider' }
",
    );
    for name in ["web_search", "bash", "look", "present_files"] {
        assert_eq!(desk.record_bare(&["tools", "explain", name]).code, 0);
    }
    assert_eq!(desk.record_bare(&["tools", "call", "bash"]).code, 2);
    desk.assert("tools_explain_dropped");
}

#[test]
fn an_explanation_in_json_has_the_schema() {
    let desk = Desk::new();
    let said = desk
        .run(&["tools", "explain", "web_search", "--json"])
        .outcome();
    assert_eq!(said["available"], true);
    assert_eq!(said["effect"], "read_only");
    assert_eq!(said["entry"]["group"], "web");
    assert_eq!(said["schema"]["type"], "object");
    assert_eq!(said["arguments"][0]["name"], "query");
    let said = desk.run(&["tools", "explain", "task", "--json"]).outcome();
    assert_eq!(said["available"], false);
    assert_eq!(said["decisions"][0]["verdict"], "dropped");
}

#[test]
fn a_tool_is_called_as_an_agent_would() {
    let mut desk = Desk::new();
    let search = r#"{"query": "tea", "max_results": 1}"#;
    assert_eq!(
        desk.record(&["tools", "call", "web_search", "--args", search])
            .code,
        0
    );
    let write = r##"{"path": "/mnt/user-data/outputs/a.md", "content": "# A"}"##;
    assert_eq!(
        desk.record(&["tools", "call", "write_file", "--args", write])
            .code,
        0
    );
    let read = r#"{"path": "/mnt/user-data/outputs/a.md"}"#;
    assert_eq!(
        desk.record(&["tools", "call", "read_file", "--args", read])
            .code,
        4
    );
    assert!(!desk.home().exists(), "it worked in temporary folders");
    let ask =
        r#"{"question": "Which?", "clarification_type": "missing_info", "options": ["a", "b"]}"#;
    assert_eq!(
        desk.record(&["tools", "call", "ask_clarification", "--args", ask])
            .code,
        3
    );
    // What does not fit is told whole, and not called.
    desk.record(&[
        "tools",
        "call",
        "read_file",
        "--args",
        r#"{"pth": "/x", "start_line": "1"}"#,
    ]);
    desk.record(&["tools", "call", "read_file", "--args", "[1]"]);
    desk.record(&["tools", "call", "read_file", "--args", "{"]);
    let twice = r#"{"path": "/a", "path": "/b"}"#;
    desk.record(&["tools", "call", "read_file", "--args", twice]);
    desk.record(&["tools", "call", "read_file", "--args", "@missing.json"]);
    desk.record(&["tools", "call", "red_file"]);
    desk.assert("tools_call");
}

#[test]
fn a_tool_is_called_in_the_folders_of_a_thread() {
    let desk = Desk::new();
    let in_thread = |args: &[&str]| {
        let mut all = vec!["tools", "call"];
        all.extend(args);
        desk.run(&all)
    };
    let read = r#"{"path": "/mnt/user-data/outputs/tea.md"}"#;
    let call = ["read_file", "--args", read, "--thread", "tea"];
    let ran = in_thread(&call);
    assert_eq!(ran.code, 2, "there is no such thread");
    assert!(!desk.home().exists());
    desk.run(&["run", "news_report", "find tea", "--thread", "tea"]);
    let ran = in_thread(&call);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("# tea"), "{}", ran.stdout);
    assert_eq!(
        in_thread(&["read_file", "--args", read, "--thread", "te"]).code,
        2
    );

    // The whole output: here a command, which writes to a channel of a graph.
    let present = r#"{"filepaths": ["/mnt/user-data/outputs/tea.md"]}"#;
    let present = ["present_files", "--args", present, "--thread", "tea"];
    let ran = in_thread(&present);
    assert!(
        ran.stderr.contains("it would write to `artifacts`"),
        "{}",
        ran.stderr
    );
    let mut as_json = present.to_vec();
    as_json.push("--json");
    let said = in_thread(&as_json).outcome();
    assert_eq!(said["exit"], "done");
    assert_eq!(said["output"]["command"]["update"][0][0], "artifacts");
    let state = desk.tine(&["threads", "show", "tea", "--json"]).outcome();
    let checkpoints = state["checkpoints"].clone();
    in_thread(&present);
    let state = desk.tine(&["threads", "show", "tea", "--json"]).outcome();
    assert_eq!(state["checkpoints"], checkpoints, "its state is as it was");
}

#[test]
fn arguments_come_from_a_file_or_standard_input() {
    let desk = Desk::new();
    let args = json!({"query": "tea", "max_results": 1}).to_string();
    let file = desk.file("args.json", &args);
    let given = ["tools", "call", "web_search", "--json", "--args"];
    let from_file = format!("@{file}");
    let mut all = given.to_vec();
    all.push(&from_file);
    let said = desk.run(&all).outcome();
    let mut all = given.to_vec();
    let config = shipped("config/config.yaml");
    all.extend(["-", "--config", &config]);
    let mut child = desk
        .command(&all)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(args.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let piped: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(piped, said);
    // The temporary folder is gone.
    let temporary = desk.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let write = r#"{"path": "/mnt/user-data/outputs/a.md", "content": "a"}"#;
    let mut command = desk.command(&["tools", "call", "write_file", "--args", write]);
    let ran = finish(command.env("TMPDIR", &temporary));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
}

#[test]
fn of_two_entries_the_one_that_was_kept_is_named() {
    let desk = Desk::new();
    let config = desk.file(
        "config.yaml",
        "\
models: []
tools:
  - { name: ls, group: one, use: 'deerflow.sandbox.tools:ls_tool' }
  - { name: ls, group: two, use: 'deerflow.sandbox.tools:ls_tool' }
",
    );
    for (groups, line, group) in [
        ("one", ":3", "one"),
        ("two", ":4", "two"),
        ("one,two", ":3", "one"),
    ] {
        let args = ["tools", "explain", "ls", "--json", "--groups", groups];
        let ran = desk.tine(&[&args[..], &["--config", &config]].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let entry = ran.outcome()["entry"].clone();
        assert_eq!(entry["group"], group, "{groups}");
        assert!(entry["place"].as_str().unwrap().contains(line), "{entry}");
    }
}
