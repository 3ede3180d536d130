//! What users get wrong, and what they are told.

use crate::command::{Desk, Ran, news_report, shipped};

/// Checks that a command is refused, and that what it says holds all of these.
fn check(ran: &Ran, says: &[&str]) {
    refused(ran, 2, says);
}

fn refused(ran: &Ran, code: i32, says: &[&str]) {
    assert_eq!(ran.code, code, "{}{}", ran.stdout, ran.stderr);
    for part in says {
        assert!(ran.stderr.contains(part), "no {part:?} in\n{}", ran.stderr);
    }
    assert!(ran.stderr.contains("hint: "), "no hint in\n{}", ran.stderr);
}

#[test]
fn a_graph_file_that_is_no_graph() {
    let desk = Desk::new();
    check(
        &desk.run(&["run", "missing.yaml", "x"]),
        &["missing.yaml can not be read", "No such file"],
    );
    for (name, text, says) in [
        ("empty.yaml", "", "empty.yaml"),
        ("text.yaml", "a: [b\n", "text.yaml:"),
        ("tab.yaml", "schema: graph/v1\n\tname: x\n", "found a tab"),
        (
            "twice.yaml",
            "schema: graph/v1\nname: a\nname: b\n",
            "twice.yaml:3",
        ),
    ] {
        let path = desk.file(name, text);
        check(
            &desk.run(&["run", &path, "x"]),
            &["error[G", says, "can not be run"],
        );
    }
    let binary = desk.path().join("binary.yaml");
    std::fs::write(&binary, [0xff, 0xfe, 0x00]).unwrap();
    check(
        &desk.run(&["run", "binary.yaml", "x"]),
        &["is not UTF-8 text"],
    );
    check(&desk.run(&["run", ".", "x"]), &["can not be read"]);
    assert!(
        !desk.home().join("threads.db").exists(),
        "nothing was begun"
    );
}

#[test]
fn a_graph_with_a_tool_that_is_not_there() {
    let desk = Desk::new();
    let text = std::fs::read_to_string(news_report()).unwrap();
    let graph = desk.file("graph.yaml", &text.replace("[web_search,", "[web_serch,"));
    check(
        &desk.run(&["run", &graph, "x"]),
        &["`web_serch`", "web_search"],
    );
}

#[test]
fn a_configuration_that_can_not_be_used() {
    let desk = Desk::new();
    let graph = news_report();
    let with = |config: &str| desk.tine(&["run", &graph, "x", "--config", config]);
    check(
        &with("missing.yaml"),
        &["cannot read the configuration missing.yaml"],
    );
    let shipped = std::fs::read_to_string(shipped("config/config.yaml")).unwrap();
    desk.file(
        "use.yaml",
        &shipped.replace("local:web_search_tool", "local:web_serch_tool"),
    );
    check(
        &with("use.yaml"),
        &[
            "use.yaml:",
            "`tine.community.local:web_serch_tool`",
            "did you mean `tine.community.local:web_search_tool`?",
        ],
    );
    desk.file(
        "model.yaml",
        &shipped.replace("scripted:ScriptedModel", "scripted:ScriptModel"),
    );
    check(
        &with("model.yaml"),
        &[
            "tine.models.scripted:ScriptModel",
            "tine.models.scripted:ScriptedModel",
        ],
    );
    desk.file(
        "script.yaml",
        &shipped.replace("news_report.script.yaml", "missing.script.yaml"),
    );
    check(
        &with("script.yaml"),
        &["missing.script.yaml can not be read"],
    );
}

#[test]
fn a_setting_that_has_no_place() {
    let desk = Desk::new();
    let graph = news_report();
    let set = |given: &str| desk.run(&["run", &graph, "x", "--set", given]);
    check(
        &set("tools.web_serch.path=x"),
        &["`tools.web_serch.path`", "did you mean `web_search`?"],
    );
    check(
        &set("tooks.web_search.path=x"),
        &["there is no section `tooks`", "did you mean `tools`?"],
    );
    check(
        &set("tools.web_search.path"),
        &["`--set tools.web_search.path` has no value"],
    );
}

