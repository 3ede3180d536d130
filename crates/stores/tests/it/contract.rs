//! What every [`Checkpointer`] must do. Threads of other tests may be in it; each part uses threads of its own.

use crate::json_files::JsonFiles;
use crate::kit::{advance, append, done, namespace, newest, root, set, sqlite, wait};
use serde_json::json;
use std::collections::BTreeMap;
use tine_engine::channel::Effect;
use tine_engine::checkpoint::{
    CallRecord, CallState, Checkpoint, Checkpointer, PlannedTask, Record, RecordKey, RecordKind,
    RecordOp, Scope, Source, ThreadKey,
};
use tine_engine::command::{Dispatch, Op, Target, Write};
use tine_engine::event::ChannelWrite;
use tine_engine::interrupt::{Interrupt, InterruptId, Slot};
use tine_engine::world::Id;
use tine_engine::{MemoryCheckpointer, RunError, Spend, StoreError, Timestamp, Value};

/// Checks all of it.
pub(crate) async fn check(store: &dyn Checkpointer) {
    nothing_is_there_at_first(store).await;
    checkpoints_load_as_they_were_stored(store).await;
    values_follow_the_line_of_ancestors(store).await;
    every_effect_is_replayed(store).await;
    an_unknown_parent_is_refused(store).await;
    records_keep_their_order(store).await;
    records_of_every_kind_come_back(store).await;
    a_child_checkpoint_drops_what_was_done(store).await;
    history_is_newest_first(store).await;
    namespaces_are_separate(store).await;
    tenants_are_separate(store).await;
    ids_are_any_text(store).await;
    threads_are_listed_newest_first(store).await;
    notes_are_merged(store).await;
    a_thread_has_one_writer(store).await;
    deleting_takes_everything(store).await;
    a_thread_can_be_read_as_it_was_stored(store).await;
    a_thread_can_be_renamed(store).await;
}

#[test]
fn memory_keeps_the_contract() {
    wait(check(&MemoryCheckpointer::new()));
    wait(a_writer_can_be_asked_to_stop(&MemoryCheckpointer::new()));
}

#[test]
fn sqlite_keeps_the_contract() {
    let (_folder, store) = sqlite();
    wait(check(&store));
    wait(a_writer_can_be_asked_to_stop(&store));
}

#[test]
fn the_example_of_a_checkpointer_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    wait(check(&JsonFiles::new(folder.path()).unwrap()));
}

async fn nothing_is_there_at_first(store: &dyn Checkpointer) {
    let scope = root("nothing");
    assert_eq!(store.load(&scope, None).await.unwrap(), None);
    assert_eq!(store.load(&scope, Some(Id(1))).await.unwrap(), None);
    assert_eq!(store.history(&scope, None, None).await.unwrap(), []);
    assert_eq!(store.thread(&scope.thread).await.unwrap(), None);
    assert!(!store.delete(&scope.thread).await.unwrap());
    let writer = store.open(&scope.thread).await.unwrap();
    assert_eq!(store.load(&scope, None).await.unwrap(), None);
    let record = writer.record(&scope.namespace, Id(1), vec![RecordOp::Put(done("a"))]);
    assert_eq!(
        record.await.unwrap_err(),
        StoreError::UnknownCheckpoint {
            thread: "nothing".into(),
            id: Id(1).to_string()
        }
    );
    drop(writer);
    // Opened and never stored.
    assert!(!store.delete(&scope.thread).await.unwrap());
}

