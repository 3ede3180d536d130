//! The canonical text of a thread.

use crate::scene::{answer, block_on, input, thread};
use crate::spy::Spy;
use serde_json::json;
use std::sync::Arc;
use tine_engine::channel::append;
use tine_engine::checkpoint::{
    CallRecord, CallState, Checkpoint, Record, RecordKind, Source, export,
};
use tine_engine::run::Subgraph;
use tine_engine::value::Map;
use tine_engine::world::Id;
use tine_engine::{
    Graph, NodeCx, NodeError, RunOptions, Runner, START, SimWorld, Timestamp, Update, Value, World,
};

#[test]
fn a_thread_with_a_child_and_an_answer_reads_like_this() {
    let mut child = Graph::builder("child");
    child.channel("log", append::<String>());
    child.node("asks", |cx: NodeCx| async move {
        let answer = cx.interrupt("well?")?;
        Ok::<_, NodeError>(Update::new().set("log", answer))
    });
    child.edge(START, "asks");
    let mut graph = Graph::builder("g");
    graph.channel("log", append::<String>());
    graph.node("below", Subgraph::new(child.build().unwrap()));
    graph.edge(START, "below");
    let spy = Spy::default();
    let runner = Runner::new(graph.build().unwrap(), SimWorld::new(1))
        .with_checkpointer(Arc::new(spy.clone()));
    let key = thread();
    let run = |input| block_on(runner.invoke(&key, input, RunOptions::default())).unwrap();
    run(input(json!({"log": "begin"})));
    run(answer("yes"));
    insta::assert_snapshot!(spy.export(&key));
}

/// A float in both of its forms, keys in both orders, deep and wide.
fn value(world: &SimWorld, depth: u64, backwards: bool) -> Value {
    match world.random() % if depth == 0 { 6 } else { 8 } {
        0 => Value::Null,
        1 => world.random().is_multiple_of(2).into(),
        2 => (world.random() as i64).into(),
        3 => world.random().into(),
        4 => match world.random() % 4 {
            0 => Value::float(if backwards { 0.0 } else { -0.0 }).unwrap(),
            1 => Value::float((world.random() % 9) as f64).unwrap(),
            2 => Value::float(1e300).unwrap(),
            // Not just any: here numbers are read back by serde_json without its exact reading of floats.
            _ => Value::float(world.random() as i32 as f64 / 64.0).unwrap(),
        },
        5 => format!("{}\n\u{1F98C}\"", world.random() % 5).into(),
        6 => (0..world.random() % 4)
            .map(|_| value(world, depth - 1, backwards))
            .collect::<Vec<_>>()
            .into(),
        _ => {
            let keys = ["b", "a", "文", "\u{e000}", "\u{1F98C}", "B"];
            let many = world.random() as usize % keys.len();
            let mut entries: Vec<(&str, Value)> = keys[..many]
                .iter()
                .map(|key| (*key, value(world, depth - 1, backwards)))
                .collect();
            if backwards {
                entries.reverse();
            }
            // By way of JSON text, in which order and form are still as written.
            let text: Vec<String> = entries
                .iter()
                .map(|(key, value)| {
                    let key = Value::from(*key);
                    let value = serde_json::to_string(&value.to_json()).unwrap();
                    format!("{key}:{value}")
                })
                .collect();
            let json: serde_json::Value =
                serde_json::from_str(&format!("{{{}}}", text.join(", "))).unwrap();
            Value::from_json(json)
        }
    }
}

fn checkpoint(seed: u64, backwards: bool) -> Checkpoint {
    let world = SimWorld::new(seed);
    let values: Map = (0..world.random() % 4)
        .map(|channel| (format!("c{channel}").into(), value(&world, 3, backwards)))
        .collect();
    let mut records: Vec<Record> = (0..world.random() % 4)
        .map(|task| Record {
            task: format!("t{task}").into(),
            kind: RecordKind::Call(CallRecord {
                key: "k".into(),
                input: world.random(),
                times: 1,
                carried: false,
                state: CallState::Done(value(&world, 2, backwards)),
            }),
        })
        .collect();
    if backwards {
        records.reverse();
    }
    Checkpoint {
        id: Id(u128::from(seed) + 1),
        parent: None,
        step: -1,
        source: Source::Input,
        created: Timestamp(seed),
        run: Id(7),
        invocation: None,
        values,
        next: Vec::new(),
        joins: Default::default(),
        deferred: Vec::new(),
        ran: Vec::new(),
        records,
    }
}

#[test]
fn equal_states_have_equal_bytes_and_others_have_not() {
    let states = 2_000;
    let mut texts = std::collections::BTreeSet::new();
    let mut bytes = 0;
    for seed in 0..states {
        let (one, other) = (checkpoint(seed, false), checkpoint(seed, true));
        assert_eq!(one.values, other.values, "seed {seed}");
        let text = export([("", std::slice::from_ref(&one))]);
        assert_eq!(
            text,
            export([("", std::slice::from_ref(&other))]),
            "seed {seed}"
        );
        // Read and written again it is the same: there is one form only.
        let line = text.lines().nth(1).unwrap();
        let read: Value = serde_json::from_str(line).unwrap();
        assert_eq!(
            read.get("values"),
            Some(&Value::from(one.values.clone())),
            "seed {seed}"
        );
        assert_eq!(read.to_canonical(), line, "seed {seed}");
        bytes += text.len();
        let mut changed = one;
        changed
            .values
            .insert("c0".into(), json!({"not": seed}).into());
        assert_ne!(
            export([("", std::slice::from_ref(&changed))]),
            text,
            "seed {seed}"
        );
        texts.insert(text);
    }
    assert_eq!(texts.len() as u64, states);
    let written = json!({"b": 1, "a": 2}).to_string();
    let order = match written.starts_with("{\"b\"") {
        true => "keeps keys as written",
        false => "sorts keys",
    };
    println!("{states} states, {bytes} bytes; serde_json {order}");
    assert!(bytes > 500_000);
}

#[test]
fn graphs_come_by_name_and_checkpoints_from_the_oldest_on() {
    let graph =
        |ids: &[u64]| -> Vec<Checkpoint> { ids.iter().map(|id| checkpoint(*id, false)).collect() };
    let (root, b, a) = (graph(&[3, 1]), graph(&[2]), graph(&[5]));
    let text = export([("/b", &*b), ("", &*root), ("/a", &*a)]);
    let order: Vec<String> = text
        .lines()
        .skip(1)
        .map(|line| {
            let read: Value = serde_json::from_str(line).unwrap();
            let graph = read.get("graph").and_then(Value::as_str).unwrap();
            format!("{graph} {}", read.get("created").unwrap())
        })
        .collect();
    assert_eq!(order, [" 1", " 3", "/a 5", "/b 2"]);
    assert_eq!(
        text.lines().next(),
        Some(r#"{"tine":"thread","version":1}"#)
    );
    assert_eq!(export([]), "{\"tine\":\"thread\",\"version\":1}\n");
}