#[test]
fn an_input_that_the_graph_does_not_take() {
    let desk = Desk::new();
    let graph = news_report();
    check(
        &desk.run(&["run", &graph]),
        &["nothing to run the graph on", "takes messages"],
    );
    check(
        &desk.run(&["run", &graph, "--input", "{"]),
        &["`--input` is not JSON"],
    );
    check(
        &desk.run(&["run", &graph, "--input", "[1]"]),
        &["must be a JSON object", "a list"],
    );
    let ran = desk.run(&[
        "run",
        &graph,
        "--input",
        r#"{"mesages": []}"#,
        "--thread",
        "t",
    ]);
    check(&ran, &["takes no input `mesages`", "`messages`"]);
    let threads = desk.tine(&["threads"]).stdout;
    assert!(
        threads.starts_with("no threads"),
        "what was refused leaves no thread: {threads}"
    );
    check(
        &desk.run(&["run", &graph, "x", "--thread", ""]),
        &["needs a name"],
    );
}

#[test]
fn a_thread_that_is_not_there_or_does_not_ask() {
    let desk = Desk::new();
    let graph = news_report();
    check(
        &desk.tine(&["resume", "report", "x"]),
        &["there is no thread `report`"],
    );
    desk.run(&["run", &graph, "find tea", "--thread", "report-1"]);
    check(
        &desk.tine(&["resume", "report", "x"]),
        &["there is no thread `report`", "did you mean `report-1`?"],
    );
    check(
        &desk.tine(&["threads", "show", "reprot-1"]),
        &["did you mean `report-1`?"],
    );
    check(
        &desk.tine(&["threads", "delete", "../../x", "--yes"]),
        &["there is no thread `../../x`"],
    );
    check(
        &desk.tine(&["resume", "report-1", "x"]),
        &["thread `report-1` asks nothing"],
    );
    check(
        &desk.tine(&["resume", "report-1"]),
        &["thread `report-1` is done"],
    );
    let ran = desk.tine(&["resume", "report-1", "--answer", "x"]);
    check(&ran, &["`--answer x` names no question"]);
}

