//! Threads as files, from and to any store.

use crate::json_files::JsonFiles;
use crate::kit::{advance, append, done, namespace, root, set, sqlite, wait};
use serde_json::json;
use tine_engine::channel::Effect;
use tine_engine::checkpoint::{Checkpointer, Record, RecordKind, RecordOp, Scope, ThreadKey};
use tine_engine::world::Id;
use tine_engine::{MemoryCheckpointer, Value};
use tine_stores::archive::{
    ArchiveError, ArchiveReader, ArchiveWriter, Entry, FileEntry, restore, staged_as,
};

/// As deep as SQLite stores a value.
const DEEP: usize = 252;

/// A thread with branches, records, a child graph and all that can be in a value.
async fn thread(store: &dyn Checkpointer, name: &str, depth: usize) -> ThreadKey {
    let scope = root(name);
    let writer = store.open(&scope.thread).await.unwrap();
    let deep = (0..depth).fold(Value::from(1), |inner, _| Value::from(vec![inner]));
    let odd = json!({"": null, "\u{0}\u{1F98C}": [0.1, -0.0, 1.0, 5e-324, i64::MIN, u64::MAX]});
    for stored in [
        advance(1, None, &[("list", set(Value::list())), ("n", set(1))]),
        advance(
            2,
            Some(1),
            &[("list", append("b")), ("odd", set(Value::from_json(odd)))],
        ),
        advance(
            3,
            Some(1),
            &[("list", append("c")), ("n", vec![Effect::Unset])],
        ),
        advance(4, Some(2), &[("deep", set(deep)), ("none", vec![])]),
        advance(5, None, &[]),
        advance(
            6,
            Some(4),
            &[(
                "list",
                [append("x"), set(Value::list()), append("y")].concat(),
            )],
        ),
    ] {
        writer.advance(&scope.namespace, stored).await.unwrap();
    }
    let child = namespace("/child|1");
    writer
        .advance(&child, advance(1, None, &[("n", set(1))]))
        .await
        .unwrap();
    let paused = Record {
        task: "p".into(),
        kind: RecordKind::Paused,
    };
    for (at, records) in [
        (4, vec![paused.clone()]),
        (6, vec![done("b"), paused, done("a")]),
    ] {
        let ops = records.into_iter().map(RecordOp::Put).collect();
        writer.record(&scope.namespace, Id(at), ops).await.unwrap();
    }
    let notes = [
        ("graph".into(), Value::from("g.yaml")),
        ("x".into(), Value::Null),
    ]
    .into();
    writer.note(notes).await.unwrap();
    scope.thread
}

fn files() -> Vec<(&'static str, bool, Vec<u8>)> {
    // One whose letters would be cut in two, and one that is text and then is not.
    let long = format!("x{}", "文".repeat(40_000)).into_bytes();
    let mixed = [&b"text ".repeat(20_000)[..], &[0xff, 0xfe], "文".as_bytes()].concat();
    vec![
        ("outputs/empty.md", false, vec![]),
        ("outputs/long.md", false, long),
        (
            "workspace/half",
            false,
            "half a letter 文".as_bytes()[..15].to_vec(),
        ),
        ("workspace/mixed", true, mixed),
        ("workspace/sized", false, vec![b'a'; 48 << 10]),
    ]
}

async fn export(store: &dyn Checkpointer, key: &ThreadKey) -> Vec<u8> {
    let mut archive = ArchiveWriter::new(Vec::new(), key).unwrap();
    archive.thread(store, key).await.unwrap();
    archive.folder("uploads/empty").unwrap();
    for (path, executable, bytes) in files() {
        archive.file(path, executable, &mut &bytes[..]).unwrap();
    }
    archive.finish().unwrap()
}

async fn import(
    store: &dyn Checkpointer,
    archive: &[u8],
    to: &ThreadKey,
) -> Result<Vec<FileEntry>, ArchiveError> {
    let mut archive = ArchiveReader::open(archive)?;
    let mut found = Vec::new();
    let take = |file| {
        found.push(file);
        Ok(())
    };
    restore(store, to, || archive.next(), take)
        .await?
        .keep()
        .await?;
    Ok(found)
}