async fn checkpoints_load_as_they_were_stored(store: &dyn Checkpointer) {
    let scope = root("whole");
    let writer = store.open(&scope.thread).await.unwrap();
    let mut stored = advance(1, None, &[("text", set("a")), ("none", set(Value::Null))]);
    stored.step = -1;
    stored.created = Timestamp(u64::MAX);
    stored.source = Source::Update;
    stored.run = Id(u128::MAX);
    stored.invocation = Some(Id(1));
    let write = |write| ChannelWrite {
        channel: "c".into(),
        write,
    };
    stored.next = vec![
        PlannedTask::Start {
            writes: vec![
                write(Write::Value(0.1.to_string().into())),
                write(Write::Overwrite(Value::Null)),
                write(Write::Ops(vec![Op::Add(1.into()), Op::Clear])),
            ],
            goto: vec![Target::End, Target::Node("n".into())],
        },
        PlannedTask::Node("n".into()),
        PlannedTask::Dispatch(Dispatch {
            node: "m".into(),
            input: Value::from_json(json!({"x": [1.5, null]})),
        }),
    ];
    stored.joins = BTreeMap::from([("j".into(), vec!["a".into(), "b".into()])]);
    stored.deferred = vec!["d".into()];
    stored.ran = vec!["r".into(), "s".into()];
    stored.records = ["first", "second"]
        .map(|task| Record {
            task: task.into(),
            kind: RecordKind::Paused,
        })
        .into();
    let expected = Checkpoint::advanced(BTreeMap::new(), stored.clone()).unwrap();
    writer.advance(&scope.namespace, stored).await.unwrap();
    for id in [None, Some(Id(1))] {
        let loaded = store.load(&scope, id).await.unwrap().unwrap();
        assert_eq!(loaded, expected);
    }
    assert_eq!(store.history(&scope, None, None).await.unwrap(), [expected]);
    assert_eq!(store.load(&scope, Some(Id(2))).await.unwrap(), None);
}

async fn values_follow_the_line_of_ancestors(store: &dyn Checkpointer) {
    let scope = root("forks");
    let writer = store.open(&scope.thread).await.unwrap();
    for stored in [
        advance(1, None, &[("list", set(Value::list())), ("n", set(1))]),
        advance(2, Some(1), &[("list", append("b"))]),
        advance(3, Some(2), &[("list", append("c")), ("n", set(3))]),
        // Three ways on from 2, one of them from a fork of it; then the first branch goes on.
        advance(4, Some(2), &[("list", append("d"))]),
        advance(5, Some(2), &[("list", append("e")), ("late", set(true))]),
        advance(6, Some(4), &[("list", append("f"))]),
        advance(7, Some(3), &[("list", append("g"))]),
        advance(8, Some(4), &[("n", vec![Effect::Unset])]),
        // Another beginning.
        advance(9, None, &[("n", set(9))]),
        advance(10, Some(8), &[("list", append("j"))]),
    ] {
        writer.advance(&scope.namespace, stored).await.unwrap();
    }
    let expected = [
        (1, json!({"list": [], "n": 1})),
        (2, json!({"list": ["b"], "n": 1})),
        (3, json!({"list": ["b", "c"], "n": 3})),
        (4, json!({"list": ["b", "d"], "n": 1})),
        (5, json!({"list": ["b", "e"], "n": 1, "late": true})),
        (6, json!({"list": ["b", "d", "f"], "n": 1})),
        (7, json!({"list": ["b", "c", "g"], "n": 3})),
        (8, json!({"list": ["b", "d"]})),
        (9, json!({"n": 9})),
        (10, json!({"list": ["b", "d", "j"]})),
    ];
    let history = store.history(&scope, None, None).await.unwrap();
    for (id, values) in expected {
        let loaded = store.load(&scope, Some(Id(id))).await.unwrap().unwrap();
        assert_eq!(Value::from(loaded.values.clone()).to_json(), values, "{id}");
        assert_eq!(loaded, history[10 - id as usize], "{id}");
    }
}

async fn every_effect_is_replayed(store: &dyn Checkpointer) {
    let scope = root("effects");
    let writer = store.open(&scope.thread).await.unwrap();
    let steps: [(&str, Vec<Effect>, serde_json::Value); 12] = [
        ("list", set(Value::list()), json!([])),
        ("list", append(1), json!([1])),
        ("list", [append(2), append(3)].concat(), json!([1, 2, 3])),
        ("list", vec![Effect::Replace(0, 0.into())], json!([0, 2, 3])),
        ("list", vec![Effect::Remove(1)], json!([0, 3])),
        (
            "list",
            vec![
                Effect::Append(4.into()),
                Effect::Set(Value::list()),
                Effect::Append(5.into()),
            ],
            json!([5]),
        ),
        ("map", set(Value::map()), json!({})),
        (
            "map",
            vec![Effect::Put("k\0".into(), 1.into())],
            json!({"k\0": 1}),
        ),
        (
            "map",
            vec![
                Effect::Put("k\0".into(), 2.into()),
                Effect::Put("".into(), Value::Null),
            ],
            json!({"k\0": 2, "": null}),
        ),
        (
            "map",
            vec![Effect::RemoveKey("k\0".into())],
            json!({"": null}),
        ),
        ("map", set("no map any more"), json!("no map any more")),
        (
            "map",
            set(f64::MIN_POSITIVE.to_string()),
            json!(f64::MIN_POSITIVE.to_string()),
        ),
    ];
    for (id, (channel, effects, expected)) in (1..).zip(steps) {
        let stored = advance(id, (id > 1).then(|| id - 1), &[(channel, effects)]);
        writer.advance(&scope.namespace, stored).await.unwrap();
        let found = newest(store, &scope, channel).await.unwrap();
        assert_eq!(found, Value::from_json(expected).to_string());
    }
    let stored = advance(13, Some(12), &[("map", vec![Effect::Unset])]);
    writer.advance(&scope.namespace, stored).await.unwrap();
    assert_eq!(newest(store, &scope, "map").await, None);
    assert_eq!(newest(store, &scope, "list").await.unwrap(), "[5]");
}

