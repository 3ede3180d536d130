//! What the engine makes of what no program should give it: every message names the thing, the place and the way out,
//! and the thread is as good as before.

use crate::scene::{Count, Scene, answer, block_on, input, nothing, pause, thread};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tine_engine::channel::{Fold, ReduceError, append, custom, last};
use tine_engine::{
    Breakpoints, ClientCommand, Command, END, ErrorClass, Graph, GraphBuilder, Input,
    MemoryCheckpointer, Node, NodeCx, NodeError, Outcome, Reducer, Resume, RunError, RunOptions,
    START, Target, Update, Value,
};

/// A graph that begins with `n`, which misbehaves as long as the input says so, and ends with `end`.
fn graph(misbehaves: impl Node, build: impl FnOnce(&mut GraphBuilder)) -> Graph {
    let misbehaves: Arc<dyn Node> = Arc::new(misbehaves);
    let mut graph = Graph::builder("g");
    graph.channel("log", append::<String>());
    graph.channel("bad", last::<bool>());
    graph.node("n", move |cx: NodeCx| {
        let misbehaves = misbehaves.clone();
        async move {
            if is_bad(&cx) {
                return misbehaves.run(cx).await;
            }
            Ok(Update::new().set("log", "n").into())
        }
    });
    graph.node("end", |_: NodeCx| async {
        Ok::<_, NodeError>(Update::new().set("log", "end"))
    });
    graph.edge(START, "n").edge("n", "end");
    build(&mut graph);
    graph.build().unwrap()
}

fn is_bad(cx: &NodeCx) -> bool {
    cx.value("bad") == Some(Value::from(true))
}

fn bad() -> Input {
    input(json!({"bad": true}))
}

/// How a run ended.
fn shown(result: &Result<Outcome, RunError>) -> String {
    match result {
        Err(error) => format!("refused as {}: {error}", error.code()),
        Ok(outcome) => match outcome.exit.error() {
            Some(error) => format!("{} as {}: {error}", outcome.exit.name(), error.code()),
            None => format!("{} with {}", outcome.exit.name(), outcome.values["log"]),
        },
    }
}

/// Runs an input that is no good, and then one that is. Shows how the first one ended.
fn check(scene: &Scene, input: impl Into<Input>, options: RunOptions) -> String {
    let ended = shown(&block_on(scene.run(input, options)));
    goes_on(scene);
    ended
}

/// A thread can be read whatever happened to it, and takes good input.
fn goes_on(scene: &Scene) {
    let before = block_on(scene.runner.state(&thread())).unwrap();
    assert_eq!(before.is_some(), !scene.history().is_empty());
    let log = |values: &tine_engine::value::Map| -> Vec<Value> {
        let log = values.get("log").and_then(Value::as_list);
        log.map(|log| log.iter().cloned().collect())
            .unwrap_or_default()
    };
    let mut expected = before.map_or_else(Vec::new, |state| log(&state.values));
    expected.extend(["n".into(), "end".into()]);
    let good = scene.invoke(input(json!({"bad": false}))).unwrap();
    assert_eq!(good.exit.name(), "done", "{:?}", good.exit);
    assert_eq!(log(&good.values), expected);
    assert_eq!(scene.state().values, good.values);
}

fn runs(misbehaves: impl Node) -> String {
    let scene = Scene::new(graph(misbehaves, |_| ()));
    check(&scene, bad(), RunOptions::default())
}

fn goes(target: impl Into<Target>) -> impl Node {
    let target = target.into();
    move |_: NodeCx| {
        let target = target.clone();
        async move { Ok::<_, NodeError>(Command::goto(target)) }
    }
}

fn no_luck() {
    assert!(std::hint::black_box(false), "out of luck");
}

