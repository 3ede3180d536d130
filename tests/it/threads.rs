//! Looking into threads, going back in them, changing them.

use crate::command::{Desk, news_report};
use crate::stopping::{goes_on, standing};
use serde_json::{Value, json};

/// The checkpoints of a thread, newest first.
pub(crate) fn history(desk: &Desk, thread: &str) -> Vec<Value> {
    let ran = desk.tine(&[
        "threads", "history", "--limit", "1000", "--json", "--", thread,
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let lines = ran.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The id of the newest checkpoint that plans just this.
pub(crate) fn before(desk: &Desk, thread: &str, next: &str) -> String {
    let all = history(desk, thread);
    let found = all.iter().find(|one| one["next"] == json!([next])).unwrap();
    found["id"].as_str().unwrap().to_owned()
}

fn shown(desk: &Desk, args: &[&str]) -> Value {
    let ran = desk.tine(&[&["threads", "show", "--json"], args].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.outcome()
}

/// What was said, as text.
fn said(shown: &Value) -> Vec<String> {
    let messages = shown["values"]["messages"].as_array().unwrap().iter();
    messages
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect()
}

/// A graph that does nothing but talk, and scripts that say different things.
fn chat(desk: &Desk) -> String {
    for (name, rules) in [
        ("one.yaml", "rules: [{content: 'first answer'}]"),
        ("two.yaml", "rules: [{content: 'second answer'}]"),
    ] {
        desk.file(name, &format!("schema: script/v1\n{rules}\n"));
    }
    desk.file(
        "chat.yaml",
        "schema: graph/v1\nname: chat\nstate:\n  messages: { type: list<message>, reduce: messages }\n  \
         topic: { type: optional<string> }\ninput: [messages, topic]\nstart: talk\nnodes:\n  \
         talk: { type: model, model: default, then: end }\n",
    )
}

fn script(desk: &Desk, name: &str) -> String {
    format!("models.default.script={}", desk.path().join(name).display())
}

#[test]
fn checkpoints_are_listed_shown_and_compared() {
    let mut desk = Desk::new();
    desk.run(&["run", &news_report(), "写份报告", "--thread", "tea"]);
    desk.record(&["threads", "history", "tea"]);
    assert_eq!(desk.tine(&["resume", "tea", "电池"]).code, 0);
    desk.record(&["threads", "history", "tea"]);
    desk.record(&["threads", "history", "tea", "--limit", "2"]);
    desk.record(&["threads", "show", "tea", "--at", "step:2"]);
    desk.record(&["threads", "diff", "tea", "step:1", "step:3"]);
    desk.record(&["threads", "diff", "tea", "step:3", "step:1"]);
    desk.record(&["threads", "diff", "tea", "step:7"]);
    desk.record(&["threads", "diff", "tea", "step:3", "step:3"]);
    desk.record(&["threads", "show", "tea", "--at", "step:x"]);
    desk.record(&["threads", "show", "tea", "--at", "step:99"]);
    desk.record(&["threads", "diff", "tea", "0"]);
    desk.record(&["threads", "history", "tee"]);

    let all = history(&desk, "tea");
    let newest = all[0]["id"].as_str().unwrap();
    assert_eq!(shown(&desk, &["tea"])["checkpoint"], newest);
    let diff = desk.tine(&["threads", "diff", "tea", "step:1", newest, "--json"]);
    let diff = diff.outcome();
    assert_eq!(diff["to"]["id"], newest);
    let [old, new] = ["step:1", newest].map(|at| shown(&desk, &["tea", "--at", at]));
    assert_eq!(old["step"], 1);
    // Messages were added, and all in one piece.
    let messages = new["values"]["messages"].as_array().unwrap();
    let added = diff["changes"].as_array().unwrap().iter();
    let added: Vec<&Value> = added
        .filter(|change| change["path"][0] == "messages")
        .map(|change| &change["after"])
        .collect();
    let known = old["values"]["messages"].as_array().unwrap().len();
    assert_eq!(added, messages[known..].iter().collect::<Vec<_>>());
    desk.assert("threads_history");
}

#[test]
fn a_reply_is_made_anew_on_a_branch_and_the_old_one_stays() {
    let mut desk = Desk::new();
    let graph = chat(&desk);
    let set = script(&desk, "one.yaml");
    let ran = desk.run(&["run", &graph, "hello", "--thread", "t", "--set", &set]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let old = history(&desk, "t")[0]["id"].as_str().unwrap().to_owned();
    let at = before(&desk, "t", "talk");
    let set = script(&desk, "two.yaml");
    let ran = desk.tine(&["resume", "t", "--at", &at, "--set", &set]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(said(&shown(&desk, &["t"])), ["hello", "second answer"]);
    assert_eq!(
        said(&shown(&desk, &["t", "--at", &old])),
        ["hello", "first answer"]
    );
    let line = history(&desk, "t")
        .into_iter()
        .find(|one| one["id"] == old)
        .unwrap();
    assert_eq!(line["current"], false);
    desk.record(&["threads", "history", "t"]);
    // What is said now is said on the new branch; and on the old one if that is asked for.
    desk.run(&["run", &graph, "and?", "--thread", "t", "--set", &set]);
    assert_eq!(said(&shown(&desk, &["t"]))[1], "second answer");
    let ran = desk.run(&[
        "run", &graph, "well?", "--thread", "t", "--at", &old, "--set", &set,
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let now = said(&shown(&desk, &["t"]));
    assert_eq!(now, ["hello", "first answer", "well?", "second answer"]);
    desk.record(&["threads", "history", "t"]);
    assert_eq!(
        desk.record(&["threads", "show", "t", "--at", "step:1"])
            .code,
        2
    );
    desk.assert("threads_branches");
}

#[test]
fn an_answer_is_given_anew_on_a_branch() {
    let desk = Desk::new();
    desk.run(&["run", &news_report(), "写份报告", "--thread", "t"]);
    assert_eq!(desk.tine(&["resume", "t", "电池"]).code, 0);
    let at = before(&desk, "t", "act");
    let asked = history(&desk, "t")
        .into_iter()
        .find(|one| one["interrupts"][0]["answer"] == "电池")
        .unwrap();
    assert_ne!(asked["id"], at, "there are later calls");
    let at = asked["id"].as_str().unwrap();
    let ran = desk.tine(&["resume", "t", "高铁", "--at", at]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let now = said(&shown(&desk, &["t"]));
    assert!(now.contains(&"高铁".to_owned()) && !now.contains(&"电池".to_owned()));
    // A message to an old question is its answer, as it is to an open one.
    let ran = desk.run(&["run", &news_report(), "茶", "--thread", "t", "--at", at]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let now = said(&shown(&desk, &["t"]));
    assert!(now.contains(&"茶".to_owned()) && !now.contains(&"高铁".to_owned()));
    let all = history(&desk, "t");
    let ends = all.iter().filter(|one| one["next"] == json!([]));
    assert!(ends.count() >= 3, "every branch is still there");
}

#[test]
fn a_thread_is_forked_and_goes_on_from_there() {
    let mut desk = Desk::new();
    desk.run(&["run", &news_report(), "写份报告", "--thread", "t"]);
    assert_eq!(desk.tine(&["resume", "t", "电池"]).code, 0);
    let old = history(&desk, "t")[0]["id"].clone();
    assert_eq!(
        desk.record(&["threads", "fork", "t", "--at", "step:1"])
            .code,
        0
    );
    desk.record(&["threads"]);
    desk.record(&["resume", "t"]);
    desk.record(&["threads", "history", "t", "--limit", "3"]);
    assert_eq!(desk.record(&["resume", "t", "高铁"]).code, 0);
    let done = old.as_str().unwrap();
    let ran = desk.tine(&["threads", "fork", "t", "--at", done, "--json"]);
    assert_eq!(ran.outcome()["next"], json!([]));
    assert!(said(&shown(&desk, &["t"])).contains(&"电池".to_owned()));
    assert_eq!(
        desk.record(&["threads", "fork", "t", "--at", "beef"]).code,
        2
    );
    desk.assert("threads_fork");
}

#[test]
fn a_thread_is_updated_from_outside() {
    let mut desk = Desk::new();
    chat(&desk);
    let set = script(&desk, "one.yaml");
    desk.run(&["run", "chat.yaml", "hello", "--thread", "t", "--set", &set]);
    desk.record(&["threads", "update", "t", "--input", "{\"topic\": \"tea\"}"]);
    assert_eq!(shown(&desk, &["t"])["values"]["topic"], "tea");
    desk.file("values.json", "{\"topic\": \"coffee\"}");
    let at = before(&desk, "t", "talk");
    let ran = desk.tine(&[
        "threads",
        "update",
        "t",
        "--at",
        &at,
        "--as",
        "__start__",
        "--input",
        "@values.json",
        "--json",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let outcome = ran.outcome();
    assert_eq!(
        (&outcome["parent"], &outcome["next"]),
        (&json!(at), &json!(["talk"]))
    );
    assert_eq!(outcome["source"], "update");
    assert_eq!(desk.tine(&["resume", "t"]).code, 0);
    let now = shown(&desk, &["t"]);
    assert_eq!(now["values"]["topic"], "coffee");
    assert_eq!(said(&now), ["hello", "first answer"]);
    let checkpoints = history(&desk, "t").len();
    for args in [
        &["--input", "{\"topik\": 1}"][..],
        &["--input", "{\"topic\": 1}"],
        &["--as", "tlak", "--input", "{}"],
        &["--input", "[1]"],
        &["--input", "{"],
        &["--input", "{\"topic\": \"a\", \"topic\": \"b\"}"],
        &["--input", "@missing.json"],
        &[],
    ] {
        let ran = desk.record(&[&["threads", "update", "t"], args].concat());
        assert_eq!(ran.code, 2, "{args:?}");
    }
    assert_eq!(history(&desk, "t").len(), checkpoints);
    desk.assert("threads_update");
}

#[test]
fn a_thread_that_waits_is_cancelled() {
    let mut desk = Desk::new();
    let graph = news_report();
    desk.run(&["run", &graph, "写份报告", "--thread", "t"]);
    desk.file("home/threads/local/t/user-data/uploads/a.md", "mine");
    assert_eq!(desk.record(&["threads", "cancel", "t"]).code, 0);
    desk.record(&["threads", "show", "t"]);
    assert_eq!(desk.record(&["resume", "t"]).code, 2);
    assert_eq!(desk.record(&["threads", "cancel", "t"]).code, 0);
    desk.record(&["threads", "cancel", "x"]);
    assert!(
        desk.home()
            .join("threads/local/t/user-data/uploads/a.md")
            .exists()
    );
    // It can be talked to again.
    assert_eq!(
        desk.run(&["run", &graph, "find tea", "--thread", "t"]).code,
        0
    );
    assert_eq!(shown(&desk, &["t"])["status"], "done");
    desk.assert("threads_cancel");
}

#[test]
fn a_thread_whose_graph_has_changed_is_changed_and_cancelled() {
    let desk = Desk::new();
    let graph = std::fs::read_to_string(news_report()).unwrap();
    let file = desk.file("graph.yaml", &graph);
    let ran = desk.run(&["run", &file, "写份报告", "--thread", "t"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    desk.file(
        "graph.yaml",
        &graph.replacen("name: news_report", "name: other", 1),
    );
    for args in [
        &["update", "t", "--input", "{}", "--as", "__start__"][..],
        &["fork", "t", "--at", "step:1"],
    ] {
        let ran = desk.tine(&[&["threads"], args].concat());
        assert_eq!(ran.code, 2, "{args:?}");
        let hint = "hint: with `--pin` this command takes that definition";
        assert!(ran.stderr.contains(hint), "{args:?}: {}", ran.stderr);
        let ran = desk.tine(&[&["threads"], args, &["--pin"]].concat());
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
    }
    let ran = desk.tine(&["threads", "cancel", "t"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(shown(&desk, &["t"])["status"], "cancelled");
}

#[test]
fn commands_that_are_told_can_be_pasted() {
    let desk = Desk::new();
    desk.run(&["run", &news_report(), "写份报告", "--thread=-x"]);
    let tells = |args: &[&str], told: &str| {
        let ran = desk.tine(args);
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
        assert!(ran.stdout.contains(told), "{args:?}: {}", ran.stdout);
    };
    let asks = history(&desk, "-x")[0]["id"].as_str().unwrap().to_owned();
    let fork = ["threads", "fork", "--to=-y", "--", "-x"];
    tells(&fork, "tine resume -- '-y' ");
    let fork = ["threads", "fork", "--at", "step:1", "--", "-x"];
    tells(&fork, "tine resume -- '-x'");
    let show = ["threads", "show", "--at", &asks, "--", "-x"];
    tells(&show, &format!("tine resume --at {asks} -- '-x' "));
    let file = desk.file("x.jsonl", &exported(&desk, "-x"));
    let import = ["threads", "import", &file, "--as=-z"];
    tells(&import, "tine threads show -- '-z'");
}

#[test]
fn a_run_of_another_process_is_cancelled() {
    let desk = Desk::new();
    let mut child = standing(&desk);
    let ran = desk.tine(&["threads", "cancel", "t", "--wait", "60", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let outcome = ran.outcome();
    assert_eq!(outcome["cancelled"], "run");
    let holder = outcome["holder"].as_str().unwrap();
    assert!(
        holder.starts_with(&format!("process {}", child.id())),
        "{holder}"
    );
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let told = child.wait_with_output().unwrap();
    let told = String::from_utf8(told.stderr).unwrap();
    assert!(
        told.contains("hint: `tine resume t` goes on from here"),
        "{told}"
    );
    goes_on(&desk);
}

#[cfg(unix)]
#[test]
fn a_run_that_does_not_stop_is_told() {
    let desk = Desk::new();
    let mut child = standing(&desk);
    let signal = |name: &str| {
        let killed = std::process::Command::new("kill")
            .args([name, &child.id().to_string()])
            .status();
        assert!(killed.unwrap().success());
    };
    signal("-STOP");
    let ran = desk.tine(&["threads", "cancel", "t", "--wait", "0"]);
    assert_eq!(ran.code, 4, "{}", ran.stdout);
    let words = format!("thread `t` is still being run by process {}", child.id());
    assert!(ran.stderr.contains(&words), "{}", ran.stderr);
    // It stays asked.
    signal("-CONT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    for args in [
        &["threads", "update", "t", "--input", "{}"][..],
        &["threads", "fork", "t", "--at", "step:1"],
    ] {
        let ran = desk.tine(args);
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn a_thread_that_is_run_is_not_changed() {
    let desk = Desk::new();
    let mut child = standing(&desk);
    for args in [
        &["threads", "update", "t", "--input", "{\"artifacts\": []}"][..],
        &["threads", "fork", "t", "--at", "step:1"],
        &["threads", "delete", "t", "--yes"],
    ] {
        let ran = desk.tine(args);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.stdout);
        let words = format!("thread `t` is being run by process {}", child.id());
        assert!(ran.stderr.contains(&words), "{args:?}: {}", ran.stderr);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    goes_on(&desk);
}

#[test]
fn threads_are_deleted_with_their_files_and_half_deleted_ones_too() {
    let mut desk = Desk::new();
    let graph = news_report();
    for thread in ["a", "b", "c", "d"] {
        desk.run(&["run", &graph, "find tea", "--thread", thread]);
    }
    let folder = |desk: &Desk, thread: &str| desk.home().join("threads/local").join(thread);
    assert_eq!(
        desk.record(&["threads", "delete", "a", "x", "--yes"]).code,
        2
    );
    assert_eq!(desk.record(&["threads", "delete", "a", "b"]).code, 2);
    assert!(
        folder(&desk, "a").exists(),
        "none is deleted if one is wrong"
    );
    assert_eq!(
        desk.record(&["threads", "delete", "a", "b", "a", "--yes"])
            .code,
        0
    );
    assert!(!folder(&desk, "a").exists() && !folder(&desk, "b").exists());
    std::fs::remove_dir_all(folder(&desk, "c")).unwrap();
    assert_eq!(desk.record(&["threads", "delete", "c", "--yes"]).code, 0);
    // As a deletion leaves it that was killed in the middle.
    desk.file("home/threads/local/e/user-data/outputs/a.md", "left");
    assert_eq!(desk.record(&["threads", "delete", "e", "--yes"]).code, 0);
    assert!(!folder(&desk, "e").exists());
    assert_eq!(desk.record(&["threads", "delete", "e", "--yes"]).code, 2);
    let json = desk
        .tine(&["threads", "delete", "d", "--yes", "--json"])
        .outcome();
    assert_eq!(
        json,
        json!({"thread": "d", "deleted": true, "checkpoints": true})
    );
    desk.record(&["threads"]);
    desk.assert("threads_delete");
}

/// All that is known of a thread, as one text.
pub(crate) fn exported(desk: &Desk, thread: &str) -> String {
    let ran = desk.tine(&["threads", "export", "--", thread]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.stdout
}

#[cfg(unix)]
#[test]
fn links_are_left_out_of_copies() {
    let desk = Desk::new();
    desk.run(&["run", &news_report(), "find tea", "--thread", "t"]);
    let secret = desk.file("secret", "s");
    let link = desk.home().join("threads/local/t/user-data/outputs/link");
    std::os::unix::fs::symlink(secret, link).unwrap();
    let told = "note: outputs/link is left out: it is a link\n";
    let ran = desk.tine(&["threads", "export", "t"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, told));
    assert!(ran.stdout.contains("outputs/tea.md") && !ran.stdout.contains("outputs/link"));
    let ran = desk.tine(&["threads", "fork", "t", "--to", "u"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, told));
    let outputs = desk.home().join("threads/local/u/user-data/outputs");
    let outputs = std::fs::read_dir(outputs).unwrap();
    let outputs: Vec<_> = outputs.map(|one| one.unwrap().file_name()).collect();
    assert_eq!(outputs, ["tea.md"]);
}

#[test]
fn a_thread_is_copied_up_to_a_checkpoint() {
    let mut desk = Desk::new();
    desk.run(&["run", &news_report(), "写份报告", "--thread", "t"]);
    let waits = desk.record(&["threads", "fork", "t", "--to", "waits"]);
    assert_eq!(waits.code, 0);
    assert_eq!(desk.tine(&["resume", "t", "电池"]).code, 0);
    assert_eq!(
        desk.record(&["threads", "fork", "t", "--at", "step:1", "--to", "again"])
            .code,
        0
    );
    assert_eq!(desk.tine(&["threads", "fork", "t", "--to", "same"]).code, 0);
    desk.record(&["threads", "history", "again"]);
    desk.record(&["threads"]);
    assert_eq!(history(&desk, "same"), history(&desk, "t"));
    // Each goes on by itself: the one with the question that it took along, the other asks anew.
    assert_eq!(desk.tine(&["resume", "waits", "高铁"]).code, 0);
    assert_eq!(desk.tine(&["resume", "again"]).code, 3);
    assert_eq!(desk.tine(&["resume", "again", "茶"]).code, 0);
    for (thread, answer) in [("waits", "高铁"), ("again", "茶"), ("t", "电池")] {
        assert!(said(&shown(&desk, &[thread])).contains(&answer.to_owned()));
    }
    let copied = |thread: &str| desk.home().join("threads/local").join(thread);
    let file = "user-data/outputs/电池.md";
    assert!(copied("same").join(file).exists() && !copied("waits").join(file).exists());
    assert_eq!(
        desk.record(&["threads", "fork", "t", "--to", "same"]).code,
        2
    );
    assert_eq!(desk.record(&["threads", "fork", "t"]).code, 2);
    desk.assert("threads_copy");
}