async fn an_unknown_parent_is_refused(store: &dyn Checkpointer) {
    let scope = root("orphan");
    let writer = store.open(&scope.thread).await.unwrap();
    let first = advance(1, None, &[("n", set(1))]);
    writer.advance(&scope.namespace, first).await.unwrap();
    let orphan = advance(3, Some(2), &[("n", set(3))]);
    let refused = writer.advance(&scope.namespace, orphan).await.unwrap_err();
    let id = Id(2).to_string();
    assert!(
        matches!(&refused, StoreError::UnknownCheckpoint { id: unknown, .. } if *unknown == id),
        "{refused}"
    );
    let newest = store.load(&scope, None).await.unwrap().unwrap();
    assert_eq!(newest.id, Id(1));
}

async fn records_keep_their_order(store: &dyn Checkpointer) {
    let scope = root("records");
    let writer = store.open(&scope.thread).await.unwrap();
    let first = advance(1, None, &[]);
    writer.advance(&scope.namespace, first).await.unwrap();
    let call = |task: &str, key: &str, result: Option<i32>| Record {
        task: task.into(),
        kind: RecordKind::Call(CallRecord {
            key: key.into(),
            input: u64::MAX,
            times: 1,
            carried: false,
            state: result.map_or(CallState::Started, |result| CallState::Done(result.into())),
        }),
    };
    let key = |record: Record| RecordOp::Remove(record.key());
    let put = RecordOp::Put;
    for ops in [
        vec![put(call("a", "1", None)), put(call("b", "1", None))],
        vec![put(call("a", "2", None)), put(done("b"))],
        vec![put(call("a", "1", Some(1)))],
        vec![key(done("b")), put(call("b", "1", Some(2)))],
        vec![
            put(done("b")),
            key(call("a", "2", None)),
            key(done("nobody")),
        ],
        vec![key(done("b")), put(done("a")), put(done("b"))],
        vec![],
    ] {
        writer.record(&scope.namespace, Id(1), ops).await.unwrap();
    }
    let loaded = store.load(&scope, None).await.unwrap().unwrap();
    assert_eq!(
        loaded.records,
        [
            call("a", "1", Some(1)),
            call("b", "1", Some(2)),
            done("a"),
            done("b")
        ]
    );
}

async fn records_of_every_kind_come_back(store: &dyn Checkpointer) {
    let scope = root("kinds");
    let writer = store.open(&scope.thread).await.unwrap();
    let first = advance(1, None, &[]);
    writer.advance(&scope.namespace, first).await.unwrap();
    let slot = |call: &str| Slot {
        epoch: 0,
        call: call.into(),
        ordinal: 3,
    };
    let interrupt = Interrupt {
        id: InterruptId::parse("0123456789abcdef0123456789abcdef").unwrap(),
        node: "outer/n".into(),
        payload: Value::from_json(json!({"question": "?", "of": 0.1})),
    };
    let kinds = [
        done("x").kind,
        RecordKind::Done {
            writes: vec![ChannelWrite {
                channel: "c".into(),
                write: Write::Overwrite(Value::from("\u{1F98C}\0")),
            }],
            targets: vec![Target::Dispatch(Dispatch {
                node: "n".into(),
                input: Value::Null,
            })],
            joins: vec!["j".into()],
        },
        RecordKind::Failed(RunError::from(StoreError::Fenced { thread: "t".into() })),
        RecordKind::Failed(RunError::StepLimit { limit: 3 }),
        RecordKind::Caught(RunError::Drained),
        RecordKind::Spent(Spend::tokens(u64::MAX)),
        RecordKind::Asked {
            slot: slot(""),
            interrupt,
        },
        RecordKind::Answered {
            slot: slot("call/1"),
            value: 0.1.to_string().into(),
        },
        RecordKind::Call(CallRecord {
            key: "k".into(),
            input: 1,
            times: 1,
            carried: false,
            state: CallState::Done(Value::Null),
        }),
        RecordKind::Command {
            id: Id(5),
            writes: Vec::new(),
            targets: vec![Target::End],
        },
    ];
    let records: Vec<Record> = (0..)
        .zip(kinds)
        .map(|(task, kind)| Record {
            task: format!("{task}").into(),
            kind,
        })
        .collect();
    let ops = records.iter().cloned().map(RecordOp::Put).collect();
    writer.record(&scope.namespace, Id(1), ops).await.unwrap();
    let loaded = store.load(&scope, None).await.unwrap().unwrap();
    assert_eq!(loaded.records, records);
}