#[test]
fn a_thread_of_another_graph() {
    let desk = Desk::new();
    let text = std::fs::read_to_string(news_report()).unwrap();
    let graph = desk.file("graph.yaml", &text);
    assert_eq!(
        desk.run(&["run", &graph, "写份报告", "--thread", "t"]).code,
        3
    );

    desk.file(
        "graph.yaml",
        &text.replace("name: news_report", "name: other"),
    );
    let ran = desk.run(&["run", &graph, "x", "--thread", "t"]);
    check(
        &ran,
        &["thread `t` belongs to the graph `news_report`, and this is `other`"],
    );

    let renamed = text
        .replace("goto: act", "goto: hands")
        .replace("  act:", "  hands:");
    desk.file("graph.yaml", &renamed);
    check(
        &desk.tine(&["resume", "t", "x"]),
        &["has changed", "node `act` is gone"],
    );

    // A prompt, another edge, one more channel: nothing that a thread hangs on.
    let grown = text
        .replace("You research", "You thoroughly research")
        .replace(
            "input: [messages]",
            "  mood: { type: string, default: calm }\ninput: [messages, mood]",
        );
    desk.file("graph.yaml", &grown);
    let ran = desk.tine(&["resume", "t", "茶"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn a_database_that_is_none() {
    let desk = Desk::new();
    let graph = news_report();
    desk.file(
        "home/threads.db",
        "this is no database, whatever its name may say about it",
    );
    for args in [&["run", &graph, "x"][..], &["threads"], &["resume", "t"]] {
        let ran = match args[0] {
            "run" => desk.run(args),
            _ => desk.tine(args),
        };
        check(
            &ran,
            &[
                "threads.db is damaged",
                "not a SQLite database",
                "TINE_HOME",
            ],
        );
    }
}

/// The place in a SQLite file where a program keeps its schema's version.
const SCHEMA_VERSION: std::ops::Range<usize> = 60..64;

#[test]
fn a_database_that_is_not_what_it_was() {
    let desk = Desk::new();
    let graph = news_report();
    assert_eq!(
        desk.run(&["run", &graph, "写份报告", "--thread", "t"]).code,
        3
    );
    let path = desk.home().join("threads.db");
    let good = std::fs::read(&path).unwrap();
    let refused = |bytes: &[u8], says: &[&str]| {
        std::fs::write(&path, bytes).unwrap();
        check(&desk.tine(&["resume", "t", "茶"]), says);
        check(&desk.tine(&["threads"]), says);
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "it is left alone");
    };
    let mut newer = good.clone();
    newer[SCHEMA_VERSION].copy_from_slice(&99_u32.to_be_bytes());
    refused(&newer, &["99", "newer", "set TINE_HOME to another folder"]);
    let mut torn = good.clone();
    torn[100..4096].fill(0xff);
    refused(&torn, &["threads.db is damaged", "backup"]);
    std::fs::write(&path, &good).unwrap();
    let ran = desk.tine(&["resume", "t", "茶"]);
    assert_eq!(ran.code, 0, "the good copy goes on: {}", ran.stderr);
}

#[cfg(unix)]
#[test]
fn a_home_that_can_not_be_made() {
    let desk = Desk::new();
    let graph = news_report();
    let config = shipped("config/config.yaml");
    let args = ["run", &graph, "find tea", "--config", &config];
    let mut command = desk.command(&args);
    let ran = crate::command::finish(command.env("TINE_HOME", "/dev/null/home"));
    refused(
        &ran,
        4,
        &[
            "cannot use the folder /dev/null/home",
            "Not a directory",
            "TINE_HOME",
        ],
    );
}

#[test]
fn relative_settings_from_another_folder() {
    let desk = Desk::new();
    let graph = news_report();
    desk.file("notes/tea.md", "# Tea\n\nTea is a drink.\n");
    let args = [
        "run",
        &graph,
        "写份报告",
        "--thread",
        "t",
        "--set",
        "tools.web_search.path=notes",
    ];
    assert_eq!(desk.run(&args).code, 3);
    let more = [
        "resume",
        "t",
        "Tea",
        "--set",
        "tools.web_search.max_results=1",
    ];
    let elsewhere = crate::command::finish(desk.command(&more).current_dir("/"));
    check(&elsewhere, &["was run with `--set` in ", "cd "]);
    let resume = ["resume", "t", "Tea"];
    let ran = crate::command::finish(desk.command(&resume).current_dir("/"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stdout.contains("Tea is a drink") || ran.stdout.contains("1 search result"),
        "{}",
        ran.stdout
    );
}

#[test]
fn an_input_that_its_channel_does_not_take_starts_no_thread() {
    let mut desk = Desk::new();
    desk.file(
        "count.yaml",
        "\
schema: graph/v1
name: count
state:
  start: { type: integer }
  end: { type: integer }
input: [start]
start: next
nodes:
  next: { type: set, set: { end: \"${state.start + 1}\" }, then: end }
",
    );
    desk.record(&[
        "run",
        "count.yaml",
        "--input",
        r#"{"start":"one"}"#,
        "--thread",
        "t",
    ]);
    desk.record(&["threads", "list"]);
    desk.assert("input_of_a_wrong_type");
}

#[test]
fn a_model_that_can_not_be_used_yet_is_told_before_its_key() {
    let mut desk = Desk::new();
    let config = desk.file(
        "config.yaml",
        "models: [{name: default, use: \"langchain_anthropic:ChatAnthropic\", model: claude, api_key: $NO_SUCH_KEY}]\n",
    );
    let graph = desk.file(
        "say.yaml",
        "\
schema: graph/v1
name: say
state:
  messages: { type: list<message>, reduce: messages }
start: say
nodes:
  say: { type: model, model: default, then: end }
",
    );
    desk.record(&["validate", &graph, "--config", &config]);
    desk.assert("model_not_yet");
}
