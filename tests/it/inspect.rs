//! Looking at threads, files and tools.

use crate::command::{Desk, news_report, shipped};

#[test]
fn threads_are_listed_shown_and_deleted() {
    let mut desk = Desk::new();
    let graph = news_report();
    desk.record(&["threads"]);
    assert!(!desk.home().exists(), "looking makes nothing");
    desk.run(&["run", &graph, "find tea", "--thread", "tea"]);
    desk.run(&["run", &graph, "写份报告", "--thread", "../../x"]);
    desk.record(&["threads", "list"]);
    desk.record(&["threads", "show", "tea"]);
    let json = desk
        .tine(&["threads", "show", "../../x", "--json"])
        .outcome();
    assert_eq!(json["status"], "interrupted");
    assert_eq!(json["next"], serde_json::json!(["act"]));
    assert_eq!(desk.record(&["threads", "delete", "tea"]).code, 2);
    assert_eq!(desk.record(&["threads", "delete", "tea", "--yes"]).code, 0);
    desk.record(&["threads"]);
    let left: Vec<_> = std::fs::read_dir(desk.home().join("threads/local"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(left, ["=2e=2e=2f=2e=2e=2fx"], "an id is only a name");
    desk.assert("threads");
}

#[test]
fn a_home_that_can_not_be_used_is_not_one_without_threads() {
    let desk = Desk::new();
    std::fs::write(desk.home(), "").unwrap();
    for command in ["list", "show", "delete"] {
        let mut args = vec!["threads", command];
        args.extend((command != "list").then_some("t"));
        let ran = desk.tine(&args);
        assert_eq!(ran.code, 4, "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains("TINE_HOME"), "{}", ran.stderr);
    }
}

#[test]
fn shipped_files_are_valid_and_wrong_ones_are_told_all_that_is_wrong() {
    let mut desk = Desk::new();
    let graphs: Vec<String> = std::fs::read_dir(shipped("graphs"))
        .unwrap()
        .map(|entry| entry.unwrap().path().to_str().unwrap().to_owned())
        .filter(|path| path.ends_with(".yaml"))
        .collect();
    let mut args = vec!["validate", "--deny-warnings"];
    args.extend(graphs.iter().map(String::as_str));
    let ran = desk.run(&args);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);

    let wrong = shipped("tests/fixtures/invalid/G302_two_searches.yaml");
    let tools = desk.file(
        "tools.yaml",
        "schema: graph/v1\nname: desk\nstate:\n  messages: { type: list<message>, reduce: messages }\n\
         start: agent\nnodes:\n  agent: { type: model, model: default, tools: [web_serch], then: ende }\n",
    );
    assert_eq!(desk.record(&["validate", &wrong, &tools]).code, 1);
    assert_eq!(desk.record(&["validate", &wrong, "missing.yaml"]).code, 2);
    assert_eq!(desk.record(&["explain", "G999"]).code, 2);
    let json: serde_json::Value =
        serde_json::from_str(&desk.run(&["validate", &wrong, "--json"]).stdout).unwrap();
    assert_eq!(json[0]["findings"][0]["code"], "G302");
    desk.assert("validate");
}

#[test]
fn without_a_configuration_unknown_names_are_warnings() {
    let desk = Desk::new();
    let text = std::fs::read_to_string(news_report()).unwrap();
    let graph = desk.file("graph.yaml", &text.replace("[web_search,", "[web_serch,"));
    let ran = desk.tine(&["validate", &graph]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("1 warning"), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("did you mean `web_search`?"),
        "{}",
        ran.stdout
    );
    assert_eq!(desk.tine(&["validate", &graph, "--deny-warnings"]).code, 1);
}

#[test]
fn a_graph_is_drawn_and_tools_are_reported() {
    let mut desk = Desk::new();
    let graph = news_report();
    desk.record(&["show", &graph]);
    desk.record(&["tools", "--groups", "web,file:read"]);
    let json = desk.run(&["tools", "--json"]).outcome();
    let tools = json["tools"].as_array().unwrap();
    assert!(tools.contains(&"web_search".into()) && tools.contains(&"present_files".into()));
    desk.assert("show_and_tools");
}
