#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::*;
use crate::fixture::Fixture;
use crate::spec::Effect;
use crate::tool::Tool;

#[tokio::test]
async fn a_file_is_written_added_to_and_read() {
    let f = Fixture::new();
    let path = "/mnt/user-data/outputs/a/今日.md";
    let write = |content: &str, append: Value| {
        f.say(
            WriteFile::new(0),
            json!({"description": "why", "path": path, "content": content, "append": append}),
        )
    };
    assert_eq!(write("一\n", Value::Null).await, "OK");
    assert_eq!(write("二\n三", json!(true)).await, "OK");
    let read = |args: Value| f.say(ReadFile::new(0), args);
    assert_eq!(read(json!({"path": path})).await, "一\n二\n三");
    assert_eq!(read(json!({"path": path, "start_line": 2})).await, "二\n三");
    assert_eq!(
        read(json!({"path": path, "start_line": 2, "end_line": 2})).await,
        "二"
    );
    assert_eq!(
        read(json!({"path": path, "start_line": 2, "end_line": 99})).await,
        "二\n三"
    );
    assert_eq!(
        read(json!({"path": path, "end_line": 1.0, "start_line": null})).await,
        "一"
    );
    assert_eq!(
        read(json!({"path": path, "start_line": 9})).await,
        "(start_line exceeds file length: the file has 3 lines)"
    );
}