async fn a_child_checkpoint_drops_what_was_done(store: &dyn Checkpointer) {
    let scope = root("done");
    let writer = store.open(&scope.thread).await.unwrap();
    let first = advance(1, None, &[]);
    writer.advance(&scope.namespace, first).await.unwrap();
    let failed = Record {
        task: "b".into(),
        kind: RecordKind::Failed(RunError::Cancelled),
    };
    let ops = [done("a"), failed.clone(), done("c")];
    let ops = ops.into_iter().map(RecordOp::Put).collect();
    writer.record(&scope.namespace, Id(1), ops).await.unwrap();
    let second = advance(2, Some(1), &[]);
    writer.advance(&scope.namespace, second).await.unwrap();
    // Records can still come to an older checkpoint.
    let ops = vec![
        RecordOp::Put(done("late")),
        RecordOp::Remove(RecordKey {
            task: "nobody".into(),
            name: "done".to_owned(),
        }),
    ];
    writer.record(&scope.namespace, Id(1), ops).await.unwrap();
    let loaded = store.load(&scope, Some(Id(1))).await.unwrap().unwrap();
    assert_eq!(loaded.records, [failed, done("late")]);
    let loaded = store.load(&scope, None).await.unwrap().unwrap();
    assert_eq!(loaded.records, []);
}

async fn history_is_newest_first(store: &dyn Checkpointer) {
    let scope = root("history");
    let writer = store.open(&scope.thread).await.unwrap();
    for id in 1..=9 {
        let effects = if id == 1 {
            set(Value::list())
        } else {
            append(id as i64)
        };
        let stored = advance(id, (id > 1).then(|| id - 1), &[("list", effects)]);
        writer.advance(&scope.namespace, stored).await.unwrap();
    }
    let ids = async |before: Option<u128>, limit| {
        let found = store.history(&scope, before.map(Id), limit).await.unwrap();
        for checkpoint in &found {
            let items = checkpoint.values["list"].as_list().unwrap();
            assert_eq!(items.len() as u128, checkpoint.id.0 - 1);
        }
        found.iter().map(|it| it.id.0).collect::<Vec<_>>()
    };
    assert_eq!(ids(None, None).await, [9, 8, 7, 6, 5, 4, 3, 2, 1]);
    assert_eq!(ids(None, Some(2)).await, [9, 8]);
    assert_eq!(ids(None, Some(0)).await, [0_u128; 0]);
    assert_eq!(ids(None, Some(usize::MAX)).await.len(), 9);
    assert_eq!(ids(Some(8), Some(3)).await, [7, 6, 5]);
    assert_eq!(ids(Some(3), None).await, [2, 1]);
    assert_eq!(ids(Some(1), None).await, [0_u128; 0]);
    assert_eq!(ids(Some(77), None).await, [0_u128; 0]);
}

