//! `tine init` and `tine doctor`: beginning, and finding out what is wrong.

use crate::command::{Desk, finish, shipped};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;

#[test]
fn a_new_project_is_sound_and_runs_as_it_is() {
    let mut desk = Desk::new();
    desk.record_bare(&["init", "project"]);
    let folder = desk.path().join("project");
    let inside = |args: &[&str]| {
        let ran = finish(desk.command(args).current_dir(&folder));
        assert_eq!(ran.code, 0, "{args:?} {}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.stderr, "");
        ran.stdout
    };
    let graph = "graphs/agent.yaml";
    let script = "graphs/agent.script.yaml";
    inside(&["validate", "--deny-warnings", graph, script]);
    let said = inside(&["run", graph, "remember", "the", "milk", "--thread", "milk"]);
    assert!(said.contains("done after 5 steps"), "{said}");
    let note = "threads/local/milk/user-data/outputs/note.md";
    let note = std::fs::read_to_string(desk.home().join(note)).unwrap();
    assert_eq!(note, "# Note\n\nremember the milk\n");
    let doctor = inside(&["doctor"]);
    assert!(doctor.ends_with("\nnothing is wrong\n"), "{doctor}");
    // What is commented out is right, too.
    let config = folder.join("config/config.yaml");
    let text = std::fs::read_to_string(&config).unwrap();
    let all: Vec<&str> = text
        .lines()
        .map(|line| match line.trim_start().strip_prefix("# ") {
            Some(rest) if rest.starts_with("- ") || rest.starts_with("  ") => {
                &line[line.find("# ").unwrap() + 2..]
            }
            _ => line,
        })
        .collect();
    let all: Vec<String> = all
        .iter()
        .map(|line| match text.contains(&format!("\n{line}\n")) {
            true => (*line).to_owned(),
            false => format!("  {line}"),
        })
        .collect();
    std::fs::write(&config, all.join("\n")).unwrap();
    let tools = inside(&["tools", "--json"]);
    let tools: Value = serde_json::from_str(&tools).unwrap();
    assert_eq!(tools["tools"].as_array().unwrap().len(), 6, "{tools}");
    desk.assert("init");
}

#[test]
fn init_overwrites_nothing() {
    let mut desk = Desk::new();
    desk.file("there/config/config.yaml", "models: []\n");
    desk.file("there/README.md", "mine\n");
    desk.file("there/.gitignore", "target\n");
    assert_eq!(desk.record_bare(&["init", "there"]).code, 2);
    assert!(
        !desk.path().join("there/graphs").exists(),
        "nothing was written"
    );
    std::fs::remove_file(desk.path().join("there/config/config.yaml")).unwrap();
    assert_eq!(desk.record_bare(&["init", "there"]).code, 0);
    let kept = |name: &str| std::fs::read_to_string(desk.path().join("there").join(name)).unwrap();
    assert_eq!(kept("README.md"), "mine\n");
    assert_eq!(kept(".gitignore"), "target\n");
    desk.file("plain", "");
    assert_eq!(desk.record_bare(&["init", "plain/project"]).code, 2);
    desk.assert("init_in_a_folder_with_files");
}

/// What the doctor found, as JSON, for a home of one's own.
fn findings(desk: &Desk, args: &[&str]) -> (Vec<Value>, i32) {
    let mut all = vec!["doctor", "--json"];
    all.extend(args);
    let ran = desk.tine(&all);
    assert_eq!(ran.stderr, "", "{args:?}");
    let outcome = ran.outcome();
    let checks = outcome["checks"].as_array().unwrap().clone();
    let problems = checks.iter().filter(|one| one["level"] == "problem");
    assert_eq!(outcome["problems"], problems.count());
    (checks, ran.code)
}

/// Checks that the doctor has just this problem.
fn check(desk: &Desk, args: &[&str], kind: &str, says: &str) {
    let (checks, code) = findings(desk, args);
    assert_eq!(code, 1, "{checks:?}");
    let problems: Vec<_> = checks
        .iter()
        .filter(|one| one["level"] == "problem")
        .collect();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0]["check"], kind, "{problems:?}");
    let text = problems[0]["text"].as_str().unwrap();
    assert!(text.contains(says), "no {says:?} in {text}");
    assert!(!problems[0]["hints"].as_array().unwrap().is_empty());
}

#[test]
fn a_sound_setup_is_told_in_lines() {
    let mut desk = Desk::new();
    desk.record_bare(&["doctor"]);
    assert!(!desk.home().exists(), "looking makes nothing");
    desk.tine(&["run", "news_report", "find tea"]);
    let config = shipped("config/config.yaml");
    desk.record_bare(&["doctor", "--config", &config, "--online"]);
    desk.assert("doctor");
}

