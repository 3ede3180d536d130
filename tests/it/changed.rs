//! Threads that wait while their graph, its prompts, the configuration or a script change or go away.

use crate::command::{Desk, Ran};

const GRAPH: &str = "\
schema: graph/v1
name: ask
state:
  messages: { type: list<message>, reduce: messages }
  answer: { type: optional<string> }
  count: { type: integer, default: 0 }
  tally: { type: integer, default: 0 }
input: [messages]
output: [messages, count, tally]
start: ask
nodes:
  ask:
    type: interrupt
    payload: { question: What? }
    resume: string
    set: { answer: \"${resume}\", count: 1, tally: 1 }
    then: say
  say: { type: model, model: default, prompt: { file: prompts/say.md }, then: end }
";

const CONFIG: &str = "\
models:
  - { name: default, use: 'tine.models.scripted:ScriptedModel', script: say.script.yaml }
";

/// A desk with a thread that waits for an answer.
fn waiting() -> Desk {
    let desk = Desk::new();
    desk.file("graphs/ask.yaml", GRAPH);
    desk.file("graphs/prompts/say.md", "Say {{ state.answer }}.\n");
    desk.file("config.yaml", CONFIG);
    desk.file(
        "say.script.yaml",
        "schema: script/v1\nrules:\n  - content: \"{{ user_text | trim }} So I do.\"\n",
    );
    let args = [
        "run",
        "graphs/ask.yaml",
        "hello",
        "--thread",
        "t",
        "--config",
        "config.yaml",
    ];
    let ran = desk.tine(&args);
    assert_eq!(ran.code, 3, "{}{}", ran.stdout, ran.stderr);
    desk
}

fn says(ran: &Ran, code: i32, parts: &[&str]) {
    let all = format!("{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.code, code, "{all}");
    for part in parts {
        assert!(all.contains(part), "no {part:?} in\n{all}");
    }
}

#[test]
fn a_thread_goes_on_from_any_directory() {
    let desk = waiting();
    let mut command = desk.command(&["resume", "t", "tea"]);
    says(
        &crate::command::finish(command.current_dir("/")),
        0,
        &["Say tea. So I do."],
    );
}

/// Checks that a changed graph is refused with these words, that nothing is lost by it, and that the thread can be
/// brought to its end on the definition that it had.
fn check(change: impl Fn(&str) -> String, refused: &[&str]) {
    let desk = waiting();
    desk.file("graphs/ask.yaml", &change(GRAPH));
    let ran = desk.tine(&["resume", "t", "tea"]);
    says(&ran, 2, refused);
    says(
        &ran,
        2,
        &["hint: `tine resume t --pin` goes on with the definition"],
    );
    says(
        &desk.tine(&["threads", "show", "t"]),
        0,
        &["interrupted", "What?"],
    );
    says(
        &desk.tine(&["resume", "t", "tea", "--pin"]),
        0,
        &["Say tea. So I do."],
    );
}

#[test]
fn a_graph_that_lost_something_is_refused_by_name() {
    check(
        |graph| {
            graph
                .replace("  say:", "  tell:")
                .replace("then: say", "then: tell")
        },
        &["has changed since thread `t` was started: node `say` is gone"],
    );
    check(
        |graph| {
            let at = graph.find("  say:").unwrap();
            format!(
                "{}  say: {{ type: set, set: {{ count: 2 }}, then: end }}\n",
                &graph[..at]
            )
        },
        &["node `say` has another `type`"],
    );
    check(
        |graph| {
            graph
                .replace("  count: { type: integer, default: 0 }\n", "")
                .replace(", count, tally]", ", tally]")
                .replace(", count: 1", "")
        },
        &["channel `count` is gone"],
    );
    check(
        |graph| graph.replace("count: { type: integer", "count: { type: number"),
        &["channel `count` has another `type`"],
    );
    check(
        |graph| {
            graph.replace(
                "tally: { type: integer",
                "tally: { reduce: add, type: integer",
            )
        },
        &["channel `tally` has another `reduce`"],
    );
    check(
        |graph| {
            graph
                .replace("tally: { type: integer", "tally: { type: number")
                .replace(
                    "count: { type: integer",
                    "count: { reduce: add, type: integer",
                )
                .replace("  say:", "  tell:")
                .replace("then: say", "then: tell")
        },
        &[
            "node `say` is gone, channel `count` has another `reduce`, channel `tally` has another `type`",
        ],
    );
    check(
        |graph| graph.replace("name: ask", "name: other"),
        &["belongs to the graph `ask`, and this is `other`"],
    );
    check(
        |_| "schema: [graph".to_owned(),
        &["error[G", "can not be run"],
    );
}

#[test]
fn a_graph_that_grew_is_gone_on_with() {
    let desk = waiting();
    let grown = GRAPH
        .replace("then: end", "then: more")
        .replace("  tally:", "  extra: { type: optional<string> }\n  tally:")
        .replace("output: [", "output: [extra, ");
    let grown =
        format!("{grown}  more: {{ type: set, set: {{ extra: \"'more'\" }}, then: end }}\n");
    desk.file("graphs/ask.yaml", &grown);
    desk.file("graphs/prompts/say.md", "Shout {{ state.answer }}!");
    let ran = desk.tine(&["resume", "t", "tea"]);
    says(&ran, 0, &["Shout tea! So I do.", "extra: "]);
}

#[test]
fn a_graph_file_that_is_gone_is_replaced_by_what_was_kept_of_it() {
    let mut desk = waiting();
    std::fs::remove_dir_all(desk.path().join("graphs")).unwrap();
    desk.record(&["resume", "t", "tea"]);
    desk.record(&["resume", "t"]);
    desk.assert("gone_graph");
}

#[test]
fn a_changed_graph_can_be_told_in_one_look() {
    let mut desk = waiting();
    desk.file(
        "graphs/ask.yaml",
        &GRAPH
            .replace("  say:", "  tell:")
            .replace("then: say", "then: tell")
            .replace("count: { type: integer", "count: { type: number"),
    );
    desk.record(&["resume", "t", "tea"]);
    desk.record(&["resume", "t", "tea", "--pin"]);
    desk.assert("changed_graph");
}

#[test]
fn a_configuration_that_is_gone_is_named_with_the_way_out() {
    let desk = waiting();
    std::fs::rename(
        desk.path().join("config.yaml"),
        desk.path().join("other.yaml"),
    )
    .unwrap();
    let ran = desk.tine(&["resume", "t", "tea"]);
    says(
        &ran,
        2,
        &[
            "cannot read the configuration config.yaml",
            "hint: name a configuration with `--config FILE`",
        ],
    );
    let ran = desk.tine(&["resume", "t", "tea", "--config", "other.yaml"]);
    says(&ran, 0, &["Say tea. So I do."]);
}

#[test]
fn a_configuration_that_lost_a_model_is_told_of_the_graph_as_it_was_and_as_it_is() {
    let desk = waiting();
    desk.file(
        "config.yaml",
        &CONFIG
            .replace("default", "other")
            .replace("models:", "models: # none is called default"),
    );
    // Graphs say `default` for whichever comes first.
    says(
        &desk.tine(&["resume", "t", "tea"]),
        0,
        &["Say tea. So I do."],
    );
    let desk = waiting();
    desk.file("config.yaml", "models: []\n");
    let ran = desk.tine(&["resume", "t", "tea"]);
    says(&ran, 2, &["`default`", "graphs/ask.yaml can not be run"]);
    let ran = desk.tine(&["resume", "t", "tea", "--pin"]);
    says(
        &ran,
        2,
        &[
            "`default`",
            "the kept definition of `ask` can not be run",
            "hint: it needs the tools and models",
        ],
    );
    desk.file("config.yaml", CONFIG);
    says(
        &desk.tine(&["resume", "t", "tea"]),
        0,
        &["Say tea. So I do."],
    );
}

#[test]
fn a_script_that_is_gone_is_named() {
    let desk = waiting();
    std::fs::remove_file(desk.path().join("say.script.yaml")).unwrap();
    let ran = desk.tine(&["resume", "t", "tea"]);
    says(
        &ran,
        2,
        &[
            "say.script.yaml can not be read",
            "model `default`",
            "hint: ",
        ],
    );
    let shown = desk.tine(&["threads", "show", "t"]);
    says(&shown, 0, &["interrupted"]);
}
