//! Writers that come and go, and files that are copied under them.

use crate::kit::{advance, append, done, namespace, newest, open, root, set, sqlite, wait};
use std::fs;
use std::path::Path;
use std::sync::Barrier;
use std::time::Duration;
use tine_engine::checkpoint::{Checkpointer, RecordOp};
use tine_engine::world::Id;
use tine_engine::{StoreError, Value};
use tine_stores::{SqliteCheckpointer, SqliteOptions, Synchronous};

#[test]
fn a_store_opened_again_gives_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("threads.db");
    wait(async {
        for id in 1..=20 {
            // A store of its own for every step, with the one before still open.
            let before = open(&path);
            let store = open(&path);
            let writer = store.open(&root("t").thread).await.unwrap();
            let effects = if id == 1 {
                set(Value::list())
            } else {
                append(id as i64)
            };
            let stored = advance(id, (id > 1).then(|| id - 1), &[("list", effects)]);
            writer.advance(&namespace(""), stored).await.unwrap();
            let ops = vec![RecordOp::Put(done("a"))];
            writer.record(&namespace(""), Id(id), ops).await.unwrap();
            let history = store.history(&root("t"), None, None).await.unwrap();
            assert_eq!(history.len() as u128, id);
            assert_eq!(
                before.history(&root("t"), None, None).await.unwrap(),
                history
            );
            drop((writer, store, before));
            assert_eq!(
                open(&path).history(&root("t"), None, None).await.unwrap(),
                history
            );
        }
    });
}

#[test]
fn a_copy_taken_at_any_moment_is_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("threads.db");
    let store = SqliteCheckpointer::open(
        &path,
        SqliteOptions {
            synchronous: Synchronous::Full,
            ..SqliteOptions::default()
        },
    )
    .unwrap();
    wait(async {
        let writer = store.open(&root("t").thread).await.unwrap();
        for id in 1..=30_u128 {
            let effects = if id == 1 {
                set(Value::list())
            } else {
                append(id as i64)
            };
            let stored = advance(id, (id > 1).then(|| id - 1), &[("list", effects)]);
            writer.advance(&namespace(""), stored).await.unwrap();
            let ops = vec![RecordOp::Put(done("a"))];
            writer.record(&namespace(""), Id(id), ops).await.unwrap();
            // What a killed process leaves behind: the file and its log, never closed.
            let copy = folder.path().join(format!("copy{id}.db"));
            for end in ["", "-wal"] {
                let from = format!("{}{end}", path.display());
                fs::copy(from, format!("{}{end}", copy.display())).unwrap();
            }
            let expected = store.history(&root("t"), None, None).await.unwrap();
            let copy = open(&copy);
            assert_eq!(
                copy.history(&root("t"), None, None).await.unwrap(),
                expected
            );
            // And it goes on.
            let writer = copy.open(&root("t").thread).await.unwrap();
            let next = advance(id + 1, Some(id), &[("list", append("next"))]);
            writer.advance(&namespace(""), next).await.unwrap();
            let list = newest(&copy, &root("t"), "list").await.unwrap();
            assert!(list.ends_with(r#""next"]"#), "{list}");
        }
    });
}

/// A log cut anywhere gives a store with the first so many commits.
#[test]
fn a_torn_log_loses_whole_commits_at_its_end_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("threads.db");
    let store = open(&path);
    wait(async {
        let writer = store.open(&root("t").thread).await.unwrap();
        for id in 1..=10_u128 {
            let stored = advance(
                id,
                (id > 1).then(|| id - 1),
                &[("n", set(id as u64)), ("m", set(id as u64))],
            );
            writer.advance(&namespace(""), stored).await.unwrap();
        }
    });
    let log = fs::read(format!("{}-wal", path.display())).unwrap();
    let mut seen = Vec::new();
    for cut in (0..=log.len()).rev().step_by(4_999) {
        let copy = folder.path().join(format!("cut{cut}.db"));
        fs::copy(&path, &copy).unwrap();
        fs::write(format!("{}-wal", copy.display()), &log[..cut]).unwrap();
        // Cut before the schema was stored, it is a new store.
        let found = wait(open(&copy).load(&root("t"), None)).unwrap();
        if let Some(found) = &found {
            assert_eq!(found.values["n"], found.values["m"]);
            assert_eq!(found.values["n"], Value::from(found.id.0 as u64));
        }
        seen.push(found.map_or(0, |found| found.id.0));
    }
    assert_eq!(seen[0], 10);
    assert!(seen.is_sorted_by(|a, b| a >= b), "{seen:?}");
    assert!(seen.contains(&5) && seen.contains(&0), "{seen:?}");
}

