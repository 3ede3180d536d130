//! Files that are not what they should be.

use crate::kit::{advance, append, namespace, open, root, set, wait};
use std::fs;
use std::path::Path;
use tine_engine::checkpoint::Checkpointer;
use tine_engine::{StoreError, Value};
use tine_stores::{SqliteCheckpointer, SqliteOptions};

fn refused(path: &Path) -> StoreError {
    SqliteCheckpointer::open(path, SqliteOptions::default()).unwrap_err()
}

/// A store with a thread of 300 checkpoints, closed.
fn filled(path: &Path) {
    let store = open(path);
    wait(async {
        let writer = store.open(&root("t").thread).await.unwrap();
        let first = advance(1, None, &[("list", set(Value::list()))]);
        writer.advance(&namespace(""), first).await.unwrap();
        for id in 2..=300 {
            let stored = advance(id, Some(id - 1), &[("list", append("x".repeat(500)))]);
            writer.advance(&namespace(""), stored).await.unwrap();
        }
    });
}

#[test]
fn a_new_file_and_its_folder_are_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b/threads.db");
    filled(&path);
    assert!(path.is_file());
    filled(&folder.path().join("other.db"));
    // An empty file is as good as none.
    let empty = folder.path().join("empty.db");
    fs::write(&empty, "").unwrap();
    filled(&empty);
}

#[test]
fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in [
        ("text.db", b"Dear diary, ".repeat(100)),
        ("short.db", b"x".to_vec()),
        ("note.db", vec![b'x'; 511]),
        ("zeros.db", vec![0; 4096]),
        (
            "half.db",
            [b"SQLite format 3\0".to_vec(), vec![0xff; 4080]].concat(),
        ),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, &content).unwrap();
        let error = refused(&path);
        let StoreError::Damaged { place, message } = &error else {
            panic!("{name}: {error}");
        };
        assert!(place.ends_with(name), "{error}");
        assert_eq!(message, "it is not a SQLite database", "{error}");
        assert_eq!(fs::read(&path).unwrap(), content);
    }
}

#[test]
fn the_database_of_another_program_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (name, sql) in [
        ("tables.db", "CREATE TABLE bookmark (url TEXT)"),
        ("version.db", "PRAGMA user_version = 1"),
        ("application.db", "PRAGMA application_id = 7"),
    ] {
        let path = folder.path().join(name);
        let other = rusqlite::Connection::open(&path).unwrap();
        other.execute_batch(sql).unwrap();
        drop(other);
        let before = fs::read(&path).unwrap();
        let error = refused(&path);
        assert!(
            error
                .to_string()
                .ends_with("is damaged: it is the database of another program"),
            "{error}"
        );
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}

#[test]
fn a_newer_schema_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("threads.db");
    filled(&path);
    let newer = rusqlite::Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    drop(newer);
    let error = refused(&path);
    assert_eq!(
        error.to_string(),
        format!(
            "{} has schema version 99, and this program knows up to 2; use a newer program",
            fs::canonicalize(&path).unwrap().display()
        )
    );
}

#[test]
fn a_truncated_file_is_an_error_and_never_less_data() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("threads.db");
    filled(&whole);
    let bytes = fs::read(&whole).unwrap();
    for part in 1..10 {
        let path = folder.path().join(format!("part{part}.db"));
        fs::write(&path, &bytes[..bytes.len() * part / 10]).unwrap();
        let opened = SqliteCheckpointer::open(&path, SqliteOptions::default());
        let loaded = opened.and_then(|store| wait(store.load(&root("t"), None)));
        let error = loaded.unwrap_err();
        assert!(
            matches!(error, StoreError::Damaged { .. }),
            "{part}: {error}"
        );
    }
}

#[test]
fn a_changed_row_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for (name, sql, expected) in [
        (
            "json",
            "UPDATE effect SET effects = '[{\"append\"' WHERE number = 290",
            "channel `list`: EOF",
        ),
        (
            "depth",
            "UPDATE effect SET effects = '['||hex(zeroblob(10))||replace(hex(zeroblob(50000)),'0','[') WHERE number = 290",
            "channel `list`: it is nested",
        ),
        (
            "effect",
            "UPDATE effect SET effects = '[{\"remove\":999}]' WHERE number = 290",
            "channel `list`: a stored change does not fit",
        ),
        (
            "tag",
            "UPDATE effect SET effects = '[{\"dream\":1}]' WHERE number = 290",
            "channel `list`: unknown variant `dream`",
        ),
        (
            "next",
            "UPDATE checkpoint SET next = '3' WHERE sequence = 299",
            "checkpoint `",
        ),
        (
            "source",
            "UPDATE checkpoint SET source = 'dream' WHERE sequence = 299",
            "it is of source `dream`",
        ),
        (
            "id",
            "UPDATE checkpoint SET id = x'00' WHERE sequence = 299",
            "is damaged",
        ),
        (
            "parent",
            "UPDATE checkpoint SET parent = 777777 WHERE sequence = 299",
            "its parent is missing",
        ),
        (
            "loop",
            "UPDATE checkpoint SET parent = 300 WHERE sequence = 0",
            "which is newer",
        ),
    ] {
        let path = folder.path().join(format!("{name}.db"));
        filled(&path);
        let other = rusqlite::Connection::open(&path).unwrap();
        other.execute_batch(sql).unwrap();
        drop(other);
        let Err(error) = wait(open(&path).load(&root("t"), None)) else {
            panic!("{name} was loaded");
        };
        assert!(
            matches!(error, StoreError::Damaged { .. }),
            "{name}: {error}"
        );
        let text = error.to_string();
        assert!(text.contains(expected), "{name}: {error}");
        assert!(text.contains(&format!("{name}.db")), "{name}: {error}");
    }
}

#[test]
fn a_place_that_can_not_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    for path in [
        folder.path().join("file/threads.db"),
        folder.path().to_owned(),
    ] {
        let error = refused(&path);
        let StoreError::Unavailable { place, message } = &error else {
            panic!("{error}");
        };
        assert!(place.contains(&*folder.path().to_string_lossy()), "{error}");
        assert!(!message.is_empty());
    }
}

#[test]
fn too_deep_a_value_is_refused_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("threads.db"));
    wait(async {
        let writer = store.open(&root("t").thread).await.unwrap();
        let first = advance(1, None, &[("n", set(1))]);
        writer.advance(&namespace(""), first).await.unwrap();
        let deep = (0..300).fold(Value::Null, |inner, _| vec![inner].into());
        let second = advance(2, Some(1), &[("n", set(2)), ("deep", set(deep))]);
        let error = writer.advance(&namespace(""), second).await.unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("channel `deep` can not be stored: it is nested 302 levels deep"),
            "{text}"
        );
        let newest = store.load(&root("t"), None).await.unwrap().unwrap();
        assert_eq!(newest.values["n"], Value::from(1));
        let second = advance(2, Some(1), &[("n", set(2))]);
        writer.advance(&namespace(""), second).await.unwrap();
    });
}