#[test]
fn handlers_and_routers_that_panic_fail_their_node() {
    let fails =
        |_: NodeCx| async { Err::<(), _>(NodeError::new(ErrorClass::Internal, "the cause")) };
    let scene = Scene::new(graph(
        |_: NodeCx| async { Ok::<_, NodeError>(()) },
        |graph| {
            graph
                .node("handled", move |cx: NodeCx| async move {
                    if is_bad(&cx) { fails(cx).await } else { Ok(()) }
                })
                .on_error(|_: NodeCx| async {
                    no_luck();
                    Ok::<_, NodeError>(())
                });
            graph.edge(START, "handled");
        },
    ));
    insta::assert_snapshot!(check(&scene, bad(), RunOptions::default()), @"failed as node: node `handled#handler` failed: panicked: out of luck");
    let scene = Scene::new(graph(
        |_: NodeCx| async { Ok::<_, NodeError>(()) },
        |graph| {
            graph.branch("n", |cx: NodeCx| async move {
                if is_bad(&cx) {
                    no_luck();
                }
                Ok::<_, NodeError>(Target::End)
            });
        },
    ));
    insta::assert_snapshot!(check(&scene, bad(), RunOptions::default()), @"failed as node: node `n` failed: panicked: out of luck");
    // One that panics before it gives a future.
    let scene = Scene::new(graph(
        |_: NodeCx| async { Ok::<_, NodeError>(()) },
        |graph| {
            graph.branch("n", |cx: NodeCx| {
                if is_bad(&cx) {
                    no_luck();
                }
                async { Ok::<_, NodeError>(Target::End) }
            });
        },
    ));
    insta::assert_snapshot!(check(&scene, bad(), RunOptions::default()), @"failed as node: node `n` failed: panicked: out of luck");
}

#[test]
fn ways_to_nowhere_are_named() {
    insta::assert_snapshot!(runs(goes(Target::dispatch(END, 1))), @"failed as invalid_update: node `n`: dispatches to END, which takes no input");
    insta::assert_snapshot!(runs(goes(Target::dispatch("", 1))), @"failed as unknown_node: node `n` goes to ``, and graph `g` has no such node");
    insta::assert_snapshot!(runs(goes(Target::dispatch("nowhere", 1))), @"failed as unknown_node: node `n` goes to `nowhere`, and graph `g` has no such node");
    insta::assert_snapshot!(runs(goes(Target::dispatch(START, 1))), @"failed as unknown_node: node `n` goes to `__start__`, and graph `g` has no such node");
    insta::assert_snapshot!(runs(goes(START)), @"failed as unknown_node: node `n` goes to `__start__`, and graph `g` has no such node");
    insta::assert_snapshot!(runs(goes("End")), @"failed as unknown_node: node `n` goes to `End`, and graph `g` has no such node");
}

#[test]
fn commands_with_channels_that_are_not_there_write_nothing() {
    let command = |_: NodeCx| async {
        let update = Update::new().set("log", "lost").set("logg", 1);
        Ok::<_, NodeError>(Command::goto("end").update(update))
    };
    insta::assert_snapshot!(runs(command), @"failed as invalid_update: node `n`: writes to `logg`, and graph `g` declares no such channel; it has `log`, `bad`");
    let reserved =
        |_: NodeCx| async { Ok::<_, NodeError>(Update::new().set("__account", 1).set("", 1)) };
    insta::assert_snapshot!(runs(reserved), @"failed as invalid_update: node `n`: writes to `__account`, and graph `g` declares no such channel; it has `log`, `bad`");
    let client = ClientCommand {
        update: Update::new().set("logg", 1),
        ..ClientCommand::default()
    };
    let scene = Scene::new(graph(goes("end"), |_| ()));
    insta::assert_snapshot!(check(&scene, client.clone(), RunOptions::default()), @"refused as invalid_update: command: writes to `logg`, and graph `g` declares no such channel; it has `log`, `bad`");
    // The thread is there by now.
    insta::assert_snapshot!(check(&scene, client, RunOptions::default()), @"refused as invalid_update: command: writes to `logg`, and graph `g` declares no such channel; it has `log`, `bad`");
}

#[test]
fn clients_go_nowhere_either() {
    let refused = |target: Target| {
        let scene = Scene::new(graph(goes("end"), |_| ()));
        let command = || ClientCommand {
            goto: vec![target.clone()],
            ..ClientCommand::default()
        };
        let first = check(&scene, command(), RunOptions::default());
        assert_eq!(check(&scene, command(), RunOptions::default()), first);
        first
    };
    insta::assert_snapshot!(refused(START.into()), @"refused as unknown_node: graph `g` has no node `__start__`");
    insta::assert_snapshot!(refused("".into()), @"refused as unknown_node: graph `g` has no node ``");
    insta::assert_snapshot!(refused(Target::dispatch(END, 1)), @"refused as invalid_update: command: dispatches to END, which takes no input");
    insta::assert_snapshot!(refused(Target::dispatch("nowhere", 1)), @"refused as unknown_node: graph `g` has no node `nowhere`");
}