async fn namespaces_are_separate(store: &dyn Checkpointer) {
    let scope = |namespace: &str| Scope {
        namespace: namespace.into(),
        ..root("namespaces")
    };
    let writer = store.open(&root("namespaces").thread).await.unwrap();
    let names = ["", "/a", "/a/b", "\0", "/A"];
    for (place, name) in names.iter().enumerate() {
        let first = advance(1, None, &[("n", set(place))]);
        writer.advance(&namespace(name), first).await.unwrap();
    }
    let second = advance(2, Some(1), &[("n", set("second"))]);
    writer.advance(&namespace("/a"), second).await.unwrap();
    let ops = vec![RecordOp::Put(done("x"))];
    writer.record(&namespace("/a/b"), Id(1), ops).await.unwrap();
    for (place, name) in names.iter().enumerate() {
        let loaded = store
            .load(&scope(name), Some(Id(1)))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(loaded.values["n"], Value::from(place));
        assert_eq!(loaded.records.len(), usize::from(*name == "/a/b"));
    }
    assert_eq!(
        newest(store, &scope("/a"), "n").await.unwrap(),
        r#""second""#
    );
    assert_eq!(store.load(&scope("/b"), None).await.unwrap(), None);
    let info = store.thread(&root("namespaces").thread).await.unwrap();
    assert_eq!(info.unwrap().checkpoints, 1);
}

async fn tenants_are_separate(store: &dyn Checkpointer) {
    let key = |tenant: &str| ThreadKey {
        tenant: tenant.into(),
        thread: "same".into(),
    };
    let scope = |tenant| Scope::root(key(tenant));
    // All are held at once.
    let tenants = ["one", "two", "", "one\0"];
    let mut writers = Vec::new();
    for tenant in tenants {
        let writer = store.open(&key(tenant)).await.unwrap();
        let first = advance(1, None, &[("n", set(tenant))]);
        writer.advance(&namespace(""), first).await.unwrap();
        writers.push(writer);
    }
    drop(writers);
    for tenant in tenants {
        let loaded = store.load(&scope(tenant), None).await.unwrap().unwrap();
        assert_eq!(loaded.values["n"], Value::from(tenant));
        let listed = store.threads(tenant).await.unwrap();
        assert_eq!(listed.len(), 1);
        assert_eq!(listed[0].key, key(tenant));
    }
    assert!(store.delete(&key("one")).await.unwrap());
    assert_eq!(store.load(&scope("one"), None).await.unwrap(), None);
    assert!(store.load(&scope("two"), None).await.unwrap().is_some());
}

async fn ids_are_any_text(store: &dyn Checkpointer) {
    let long = "x".repeat(5_000);
    let ids = [
        "",
        "../../x",
        "/",
        "a\0b",
        "a\0c",
        "\u{1F98C}",
        "%00",
        "'; --",
        "A",
        "a",
        &long,
    ];
    let mut held = Vec::new();
    for id in ids {
        let scope = root(id);
        let writer = store.open(&scope.thread).await.unwrap();
        let text = format!("{id}\0\u{FFFF}\u{1F98C}");
        let first = advance(1, None, &[(id, set(text.as_str()))]);
        writer.advance(&scope.namespace, first).await.unwrap();
        held.push(writer);
        let loaded = store.load(&scope, None).await.unwrap().unwrap();
        assert_eq!(loaded.values[id], Value::from(text));
        assert_eq!(
            store.thread(&scope.thread).await.unwrap().unwrap().key,
            scope.thread
        );
    }
    drop(held);
    for id in ids {
        assert!(store.delete(&ThreadKey::local(id)).await.unwrap());
    }
}

async fn threads_are_listed_newest_first(store: &dyn Checkpointer) {
    let key = |thread: &str| ThreadKey {
        tenant: "lister".into(),
        thread: thread.into(),
    };
    for (thread, times) in [
        ("old", &[1, 2][..]),
        ("b", &[5, 9]),
        ("a", &[9]),
        ("new", &[3, 30, 31]),
    ] {
        let writer = store.open(&key(thread)).await.unwrap();
        for (id, time) in (1..).zip(times) {
            let mut stored = advance(id, (id > 1).then(|| id - 1), &[]);
            stored.created = Timestamp(*time);
            writer.advance(&namespace(""), stored).await.unwrap();
        }
    }
    // A thread without a checkpoint is none yet.
    drop(store.open(&key("empty")).await.unwrap());
    let listed = store.threads("lister").await.unwrap();
    let shown: Vec<_> = listed
        .iter()
        .map(|it| (&*it.key.thread, it.created.0, it.updated.0, it.checkpoints))
        .collect();
    assert_eq!(
        shown,
        [
            ("new", 3, 31, 3),
            ("a", 9, 9, 1),
            ("b", 5, 9, 2),
            ("old", 1, 2, 2)
        ]
    );
    assert_eq!(
        store.thread(&key("new")).await.unwrap().as_ref(),
        Some(&listed[0])
    );
    assert_eq!(store.thread(&key("empty")).await.unwrap(), None);
    assert_eq!(store.threads("nobody").await.unwrap(), []);
}