#[tokio::test]
async fn what_cannot_be_read_is_told() {
    let f = Fixture::new();
    f.put("outputs/empty.md", "");
    f.put("outputs/image.png", b"\x89PNG\0");
    f.put("outputs/latin.txt", b"caf\xe9");
    f.put("outputs/ok.md", "ok");
    let cases = [
        json!({"path": "/mnt/user-data/outputs/empty.md"}),
        json!({"path": "/mnt/user-data/outputs/image.png"}),
        json!({"path": "/mnt/user-data/outputs/latin.txt"}),
        json!({"path": "/mnt/user-data/outputs/none.md"}),
        json!({"path": "/mnt/user-data/outputs"}),
        json!({"path": "/mnt/user-data"}),
        json!({"path": "/etc/passwd"}),
        json!({"path": "/mnt/user-data/outputs/ok.md", "start_line": 0}),
        json!({"path": "/mnt/user-data/outputs/ok.md", "end_line": -1}),
        json!({"path": "/mnt/user-data/outputs/ok.md", "start_line": 3, "end_line": 2}),
        json!({"path": "/mnt/user-data/outputs/ok.md", "start_line": "2"}),
        json!({"file": "x"}),
        json!("/mnt/user-data/outputs/ok.md"),
        json!(["/mnt/user-data/outputs/ok.md"]),
    ];
    let mut lines = Vec::new();
    for args in cases {
        lines.push(f.say(ReadFile::new(0), args).await);
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    (empty)
    error: `/mnt/user-data/outputs/image.png` is not UTF-8 text: it may be an image, a spreadsheet or another binary file, which read_file cannot show
    error: `/mnt/user-data/outputs/latin.txt` is not UTF-8 text: it may be an image, a spreadsheet or another binary file, which read_file cannot show
    error: `/mnt/user-data/outputs/none.md` does not exist: list its folder with ls to see what is there
    error: `/mnt/user-data/outputs` is a folder, not a file
    error: `/mnt/user-data` is a folder, not a file
    error: `/etc/passwd` is outside this thread's folders: use a path below /mnt/user-data/workspace, /mnt/user-data/uploads or /mnt/user-data/outputs
    error: start_line must be 1 or more: lines are counted from 1
    error: end_line must be 1 or more: lines are counted from 1
    error: start_line 3 is after end_line 2: there are no lines between them
    error: read_file was not run, because its arguments are wrong:
    - `start_line`: expected a whole number or null, got the string "2"
    error: read_file was not run, because its arguments are wrong:
    - `file`: is not an argument of this tool; it takes description, end_line, path, start_line
    - `path`: is missing and required: a string
    error: read_file was not run, because its arguments are wrong:
    - expected an object, got the string "/mnt/user-data/outputs/ok.md"
    error: read_file was not run, because its arguments are wrong:
    - expected an object, got a list of 1
    "#);
}

#[tokio::test]
async fn what_cannot_be_written_is_told_and_nothing_is_written() {
    let f = Fixture::new();
    f.put("outputs/file", "x");
    let cases = [
        json!({"path": "/etc/passwd", "content": "x"}),
        json!({"path": "/mnt/user-data/outputs/../x", "content": "x"}),
        json!({"path": "/mnt/skills/x", "content": "x"}),
        json!({"path": "/mnt/user-data/outputs", "content": "x"}),
        json!({"path": "/mnt/user-data/outputs/file/x", "content": "x"}),
        json!({"path": "/mnt/user-data/outputs/new", "content": "123456789"}),
        json!({"path": "/mnt/user-data/outputs/new", "content": 5}),
        json!({"path": "/mnt/user-data/outputs/new", "content": "x", "append": "true"}),
        json!({"path": "/mnt/user-data/outputs/new", "text": "x"}),
    ];
    let mut lines = Vec::new();
    for args in cases {
        lines.push(f.say(WriteFile::new(8), args).await);
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    error: `/etc/passwd` is outside this thread's folders: use a path below /mnt/user-data/workspace, /mnt/user-data/uploads or /mnt/user-data/outputs
    error: `/mnt/user-data/outputs/../x` goes up with `..`: write the path without it
    error: `/mnt/skills/x` cannot be written: /mnt/skills is read-only; write below /mnt/user-data/workspace or /mnt/user-data/outputs
    error: `/mnt/user-data/outputs` is a folder, not a file
    error: `/mnt/user-data/outputs/file/x` is not a folder, or a part of its path is a file
    error: content has 9 bytes, more than the 8 that one call may write: write the first part, then add the others with append
    error: write_file was not run, because its arguments are wrong:
    - `content`: expected a string, got the number 5
    error: write_file was not run, because its arguments are wrong:
    - `append`: expected true or false, got the string "true"
    error: write_file was not run, because its arguments are wrong:
    - `content`: is missing and required: a string
    - `text`: is not an argument of this tool; it takes append, content, description, path
    "#);
    let root = f.cx.folders().host_root();
    assert_eq!(std::fs::read_dir(root.join("outputs")).unwrap().count(), 1);
    assert_eq!(std::fs::read_dir(root).unwrap().count(), 3);
}

#[test]
fn adding_to_a_file_is_an_effect_and_replacing_it_is_not() {
    let tool = WriteFile::new(0);
    let check = |args: Value, expected: Effect| {
        let Value::Object(args) = args else { return };
        assert_eq!(tool.effect(&args), expected);
    };
    check(json!({"append": true}), Effect::Effectful);
    check(json!({"append": false}), Effect::Idempotent);
    check(json!({}), Effect::Idempotent);
}

#[tokio::test]
async fn a_folder_is_listed_two_levels_deep() {
    let f = Fixture::new();
    for path in [
        "workspace/src/m.py",
        "workspace/src/deep/n.py",
        "workspace/a.md",
        "workspace/node_modules/x.js",
        "workspace/b.tmp",
        "workspace/.upload-1.part",
        "outputs/r.md",
        "beside.txt",
    ] {
        f.put(path, "x");
    }
    #[cfg(unix)]
    {
        let root = f.cx.folders().host_root();
        std::os::unix::fs::symlink("/etc", root.join("workspace/etc")).unwrap();
        std::os::unix::fs::symlink("../outputs", root.join("workspace/to")).unwrap();
    }
    let ls = |path: &str| f.say(Ls::new(0), json!({"path": path}));
    insta::assert_snapshot!(ls("/mnt/user-data/workspace/").await, @"
    /mnt/user-data/workspace/a.md
    /mnt/user-data/workspace/src/
    /mnt/user-data/workspace/src/deep/
    /mnt/user-data/workspace/src/m.py
    /mnt/user-data/workspace/to/
    ");
    insta::assert_snapshot!(ls("/mnt/user-data").await, @"
    /mnt/user-data/outputs/
    /mnt/user-data/outputs/r.md
    /mnt/user-data/uploads/
    /mnt/user-data/workspace/
    /mnt/user-data/workspace/a.md
    /mnt/user-data/workspace/src/
    /mnt/user-data/workspace/to/
    ");
    assert_eq!(ls("/mnt/user-data/uploads").await, "(empty)");
    let errors = [
        ls("/mnt/user-data/workspace/none").await,
        ls("/mnt/user-data/workspace/a.md").await,
        ls("/").await,
    ];
    insta::assert_snapshot!(errors.join("\n"), @"
    error: `/mnt/user-data/workspace/none` does not exist: list its folder with ls to see what is there
    error: `/mnt/user-data/workspace/a.md` is not a folder, or a part of its path is a file
    error: `/` is outside this thread's folders: use a path below /mnt/user-data/workspace, /mnt/user-data/uploads or /mnt/user-data/outputs
    ");
}

#[tokio::test]
async fn a_folder_of_ignored_names_is_not_called_empty() {
    let f = Fixture::new();
    let ls = || f.say(Ls::new(0), json!({"path": "/mnt/user-data/workspace"}));
    f.put("workspace/target/x", "x");
    assert_eq!(
        ls().await,
        "(nothing to show: one name is left out, such as target)"
    );
    f.put("workspace/b.tmp", "x");
    assert_eq!(
        ls().await,
        "(nothing to show: 2 names are left out, such as b.tmp)"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn a_name_cannot_pass_for_two_lines_of_a_list() {
    let f = Fixture::new();
    f.put("uploads/a\nb\u{202e}c.md", "x");
    assert_eq!(
        f.say(Ls::new(0), json!({"path": "/mnt/user-data/uploads"}))
            .await,
        r"/mnt/user-data/uploads/a\nb\u{202e}c.md"
    );
}

#[tokio::test]
async fn lines_of_a_file_of_any_size_can_be_read() {
    let f = Fixture::new();
    let path = "/mnt/user-data/uploads/big";
    f.put("uploads/big", "line\r\n".repeat(4_000_000) + "end");
    let read = async |args: Value| {
        let Value::Object(mut args) = args else {
            return String::new();
        };
        args.insert("path".to_owned(), json!(path));
        f.say(ReadFile::new(0), Value::Object(args)).await
    };
    let lines = [
        read(json!({"start_line": 2, "end_line": 3})).await,
        read(json!({"start_line": 4_000_001})).await,
        read(json!({"start_line": 4_000_002})).await,
        read(json!({})).await,
        read(json!({"start_line": 2})).await,
    ];
    insta::assert_snapshot!(lines.join("\n"), @"
    line
    line
    end
    (start_line exceeds file length: the file has 4000001 lines)
    error: `/mnt/user-data/uploads/big` is larger than 16 MiB: read it in parts, with start_line and end_line
    error: these lines of `/mnt/user-data/uploads/big` are larger than 16 MiB: read fewer at once
    ");
}

#[tokio::test]
async fn a_long_text_is_cut_and_says_so() {
    let f = Fixture::new();
    f.put("outputs/long.md", "长".repeat(81_921));
    let text = f
        .say(
            ReadFile::new(50_000),
            json!({"path": "/mnt/user-data/outputs/long.md"}),
        )
        .await;
    assert_eq!(text.chars().count(), 50_000);
    let end: String = text.trim_start_matches('长').to_owned();
    insta::assert_snapshot!(end, @"... [truncated: showing first 49894 of 81921 chars. Use start_line/end_line to read a specific range] ...");
}
