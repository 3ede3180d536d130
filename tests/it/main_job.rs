//! The main job, as the README shows it.

use crate::command::{Desk, news_report};

const REQUEST: &str = "搜今天 AI 新闻并存成 Markdown";

#[test]
fn the_first_command_of_the_readme_writes_a_report() {
    let mut desk = Desk::new();
    let graph = news_report();
    let ran = desk.record(&["run", &graph, REQUEST, "--thread", "news"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let shown = ran
        .stdout
        .lines()
        .find(|line| line.ends_with(".md") && line.contains("/home/"));
    let report = std::fs::read_to_string(shown.unwrap().trim()).unwrap();
    assert!(report.starts_with("# 今天 AI 新闻\n"), "{report}");
    assert!(report.contains("编辑部里的 AI"), "{report}");
    desk.assert("main_job");
}

#[test]
fn the_same_request_on_the_same_thread_adds_no_artifact() {
    let desk = Desk::new();
    let graph = news_report();
    let args = ["run", &graph, REQUEST, "--thread", "news", "--json"];
    let first = desk.run(&args).outcome();
    let second = desk.run(&args).outcome();
    assert_eq!(first["exit"], "done");
    assert_eq!(second["exit"], "done");
    assert_eq!(first["values"]["artifacts"].as_array().unwrap().len(), 1);
    assert_eq!(first["artifacts"], second["artifacts"]);
}

#[test]
fn another_folder_and_request_give_a_report_of_what_is_there() {
    let desk = Desk::new();
    desk.file(
        "notes/comet.md",
        "# A comet over the bay\n\nThe comet was seen for three nights.\n",
    );
    desk.file("notes/tides.md", "# Tide tables\n\nHigh water at noon.\n");
    let graph = news_report();
    // Relative, so taken from the working directory.
    let set = "tools.web_search.path=notes";
    let outcome = desk
        .run(&[
            "run",
            &graph,
            "find the comet and save it as Markdown",
            "--set",
            set,
            "--json",
        ])
        .outcome();
    let report = report_of(&outcome);
    assert!(report.contains("A comet over the bay"), "{report}");
    assert!(!report.contains("Tide tables"), "{report}");
}

#[test]
fn a_search_without_a_hit_is_reported_as_one() {
    let desk = Desk::new();
    desk.file("notes/tides.md", "# Tide tables\n\nHigh water at noon.\n");
    let graph = news_report();
    let set = "tools.web_search.path=notes";
    let outcome = desk
        .run(&["run", &graph, "find zeppelins", "--set", set, "--json"])
        .outcome();
    assert_eq!(outcome["exit"], "done");
    let report = report_of(&outcome);
    assert!(report.contains("found nothing"), "{report}");
}

fn report_of(outcome: &serde_json::Value) -> String {
    let path = outcome["artifacts"][0]["host_path"].as_str().unwrap();
    std::fs::read_to_string(path).unwrap()
}
