//! Texts and JSON from standard input and files, odd names, and streams that are closed.

use crate::command::{Desk, Ran, fed, finish, news_report, with_config};
use std::process::{Command, Stdio};

/// A graph that keeps what it is given.
const KEEP: &str = "\
schema: graph/v1
name: keep
state:
  messages: { type: list<message>, reduce: messages }
  data: { type: any }
  size: { type: integer }
start: keep
nodes:
  keep: { type: set, set: { size: \"${size(state.messages)}\" }, then: end }
";

fn keep(desk: &Desk, args: &[&str], input: &[u8]) -> Ran {
    desk.file("keep.yaml", KEEP);
    let args = [&["run", "keep.yaml", "--json"], args].concat();
    fed(&mut desk.command(&with_config(&args)), input)
}

fn said(ran: &Ran) -> String {
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let messages = &ran.outcome()["values"]["messages"];
    messages[0]["content"].as_str().unwrap().to_owned()
}

#[test]
fn a_text_comes_from_standard_input() {
    let desk = Desk::new();
    assert_eq!(
        said(&keep(&desk, &["-"], b"two\nlines\r\n\n")),
        "two\nlines"
    );
    assert_eq!(said(&keep(&desk, &["-"], "\u{feff}茶".as_bytes())), "茶");
    assert_eq!(said(&keep(&desk, &["-", "x"], b"nothing")), "- x");
    let long = "茶 tea\n".repeat(150_000);
    assert!(long.len() > 1_000_000);
    assert_eq!(said(&keep(&desk, &["-"], long.as_bytes())), long.trim_end());
}

#[test]
fn json_comes_from_standard_input_or_a_file() {
    let desk = Desk::new();
    let json = format!(
        r#"{{"data": {{"text": "{}"}}, "messages": []}}"#,
        "x".repeat(1 << 20)
    );
    let ran = keep(&desk, &["--input", "-"], json.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let text = ran.outcome()["values"]["data"]["text"].clone();
    assert_eq!(text.as_str().unwrap().len(), 1 << 20);
    desk.file(
        "data.json",
        "\u{feff}{\"data\": [1, {\"a\": 1}, {\"a\": 2}]}\n",
    );
    let ran = keep(&desk, &["--input", "@data.json", "and", "words"], b"");
    assert_eq!(said(&ran), "and words");
    assert_eq!(ran.outcome()["values"]["data"][0], 1);
}

#[test]
fn input_that_is_none_is_refused_with_the_reason() {
    let desk = Desk::new();
    desk.file("empty.json", " \n");
    desk.file("twice.json", "{\"data\": {\"a\": [{\"b\": 1, \"b\": 2}]}}");
    desk.file("cut.json", "{\"data\": [1,");
    let no_text: &[u8] = &[b'a', 0xff];
    for (args, input, says) in [
        (&["-"][..], &b""[..], "standard input is empty"),
        (&["-"], b" \n\n", "standard input is empty"),
        (&["-"], no_text, "standard input is not UTF-8 text: byte 2"),
        (
            &["--input", "-"],
            no_text,
            "standard input is not UTF-8 text",
        ),
        (&["--input", "-"], b"", "what standard input has is empty"),
        (
            &["--input", "-"],
            b"{",
            "what standard input has is not JSON: EOF",
        ),
        (&["--input", ""], b"", "`--input` is empty"),
        (&["--input", "@"], b"", "is a folder"),
        (
            &["--input", "@missing.json"],
            b"",
            "missing.json can not be read: No such file",
        ),
        (&["--input", "@empty.json"], b"", "empty.json is empty"),
        (&["--input", "@cut.json"], b"", "cut.json is not JSON: EOF"),
        (
            &["--input", "@twice.json"],
            b"",
            "twice.json says a thing twice: the key `b` stands twice in one object at line 1",
        ),
        (
            &["--input", r#"{"data": 1, "data": 2}"#],
            b"",
            "`--input` says a thing twice: the key `data` stands twice",
        ),
        (&["-", "--input", "-"], b"x", "both the text and `--input`"),
    ] {
        let ran = keep(&desk, args, input);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.stdout);
        assert!(ran.stderr.contains(says), "no {says:?} in {}", ran.stderr);
        assert!(ran.stderr.contains("hint: "), "{args:?}: {}", ran.stderr);
    }
    let endless = vec![b'x'; (16 << 20) + 1];
    let ran = keep(&desk, &["-"], &endless);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("more than 16 MiB"), "{}", ran.stderr);
    assert!(
        !desk.home().join("threads.db").exists(),
        "nothing was begun"
    );
}

#[test]
fn an_answer_comes_from_standard_input_or_a_file() {
    let desk = Desk::new();
    let graph = news_report();
    for (args, input) in [
        (&["-"][..], &b"tea\n"[..]),
        (&["--answer-json", "-"], b"\"tea\""),
        (&["--answer-json", "@answer.json"], b""),
    ] {
        desk.file("answer.json", "\"tea\"");
        let args = [&["resume", "t", "--json"], args].concat();
        desk.run(&["run", &graph, "write a report", "--thread", "t"]);
        let ran = fed(&mut desk.command(&args), input);
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
        let said = ran.outcome()["values"]["messages"].clone();
        let mut said = said.as_array().unwrap().iter();
        let last = said.rfind(|message| message["name"] == "ask_clarification");
        assert_eq!(last.unwrap()["content"], "tea", "{args:?}");
        assert_eq!(desk.tine(&["threads", "delete", "t", "--yes"]).code, 0);
    }
}

#[test]
fn the_command_that_goes_on_can_be_pasted_whatever_the_thread_is_called() {
    for thread in [
        "-x",
        "--json",
        "it's",
        "a b",
        "$HOME",
        "",
        "中文",
        "a\\b",
        "\u{1b}[1m",
        "two\nlines",
    ] {
        let desk = Desk::new();
        let graph = news_report();
        let name = format!("--thread={thread}");
        let ran = desk.run(&["run", &graph, "写份报告", &name]);
        if thread.is_empty() {
            assert_eq!(ran.code, 2);
            continue;
        }
        assert_eq!(ran.code, 3, "{thread:?}: {}", ran.stderr);
        let (_, commands) = ran.stdout.split_once("\n  tine resume ").unwrap();
        let (command, _) = commands.split_once(" 1\n").unwrap();
        let pasted = format!("\"$TINE\" resume {command} 2 --json");
        // Options stand in front of the name where they must.
        let pasted = match command.starts_with("-- ") {
            true => format!("\"$TINE\" resume --json {command} 2"),
            false => pasted,
        };
        let mut shell = Command::new("bash");
        shell
            .args(["-c", &pasted])
            .current_dir(desk.path())
            .env("TINE_HOME", desk.home())
            .env("TINE", env!("CARGO_BIN_EXE_tine"))
            .stdin(Stdio::null());
        let ran = finish(&mut shell);
        assert_eq!(ran.code, 0, "{thread:?}: {pasted}\n{}", ran.stderr);
        assert_eq!(ran.outcome()["thread"], thread);
    }
}

/// Runs the main job with its streams led elsewhere by a shell.
fn redirected(desk: &Desk, streams: &str, json: bool) -> Ran {
    let graph = news_report();
    let mut args = vec!["run", &graph, "find tea", "--thread", "t"];
    if json {
        args.push("--json");
    }
    let tine = desk.command(&with_config(&args));
    let mut shell = Command::new("sh");
    shell
        .arg("-c")
        .arg(format!("exec \"$0\" \"$@\" {streams}"))
        .arg(tine.get_program())
        .args(tine.get_args())
        .current_dir(desk.path())
        .env("TINE_HOME", desk.home())
        .stdin(Stdio::null());
    finish(&mut shell)
}

#[cfg(target_os = "linux")]
#[test]
fn streams_that_are_closed_or_full_lose_nothing() {
    for json in [false, true] {
        for (streams, code, says) in [
            (">&-", 0, ""),
            ("<&-", 0, ""),
            ("2>&-", 0, ""),
            ("<&- >&- 2>&-", 0, ""),
            (
                ">/dev/full",
                4,
                "standard output can not be written: No space left on device",
            ),
            (">/dev/full 2>/dev/full", 4, ""),
        ] {
            let desk = Desk::new();
            let ran = redirected(&desk, streams, json);
            assert_eq!(ran.code, code, "{streams}: {}", ran.stderr);
            assert!(ran.stderr.contains(says), "{streams}: {}", ran.stderr);
            assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
            let shown = desk.tine(&["threads", "show", "t", "--json"]).outcome();
            assert_eq!(shown["status"], "done", "{streams}");
            assert_eq!(shown["artifacts"].as_array().unwrap().len(), 1);
        }
    }
}

#[test]
fn a_secret_is_not_kept_with_a_thread() {
    let desk = Desk::new();
    let graph = crate::command::news_report();
    for (set, refused) in [
        ("models.default.api_key=sk-very-secret", true),
        ("models.default.openai_api_key=123456", true),
        ("models.default.default_headers.X-Key=very-secret", true),
        ("models.default.default_headers={X-Key: very-secret}", true),
        ("models.default.default_headers={X-Key: $SOME}", false),
        ("tools.web_search.api_key=very-secret", true),
        ("tools.web_search.api_key=$SOME", false),
        ("tools.web_search.api_key=", false),
        ("tools.web_search.max_results=3", false),
    ] {
        let ran = desk.run(&["run", &graph, "写份报告", "--thread", set, "--set", set]);
        let key = set.split_once('=').unwrap().0;
        let says = format!("--set '{key}=$NAME'");
        assert_eq!(ran.stderr.contains(&says), refused, "{set}: {}", ran.stderr);
        assert!(!ran.stderr.contains("secret}") && !ran.stderr.contains("very-secret"));
        if refused {
            assert_eq!(ran.code, 2, "{set}");
            assert_eq!(desk.tine(&["threads", "show", set]).code, 2, "{set}");
        }
    }
    let ran = desk.run(&["run", &graph, "写份报告", "--thread", "t"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let ran = desk.tine(&["resume", "t", "茶", "--set", "models.default.api_key=sk-x"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("$NAME"), "{}", ran.stderr);
}

#[test]
fn json_may_begin_with_a_mark_of_its_encoding() {
    let desk = Desk::new();
    let graph = crate::command::news_report();
    let json = "\u{feff}{\"messages\": [\"写份报告\"]}";
    let ran = desk.run(&["run", &graph, "--input", json]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
}
