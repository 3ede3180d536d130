//! Storage and loading grow with what was written, not with its square.

use crate::kit::{advance, append, namespace, open, root, set, wait};
use std::path::Path;
use tine_engine::Value;
use tine_engine::channel::Effect;
use tine_engine::checkpoint::Checkpointer;
use tine_engine::world::Id;

/// What a step does.
type Change<'a> = &'a dyn Fn(usize) -> Effect;

struct Stored {
    bytes: i64,
    snapshots: i64,
    /// Rows that loading the newest checkpoint reads.
    tail: i64,
}

/// Writes one change a step to one channel, and measures what is stored.
fn write(path: &Path, first: Value, steps: usize, change: impl Fn(usize) -> Effect) -> Stored {
    let store = open(path);
    wait(async {
        let writer = store.open(&root("t").thread).await.unwrap();
        let start = advance(1, None, &[("c", set(first))]);
        writer.advance(&namespace(""), start).await.unwrap();
        for step in 1..=steps {
            let id = step as u128 + 1;
            let stored = advance(id, Some(id - 1), &[("c", vec![change(step)])]);
            writer.advance(&namespace(""), stored).await.unwrap();
        }
    });
    let database = rusqlite::Connection::open(path).unwrap();
    let one = |sql: &str| {
        database
            .query_row(sql, [], |row| row.get::<_, i64>(0))
            .unwrap()
    };
    Stored {
        bytes: one("SELECT sum(length(effects) + coalesce(length(snapshot), 0)) FROM effect"),
        snapshots: one("SELECT count(snapshot) FROM effect"),
        tail: one("SELECT count(*) FROM effect
             WHERE number >= (SELECT max(number) FROM effect WHERE whole OR snapshot IS NOT NULL)"),
    }
}

#[test]
fn ten_thousand_appends_are_stored_about_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("threads.db");
    let item = |step: usize| Value::from(format!("{step:0>100}"));
    let stored = write(&path, Value::list(), 10_000, |step| {
        Effect::Append(item(step))
    });
    let value = 10_000 * 103;
    assert_eq!(stored.snapshots, 6);
    assert!(stored.bytes < 3 * value, "{}", stored.bytes);
    assert!(stored.tail <= 5_000, "{}", stored.tail);

    let store = open(&path);
    wait(async {
        let scope = root("t");
        let newest = store.load(&scope, None).await.unwrap().unwrap();
        let list = newest.values["c"].as_list().unwrap();
        assert_eq!(list.len(), 10_000);
        assert!(
            (1..)
                .zip(list.iter())
                .all(|(step, found)| *found == item(step))
        );
        let middle = store.load(&scope, Some(Id(5_001))).await.unwrap().unwrap();
        assert_eq!(middle.values["c"].as_list().unwrap().len(), 5_000);
        // Quadratic work would take minutes here.
        let history = store.history(&scope, None, None).await.unwrap();
        assert_eq!(history.len(), 10_001);
        assert_eq!(history[0], newest);
        assert_eq!(history[5_000], middle);
        let few = store
            .history(&scope, Some(Id(5_002)), Some(3))
            .await
            .unwrap();
        assert_eq!(few, history[5_000..5_003]);
    });
}

#[test]
fn storage_is_linear_in_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let text = |step: usize| Value::from(format!("{step:0>200}"));
    let list = Value::from((0..50).map(text).collect::<Vec<_>>());
    let map = Value::from_pairs((0..50).map(|key| (key.to_string(), text(key))));
    let cases: [(&str, Value, Change<'_>); 4] = [
        ("appends", Value::list(), &|step| Effect::Append(text(step))),
        ("replacements", list, &|step| {
            Effect::Replace(step * 7 % 50, text(step))
        }),
        ("entries", map, &|step| {
            Effect::Put((step * 7 % 50).to_string().into(), text(step))
        }),
        ("wholes", Value::Null, &|step| Effect::Set(text(step))),
    ];
    for (name, first, change) in cases {
        let mut bytes = [0; 2];
        for (at, steps) in [(0, 500), (1, 4_000)] {
            let path = folder.path().join(format!("{name}{steps}.db"));
            let stored = write(&path, first.clone(), steps, change);
            let written = (steps * 203) as i64 + 50 * 210;
            assert!(
                stored.bytes < 4 * written,
                "{name}: {} of {written}",
                stored.bytes
            );
            assert!(
                stored.tail <= 2_000.min(steps as i64),
                "{name}: {}",
                stored.tail
            );
            bytes[at] = stored.bytes;
        }
        assert!(bytes[1] < 12 * bytes[0], "{name}: {bytes:?}");
    }
}

#[test]
fn a_step_that_changes_nothing_costs_the_same_in_a_large_thread() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("threads.db");
    let store = open(&path);
    wait(async {
        let writer = store.open(&root("t").thread).await.unwrap();
        let channels: Vec<String> = (0..200).map(|at| format!("channel{at}")).collect();
        let all: Vec<_> = channels
            .iter()
            .map(|name| (name.as_str(), set("x".repeat(1_000))))
            .collect();
        writer
            .advance(&namespace(""), advance(1, None, &all))
            .await
            .unwrap();
        writer
            .advance(&namespace(""), advance(2, Some(1), &[]))
            .await
            .unwrap();
        writer
            .advance(&namespace(""), advance(3, Some(2), &[("list", append(1))]))
            .await
            .unwrap_err();
        writer
            .advance(&namespace(""), advance(3, Some(2), &[("n", set(1))]))
            .await
            .unwrap();
    });
    let database = rusqlite::Connection::open(&path).unwrap();
    let effects: i64 = database
        .query_row(
            "SELECT sum(effects) FROM checkpoint WHERE sequence > 0",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(effects, 1);
}
