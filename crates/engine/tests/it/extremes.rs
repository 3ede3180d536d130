//! Values, graphs and names that are far larger, deeper or stranger than usual.

use crate::scene::{Scene, block_on, input, nothing, thread};
use crate::spy::Spy;
use serde_json::json;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use tine_engine::channel::{append, last};
use tine_engine::node::from_fn;
use tine_engine::value::Map;
use tine_engine::{
    Command, Graph, GraphBuilder, Input, NodeCx, Output, RunOptions, START, Target, Update, Value,
    from_value, to_value,
};

/// How deep a value may be for all that is done to it on a thread with 2 MiB of stack, in a debug build: making JSON of
/// maps is what breaks first. JSON text that comes from outside is read to a depth of 128.
const DEPTH: usize = 400;

fn deep(around: impl Fn(Value) -> Value) -> Value {
    (0..DEPTH).fold(Value::Null, |value, _| around(value))
}

/// A graph whose node writes a value to two channels, and the next one reads it.
fn carries(value: &Value) -> Graph {
    let mut graph = Graph::builder("g");
    graph.channel("last", last::<Value>());
    graph.channel("all", append::<Value>());
    let given = value.clone();
    graph.node(
        "writes",
        from_fn(move |_| {
            let all = Value::from(vec![given.clone()]);
            Ok(Update::new().set("last", given.clone()).set("all", all))
        }),
    );
    let expected = value.clone();
    graph.node(
        "reads",
        from_fn(move |cx: NodeCx| {
            assert!(cx.value("last").as_ref() == Some(&expected));
            Ok(Update::new().set("all", vec![expected.clone()]))
        }),
    );
    graph.edge(START, "writes").edge("writes", "reads");
    graph.build().unwrap()
}

/// Carries a value through a thread, by a node and as input, and gives what is stored.
fn check(value: &Value) -> Spy {
    let store = Spy::default();
    let scene = Scene::over(carries(value), Arc::new(store.clone()));
    let values = Map::from([("last".into(), value.clone())]);
    let outcome = scene.invoke(Input::New(Update::from(values))).unwrap();
    assert_eq!(outcome.exit.name(), "done");
    let all = outcome.values["all"].as_list().unwrap();
    assert!(all.len() == 2 && all.iter().all(|item| item == value));
    assert!(scene.state().values == outcome.values);
    assert_eq!(scene.history().len(), 4);
    // The thread takes a small value where the other one was.
    let update = Update::new().set("last", 1).overwrite("all", Value::list());
    block_on(scene.runner.update(&thread(), "reads", update)).unwrap();
    assert_eq!(
        Value::from(scene.state().values).to_canonical(),
        r#"{"all":[],"last":1}"#
    );
    store
}

#[test]
fn deep_values_are_values() {
    let list = deep(|value| Value::from(vec![value]));
    let map = deep(|value| Value::from_pairs([("k", value)]));
    for value in [list, map] {
        assert!(check(&value).export(&thread()).len() > 2 * DEPTH);
        let hash = |value: &Value| {
            let mut hasher = DefaultHasher::new();
            value.hash(&mut hasher);
            hasher.finish()
        };
        let copy = Value::from_json(value.to_json());
        assert!(copy == value && hash(&copy) == hash(&value));
        assert_eq!(format!("{copy:?}"), value.to_canonical());
        let typed: Value = from_value(&to_value(&value).unwrap()).unwrap();
        assert!(typed == value);
    }
    let text = "[".repeat(DEPTH) + &"]".repeat(DEPTH);
    let error = serde_json::from_str::<Value>(&text).unwrap_err();
    insta::assert_snapshot!(error, @"recursion limit exceeded at line 1 column 128");
}

#[test]
fn huge_values_are_values() {
    check(&"文".repeat(10_000_000 / 3).into());
    let long = |value: &Value| value.as_list().map(tine_engine::value::List::len);
    let mut graph = Graph::builder("g");
    graph.channel("list", last::<Value>());
    graph.channel("copy", last::<Value>());
    let copies = move |cx: NodeCx| {
        let list = cx.value("list").unwrap_or_default();
        assert_eq!(long(&list), Some(1_000_000));
        Ok(Update::new().set("copy", list))
    };
    graph.node("copies", from_fn(copies));
    graph.edge(START, "copies");
    let scene = Scene::new(graph.build().unwrap());
    let list: Vec<i64> = (0..1_000_000).collect();
    let outcome = scene.invoke(Update::new().set("list", list)).unwrap();
    assert_eq!(outcome.exit.name(), "done");
    let state = scene.state();
    assert_eq!(long(&state.values["copy"]), Some(1_000_000));
    assert!(state.values["copy"] == outcome.values["list"]);
}

#[test]
fn a_long_list_grows_by_one() {
    let mut graph = Graph::builder("g");
    graph.channel("all", append::<i64>());
    graph.node("n", from_fn(|_| Ok(Update::new().set("all", -1))));
    graph.edge(START, "n");
    let scene = Scene::new(graph.build().unwrap());
    let items: Vec<i64> = (0..100_000).collect();
    let update = Update::new().set("all", items);
    assert_eq!(scene.invoke(update).unwrap().exit.name(), "done");
    assert_eq!(scene.invoke(nothing()).unwrap().exit.name(), "done");
    let state = scene.state();
    let all = state.values["all"].as_list().unwrap();
    assert_eq!(all.len(), 100_002);
    assert_eq!(all.get(99_999), Some(&Value::from(99_999)));
    assert_eq!(all.get(100_001), Some(&Value::from(-1)));
}