#[test]
fn a_writer_that_lost_its_lock_is_shut_out() {
    let (folder, store) = sqlite();
    let scope = root("t");
    wait(async {
        let old = store.open(&scope.thread).await.unwrap();
        let first = advance(1, None, &[("n", set(1))]);
        old.advance(&scope.namespace, first).await.unwrap();
        for file in fs::read_dir(folder.path().join("threads.db.locks")).unwrap() {
            fs::remove_file(file.unwrap().path()).unwrap();
        }
        let other = open(&folder.path().join("threads.db"));
        let new = other.open(&scope.thread).await.unwrap();
        let fenced = StoreError::Fenced { thread: "t".into() };
        let second = advance(2, Some(1), &[("n", set("old"))]);
        let ops = vec![RecordOp::Put(done("old"))];
        assert_eq!(
            old.advance(&scope.namespace, second.clone()).await,
            Err(fenced.clone())
        );
        assert_eq!(
            old.record(&scope.namespace, Id(1), ops).await,
            Err(fenced.clone())
        );
        assert_eq!(old.note(Default::default()).await, Err(fenced.clone()));
        new.advance(&scope.namespace, second).await.unwrap();
        // The thread is deleted and made again: the old writer still has no part in it.
        drop(new);
        assert!(other.delete(&scope.thread).await.unwrap());
        let new = other.open(&scope.thread).await.unwrap();
        let first = advance(1, None, &[("n", set("again"))]);
        assert_eq!(
            old.advance(&scope.namespace, first.clone()).await,
            Err(fenced)
        );
        new.advance(&scope.namespace, first).await.unwrap();
        assert_eq!(newest(&store, &scope, "n").await.unwrap(), r#""again""#);
    });
}

#[test]
fn many_open_a_new_file_at_once() {
    for _ in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/threads.db");
        let start = Barrier::new(8);
        std::thread::scope(|scope| {
            for at in 0..8 {
                let (path, start) = (&path, &start);
                scope.spawn(move || {
                    start.wait();
                    let store = open(path);
                    wait(async {
                        let key = root(&format!("t{at}")).thread;
                        let writer = store.open(&key).await.unwrap();
                        for id in 1..=20_u128 {
                            let stored = advance(id, (id > 1).then(|| id - 1), &[("n", set(at))]);
                            writer.advance(&namespace(""), stored).await.unwrap();
                        }
                    });
                });
            }
        });
        let threads = wait(open(&path).threads("local")).unwrap();
        assert_eq!(
            threads.iter().map(|it| it.checkpoints).collect::<Vec<_>>(),
            [20; 8]
        );
    }
}

#[test]
fn a_busy_file_is_an_error_with_its_reason_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("threads.db");
    let options = SqliteOptions {
        busy_timeout: Duration::from_millis(20),
        ..SqliteOptions::default()
    };
    let store = SqliteCheckpointer::open(&path, options).unwrap();
    wait(async {
        let writer = store.open(&root("t").thread).await.unwrap();
        let first = advance(1, None, &[("list", set(Value::list()))]);
        writer.advance(&namespace(""), first).await.unwrap();
        let other = rusqlite::Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let second = advance(2, Some(1), &[("list", append(1))]);
        let error = writer
            .advance(&namespace(""), second.clone())
            .await
            .unwrap_err();
        assert!(matches!(&error, StoreError::Unavailable { .. }), "{error}");
        assert!(
            error
                .to_string()
                .contains("another process was writing to it"),
            "{error}"
        );
        // Reading waits for nobody.
        assert_eq!(newest(&store, &root("t"), "list").await.unwrap(), "[]");
        other.execute_batch("ROLLBACK").unwrap();
        writer.advance(&namespace(""), second).await.unwrap();
        assert_eq!(newest(&store, &root("t"), "list").await.unwrap(), "[1]");
    });
}

#[test]
fn opening_and_reading_wait_for_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("threads.db");
    let options = SqliteOptions {
        busy_timeout: Duration::ZERO,
        ..SqliteOptions::default()
    };
    let store = open(&path);
    wait(async {
        let writer = store.open(&root("t").thread).await.unwrap();
        let first = advance(1, None, &[("list", set(Value::list()))]);
        writer.advance(&namespace(""), first).await.unwrap();
        let other = rusqlite::Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let reader = SqliteCheckpointer::open(&path, options).unwrap();
        assert_eq!(newest(&reader, &root("t"), "list").await.unwrap(), "[]");
        assert_eq!(reader.threads("local").await.unwrap().len(), 1);
        other.execute_batch("ROLLBACK").unwrap();
    });
}

#[test]
fn a_link_to_the_file_is_the_file() {
    let (folder, store) = sqlite();
    let link: &Path = &folder.path().join("link.db");
    #[cfg(unix)]
    std::os::unix::fs::symlink(folder.path().join("threads.db"), link).unwrap();
    #[cfg(not(unix))]
    return;
    wait(async {
        let _writer = store.open(&root("t").thread).await.unwrap();
        let other = open(link);
        let refused = other.open(&root("t").thread).await.map(drop).unwrap_err();
        assert!(matches!(refused, StoreError::Held { .. }), "{refused}");
    });
}

#[test]
fn nothing_is_left_of_locks_that_were_let_go() {
    let (folder, store) = sqlite();
    wait(async {
        let writer = store.open(&root("../../x").thread).await.unwrap();
        writer
            .advance(&namespace(""), advance(1, None, &[]))
            .await
            .unwrap();
    });
    wait(store.delete(&root("../../x").thread)).unwrap();
    drop(store);
    let mut left: Vec<_> = fs::read_dir(folder.path().join("threads.db.locks"))
        .unwrap()
        .chain(fs::read_dir(folder.path()).unwrap())
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["open.lock", "threads.db", "threads.db.locks"]);
}