async fn notes_are_merged(store: &dyn Checkpointer) {
    let scope = root("notes");
    let writer = store.open(&scope.thread).await.unwrap();
    for notes in [
        json!({"graph": "a", "x": {"y": 1}}),
        json!({"graph": "\0b", "z": null}),
        json!({}),
    ] {
        let notes = Value::from_json(notes);
        writer.note(notes.as_map().unwrap().clone()).await.unwrap();
    }
    writer
        .advance(&scope.namespace, advance(1, None, &[]))
        .await
        .unwrap();
    let info = store.thread(&scope.thread).await.unwrap().unwrap();
    assert_eq!(
        Value::from(info.meta).to_json(),
        json!({"graph": "\0b", "x": {"y": 1}, "z": null})
    );
}

async fn a_thread_has_one_writer(store: &dyn Checkpointer) {
    let key = ThreadKey::local("held");
    let writer = store.open(&key).await.unwrap();
    writer
        .advance(&namespace(""), advance(1, None, &[]))
        .await
        .unwrap();
    for refused in [
        store.open(&key).await.map(drop),
        store.delete(&key).await.map(drop),
    ] {
        assert_eq!(
            refused.unwrap_err(),
            StoreError::Held {
                thread: "held".into(),
                holder: "another run of this process".to_owned()
            }
        );
    }
    // Neither reading nor another thread needs it.
    assert!(
        store
            .load(&Scope::root(key.clone()), None)
            .await
            .unwrap()
            .is_some()
    );
    drop(store.open(&ThreadKey::local("held ")).await.unwrap());
    drop(writer);
    let writer = store.open(&key).await.unwrap();
    writer
        .advance(&namespace(""), advance(2, Some(1), &[]))
        .await
        .unwrap();
}

async fn deleting_takes_everything(store: &dyn Checkpointer) {
    let scope = root("deleted");
    let child = Scope {
        namespace: "/child".into(),
        ..scope.clone()
    };
    for round in 0..2 {
        let writer = store.open(&scope.thread).await.unwrap();
        for scope in [&scope, &child] {
            let first = advance(1, None, &[("list", set(Value::list()))]);
            writer.advance(&scope.namespace, first).await.unwrap();
            let second = advance(2, Some(1), &[("list", append(round))]);
            writer.advance(&scope.namespace, second).await.unwrap();
            let ops = vec![RecordOp::Put(done("a"))];
            writer.record(&scope.namespace, Id(2), ops).await.unwrap();
            let list = newest(store, scope, "list").await.unwrap();
            assert_eq!(list, format!("[{round}]"));
        }
        drop(writer);
        assert!(store.delete(&scope.thread).await.unwrap());
        assert!(!store.delete(&scope.thread).await.unwrap());
        for scope in [&scope, &child] {
            assert_eq!(store.load(scope, None).await.unwrap(), None);
            assert_eq!(store.history(scope, None, None).await.unwrap(), []);
        }
        assert_eq!(store.thread(&scope.thread).await.unwrap(), None);
    }
}

async fn a_thread_can_be_read_as_it_was_stored(store: &dyn Checkpointer) {
    let scope = root("read");
    let child = Scope {
        namespace: "/child".into(),
        ..scope.clone()
    };
    assert_eq!(store.namespaces(&scope.thread).await.unwrap(), []);
    assert_eq!(store.advances(&scope, 0, None).await.unwrap(), []);
    let writer = store.open(&scope.thread).await.unwrap();
    let stored = [
        advance(1, None, &[("list", set(Value::list())), ("n", set(1))]),
        advance(2, Some(1), &[("list", append("b"))]),
        advance(3, Some(1), &[("n", vec![Effect::Unset])]),
        advance(4, Some(2), &[]),
    ];
    for stored in &stored {
        let stored = stored.clone();
        writer
            .advance(&child.namespace, stored.clone())
            .await
            .unwrap();
        writer.advance(&scope.namespace, stored).await.unwrap();
    }
    let paused = Record {
        task: "p".into(),
        kind: RecordKind::Paused,
    };
    let ops = [done("a"), paused.clone(), done("b")].map(RecordOp::Put);
    writer
        .record(&scope.namespace, Id(4), ops.into())
        .await
        .unwrap();
    let spaces = store.namespaces(&scope.thread).await.unwrap();
    assert_eq!(spaces, [namespace(""), namespace("/child")]);
    assert_eq!(store.advances(&child, 0, None).await.unwrap(), stored);
    for (from, limit, expected) in [(1, Some(2), 1..3), (3, Some(9), 3..4), (9, None, 4..4)] {
        let some = store.advances(&child, from, limit).await.unwrap();
        assert_eq!(some, stored[expected]);
    }
    let last = store.advances(&scope, 3, Some(1)).await.unwrap();
    assert_eq!(last[0].records, [done("a"), paused.clone(), done("b")]);
    // What had finished is in the child.
    writer
        .advance(&scope.namespace, advance(5, Some(4), &[]))
        .await
        .unwrap();
    let last = store.advances(&scope, 3, Some(1)).await.unwrap();
    assert_eq!(last[0].records, [paused]);
}

