//! The process dies at each of its writes in turn, and the thread goes on as if nothing had been.
#![cfg(unix)]

use crate::command::{Desk, agent_graph, news_report};
use crate::questions::{AGENT, desk_of, question};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;

/// What is done, and how the file is called that shows how often each of its effects took place.
struct Job {
    name: &'static str,
    args: Vec<String>,
    log: Option<&'static str>,
    /// How many places there are at least where it can die.
    least: u64,
}

impl Job {
    fn args(&self) -> Vec<&str> {
        self.args.iter().map(String::as_str).collect()
    }
}

const SCRIPT: &str = "\
schema: script/v1
rules:
  - when: results('write_file') | length + errors('write_file') | length == 0
    content: Three at once.
    tool_calls:
      - { name: write_file, args: { path: /mnt/user-data/outputs/log.md, content: \"one\\n\", append: true } }
      - { name: write_file, args: { path: /mnt/user-data/outputs/plain.md, content: \"plain\\n\" } }
      - { name: write_file, args: { path: /mnt/user-data/outputs/log.md, content: \"two\\n\", append: true } }
  - when: results('write_file') | length + errors('write_file') | length == 3
    tool_calls:
      - { name: write_file, args: { path: /mnt/user-data/outputs/log.md, content: \"three\\n\", append: true } }
  - content: All is written.
";

fn config(script: &str) -> String {
    format!(
        "models:
  - {{ name: default, use: 'tine.models.scripted:ScriptedModel', script: {script} }}
tool_groups: [{{ name: 'file:write' }}]
tools:
  - {{ name: write_file, group: 'file:write', use: 'deerflow.sandbox.tools:write_file_tool' }}
"
    )
}

/// Puts the graph of parallel calls on a desk, and gives the words that run it.
pub(crate) fn calls_on(desk: &Desk) -> Vec<String> {
    let graph = desk.file("calls.yaml", &agent_graph("calls", "write_file"));
    desk.file("calls.script.yaml", SCRIPT);
    let config = desk.file("config.yaml", &config("calls.script.yaml"));
    ["run", &graph, "go", "--thread", "t", "--config", &config]
        .map(str::to_owned)
        .to_vec()
}

/// What a thread came to: its values without ids, and its files.
#[derive(Debug, PartialEq)]
struct End {
    values: Value,
    files: BTreeMap<String, String>,
}

fn end(desk: &Desk) -> End {
    let shown = desk.tine(&["threads", "show", "t", "--json"]).outcome();
    assert_eq!(shown["status"], "done", "{shown}");
    let mut values = shown["values"].clone();
    without(&mut values, &["id", "tool_call_id"]);
    let mut files = BTreeMap::new();
    read_all(&desk.home().join("threads"), &mut files);
    End { values, files }
}

fn without(value: &mut Value, keys: &[&str]) {
    match value {
        Value::Object(map) => {
            map.retain(|key, _| !keys.contains(&key.as_str()));
            map.values_mut().for_each(|value| without(value, keys));
        }
        Value::Array(items) => items.iter_mut().for_each(|value| without(value, keys)),
        _ => {}
    }
}

/// The files below a folder. One that was never put in its place is nobody's.
fn read_all(folder: &Path, files: &mut BTreeMap<String, String>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_all(&path, files);
        } else if path.extension().is_none_or(|end| end != "tmp") {
            let text = std::fs::read_to_string(&path).unwrap();
            // Calls side by side write in any order.
            let mut lines: Vec<&str> = text.lines().collect();
            if path.ends_with("log.md") {
                lines.sort_unstable();
            }
            let text = lines.join("\n");
            files.insert(path.file_name().unwrap().to_str().unwrap().to_owned(), text);
        }
    }
}

/// Runs a command that is to die at its `k`-th write; gives the name of the write, or `None` if it had fewer.
pub(crate) fn dies(command: &mut Command, k: u64) -> Option<String> {
    let output = command
        .env("TINE_FAILPOINT", k.to_string())
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    if output.status.signal().is_none() {
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 3)), "{code:?} at {k}: {stderr}");
        return None;
    }
    let last = stderr.lines().last().unwrap_or_default();
    let place = last.strip_prefix(&format!("failpoint {k}: "));
    Some(place.unwrap_or_else(|| panic!("{stderr}")).to_owned())
}

/// The commands that go on with the thread from where it stands, and what was answered for calls by their content.
fn next(desk: &Desk, job: &Job, skipped: &mut Vec<String>) -> Option<Vec<String>> {
    let ran = desk.tine(&["threads", "show", "t", "--json"]);
    let shown = ran.outcome();
    if shown["event"] == "outcome" {
        let message = shown["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("there is no thread `t`"), "{message}");
        return Some(job.args.clone());
    }
    let mut words = vec!["resume".to_owned(), "t".to_owned()];
    let asked = shown["interrupts"].as_array().unwrap();
    for question in asked {
        let payload = &question["payload"];
        assert_eq!(payload["kind"], "unknown_outcome", "{question}");
        assert_eq!(payload["name"], "write_file");
        let line = payload["args"]["content"].as_str().unwrap();
        // Whoever is asked looks whether it took place.
        let answer = match log(desk, job.log.unwrap())
            .lines()
            .any(|found| found == line.trim())
        {
            true => {
                skipped.push(line.to_owned());
                "skip"
            }
            false => "retry",
        };
        let id = question["id"].as_str().unwrap();
        words.extend(["--answer".to_owned(), format!("{id}={answer}")]);
    }
    (shown["status"] != "done").then_some(words)
}

fn log(desk: &Desk, name: &str) -> String {
    let mut files = BTreeMap::new();
    read_all(&desk.home().join("threads"), &mut files);
    files.remove(name).unwrap_or_default()
}

/// What is expected when these calls were skipped: the model was told so.
fn with_skipped(whole: &End, skipped: &[String]) -> Value {
    let mut values = whole.values.clone();
    let messages = values.get_mut("messages").and_then(Value::as_array_mut);
    let mut calls: Vec<Value> = Vec::new();
    for message in messages.into_iter().flatten() {
        if message["type"] == "ai" {
            calls = message["tool_calls"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            calls.reverse();
        } else if message["type"] == "tool" {
            let call = calls.pop().unwrap();
            let content = call["args"]["content"].as_str().unwrap_or_default();
            if skipped.iter().any(|line| line == content) {
                message["status"] = json!("error");
                message["content"] = json!(
                    "It is not known whether this call took place. The user chose not to make it again."
                );
            }
        }
    }
    values
}

/// Goes on until the thread is done; gives how.
fn finish(desk: &Desk, job: &Job, whole: &End, mut skipped: Vec<String>) -> String {
    let mut how: Vec<String> = Vec::new();
    while let Some(words) = next(desk, job, &mut skipped) {
        assert!(how.len() < 5, "it does not come to its end: {how:?}");
        let answers = words.iter().filter_map(|word| word.split_once('='));
        let answers: Vec<&str> = answers.map(|(_, answer)| answer).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let ran = desk.tine(&words);
        assert!(matches!(ran.code, 0 | 3), "{}{}", ran.stdout, ran.stderr);
        how.push([&[words[0]], &answers[..]].concat().join(" "));
    }
    let mut end = end(desk);
    let mut expected = with_skipped(whole, &skipped);
    if !skipped.is_empty() {
        // Another conversation costs other tokens.
        for values in [&mut end.values, &mut expected] {
            without(values, &["usage_metadata"]);
        }
    }
    assert_eq!(end.values, expected, "after {how:?}");
    assert_eq!(end.files, whole.files, "after {how:?}");
    how.join(", ")
}

/// Kills a run at every write; and for the first one of the name `twice`, kills what goes on from there at every write too,
/// and what answers the questions that are asked then.
fn check(job: &Job, twice: &str) {
    let desk = Desk::new();
    let ran = desk.tine(&job.args());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let whole = end(&desk);
    let killed = |k| {
        let desk = Desk::new();
        let place = dies(&mut desk.command(&job.args()), k);
        (desk, place)
    };
    let mut k = 1;
    let mut twice = Some(twice);
    while let (desk, Some(place)) = killed(k) {
        let how = finish(&desk, job, &whole, Vec::new());
        println!("{} {k}: {place}: {how}", job.name);
        let mut again = 1;
        while twice == Some(&*place) {
            let (desk, _) = killed(k);
            let mut skipped = Vec::new();
            let words = next(&desk, job, &mut skipped).unwrap_or_default();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let Some(second) = dies(&mut desk.command(&words), again) else {
                break;
            };
            let how = finish(&desk, job, &whole, skipped);
            println!("{} {k}+{again}: {place}, then {second}: {how}", job.name);
            again += 1;
        }
        let mut again = 1;
        while job.log.is_some() && twice == Some(&*place) {
            let (desk, _) = killed(k);
            assert_eq!(desk.tine(&["resume", "t"]).code, 3, "it asks");
            let mut skipped = Vec::new();
            let words = next(&desk, job, &mut skipped).unwrap_or_default();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let Some(second) = dies(&mut desk.command(&words), again) else {
                break;
            };
            let how = finish(&desk, job, &whole, skipped);
            println!(
                "{} {k}, answered, {again}: {place}, then {second}: {how}",
                job.name
            );
            again += 1;
        }
        twice = twice.filter(|twice| *twice != place);
        k += 1;
    }
    let (desk, _) = killed(k);
    assert_eq!(
        end(&desk),
        whole,
        "a run with fewer writes than that is whole"
    );
    assert!(k > job.least, "{} has only {k} places", job.name);
    assert_eq!(twice, None, "it was never killed there");
}

#[test]
fn each_node_counts_once_whatever_write_the_process_dies_at() {
    let files = Desk::new();
    let graph = files.file(
        "count.yaml",
        "\
schema: graph/v1
name: count
state: { n: { type: integer, default: 0 } }
input: []
start: a
nodes:
  a: { type: set, set: { n: \"${state.n + 1}\" }, then: b }
  b: { type: set, set: { n: \"${state.n + 1}\" }, then: c }
  c: { type: set, set: { n: \"${state.n + 1}\" }, then: end }
",
    );
    let config = files.file("config.yaml", "models: []\n");
    let args = [
        "run", &graph, "--thread", "t", "--input", "{}", "--config", &config,
    ];
    let job = Job {
        name: "count",
        args: args.map(str::to_owned).to_vec(),
        log: None,
        least: 20,
    };
    check(&job, "before a checkpoint");
    // Going on once more runs nothing.
    let desk = Desk::new();
    assert!(dies(&mut desk.command(&job.args()), 18).is_some());
    assert_eq!(desk.tine(&["resume", "t"]).code, 0);
    let again = desk.tine(&["resume", "t"]);
    assert_eq!(again.code, 2);
    assert!(
        again.stderr.contains("thread `t` is done"),
        "{}",
        again.stderr
    );
    assert_eq!(end(&desk).values["n"], 3);
}

#[test]
fn words_that_answer_are_said_whatever_write_the_process_dies_at() {
    let config = crate::command::shipped("config/config.yaml");
    let graph = news_report();
    let say = |text| ["run", &graph, text, "--thread", "t", "--config", &config].map(str::to_owned);
    let asked = || {
        let desk = Desk::new();
        let ran = desk.run(&["run", &graph, "写份报告", "--thread", "t"]);
        assert_eq!(ran.code, 3, "{}", ran.stderr);
        desk
    };
    let answer = say("电池");
    let answer: Vec<&str> = answer.iter().map(String::as_str).collect();
    let desk = asked();
    assert_eq!(desk.tine(&answer).code, 0);
    let whole = end(&desk);
    let said = |end: &End| {
        end.values["messages"]
            .to_string()
            .matches("\"电池\"")
            .count()
    };
    // As the result of the call that asked, as a message, and as what is searched for.
    assert_eq!(said(&whole), 3, "{}", whole.values);
    // Both runs that such words take: to where they are said, and on from there.
    for k in 1..=24 {
        let desk = asked();
        let place = dies(&mut desk.command(&answer), k).unwrap();
        let shown = desk.tine(&["threads", "show", "t", "--json"]).outcome();
        let ran = match shown["status"].as_str().unwrap() {
            "interrupted" => desk.tine(&answer),
            "pending" => desk.tine(&["resume", "t"]),
            status => panic!("{status} at {place}"),
        };
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(end(&desk), whole, "{k}: {place}, {}", shown["status"]);
        println!("words {k}: {place}: {}", shown["status"]);
    }
}

#[test]
fn words_that_end_a_graph_are_said_whatever_write_the_process_dies_at() {
    let graph = AGENT.replace("    then: agent\n", "    then: end\n");
    let asked = || {
        let desk = desk_of(&graph, &[question("Which one?", &json!({}))]);
        let ran = desk.tine(&say("go"));
        assert_eq!(ran.code, 3, "{}", ran.stderr);
        desk
    };
    fn say(text: &str) -> [&str; 7] {
        let config = ["--thread", "t", "--config", "config.yaml"];
        [
            "run",
            "graph.yaml",
            text,
            config[0],
            config[1],
            config[2],
            config[3],
        ]
    }
    let mut unsaid = 0;
    for k in 1.. {
        let desk = asked();
        let place = dies(&mut desk.command(&say("this one")), k);
        let shown = desk.tine(&["threads", "show", "t", "--json"]).outcome();
        if shown["status"] == "interrupted" {
            assert_eq!(desk.tine(&say("this one")).code, 0);
        } else {
            let ran = desk.tine(&["resume", "t"]);
            match ran.code {
                0 if shown["status"] == "done" => unsaid += 1,
                0 | 2 => {}
                code => panic!("{code} at {place:?}: {}", ran.stderr),
            }
            let again = desk.tine(&["resume", "t"]);
            assert_eq!(again.code, 2, "it is said once: {}", again.stdout);
        }
        let ran = desk.tine(&[&say("and now")[..], &["--json"]].concat());
        assert_eq!(ran.code, 3, "it asks anew: {}", ran.stderr);
        assert_eq!(
            messages(&ran.outcome())[2..5],
            ["this one", "this one", "and now"],
            "{k}: {place:?}, {}",
            shown["status"]
        );
        if place.is_none() {
            break;
        }
    }
    assert!(unsaid > 0, "it never died between the answer and the words");
}

/// A thread that died when its question was answered and the words were not said yet.
fn with_unsaid_words() -> Desk {
    let graph = news_report();
    for k in 1.. {
        let desk = Desk::new();
        let ran = desk.run(&["run", &graph, "写份报告", "--thread", "t"]);
        assert_eq!(ran.code, 3, "{}", ran.stderr);
        let config = crate::command::shipped("config/config.yaml");
        let answer = ["run", &graph, "电池", "--thread", "t", "--config", &config];
        dies(&mut desk.command(&answer), k).expect("it is answered before the end");
        let shown = desk.tine(&["threads", "show", "t", "--json"]).outcome();
        if shown["status"] == "pending" {
            return desk;
        }
    }
    unreachable!()
}

fn messages(outcome: &Value) -> Vec<&str> {
    let messages = outcome["values"]["messages"].as_array().unwrap().iter();
    messages
        .map(|message| message["content"].as_str().unwrap())
        .collect()
}

#[test]
fn words_that_are_not_said_yet_are_said_when_the_newest_checkpoint_is_named() {
    let desk = with_unsaid_words();
    let shown = desk.tine(&["threads", "show", "t", "--json"]).outcome();
    let newest = shown["checkpoint"].as_str().unwrap().to_owned();
    let ran = desk.tine(&["resume", "t", "--at", &newest, "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let outcome = ran.outcome();
    let said = messages(&outcome)
        .iter()
        .filter(|text| **text == "电池")
        .count();
    assert_eq!(said, 2, "the result and the words: {outcome}");
}

#[test]
fn words_that_are_not_said_yet_are_said_on_no_other_branch() {
    let no_words = |desk: &Desk, thread: &str| {
        let ran = desk.tine(&["resume", thread, "--json"]);
        assert_eq!(ran.code, 3, "it asks: {}{}", ran.stdout, ran.stderr);
        assert_eq!(messages(&ran.outcome()), ["写份报告", ""]);
    };
    let desk = with_unsaid_words();
    let ran = desk.tine(&["threads", "fork", "t", "--at", "step:0"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    no_words(&desk, "t");
    let desk = with_unsaid_words();
    let copy = ["threads", "fork", "t", "--at", "step:0", "--to", "copy"];
    let ran = desk.tine(&copy);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    no_words(&desk, "copy");
    // A client's update makes a branch too, and leaves the notes alone.
    let update = [
        "threads", "update", "t", "--at", "step:0", "--as", "agent", "--input",
    ];
    let desk = with_unsaid_words();
    let values = r#"{"messages": [{"type": "ai", "content": "Never mind.", "id": "x"}]}"#;
    let ran = desk.tine(&[&update[..], &[values]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = desk.tine(&["resume", "t"]);
    assert_eq!(ran.code, 2, "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn a_disk_that_is_full_stops_a_run_and_loses_nothing() {
    let files = Desk::new();
    let job = Job {
        name: "full",
        args: calls_on(&files),
        log: Some("log.md"),
        least: 0,
    };
    let desk = Desk::new();
    assert_eq!(desk.tine(&job.args()).code, 0);
    let whole = end(&desk);
    let mut refused = 0;
    for blocks in (8..).step_by(32) {
        let desk = Desk::new();
        let plain = desk.command(&job.args());
        // No file may become longer than this, and writing more is an error and not the end.
        let mut command = desk.command(&[]);
        let limit = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
        let mut bounded = Command::new("sh");
        bounded
            .args(["-c", &limit, "sh"])
            .arg(plain.get_program())
            .args(plain.get_args());
        for (name, value) in command.current_dir(desk.path()).get_envs() {
            match value {
                Some(value) => bounded.env(name, value),
                None => bounded.env_remove(name),
            };
        }
        let ran = crate::command::finish(bounded.current_dir(desk.path()));
        if ran.code == 0 {
            assert_eq!(end(&desk), whole);
            break;
        }
        refused += 1;
        assert_eq!(ran.code, 4, "{}{}", ran.stdout, ran.stderr);
        for part in ["error: ", "threads.db", "nothing older is lost", "hint: "] {
            assert!(ran.stderr.contains(part), "no {part:?} in {}", ran.stderr);
        }
        let how = finish(&desk, &job, &whole, Vec::new());
        println!("full at {blocks} blocks: {how}");
    }
    assert!(refused >= 5, "only {refused} were refused");
}

#[test]
fn a_report_is_written_whatever_write_the_process_dies_at() {
    let config = crate::command::shipped("config/config.yaml");
    let graph = news_report();
    let args = [
        "run", &graph, "find tea", "--thread", "t", "--config", &config,
    ];
    let job = Job {
        name: "report",
        args: args.map(str::to_owned).to_vec(),
        log: None,
        least: 50,
    };
    check(&job, "after a file");
}

#[test]
fn no_effect_is_lost_or_doubled_whatever_write_the_process_dies_at() {
    let files = Desk::new();
    let job = Job {
        name: "calls",
        args: calls_on(&files),
        log: Some("log.md"),
        least: 50,
    };
    check(&job, "after a file");
}
