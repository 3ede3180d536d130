//! What runs when: transcripts of small graphs.

use crate::scene::{Scene, answer, block_on, input, nothing, thread};
use serde_json::json;
use std::sync::Arc;
use tine_engine::channel::{add, append, last};
use tine_engine::checkpoint::Scope;
use tine_engine::command::{Output, Target};
use tine_engine::graph::Breakpoints;
use tine_engine::{
    Checkpointer, Command, END, Graph, GraphBuilder, Input, Keep, MemoryCheckpointer, Node, NodeCx,
    NodeError, RunOptions, START, Update, Value,
};

/// A node that appends its name to `x`.
fn says(name: &'static str) -> impl Node {
    move |_: NodeCx| async move { Ok::<_, NodeError>(Update::new().set("x", name)) }
}

fn graph(build: impl FnOnce(&mut GraphBuilder)) -> Graph {
    let mut graph = Graph::builder("g");
    graph.channel("x", append::<String>());
    graph.channel("n", add::<i64>());
    build(&mut graph);
    graph.build().unwrap()
}

/// The transcript of inputs, one run after the other.
fn check(graph: Graph, inputs: impl IntoIterator<Item = Input>) -> String {
    let scene = Scene::new(graph);
    let mut transcript = String::new();
    for input in inputs {
        let outcome = scene.invoke(input).unwrap();
        transcript.push_str(&scene.transcript());
        transcript.push_str(&format!("{}\n", Value::from(outcome.values)));
    }
    transcript
}