async fn a_writer_can_be_asked_to_stop(store: &dyn Checkpointer) {
    let thread = root("asked").thread;
    assert_eq!(store.ask_to_stop(&thread).await.unwrap(), None);
    let writer = store.open(&thread).await.unwrap();
    assert!(!store.is_asked_to_stop(&thread).await.unwrap());
    let holder = store.ask_to_stop(&thread).await.unwrap();
    assert_eq!(holder.as_deref(), Some("another run of this process"));
    assert!(store.is_asked_to_stop(&thread).await.unwrap());
    let holder = holder.unwrap();
    for (holder, expected) in [(&*holder, true), ("somebody else", false)] {
        let again = store.ask_again_to_stop(&thread, holder).await;
        assert_eq!(again.unwrap(), expected);
    }
    assert!(!store.is_asked_to_stop(&root("other").thread).await.unwrap());
    drop(writer);
    assert_eq!(store.ask_to_stop(&thread).await.unwrap(), None);
    let again = store.ask_again_to_stop(&thread, &holder).await;
    assert!(!again.unwrap());
    assert!(!store.is_asked_to_stop(&thread).await.unwrap());
    let _next = store.open(&thread).await.unwrap();
    assert!(!store.is_asked_to_stop(&thread).await.unwrap());
}

async fn a_thread_can_be_renamed(store: &dyn Checkpointer) {
    let (old, new, taken) = (root("old"), root("new"), root("taken"));
    assert!(!store.rename(&old.thread, &new.thread).await.unwrap());
    for scope in [&old, &taken] {
        let writer = store.open(&scope.thread).await.unwrap();
        let stored = advance(1, None, &[("n", set(1))]);
        writer
            .advance(&scope.namespace, stored.clone())
            .await
            .unwrap();
        writer.advance(&namespace("/child"), stored).await.unwrap();
        let notes = [("note".into(), Value::from("kept"))].into();
        writer.note(notes).await.unwrap();
        // Whoever has one of them keeps it.
        for (from, to) in [(&old, &new), (&new, &old)] {
            if scope.thread == old.thread {
                let error = store.rename(&from.thread, &to.thread).await.unwrap_err();
                assert!(matches!(error, StoreError::Held { .. }), "{error}");
            }
        }
    }
    let error = store.rename(&old.thread, &taken.thread).await.unwrap_err();
    assert_eq!(error.to_string(), "there is a thread `taken` already");
    // One that was opened and never stored is none.
    drop(store.open(&new.thread).await.unwrap());
    assert!(store.rename(&old.thread, &new.thread).await.unwrap());
    assert_eq!(store.thread(&old.thread).await.unwrap(), None);
    assert_eq!(store.load(&old, None).await.unwrap(), None);
    let info = store.thread(&new.thread).await.unwrap().unwrap();
    assert_eq!((info.key, info.checkpoints), (new.thread.clone(), 1));
    assert_eq!(info.meta["note"], Value::from("kept"));
    let spaces = store.namespaces(&new.thread).await.unwrap();
    assert_eq!(spaces, [namespace(""), namespace("/child")]);
    let writer = store.open(&new.thread).await.unwrap();
    writer
        .advance(&new.namespace, advance(2, Some(1), &[("n", set(2))]))
        .await
        .unwrap();
    assert_eq!(newest(store, &new, "n").await.as_deref(), Some("2"));
}
