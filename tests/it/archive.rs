//! Threads as files: exports, and imports of what anybody may have written.

use crate::command::{Desk, news_report};
use crate::threads::{before, exported, history};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Output, Stdio};

#[test]
fn a_thread_goes_to_another_home_as_a_file() {
    let mut desk = Desk::new();
    desk.run(&["run", &news_report(), "写份报告", "--thread", "t"]);
    assert_eq!(desk.tine(&["resume", "t", "电池"]).code, 0);
    let at = before(&desk, "t", "act");
    assert_eq!(desk.tine(&["threads", "fork", "t", "--at", &at]).code, 0);
    desk.file(
        "home/threads/local/t/user-data/workspace/run.sh",
        "#!/bin/sh\n",
    );
    desk.file("home/threads/local/t/user-data/uploads/a b.bin", "\u{0}x");
    assert_eq!(
        desk.record(&["threads", "export", "t", "-o", "t.jsonl"])
            .code,
        0
    );
    let whole = std::fs::read_to_string(desk.path().join("t.jsonl")).unwrap();
    assert_eq!(whole, exported(&desk, "t"));
    let other = Desk::new();
    let file = desk.path().join("t.jsonl").to_str().unwrap().to_owned();
    let ran = other.tine(&["threads", "import", &file, "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.outcome()["thread"], "t");
    assert_eq!(exported(&other, "t"), whole, "byte for byte");
    assert_eq!(history(&other, "t"), history(&desk, "t"));
    let upload = other
        .home()
        .join("threads/local/t/user-data/uploads/a b.bin");
    assert_eq!(std::fs::read(upload).unwrap(), b"\0x");
    // It goes on there.
    let ran = other.tine(&["resume", "t"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    // A thread of that name is not written over.
    assert_eq!(desk.record(&["threads", "import", "t.jsonl"]).code, 2);
    assert_eq!(
        desk.record(&["threads", "import", "t.jsonl", "--as", "u"])
            .code,
        0
    );
    assert_eq!(history(&desk, "u"), history(&desk, "t"));
    // What is wrong leaves nothing.
    desk.file("cut.jsonl", &whole[..whole.len() / 2]);
    let changed = whole.replacen("电池", "电视", 1);
    desk.file("changed.jsonl", &changed);
    desk.file("hello.txt", "hello");
    for name in ["cut.jsonl", "changed.jsonl", "hello.txt", "missing.jsonl"] {
        let ran = desk.tine(&["threads", "import", name, "--as", "v"]);
        assert_eq!(ran.code, 2, "{name}");
        let told = ran.stderr.lines().next().unwrap();
        assert!(told.starts_with(&format!("error: {name}")), "{told}");
    }
    assert_eq!(desk.tine(&["threads", "show", "v"]).code, 2);
    let folders = std::fs::read_dir(desk.home().join("threads/local")).unwrap();
    let mut folders: Vec<_> = folders.map(|one| one.unwrap().file_name()).collect();
    folders.sort();
    assert_eq!(folders, ["t", "u"]);
    let staged = desk.home().join("threads/local=2frestoring");
    let left = std::fs::read_dir(staged).map_or(0, Iterator::count);
    assert_eq!(left, 0, "nothing is left of what was not kept");
    desk.assert("threads_export");
}

/// An archive with a file of this name in it.
fn archive_with(desk: &Desk, whole: &str, path: &str) -> String {
    let body = &whole[..whole.rfind("{\"end\"").unwrap()];
    let file = json!({"at": 0, "file": path, "text": "x"});
    sealed(desk, &format!("{body}{file}\n"))
}

/// An archive of these lines.
fn sealed(desk: &Desk, body: &str) -> String {
    let hash = blake3::hash(body.as_bytes()).to_hex();
    let end = json!({"end": {"blake3": hash.as_str(), "lines": body.lines().count()}});
    desk.file("hostile.jsonl", &format!("{body}{end}\n"))
}

#[cfg(unix)]
#[test]
fn an_export_takes_the_place_of_nothing_else() {
    use std::os::unix::fs::{FileTypeExt as _, symlink};
    let desk = Desk::new();
    desk.run(&["run", &news_report(), "find tea", "--thread", "t"]);
    let whole = exported(&desk, "t");
    let export = |file: &str| desk.tine(&["threads", "export", "t", "-o", file]);
    let read = |name: &str| std::fs::read_to_string(desk.path().join(name)).unwrap();
    // Somebody laid a link where a part would be, and one where the file is to be.
    desk.file("other", "mine");
    symlink(desk.path().join("other"), desk.path().join("t.jsonl.part")).unwrap();
    assert_eq!(export("t.jsonl").code, 0);
    assert_eq!(
        (read("other"), read("t.jsonl")),
        ("mine".to_owned(), whole.clone())
    );
    desk.file("old", "old");
    symlink("old", desk.path().join("link")).unwrap();
    assert_eq!(export("link").code, 0);
    assert!(desk.path().join("link").is_symlink());
    assert_eq!(read("old"), whole);
    // A pipe and a device are written to.
    let ran = export("/dev/stdout");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.starts_with(&whole), "{}", ran.stdout);
    let null = desk.path().join("null");
    symlink("/dev/null", &null).unwrap();
    assert_eq!(export("null").code, 0);
    let kind = std::fs::metadata(&null).unwrap().file_type();
    assert!(kind.is_char_device());
    let ran = export("home");
    assert_eq!(ran.code, 2, "{}", ran.stdout);
    let names = std::fs::read_dir(desk.path()).unwrap();
    let names = names.map(|one| one.unwrap().file_name().into_string().unwrap());
    assert!(!names.into_iter().any(|name| name.contains("tine-export")));
}

/// An import that has got all but the end of an archive and has staged its file; and that end.
fn half_imported(desk: &Desk, file: &str) -> (Child, String) {
    let whole = std::fs::read_to_string(file).unwrap();
    let (begin, end) = whole.split_at(whole.rfind("{\"end\"").unwrap());
    let mut child = desk
        .command(&["threads", "import", "-", "--as", "u"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stdin = child.stdin.as_mut().unwrap();
    stdin.write_all(begin.as_bytes()).unwrap();
    stdin.flush().unwrap();
    while !staged(desk).exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended");
        std::thread::yield_now();
    }
    (child, end.to_owned())
}

fn staged(desk: &Desk) -> PathBuf {
    let folder = desk.home().join("threads/local=2frestoring/u/user-data");
    folder.join("outputs/x")
}

fn ended(mut child: Child, rest: &str) -> Output {
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(rest.as_bytes()).unwrap();
    drop(stdin);
    child.wait_with_output().unwrap()
}

#[test]
fn imports_of_one_name_do_not_harm_each_other() {
    let desk = Desk::new();
    desk.run(&["run", &news_report(), "find tea", "--thread", "t"]);
    let ran = desk.tine(&["threads", "export", "t", "--files", "false"]);
    let file = archive_with(&desk, &ran.stdout, "outputs/x");
    let (child, end) = half_imported(&desk, &file);
    let ran = desk.tine(&["threads", "import", &file, "--as", "u"]);
    assert_eq!(ran.code, 2, "{}", ran.stdout);
    assert!(ran.stderr.contains("is being run by"), "{}", ran.stderr);
    assert!(staged(&desk).exists(), "they are the first one's");
    let output = ended(child, &end);
    assert!(output.status.success(), "{output:?}");
    let x = desk.home().join("threads/local/u/user-data/outputs/x");
    assert_eq!(std::fs::read_to_string(x).unwrap(), "x");
    // One whose name was taken while it was made.
    let ran = desk.tine(&["threads", "delete", "u", "--yes"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let (child, end) = half_imported(&desk, &file);
    desk.run(&["run", &news_report(), "find tea", "--thread", "u"]);
    let before = exported(&desk, "u");
    let output = ended(child, &end);
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("there is a thread `u` already"), "{told}");
    assert_eq!(exported(&desk, "u"), before);
    assert!(before.contains("outputs/tea.md") && !staged(&desk).exists());
}

#[cfg(unix)]
#[test]
fn an_import_that_is_killed_is_done_again() {
    for place in [
        "before the name of a thread's folders",
        "after the name of a thread's folders",
        "before a thread's name",
        "after a thread's name",
    ] {
        let desk = Desk::new();
        desk.run(&["run", &news_report(), "find tea", "--thread", "t"]);
        assert_eq!(
            desk.tine(&["threads", "export", "t", "-o", "t.jsonl"]).code,
            0
        );
        let whole = std::fs::read_to_string(desk.path().join("t.jsonl")).unwrap();
        let args = ["threads", "import", "t.jsonl", "--as", "u"];
        let killed = desk
            .command(&args)
            .env("TINE_FAILPOINT", place)
            .output()
            .unwrap();
        assert!(killed.status.code().is_none(), "{place}: {killed:?}");
        let there = desk.tine(&["threads", "show", "u"]).code == 0;
        assert_eq!(there, place == "after a thread's name", "{place}");
        if !there {
            let mut ran = desk.tine(&args);
            if desk.home().join("threads/local/u").exists() && ran.code != 0 {
                assert!(
                    ran.stderr.contains("hint: `tine threads delete u` deletes"),
                    "{place}: {}",
                    ran.stderr
                );
                let copy = desk.tine(&["threads", "fork", "t", "--to", "u"]);
                assert!(copy.stderr.contains("`tine threads delete u`"));
                let deleted = desk.tine(&["threads", "delete", "u", "--yes"]);
                assert_eq!(deleted.code, 0, "{place}: {}", deleted.stderr);
                ran = desk.tine(&args);
            }
            assert_eq!(ran.code, 0, "{place}: {}", ran.stderr);
        }
        let same = exported(&desk, "u");
        let without_head = |text: &str| {
            let lines = text.lines().skip(1);
            lines
                .filter(|line| !line.starts_with("{\"end\""))
                .collect::<Vec<_>>()
                .join("\n")
        };
        assert_eq!(without_head(&same), without_head(&whole), "{place}");
    }
}

#[test]
fn no_setting_of_an_archive_is_taken_over() {
    let desk = Desk::new();
    desk.run(&["run", &news_report(), "find tea", "--thread", "t"]);
    let ran = desk.tine(&["threads", "export", "t", "--files", "false"]);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    let own = desk.file("config.yaml", "models: []\n");
    let of_thread = desk.home().join("threads/local/u/user-data/outputs/x");
    let real: Value = serde_json::from_str(lines[1]).unwrap();
    let hostile = [
        "models.default.api_key=$AWS_SECRET_ACCESS_KEY",
        "models.default.base_url=http://evil/v1",
    ];
    let written = |set: &[&str], config: &str| {
        let mut notes = real.clone();
        notes["notes"]["set"] = json!(set);
        notes["notes"]["config"] = json!(config);
        let file = json!({"at": 0, "file": "outputs/x", "text": "models: []"});
        let rest = &lines[2..lines.len() - 1];
        let body = format!("{}\n{notes}\n{}\n{file}\n", lines[0], rest.join("\n"));
        sealed(&desk, &body)
    };
    let kept = real["notes"]["config"].as_str().unwrap();
    let not_kept = "is not taken over, and the one that is found here is used";
    for (set, config, expected, told) in [
        (&[][..], kept, kept, &[][..]),
        (
            &hostile,
            kept,
            kept,
            &[
                "(models.default.api_key, models.default.base_url)",
                "`tine resume u --set NAME=VALUE`",
            ],
        ),
        (&[], &own, &own, &[]),
        (&[], "/nowhere/config.yaml", &own, &[not_kept]),
        (&[], "config.yaml", &own, &[not_kept]),
        (&[], of_thread.to_str().unwrap(), &own, &[not_kept]),
        (
            &[],
            "/proc/self/cwd/home/threads/local/u/user-data/outputs/x",
            &own,
            &[not_kept],
        ),
    ] {
        let file = written(set, config);
        let ran = desk.tine(&["threads", "import", &file, "--as", "u"]);
        assert_eq!(ran.code, 0, "{config}: {}", ran.stderr);
        assert_eq!(ran.stderr.is_empty(), told.is_empty(), "{}", ran.stderr);
        for words in told {
            assert!(ran.stderr.contains(words), "{}", ran.stderr);
        }
        assert!(!ran.stderr.contains("evil") && !ran.stderr.contains("AWS"));
        let stored = exported(&desk, "u");
        let notes: Value = serde_json::from_str(stored.lines().nth(1).unwrap()).unwrap();
        assert_eq!(notes["notes"]["set"], json!([]));
        let found = std::fs::canonicalize(notes["notes"]["config"].as_str().unwrap());
        assert_eq!(found.unwrap(), std::fs::canonicalize(expected).unwrap());
        assert_eq!(notes["notes"]["graph"], real["notes"]["graph"]);
        let ran = desk.tine(&["threads", "delete", "u", "--yes"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
}

#[test]
fn no_file_of_an_archive_leads_out() {
    let desk = Desk::new();
    desk.run(&["run", &news_report(), "find tea", "--thread", "t"]);
    let ran = desk.tine(&["threads", "export", "t", "--files", "false"]);
    let whole = ran.stdout;
    for path in [
        "../x",
        "outputs/../../x",
        "/etc/x",
        "outputs/../../../u/user-data/outputs/x",
        "elsewhere/x",
        "outputs",
        "outputs/a\\..\\x",
        "",
    ] {
        let file = archive_with(&desk, &whole, path);
        let ran = desk.tine(&["threads", "import", &file, "--as", "u"]);
        assert_eq!(ran.code, 2, "{path}: {}", ran.stdout);
        assert_eq!(desk.tine(&["threads", "show", "u"]).code, 2, "{path}");
        assert!(!desk.home().join("threads/local/u").exists(), "{path}");
    }
    let file = archive_with(&desk, &whole, "outputs/x");
    assert_eq!(
        desk.tine(&["threads", "import", &file, "--as", "u"]).code,
        0
    );
    let x = desk.home().join("threads/local/u/user-data/outputs/x");
    assert_eq!(std::fs::read_to_string(x).unwrap(), "x");
}