#[test]
fn parallel_writes_fold_by_name() {
    let graph = graph(|graph| {
        graph.node("slow", |cx: NodeCx| async move {
            cx.world().sleep(std::time::Duration::from_secs(60)).await;
            Ok::<_, NodeError>(Update::new().set("x", "slow"))
        });
        graph.node("brisk", says("brisk"));
        graph.node("tidy", says("tidy"));
        graph
            .edge(START, "slow")
            .edge(START, "tidy")
            .edge(START, "brisk");
        graph.join(["slow", "brisk", "tidy"], "end");
        graph.node("end", says("end"));
    });
    insta::assert_snapshot!(check(graph, [nothing()]), @r#"
    step 0
      ran    __start__
      next   brisk slow tidy
    step 1
      ran    brisk slow tidy
      wrote  brisk: x <- "brisk"
      wrote  tidy: x <- "tidy"
      wrote  slow: x <- "slow"
      next   end
    step 2
      ran    end
      wrote  end: x <- "end"
      next   nothing
    done
    {"n":0,"x":["brisk","slow","tidy","end"]}
    "#);
}

#[test]
fn dispatches_run_after_edges_in_their_order() {
    let graph = graph(|graph| {
        graph.node("split", |_: NodeCx| async move {
            let to = (1..=3).map(|i: i64| Target::dispatch("work", i)).collect();
            Ok::<_, NodeError>(Command {
                goto: to,
                ..Command::default()
            })
        });
        graph.node("work", |cx: NodeCx| async move {
            let item = cx.dispatched().cloned().unwrap_or_default();
            Ok::<_, NodeError>(Update::new().set("x", item))
        });
        graph.node("beside", says("beside"));
        graph
            .edge(START, "split")
            .edge("split", "beside")
            .edge("work", END);
    });
    insta::assert_snapshot!(check(graph, [nothing()]), @r#"
    step 0
      ran    __start__
      next   split
    step 1
      ran    split
      next   beside work work work
    step 2
      ran    beside work work work
      wrote  beside: x <- "beside"
      wrote  work#0: x <- 1
      wrote  work#1: x <- 2
      wrote  work#2: x <- 3
      next   nothing
    done
    {"n":0,"x":["beside",1,2,3]}
    "#);
}

#[test]
fn a_command_adds_to_edges_and_replaces_default_edges() {
    let graph = graph(|graph| {
        let goes = |_: NodeCx| async { Ok::<_, NodeError>(Command::goto("far")) };
        graph.node("a", goes);
        graph.node("b", goes);
        graph.node("far", says("far"));
        graph.node("near", says("near"));
        graph.edge(START, "a").edge("a", "near");
        graph.edge("near", "b").default_edge("b", "near");
    });
    insta::assert_snapshot!(check(graph, [nothing()]), @r#"
    step 0
      ran    __start__
      next   a
    step 1
      ran    a
      next   far near
    step 2
      ran    far near
      wrote  far: x <- "far"
      wrote  near: x <- "near"
      next   b
    step 3
      ran    b
      next   far
    step 4
      ran    far
      wrote  far: x <- "far"
      next   nothing
    done
    {"n":0,"x":["far","near","far"]}
    "#);
}

#[test]
fn a_loop_ends_when_its_router_says_so() {
    let graph = graph(|graph| {
        graph.node("count", |_: NodeCx| async {
            Ok::<_, NodeError>(Update::new().set("n", 1))
        });
        graph.edge(START, "count");
        graph
            .branch("count", |cx: NodeCx| async move {
                let n = cx.value("n").and_then(|n| n.as_i64()).unwrap_or_default();
                Ok::<_, NodeError>(if n < 2 { "again" } else { "enough" })
            })
            .labels([("again", "count"), ("enough", END)]);
    });
    insta::assert_snapshot!(check(graph, [nothing()]), @r#"
    step 0
      ran    __start__
      next   count
    step 1
      ran    count
      wrote  count: n <- 1
      next   count
    step 2
      ran    count
      wrote  count: n <- 1
      next   nothing
    done
    {"n":2,"x":[]}
    "#);
}

#[test]
fn a_deferred_node_waits_for_everything_else() {
    let graph = graph(|graph| {
        graph.node("a", says("a"));
        graph.node("b", says("b"));
        graph.node("sum", says("sum")).defer();
        graph
            .edge(START, "a")
            .edge("a", "b")
            .edge("a", "sum")
            .edge("b", END);
    });
    insta::assert_snapshot!(check(graph, [nothing()]), @r#"
    step 0
      ran    __start__
      next   a
    step 1
      ran    a
      wrote  a: x <- "a"
      next   b
    step 2
      ran    b
      wrote  b: x <- "b"
      next   sum
    step 3
      ran    sum
      wrote  sum: x <- "sum"
      next   nothing
    done
    {"n":0,"x":["a","b","sum"]}
    "#);
}

#[test]
fn a_question_stops_its_step_and_the_answer_finishes_it() {
    let graph = graph(|graph| {
        graph.node("ask", |cx: NodeCx| async move {
            let name = cx.interrupt("who?")?;
            Ok::<_, NodeError>(Update::new().set("x", name))
        });
        graph.node("beside", says("beside"));
        graph.edge(START, "ask").edge(START, "beside");
    });
    insta::assert_snapshot!(check(graph, [nothing(), answer("me")]), @r#"
    step 0
      ran    __start__
      next   ask beside
    step 1
      ran    ask beside
      wrote  beside: x <- "beside"
      asked  ask: "who?"
    interrupted
    {"n":0,"x":["beside"]}
    step 1
      ran    ask beside
      wrote  beside (stored): x <- "beside"
      wrote  ask: x <- "me"
      next   nothing
    done
    {"n":0,"x":["me","beside"]}
    "#);
}

#[test]
fn breakpoints_stop_before_and_after() {
    let graph = graph(|graph| {
        graph.node("a", says("a"));
        graph.node("b", says("b"));
        graph.node("c", says("c"));
        graph.edge(START, "a").edge("a", "b").edge("b", "c");
        graph.interrupt_before(Breakpoints::at(["b"]));
        graph.interrupt_after(Breakpoints::at(["b"]));
    });
    let inputs = [nothing(), Input::Continue, Input::Continue];
    insta::assert_snapshot!(check(graph, inputs), @r#"
    step 0
      ran    __start__
      next   a
    step 1
      ran    a
      wrote  a: x <- "a"
      next   b
      stops  at b
    paused
    {"n":0,"x":["a"]}
    step 2
      ran    b
      wrote  b: x <- "b"
      next   c
      stops  at b
    paused
    {"n":0,"x":["a","b"]}
    step 3
      ran    c
      wrote  c: x <- "c"
      next   nothing
    done
    {"n":0,"x":["a","b","c"]}
    "#);
}

#[test]
fn a_second_run_builds_on_the_first() {
    let graph = graph(|graph| {
        graph.node("a", says("a"));
        graph.edge(START, "a");
    });
    let inputs = [input(json!({"x": "one"})), input(json!({"x": ["two"]}))];
    insta::assert_snapshot!(check(graph, inputs), @r#"
    step 0
      ran    __start__
      next   a
    step 1
      ran    a
      wrote  a: x <- "a"
      next   nothing
    done
    {"n":0,"x":["one","a"]}
    step 3
      ran    __start__
      next   a
    step 4
      ran    a
      wrote  a: x <- "a"
      next   nothing
    done
    {"n":0,"x":["one","a","two","a"]}
    "#);
}

#[test]
fn a_channel_added_later_begins_with_its_default() {
    let store = Arc::new(MemoryCheckpointer::new());
    let first = graph(|graph| {
        graph.node("a", says("a"));
        graph.edge(START, "a");
    });
    Scene::over(first, store.clone()).invoke(nothing()).unwrap();
    let second = graph(|graph| {
        graph.channel("late", append::<String>().default(vec!["seed"]));
        graph.node("a", |_: NodeCx| async {
            Ok::<_, NodeError>(Update::new().set("late", "grown"))
        });
        graph.edge(START, "a");
    });
    let scene = Scene::over(second, store);
    scene.invoke(nothing()).unwrap();
    scene.invoke(nothing()).unwrap();
    let values = Value::from(scene.state().values).to_canonical();
    assert_eq!(
        values,
        r#"{"late":["seed","grown","grown"],"n":0,"x":["a"]}"#
    );
}

#[test]
fn several_commands_of_one_node_keep_their_order() {
    let mut graph = Graph::builder("g");
    graph.channel("x", append::<String>());
    graph.channel("pick", last::<String>());
    graph.node("many", |_: NodeCx| async {
        Ok::<_, NodeError>(Output {
            update: Update::new().set("x", "own"),
            commands: vec![
                Command::goto("late").update(Update::from([("x", "first")])),
                Command::goto("early").update(Update::new().set("x", "second").set("pick", "p")),
            ],
        })
    });
    graph.node("late", says("late"));
    graph.node("early", says("early"));
    graph.edge(START, "many");
    insta::assert_snapshot!(check(graph.build().unwrap(), [nothing()]), @r#"
    step 0
      ran    __start__
      next   many
    step 1
      ran    many
      wrote  many: x <- "own"
      wrote  many: x <- "first"
      wrote  many: x <- "second"
      wrote  many: pick <- "p"
      next   early late
    step 2
      ran    early late
      wrote  early: x <- "early"
      wrote  late: x <- "late"
      next   nothing
    done
    {"pick":"p","x":["own","first","second","early","late"]}
    "#);
}

#[test]
fn every_way_from_a_source_waits_for_the_others() {
    let waits = |add: fn(&mut GraphBuilder)| {
        let graph = graph(|graph| {
            for name in ["a", "b", "c", "t"] {
                graph.node(name, says(name));
            }
            graph.edge(START, "a").edge(START, "b").edge("b", "c");
            graph.wait_for("t", ["a", "c"]);
            add(graph);
        });
        let outcome = Scene::new(graph).invoke(nothing()).unwrap();
        outcome.values["x"].to_canonical()
    };
    let all = r#"["a","b","c","t"]"#;
    assert_eq!(
        waits(|graph| {
            graph.edge("a", "t").edge("c", "t");
        }),
        all
    );
    let default = waits(|graph| {
        graph.default_edge("a", "t").edge("c", "t");
    });
    assert_eq!(default, all);
    let branch = waits(|graph| {
        graph.edge("a", "t").edge("c", "t");
        graph
            .branch("a", |_: NodeCx| async { Ok("t") })
            .goes_to(["t"]);
    });
    assert_eq!(branch, all);
}

#[test]
fn a_node_that_waits_twice_runs_for_each_group() {
    let graph = graph(|graph| {
        for name in ["a", "b", "c", "d", "t"] {
            graph.node(name, says(name));
        }
        graph
            .edge(START, "a")
            .edge(START, "b")
            .edge("b", "c")
            .edge("c", "d");
        graph.wait_for("t", ["a", "b"]).wait_for("t", ["a", "d"]);
        graph.edge("a", "t").edge("b", "t").edge("d", "t");
    });
    let outcome = Scene::new(graph).invoke(nothing()).unwrap();
    assert_eq!(
        outcome.values["x"].to_canonical(),
        r#"["a","b","c","t","d","t"]"#
    );
}

#[test]
fn a_join_that_names_a_source_twice_fires_once() {
    let graph = graph(|graph| {
        for name in ["a", "b", "t"] {
            graph.node(name, says(name));
        }
        graph.edge(START, "a").edge(START, "b");
        graph.join(["a", "b", "a"], "t").join(["b", "a"], "t");
    });
    let outcome = Scene::new(graph).invoke(nothing()).unwrap();
    assert_eq!(outcome.values["x"].to_canonical(), r#"["a","b","t"]"#);
}

#[test]
fn joins_whose_sources_read_alike_are_stored_apart() {
    let graph = graph(|graph| {
        for name in ["a", "a+b", "b+c", "c", "s", "t"] {
            graph.node(name, says(name));
        }
        graph.edge(START, "a").edge("a", "s").edge("s", "b+c");
        graph.join(["a+b", "c"], "t").join(["a", "b+c"], "t");
    });
    let scene = Scene::new(graph);
    let limited = RunOptions {
        step_limit: 1,
        ..RunOptions::default()
    };
    let outcome = block_on(scene.run(nothing(), limited)).unwrap();
    assert_eq!(outcome.exit.name(), "step_limit");
    let outcome = scene.invoke(Input::Continue).unwrap();
    assert_eq!(outcome.values["x"].to_canonical(), r#"["a","s","b+c","t"]"#);
}

#[test]
fn an_untracked_input_reaches_its_run_and_no_checkpoint() {
    let mut graph = Graph::builder("g");
    graph.channel("key", last::<Value>().keep(Keep::Untracked));
    graph.channel("seen", last::<bool>());
    graph.node("n", |cx: NodeCx| async move {
        Ok(Update::new().set("seen", cx.value("key").is_some()))
    });
    graph.edge(START, "n");
    let store = Arc::new(MemoryCheckpointer::new());
    let scene = Scene::over(graph.build().unwrap(), store.clone());
    let outcome = scene.invoke(input(json!({"key": "sk-secret"}))).unwrap();
    assert_eq!(outcome.values["seen"], Value::Bool(true));
    let history = block_on(store.history(&Scope::root(thread()), None, None)).unwrap();
    assert!(!format!("{history:?}").contains("sk-secret"));
}

#[test]
fn an_untracked_write_of_a_task_that_waits_for_its_siblings_is_in_no_record() {
    let mut graph = Graph::builder("g");
    graph.channel("key", last::<Value>().keep(Keep::Untracked));
    graph.channel("done", append::<String>());
    graph.node("login", |_: NodeCx| async {
        Ok(Update::new().set("key", "sk-secret").set("done", "login"))
    });
    graph.node("ask", |cx: NodeCx| async move {
        let answer = cx.interrupt("who?")?;
        Ok(Update::new().set("done", vec![answer]))
    });
    graph.edge(START, "login").edge(START, "ask");
    let store = Arc::new(MemoryCheckpointer::new());
    let scene = Scene::over(graph.build().unwrap(), store.clone());
    let outcome = scene.invoke(nothing()).unwrap();
    assert_eq!(outcome.exit.name(), "interrupted");
    let history = block_on(store.history(&Scope::root(thread()), None, None)).unwrap();
    let text = format!("{history:?}");
    assert!(text.contains("login"), "its other write is recorded");
    assert!(!text.contains("sk-secret"), "{text}");
}

#[test]
fn a_node_sees_no_channel_of_the_engine() {
    let mut graph = Graph::builder("g");
    graph.channel("x", last::<i64>());
    graph.channel("seen", last::<Value>());
    graph.count_visits();
    graph.node("n", |cx: NodeCx| async move {
        let state = cx.state();
        let hidden = state.declares("__visits") || state.value("__visits").is_some();
        let seen = vec![cx.input(), format!("{state:?}").into(), hidden.into()];
        Ok(Update::new().set("seen", seen))
    });
    graph.edge(START, "n");
    let outcome = Scene::new(graph.build().unwrap()).invoke(input(json!({"x": 1})));
    let seen = &outcome.unwrap().values["seen"];
    assert_eq!(seen.to_canonical(), r#"[{"x":1},"{\"x\": 1}",false]"#);
}

#[test]
fn a_router_sees_what_its_task_wrote_of_a_step_channel_and_else_what_its_node_saw() {
    let seen = |writes: bool| {
        let mut graph = Graph::builder("g");
        graph.channel("log", append::<String>().keep(Keep::Step));
        graph.channel("seen", append::<Value>());
        graph.node("a", |_: NodeCx| async { Ok(Update::new().set("log", "a")) });
        graph.node("b", move |_: NodeCx| async move {
            let update = Update::new();
            Ok(if writes {
                update.set("log", "b")
            } else {
                update
            })
        });
        graph.node("c", |cx: NodeCx| async move {
            let seen = [cx.dispatched().cloned(), cx.value("log")];
            let seen: Vec<Value> = seen.into_iter().flatten().collect();
            Ok(Update::new().set("seen", seen))
        });
        graph.edge(START, "a").edge("a", "b");
        graph.branch("b", |cx: NodeCx| async move {
            let log = cx.value("log").unwrap_or_default();
            Ok(Target::dispatch("c", log))
        });
        let outcome = Scene::new(graph.build().unwrap()).invoke(nothing());
        outcome.unwrap().values["seen"].to_canonical()
    };
    // By the router, then by the node that runs next.
    assert_eq!(seen(true), r#"[["b"],["b"]]"#);
    assert_eq!(seen(false), r#"[["a"],[]]"#);
}

/// The nodes that ran, in order, of a graph whose nodes log their names.
fn ran(build: impl FnOnce(&mut GraphBuilder)) -> String {
    let mut graph = Graph::builder("g");
    graph.channel("log", append::<String>());
    for name in ["a", "b", "x"] {
        graph.node(name, move |_: NodeCx| async move {
            Ok::<_, NodeError>(Update::new().set("log", name))
        });
    }
    build(&mut graph);
    let scene = Scene::new(graph.build().unwrap());
    let outcome = scene.invoke(nothing()).unwrap();
    assert_eq!(outcome.exit.name(), "done");
    let log = outcome.values["log"].as_list().unwrap().clone();
    let names: Vec<&str> = log.iter().filter_map(Value::as_str).collect();
    names.join(" ")
}

/// Logs its name; the first time it goes to these.
fn once(name: &'static str, goto: &'static [&'static str]) -> impl tine_engine::Node {
    move |cx: NodeCx| async move {
        let log = cx.value("log").unwrap_or_default();
        let before = log
            .as_list()
            .unwrap()
            .iter()
            .any(|known| *known == Value::from(name));
        let targets = if before { &[] } else { goto };
        Ok::<_, NodeError>(Command {
            update: Update::new().set("log", name),
            goto: targets.iter().map(|name| Target::from(*name)).collect(),
            ..Command::default()
        })
    }
}

#[test]
fn what_feeds_a_join_twice_does_not_count_for_its_next_round() {
    // In one step: `b` by an edge and once more by a dispatch. Then `a` alone.
    let twice = ran(|graph| {
        graph.node("plan", |_: NodeCx| async {
            let goto = vec!["a".into(), "b".into(), Target::dispatch("b", 0)];
            Ok::<_, NodeError>(Command {
                goto,
                ..Command::default()
            })
        });
        graph.node("t", once("t", &["a"]));
        graph.edge(START, "plan").join(["a", "b"], "t");
    });
    assert_eq!(twice, "a b b t a");
    // While the deferred target waits: `a` once more. Then `b` alone.
    let waits = ran(|graph| {
        graph.node("t", once("t", &["b"])).defer();
        graph.edge(START, "a").edge(START, "b").edge(START, "x");
        graph.edge("x", "a").join(["a", "b"], "t");
    });
    assert_eq!(waits, "a b x a t b");
}