#[test]
fn problems_are_found_with_a_way_out() {
    let mut desk = Desk::new();
    let config = std::fs::read_to_string(shipped("config/config.yaml")).unwrap();
    let config = config.replace("../graphs", &shipped("graphs"));
    let write = |desk: &Desk, from: &str, to: &str| {
        assert!(config.contains(from));
        desk.file("config.yaml", &config.replace(from, to))
    };
    write(&desk, "models:", "modles:");
    check(&desk, &[], "config", "did you mean `models`?");
    write(&desk, "news_report.script", "missing.script");
    check(&desk, &[], "models", "missing.script.yaml can not be read");
    write(&desk, "local:web_search_tool", "local:web_serch_tool");
    check(&desk, &[], "tools", "did you mean");
    let keyed = "models:\n  - { name: gpt, use: 'langchain_openai:ChatOpenAI', model: m, api_key: $TINE_TEST_KEY }";
    write(&desk, "models:", keyed);
    check(&desk, &[], "models", "`gpt`");
    let mut command = desk.command(&["doctor"]);
    let ran = finish(command.env("TINE_TEST_KEY", "very-secret-value"));
    assert!(!ran.stdout.contains("very-secret"), "{}", ran.stdout);

    desk.file("config.yaml", &config);
    let broken = desk.file("graphs/broken.yaml", "schema: graph/v1\nname: broken\n");
    check(&desk, &[], "graphs", "graphs/broken.yaml has ");
    std::fs::remove_file(broken).unwrap();
    let script = desk.file("graphs/s.script.yaml", "schema: script/v1\nrules: 3\n");
    check(&desk, &[], "graphs", "s.script.yaml");
    std::fs::remove_file(script).unwrap();
    let database = desk.file("home/threads.db", &"no database ".repeat(100));
    check(&desk, &[], "threads", "threads.db is damaged");
    std::fs::remove_dir_all(desk.home()).unwrap();
    assert!(!std::path::Path::new(&database).exists());
    desk.file("home", "");
    let (checks, code) = findings(&desk, &[]);
    assert_eq!(code, 1);
    assert_eq!(checks[1]["level"], "problem", "{checks:?}");
    std::fs::remove_file(desk.home()).unwrap();

    // What is left out by its configuration is no problem, and worth a line.
    write(
        &desk,
        "tine.community.local:web_search_tool",
        "deerflow.community.tavily.tools:web_search_tool",
    );
    desk.record_bare(&["doctor"]);
    desk.assert("doctor_notes");
}

/// Answers one request with each of these, on an address of its own.
fn endpoint(status: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(&stream).lines();
        let first = lines.next().unwrap().unwrap();
        assert_eq!(first, "GET /v1/models HTTP/1.1");
        let rest: Vec<String> = lines
            .map(|line| line.unwrap())
            .take_while(|line| !line.is_empty())
            .collect();
        let key = "authorization: bearer very-secret-value";
        assert!(rest.iter().any(|line| line.to_lowercase() == key));
        let answer =
            format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}");
        (&stream).write_all(answer.as_bytes()).unwrap();
    });
    format!("http://{address}/v1")
}

#[test]
fn endpoints_are_asked_only_when_told_to() {
    let desk = Desk::new();
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/v1", listener.local_addr().unwrap())
    };
    let endpoints = [
        ("well", endpoint("200 OK"), "ok", "answers"),
        (
            "key",
            endpoint("401 Unauthorized"),
            "problem",
            "does not take the key",
        ),
        ("list", endpoint("404 Not Found"), "note", "lists no models"),
        (
            "ill",
            endpoint("500 Internal Server Error"),
            "problem",
            "answers 500",
        ),
        ("closed", closed, "problem", "can not be reached"),
        (
            "words",
            "no address".to_owned(),
            "problem",
            "can not be reached",
        ),
    ];
    let mut config = String::from("models:\n");
    for (name, url, ..) in &endpoints {
        config.push_str(&format!(
            "  - {{ name: {name}, use: 'langchain_openai:ChatOpenAI', model: m, base_url: '{url}', api_key: $TINE_TEST_KEY }}\n"
        ));
    }
    desk.file("config.yaml", &config);
    let doctor = |args: &[&str]| {
        let mut command = desk.command(args);
        command.env("TINE_TEST_KEY", "very-secret-value");
        let ran = finish(command.env("NO_PROXY", "127.0.0.1"));
        assert!(!ran.stdout.contains("very-secret"), "{}", ran.stdout);
        let outcome = ran.outcome();
        let checks = outcome["checks"].as_array().unwrap().clone();
        let online = checks.into_iter().filter(|one| one["check"] == "online");
        online.collect::<Vec<_>>()
    };
    assert!(doctor(&["doctor", "--json"]).is_empty());
    let found = doctor(&["doctor", "--json", "--online"]);
    assert_eq!(found.len(), endpoints.len());
    for (found, (name, _, level, says)) in found.iter().zip(&endpoints) {
        let text = found["text"].as_str().unwrap();
        assert!(text.starts_with(&format!("`{name}`: ")), "{text}");
        assert!(text.contains(says), "no {says:?} in {text}");
        assert_eq!(found["level"], *level, "{text}");
    }
}