#[test]
fn inputs_with_nothing_in_them_are_told_from_those_that_begin_a_run() {
    let scene = || Scene::new(graph(goes("end"), |_| ()));
    let alone = |input: Input| check(&scene(), input, RunOptions::default());
    // An input without a key begins a run all the same.
    insta::assert_snapshot!(alone(nothing()), @r#"done with ["n","end"]"#);
    insta::assert_snapshot!(alone(Input::Continue), @"refused as empty_input: thread `t` has nothing to go on with; give it an input");
    insta::assert_snapshot!(alone(answer("yes")), @"refused as empty_input: thread `t` has nothing to go on with; give it an input");
    insta::assert_snapshot!(alone(Input::Resume(Resume::by_id([("0", "yes")]))), @"refused as empty_input: thread `t` has nothing to go on with; give it an input");
    insta::assert_snapshot!(alone(Input::Command(ClientCommand::default())), @r#"done with ["n","end"]"#);
    insta::assert_snapshot!(alone(input(json!({"": 1}))), @"refused as unknown_input: graph `g` takes no input ``; its inputs are `log`, `bad`");
    insta::assert_snapshot!(alone(input(json!({"bad": "yes", "log": 1, "logs": 1}))), @"refused as unknown_input: graph `g` takes no input `logs`; its inputs are `log`, `bad`");
    let after = |input: Input| {
        let scene = scene();
        scene.invoke(nothing()).unwrap();
        check(&scene, input, RunOptions::default())
    };
    insta::assert_snapshot!(after(nothing()), @r#"done with ["n","end","n","end"]"#);
    insta::assert_snapshot!(after(Input::Continue), @r#"done with ["n","end"]"#);
    insta::assert_snapshot!(after(answer("yes")), @r#"done with ["n","end"]"#);
    insta::assert_snapshot!(after(Input::Resume(Resume::by_id([("0", "yes")]))), @"refused as unknown_interrupt: `0` is no open question of the thread; open are none");
    insta::assert_snapshot!(after(Input::Command(ClientCommand::default())), @r#"done with ["n","end"]"#);
}

#[test]
fn options_that_let_nothing_run_are_refused() {
    let refused = |options: RunOptions| {
        let scene = Scene::new(graph(goes("end"), |_| ()));
        let told = check(&scene, nothing(), options);
        assert!(scene.transcript().ends_with("done\n"));
        told
    };
    let default = RunOptions::default;
    insta::assert_snapshot!(refused(RunOptions { step_limit: 0, ..default() }), @"refused as invalid_option: a limit of 0 steps lets nothing run; the least is 1");
    insta::assert_snapshot!(refused(RunOptions { max_steps: Some(0), ..default() }), @"refused as invalid_option: `max_steps` of 0 lets nothing run; the least is 1");
    insta::assert_snapshot!(refused(RunOptions { max_parallel: 0, ..default() }), @"refused as invalid_option: `max_parallel` of 0 lets no task run; the least is 1");
    insta::assert_snapshot!(refused(RunOptions { step_timeout: Some(Duration::ZERO), ..default() }), @"refused as invalid_option: `step_timeout` of 0 lets nothing run; leave it out, or make it longer");
    let at = |node: &str| Breakpoints::Nodes(vec!["n".into(), node.into()]);
    insta::assert_snapshot!(refused(RunOptions { interrupt_before: at("nn"), ..default() }), @"refused as invalid_option: a breakpoint names `nn`, and graph `g` has no such node; did you mean `n`?");
    insta::assert_snapshot!(refused(RunOptions { interrupt_after: at(START), ..default() }), @"refused as invalid_option: a breakpoint names `__start__`, and graph `g` has no such node");
    insta::assert_snapshot!(refused(RunOptions { interrupt_after: at(END), ..default() }), @"refused as invalid_option: a breakpoint names `__end__`, and graph `g` has no such node");
    // Limits that nothing meets are no mistake.
    let huge = RunOptions {
        step_limit: u64::MAX,
        max_steps: Some(u64::MAX),
        max_parallel: usize::MAX,
        step_timeout: Some(Duration::MAX),
        ..default()
    };
    insta::assert_snapshot!(refused(huge), @r#"done with ["n","end"]"#);
}

#[test]
fn a_node_that_does_not_listen_is_cancelled_where_it_waits() {
    let deaf = |_: NodeCx| async {
        loop {
            pause().await;
        }
        #[allow(unreachable_code)]
        Ok::<_, NodeError>(())
    };
    let scene = Scene::new(graph(deaf, |_| ()));
    let options = RunOptions::default();
    let cancel = options.cancel.clone();
    let (outcome, ()) = block_on(async {
        tokio::join!(scene.run(bad(), options), async {
            pause().await;
            cancel.cancel();
        })
    });
    insta::assert_snapshot!(shown(&outcome), @"cancelled with []");
    goes_on(&scene);
}

/// A node that never waits can not be stopped: whoever polls the run is in it.
#[test]
fn a_node_that_never_waits_is_cancelled_when_it_returns() {
    let options = RunOptions::default();
    let cancel = options.cancel.clone();
    let turns = Count::default();
    let counted = turns.clone();
    let busy = move |_: NodeCx| {
        let (counted, cancel) = (counted.clone(), cancel.clone());
        async move {
            while counted.up() < 1000 {
                cancel.cancel();
            }
            Ok::<_, NodeError>(Update::new().set("log", "whole"))
        }
    };
    let scene = Scene::new(graph(busy, |_| ()));
    // It was done before anybody could look, so what it did counts, and nothing runs after it.
    insta::assert_snapshot!(shown(&block_on(scene.run(bad(), options))), @r#"cancelled with ["whole"]"#);
    assert_eq!(turns.get(), 1000);
    goes_on(&scene);
}

/// What a reducer of the user's own may do instead of folding.
#[derive(Debug)]
enum Odd {
    /// Makes a text of what is read as a number.
    Text,
    /// Leaves the channel as it is.
    Nothing,
    /// Refuses, and says nothing.
    Silent,
}

impl Reducer for Odd {
    fn name(&self) -> &'static str {
        "odd"
    }
    fn fold(&self, channel: &mut Fold<'_>, _: &Value) -> Result<(), ReduceError> {
        match self {
            Self::Text => channel.set("text".into()),
            Self::Nothing => {}
            Self::Silent => {
                channel.set("half".into());
                return Err(ReduceError::new("no"));
            }
        }
        Ok(())
    }
}

#[test]
fn odd_reducers_are_met_where_their_value_is_used() {
    let writes_odd = |odd: Odd| {
        let mut read = None;
        let writes = |_: NodeCx| async { Ok::<_, NodeError>(Update::new().set("odd", 1)) };
        let graph = graph(writes, |graph| {
            let channel = graph.channel("odd", custom::<i64>(odd));
            read = Some(channel.clone());
            graph.node("reads", move |cx: NodeCx| {
                let channel = channel.clone();
                async move {
                    if is_bad(&cx) {
                        let read = cx.get(&channel)?;
                        return Ok(Update::new().set("log", format!("{read:?}")));
                    }
                    Ok::<_, NodeError>(Update::new())
                }
            });
            graph.edge("end", "reads");
        });
        check(&Scene::new(graph), bad(), RunOptions::default())
    };
    insta::assert_snapshot!(writes_odd(Odd::Text), @r#"failed as node: node `reads` failed: channel `odd` does not hold what was asked for: invalid type: string "text", expected i64"#);
    insta::assert_snapshot!(writes_odd(Odd::Nothing), @r#"done with ["end","None"]"#);
    insta::assert_snapshot!(writes_odd(Odd::Silent), @"failed as reducer: channel `odd` by `n` could not be written: no");
}

#[test]
fn a_value_of_another_kind_is_not_lost_under_a_reducer() {
    let overwritten = |value: Value| {
        let node = move |_: NodeCx| {
            let value = value.clone();
            async move { Ok::<_, NodeError>(Update::new().overwrite("other", value)) }
        };
        let graph = graph(node, |graph| {
            graph.channel("other", append::<Value>());
            graph.node("appends", |cx: NodeCx| async move {
                let update = Update::new();
                Ok::<_, NodeError>(if is_bad(&cx) {
                    update.set("other", 1)
                } else {
                    update
                })
            });
            graph.edge("n", "appends");
        });
        let scene = Scene::new(graph);
        let ended = shown(&scene.invoke(bad()));
        let other = scene.state().values["other"].clone();
        goes_on(&scene);
        format!("{other} {ended}")
    };
    insta::assert_snapshot!(overwritten("text".into()), @r#"["text",1] done with ["end"]"#);
    insta::assert_snapshot!(overwritten(Value::Null), @"[] failed as reducer: channel `other` by `n` could not be written: `append` takes an item or a list of them, and got null");
}

#[test]
fn a_thread_of_another_graph_is_refused_whole_and_kept() {
    let old = || {
        let mut graph = Graph::builder("g");
        graph.channel("log", append::<String>());
        graph.channel("gone", last::<String>());
        for name in ["a", "b", "c"] {
            graph.node(name, move |_: NodeCx| async move {
                Ok::<_, NodeError>(Update::new().set("log", name))
            });
        }
        graph.node("z", |_: NodeCx| async {
            Ok::<_, NodeError>(Update::new().set("log", "z"))
        });
        graph.edge(START, "a").edge("a", "b").edge("a", "z");
        graph.join(["a", "b"], "c");
        graph.build().unwrap()
    };
    let store = Arc::new(MemoryCheckpointer::new());
    let first = Scene::over(old(), store.clone());
    let options = RunOptions {
        max_steps: Some(1),
        ..RunOptions::default()
    };
    let stopped = block_on(first.run(input(json!({"gone": "kept"})), options)).unwrap();
    assert_eq!(stopped.exit.name(), "step_limit");
    let before = first.history();
    assert_eq!(before[0].next.len(), 2);
    // The nodes, the channel and the join that the thread is at are no more.
    let new = graph(goes("end"), |_| ());
    let second = Scene::over(new, store);
    for given in [Input::Continue, nothing(), bad()] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(shown(&second.invoke(given)), @"refused as mismatch: the stored thread does not fit graph `g`: it has a value in the channel `gone`, which the graph does not have; it waits to run the node `b`, which the graph does not have; it waits to run the node `z`, which the graph does not have");
        }
    }
    insta::assert_snapshot!(block_on(second.runner.state(&thread())).unwrap_err(), @"the stored thread does not fit graph `g`: it has a value in the channel `gone`, which the graph does not have; it waits to run the node `b`, which the graph does not have; it waits to run the node `z`, which the graph does not have");
    let update = block_on(second.runner.update(&thread(), "n", Update::new()));
    insta::assert_snapshot!(update.unwrap_err(), @"the stored thread does not fit graph `g`: it has a value in the channel `gone`, which the graph does not have; it waits to run the node `b`, which the graph does not have; it waits to run the node `z`, which the graph does not have");
    assert_eq!(first.history(), before);
    let done = first.invoke(Input::Continue).unwrap();
    assert_eq!(done.exit.name(), "done");
    assert_eq!(done.values["log"].to_canonical(), r#"["a","b","z","c"]"#);
}

#[test]
fn a_join_that_is_no_more_is_still_there_for_the_graph_that_has_it() {
    let graph = |joins: bool| {
        let mut graph = Graph::builder("g");
        graph.channel("log", append::<String>());
        for name in ["a", "b", "c"] {
            graph.node(name, move |_: NodeCx| async move {
                Ok::<_, NodeError>(Update::new().set("log", name))
            });
        }
        graph.edge(START, "a").edge("a", "b");
        if joins {
            graph.join(["a", "b"], "c");
        }
        graph.build().unwrap()
    };
    let store = Arc::new(MemoryCheckpointer::new());
    let old = Scene::over(graph(true), store.clone());
    let options = RunOptions {
        max_steps: Some(1),
        ..RunOptions::default()
    };
    block_on(old.run(nothing(), options)).unwrap();
    let fills = old.state().id;
    // `b` runs as planned, and nobody waits for it.
    let new = Scene::over(graph(false), store);
    let outcome = new.invoke(Input::Continue);
    insta::assert_snapshot!(shown(&outcome), @r#"done with ["a","b"]"#);
    let options = RunOptions {
        at: Some(fills),
        ..RunOptions::default()
    };
    let outcome = block_on(old.run(Input::Continue, options));
    insta::assert_snapshot!(shown(&outcome), @r#"done with ["a","b","c"]"#);
}