fn counts(graph: &mut GraphBuilder, name: &str) {
    graph.node(name, from_fn(|_| Ok(Update::new().set("log", 1))));
}

/// Runs a graph of many nodes, and gives in how many steps how many of them ran.
fn size(graph: GraphBuilder) -> (i64, usize) {
    let scene = Scene::new(graph.build().unwrap());
    let outcome = scene.invoke(nothing()).unwrap();
    assert_eq!(outcome.exit.name(), "done", "{:?}", outcome.exit);
    let state = scene.state();
    assert_eq!(state.values, outcome.values);
    (state.step, state.values["log"].as_list().unwrap().len())
}

#[test]
fn graphs_of_thousands_of_nodes_run() {
    let names: Vec<String> = (0..5_000).map(|n| format!("n{n:04}")).collect();
    let new = || {
        let mut graph = Graph::builder("g");
        graph.channel("log", append::<i64>());
        for name in &names {
            counts(&mut graph, name);
        }
        graph
    };
    let mut chain = new();
    chain.edge(START, "n0000");
    for pair in names.windows(2) {
        chain.edge(pair[0].as_str(), pair[1].as_str());
    }
    assert_eq!(size(chain), (5_000, 5_000));
    let mut fan = new();
    for name in &names {
        fan.edge(START, name.as_str());
    }
    counts(&mut fan, "end");
    fan.join(names.iter().map(String::as_str), "end");
    assert_eq!(size(fan), (2, 5_001));
    let mut dispatches = new();
    dispatches.node(
        "sends",
        from_fn(|_| {
            let goto = (0..5_000).map(|n| Target::dispatch("n0000", n));
            Ok(Output {
                update: Update::new(),
                commands: vec![Command {
                    goto: goto.collect(),
                    ..Command::default()
                }],
            })
        }),
    );
    dispatches.edge(START, "sends");
    assert_eq!(size(dispatches), (2, 5_000));
}

#[test]
fn an_update_of_ten_thousand_channels_is_whole_or_not_at_all() {
    let names: Vec<Arc<str>> = (0..10_000).map(|n| format!("c{n:04}").into()).collect();
    let mut graph = Graph::builder("g");
    for name in &names {
        graph.channel(name.clone(), last::<i64>());
    }
    graph.node(
        "n",
        from_fn(move |cx: NodeCx| {
            let set = |update: Update, name: &Arc<str>| update.set(name.clone(), 1);
            let update = names.iter().fold(Update::new(), set);
            let lost = cx.value("c0000").is_none();
            Ok(if lost { update.set("c", 1) } else { update })
        }),
    );
    graph.edge(START, "n");
    let scene = Scene::new(graph.build().unwrap());
    let refused = scene.invoke(nothing()).unwrap();
    let error = refused.exit.error().unwrap();
    assert_eq!(error.code(), "invalid_update");
    let told = error.to_string();
    assert!(told.ends_with("`c0048`, `c0049` and 9950 more"), "{told}");
    assert!(refused.values.is_empty());
    let outcome = scene.invoke(input(json!({"c0000": 0}))).unwrap();
    assert_eq!(outcome.exit.name(), "done");
    assert_eq!(scene.state().values.len(), 10_000);
    assert!(
        scene
            .state()
            .values
            .values()
            .all(|value| *value == Value::from(1))
    );
}

/// Builds and runs a graph with a node and a channel of this name.
fn named(name: &str) -> String {
    let mut told = Vec::new();
    let mut graph = Graph::builder(name);
    graph.channel("log", append::<String>());
    let text = name.to_owned();
    graph.node(
        name,
        from_fn(move |cx| Ok(Update::new().set("log", cx.path() + &text))),
    );
    graph.edge(START, name);
    match graph.build() {
        Err(error) => told.push(error.to_string()),
        Ok(graph) => {
            let scene = Scene::new(graph);
            let options = RunOptions {
                interrupt_before: tine_engine::Breakpoints::at([name]),
                ..RunOptions::default()
            };
            let paused = block_on(scene.run(nothing(), options)).unwrap();
            assert_eq!(paused.exit.name(), "paused");
            assert_eq!(&*scene.state().next[0].node, name);
            let outcome = scene.invoke(Input::Continue).unwrap();
            assert_eq!(
                outcome.values["log"],
                Value::from(vec![name.to_owned() + name])
            );
            told.push("a node".to_owned());
        }
    }
    let mut graph = Graph::builder("g");
    graph.channel(name, last::<String>());
    graph.node("n", from_fn(|_| Ok(())));
    graph.edge(START, "n");
    match graph.build() {
        Err(error) => told.push(error.to_string()),
        Ok(graph) => {
            let scene = Scene::new(graph);
            let outcome = scene.invoke(input(json!({name: "kept"}))).unwrap();
            assert_eq!(outcome.values[name], Value::from("kept"));
            assert_eq!(scene.state().values, outcome.values);
            told.push("a channel".to_owned());
        }
    }
    format!("{name:?}: {}", told.join(", "))
}

#[test]
fn names_are_taken_or_refused_when_the_graph_is_built() {
    let long = "long".repeat(10_000);
    assert_eq!(named(&long), format!("{long:?}: a node, a channel"));
    let names = [
        "",
        " ",
        "a b",
        "文",
        "e\u{301}",
        "🦀",
        "\"",
        "'",
        "`",
        "\\",
        "\n",
        "\0",
        "a#b",
        "a/b",
        "a|b",
        "a:b",
        "..",
        "{}",
        "$x",
        "__x",
        "__start__",
        "__end__",
        "START",
        "_",
    ];
    let told: Vec<String> = names.into_iter().map(named).collect();
    insta::assert_snapshot!(told.join("\n"));
}