async fn check(from: &dyn Checkpointer, to: &dyn Checkpointer, depth: usize) {
    let key = thread(from, "t", depth).await;
    let whole = export(from, &key).await;
    let found = import(to, &whole, &key).await.unwrap();
    assert_eq!(
        export(to, &key).await,
        whole,
        "what was taken in is what was given"
    );
    for namespace in [namespace(""), namespace("/child|1")] {
        let thread = key.clone();
        let scope = Scope { thread, namespace };
        let histories = [from, to].map(|store| store.history(&scope, None, None));
        let [before, after] = histories;
        assert_eq!(before.await.unwrap(), after.await.unwrap());
    }
    let [before, after] = [from, to].map(|store| store.thread(&key));
    assert_eq!(before.await.unwrap(), after.await.unwrap());
    assert_eq!(to.thread(&staged_as(&key)).await.unwrap(), None);
    // The files, put together again.
    let mut joined: Vec<(String, bool, Vec<u8>)> = Vec::new();
    for file in found {
        match file {
            FileEntry::Folder { path } => assert_eq!(path, "uploads/empty"),
            FileEntry::Part {
                path,
                at: 0,
                executable,
                bytes,
            } => joined.push((path, executable, bytes)),
            FileEntry::Part {
                path, at, bytes, ..
            } => {
                let last = joined.last_mut().unwrap();
                assert_eq!((&last.0, last.2.len() as u64), (&path, at));
                last.2.extend(bytes);
            }
        }
    }
    let expected = files().into_iter();
    let expected: Vec<_> = expected
        .map(|(path, run, bytes)| (path.to_owned(), run, bytes))
        .collect();
    assert_eq!(joined, expected);
    // Under another name, and not over a thread that is there.
    let refused = import(to, &whole, &key).await.unwrap_err();
    assert_eq!(refused.to_string(), "there is a thread `t` already");
    let other = ThreadKey::local("other");
    import(to, &whole, &other).await.unwrap();
    let again = String::from_utf8(export(to, &other).await).unwrap();
    let (head, rest) = again.split_once('\n').unwrap();
    assert!(head.contains(r#""thread":"other""#), "{head}");
    let whole = String::from_utf8(whole).unwrap();
    let body = |text: &str| text[..text.rfind("{\"end\"").unwrap()].to_owned();
    assert_eq!(body(rest), body(whole.split_once('\n').unwrap().1));
}

#[test]
fn a_thread_goes_from_any_store_to_any() {
    let (_folder, sql) = sqlite();
    wait(check(&sql, &MemoryCheckpointer::new(), DEEP));
    let (_folder, sql) = sqlite();
    wait(check(&MemoryCheckpointer::new(), &sql, DEEP));
    let (_folder, sql) = sqlite();
    let folder = tempfile::tempdir().unwrap();
    // The example reads no deeper than JSON that comes from outside.
    wait(check(&sql, &JsonFiles::new(folder.path()).unwrap(), 100));
    let (_folder, sql) = sqlite();
    let folder = tempfile::tempdir().unwrap();
    wait(check(&JsonFiles::new(folder.path()).unwrap(), &sql, 100));
}

#[test]
fn what_is_damaged_leaves_nothing() {
    wait(async {
        let store = MemoryCheckpointer::new();
        let key = thread(&store, "t", DEEP).await;
        let whole = export(&store, &key).await;
        let (_folder, other) = sqlite();
        let refused = async |bytes: &[u8]| -> String {
            let error = import(&other, bytes, &key).await.unwrap_err();
            assert_eq!(other.threads(ThreadKey::LOCAL).await.unwrap(), []);
            assert_eq!(other.thread(&staged_as(&key)).await.unwrap(), None);
            error.to_string()
        };
        // Cut off after any line, and in the middle of any.
        let ends = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let ends: Vec<usize> = ends.map(|(at, _)| at + 1).collect();
        for (lines, end) in ends[..ends.len() - 1].iter().enumerate() {
            let told = format!("it is cut off after line {}", lines + 1);
            assert_eq!(refused(&whole[..*end]).await, told);
            assert_eq!(refused(&whole[..*end + 9]).await, told);
        }
        // A bit here and there.
        for at in (0..whole.len()).step_by(whole.len() / 60) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            refused(&bytes).await;
        }
        let text = String::from_utf8(whole.clone()).unwrap();
        let swapped = text.replacen("\"text\":\"x", "\"text\":\"y", 1);
        assert_ne!(swapped, text);
        assert_eq!(
            refused(swapped.as_bytes()).await,
            "it was changed: its hash is not the one that it ends with"
        );
        let more = [&whole[..], b"\n"].concat();
        assert!(refused(&more).await.contains("comes after the end"));
    });
}

/// An archive of these lines, with the hash that they have.
fn sealed(lines: &[&str]) -> Vec<u8> {
    let head = r#"{"format":"tine thread","thread":{"tenant":"local","thread":"t"},"version":1}"#;
    let mut text = format!("{head}\n");
    for line in lines {
        text.push_str(line);
        text.push('\n');
    }
    let hash = blake3::hash(text.as_bytes()).to_hex();
    let end = json!({"end": {"blake3": hash.as_str(), "lines": lines.len() + 1}});
    format!("{text}{end}\n").into_bytes()
}

#[test]
fn what_is_hostile_is_told() {
    let (_folder, store) = sqlite();
    let checkpoint = |id: u128, parent: &str, effects: &str| {
        format!(
            r#"{{"checkpoint":{{"id":"{}","parent":{parent},"step":0,"source":"loop","created":0,"run":"{}","effects":{effects},"next":[]}},"graph":""}}"#,
            Id(id),
            Id(7)
        )
    };
    let first = checkpoint(1, "null", "[]");
    let deep = checkpoint(
        1,
        "null",
        &format!(
            r#"[{{"channel":"a","effects":[{{"set":{}{}}}]}}]"#,
            "[".repeat(100_000),
            "]".repeat(100_000)
        ),
    );
    let orphan = checkpoint(2, &format!("\"{}\"", Id(9)), "[]");
    let misfit = checkpoint(
        1,
        "null",
        r#"[{"channel":"a","effects":[{"replace":[3,1]}]}]"#,
    );
    let newer = br#"{"format":"tine thread","version":2,"what":"ever"}"#;
    let head = sealed(&[]).iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let long = |begin: &str, length: usize| {
        let line = [begin.as_bytes(), &vec![b' '; length]].concat();
        [&sealed(&[])[..head], &line].concat()
    };
    let notes = format!(r#"{{"notes":{{"a":[{}0]}}}}"#, "0,".repeat(2 << 20));
    for (bytes, told) in [
        (vec![], "it is no archive of a thread: it is empty"),
        (
            b"SQLite format 3\0\xff".to_vec(),
            "it is no archive of a thread: it is not text",
        ),
        (
            b"hello\n".to_vec(),
            "it is no archive of a thread: its first line is not JSON",
        ),
        (
            b"{}\n".to_vec(),
            "it is no archive of a thread: its first line does not say so",
        ),
        (
            newer.to_vec(),
            "it is of version 2, and this program knows up to 1; use a newer program",
        ),
        (
            long(r#"{"checkpoint":"#, (64 << 20) + 10),
            "line 2 is longer than 67108864 bytes",
        ),
        (
            long("", (8 << 20) + 10),
            "line 2 is longer than 8388608 bytes",
        ),
        (
            long(r#"{"notes":"#, (8 << 20) + 10),
            "line 2 is longer than 8388608 bytes",
        ),
        (
            sealed(&[&notes, &first]),
            "line 2 has more than 2097152 values",
        ),
        (sealed(&[]), "there is no checkpoint in it"),
        (sealed(&[&first, "{}"]), "line 3 is damaged: it is no entry"),
        (
            sealed(&[&first, r#"{"folder":"a","file":"b"}"#]),
            "line 3 is damaged: it is no entry",
        ),
        (
            sealed(&[&first, r#"{"at":0,"file":"b"}"#]),
            "line 3 is damaged: it is no entry",
        ),
        (
            sealed(&[&first, r#"{"at":0,"file":"b","base64":"?"}"#]),
            "line 3 is damaged: its bytes are not base64",
        ),
        (
            sealed(&[&deep]),
            "line 2 is damaged: it is nested 100006 levels deep, and 264 can be stored",
        ),
        (
            sealed(&[&first, &orphan]),
            "thread `local/restoring/t` has no checkpoint `00000000-0000-0000-0000-000000000009`",
        ),
    ] {
        let error = wait(import(&store, &bytes, &ThreadKey::local("t"))).unwrap_err();
        assert_eq!(error.to_string(), told);
    }
    for bytes in [sealed(&[&misfit]), sealed(&[&first, r#"{"wat":1}"#])] {
        let error = wait(import(&store, &bytes, &ThreadKey::local("t"))).unwrap_err();
        assert!(error.to_string().contains("damaged"), "{error}");
    }
    assert_eq!(wait(store.threads(ThreadKey::LOCAL)).unwrap(), []);
    // What is well is taken in all the same, and what the caller refuses is not.
    let well = sealed(&[&first]);
    let mut archive = ArchiveReader::open(&well[..]).unwrap();
    assert_eq!(*archive.thread(), ThreadKey::local("t"));
    assert!(matches!(archive.next(), Ok(Some(Entry::Checkpoint { .. }))));
    assert!(matches!(archive.next(), Ok(None)));
    let key = ThreadKey::local("t");
    wait(import(&store, &well, &key)).unwrap();
    assert_eq!(wait(store.thread(&key)).unwrap().unwrap().checkpoints, 1);
}

#[test]
fn what_a_killed_restoring_left_is_cleared_away() {
    wait(async {
        let store = MemoryCheckpointer::new();
        let key = thread(&store, "t", DEEP).await;
        let whole = export(&store, &key).await;
        let (_folder, other) = sqlite();
        // Its process died before the thread had its name.
        let writer = other.open(&staged_as(&key)).await.unwrap();
        writer
            .advance(&namespace(""), advance(77, None, &[]))
            .await
            .unwrap();
        drop(writer);
        assert_eq!(other.threads(ThreadKey::LOCAL).await.unwrap(), []);
        import(&other, &whole, &key).await.unwrap();
        assert_eq!(export(&other, &key).await, whole);
    });
}
