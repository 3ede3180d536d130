//! What goes wrong in nodes, and what is left of the thread.

use crate::scene::{Count, Scene, answer, block_on, input, nothing, pause, thread};
use crate::store::Unsteady;
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tine_engine::channel::{Fold, ReduceError, append, custom, last, messages};
use tine_engine::{
    ErrorClass, Event, EventKind, Graph, GraphBuilder, Input, MemoryCheckpointer, NodeCx,
    NodeError, Reducer, RetryPolicy, RunOptions, Runner, START, SimWorld, Update, Value,
};

fn graph(build: impl FnOnce(&mut GraphBuilder)) -> Graph {
    let mut graph = Graph::builder("g");
    graph.channel("x", append::<String>());
    graph.channel("y", last::<String>());
    build(&mut graph);
    graph.build().unwrap()
}

/// Runs a graph that fails. Shows the error, what is left, and what is still to do.
fn check(graph: Graph) -> String {
    let scene = Scene::new(graph);
    let outcome = scene.invoke(nothing()).unwrap();
    let error = outcome.exit.error().unwrap();
    let state = scene.state();
    assert_eq!(outcome.values, state.values);
    let next: Vec<String> = state
        .next
        .iter()
        .map(|task| {
            let failed = if task.error.is_some() {
                " (failed)"
            } else {
                ""
            };
            format!("{}{failed}", task.node)
        })
        .collect();
    format!(
        "{}: {error}\n{} at step {}, next {}",
        error.code(),
        Value::from(state.values),
        state.step,
        next.join(", ")
    )
}

fn writes(channel: &'static str, value: &'static str) -> impl tine_engine::Node {
    move |_: NodeCx| async move { Ok::<_, NodeError>(Update::new().set(channel, value)) }
}

#[test]
fn two_writers_of_one_value_are_both_named() {
    let graph = graph(|graph| {
        graph.node("left", writes("y", "l"));
        graph.node("right", writes("y", "r"));
        graph.edge(START, "left").edge(START, "right");
    });
    insta::assert_snapshot!(check(graph), @r#"
    concurrent_update: `left` and `right` wrote `y` in the same step, and its reducer `last` takes one write; give it one that merges, or write two channels
    {"x":[]} at step 0, next left (failed), right (failed)
    "#);
}

#[test]
fn a_panic_is_an_error_of_its_node_and_its_siblings_are_kept() {
    let graph = graph(|graph| {
        graph.node("bad", |_: NodeCx| async {
            assert!(std::hint::black_box(false), "out of luck");
            Ok::<_, NodeError>(())
        });
        graph.node("good", writes("x", "good"));
        graph.edge(START, "bad").edge(START, "good");
    });
    insta::assert_snapshot!(check(graph), @r#"
    node: node `bad` failed: panicked: out of luck
    {"x":["good"]} at step 0, next bad (failed)
    "#);
}

#[test]
fn the_first_error_in_task_order_is_told() {
    let graph = graph(|graph| {
        graph.node("a", |cx: NodeCx| async move {
            cx.world().sleep(Duration::from_secs(9)).await;
            Err::<(), _>(NodeError::new(ErrorClass::Denied, "slow no"))
        });
        graph.node("b", |_: NodeCx| async {
            Err::<(), _>(NodeError::new(ErrorClass::Denied, "quick no"))
        });
        graph.edge(START, "a").edge(START, "b");
    });
    insta::assert_snapshot!(check(graph), @r#"
    node: node `a` failed: slow no
    {"x":[]} at step 0, next a (failed), b (failed)
    "#);
}

#[test]
fn a_node_that_never_ends_meets_its_timeout() {
    let graph = graph(|graph| {
        graph
            .node("hangs", |_: NodeCx| async {
                std::future::pending::<()>().await;
                Ok::<_, NodeError>(())
            })
            .timeout(Duration::from_secs(5));
        graph.edge(START, "hangs");
    });
    insta::assert_snapshot!(check(graph), @r#"
    node_timeout: node `hangs` took longer than 5000 ms
    {"x":[]} at step 0, next hangs (failed)
    "#);
}

#[test]
fn a_reducer_says_what_it_wants() {
    let graph = graph(|graph| {
        graph.node("a", |_: NodeCx| async {
            Ok::<_, NodeError>(Update::new().set("x", Value::Null))
        });
        graph.edge(START, "a");
    });
    insta::assert_snapshot!(check(graph), @r#"
    reducer: channel `x` by `a` could not be written: `append` takes an item or a list of them, and got null
    {"x":[]} at step 0, next a (failed)
    "#);
}

#[test]
fn a_refused_write_leaves_nothing_of_its_step() {
    let graph = graph(|graph| {
        graph.node("good", writes("x", "good"));
        graph.node("refused", |_: NodeCx| async {
            Ok::<_, NodeError>(Update::new().set("x", Value::Null))
        });
        graph.edge(START, "good").edge(START, "refused");
    });
    insta::assert_snapshot!(check(graph), @r#"
    reducer: channel `x` by `refused` could not be written: `append` takes an item or a list of them, and got null
    {"x":[]} at step 0, next good (failed), refused (failed)
    "#);
}

/// A reducer of the user's own, with a mistake in it.
#[derive(Debug)]
struct Broken;

impl Reducer for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }
    fn fold(&self, _: &mut Fold<'_>, _: &Value) -> Result<(), ReduceError> {
        assert!(std::hint::black_box(false), "out of luck");
        Ok(())
    }
}

#[test]
fn a_reducer_that_panics_is_an_error() {
    let graph = graph(|graph| {
        graph.channel("broken", custom::<Value>(Broken));
        graph.node("a", writes("broken", "x"));
        graph.edge(START, "a");
    });
    insta::assert_snapshot!(check(graph), @r#"
    reducer: channel `broken` by `a` could not be written: its reducer panicked: out of luck
    {"x":[]} at step 0, next a (failed)
    "#);
}

#[test]
fn results_that_conflict_do_not_hide_the_thread_while_a_question_is_open() {
    let graph = graph(|graph| {
        graph.node("left", writes("y", "l"));
        graph.node("right", writes("y", "r"));
        graph.node("ask", |cx: NodeCx| async move {
            cx.interrupt("well?")?;
            Ok::<_, NodeError>(())
        });
        graph
            .edge(START, "left")
            .edge(START, "right")
            .edge(START, "ask");
    });
    let scene = Scene::new(graph);
    let asked = scene.invoke(nothing()).unwrap();
    assert_eq!(asked.exit.name(), "interrupted");
    // What the two wrote is no state, so the thread is shown as it was before.
    let state = scene.state();
    assert_eq!(state.interrupts, asked.interrupts);
    assert_eq!(Value::from(state.values).to_canonical(), r#"{"x":[]}"#);
    let failed = scene.invoke(answer("go on")).unwrap();
    assert_eq!(failed.exit.error().unwrap().code(), "concurrent_update");
}

#[test]
fn a_finished_task_that_does_not_fit_the_graph_any_more_is_not_run_again() {
    let runs = Count::default();
    let build = |channel: &'static str| {
        let runs = runs.clone();
        let finishes = move |_: NodeCx| {
            runs.up();
            async move { Ok::<_, NodeError>(Update::new().set(channel, "v")) }
        };
        graph(|graph| {
            graph.channel(channel, last::<String>());
            graph.node("finishes", finishes);
            graph.node("asks", |cx: NodeCx| async move {
                cx.interrupt("well?")?;
                Ok::<_, NodeError>(())
            });
            graph.edge(START, "finishes").edge(START, "asks");
        })
    };
    let store = Arc::new(MemoryCheckpointer::new());
    Scene::over(build("old"), store.clone())
        .invoke(nothing())
        .unwrap();
    let outcome = Scene::over(build("new"), store).invoke(answer("go on"));
    insta::assert_snapshot!(outcome.unwrap().exit.error().unwrap(), @"the stored thread does not fit graph `g`: node `finishes` finished and wrote `old`, which the graph does not have");
    assert_eq!(runs.get(), 1);
}

/// What listeners hear of the beginning and the end of a run, if the store is full from the beginning, or from the
/// first task on.
fn heard(full_at_once: bool) -> (Vec<&'static str>, String) {
    let store = Unsteady::default();
    let disk = store.clone();
    let graph = graph(|graph| {
        graph.node("fills", move |_: NodeCx| {
            disk.fill();
            async { Ok::<_, NodeError>(()) }
        });
        graph.edge(START, "fills");
    });
    if full_at_once {
        store.fill();
    }
    let heard: Arc<Mutex<Vec<&str>>> = Arc::default();
    let hears = heard.clone();
    let options = RunOptions {
        listener: Some(Arc::new(move |event: &Event| match event.kind {
            EventKind::Started { .. } => hears.lock().unwrap().push("started"),
            EventKind::Ended { .. } => hears.lock().unwrap().push("ended"),
            _ => {}
        })),
        ..RunOptions::default()
    };
    let runner = Runner::new(graph, SimWorld::new(0)).with_checkpointer(Arc::new(store));
    let outcome = block_on(runner.invoke(&thread(), nothing(), options));
    let told = outcome.map_or_else(
        |error| format!("refused: {error}"),
        |outcome| format!("failed: {}", outcome.exit.error().unwrap()),
    );
    (std::mem::take(&mut *heard.lock().unwrap()), told)
}

#[test]
fn a_run_that_started_ends_though_its_store_breaks() {
    let (events, told) = heard(true);
    assert_eq!(events, ["started", "ended"]);
    insta::assert_snapshot!(told, @"refused: the thread could not be stored or read: disk: full");
    let (events, told) = heard(false);
    assert_eq!(events, ["started", "ended"]);
    insta::assert_snapshot!(told, @"failed: the thread could not be stored or read: disk: full");
}

#[test]
fn an_unknown_channel_is_an_error_that_lists_the_known() {
    let graph = graph(|graph| {
        graph.node("a", writes("z", "lost"));
        graph.edge(START, "a");
    });
    insta::assert_snapshot!(check(graph), @r#"
    invalid_update: node `a`: writes to `z`, and graph `g` declares no such channel; it has `x`, `y`
    {"x":[]} at step 0, next a (failed)
    "#);
}

#[test]
fn a_retried_node_waits_and_then_goes_on() {
    let tries = Count::default();
    let counted = tries.clone();
    let graph = graph(|graph| {
        let policy = RetryPolicy {
            max_attempts: 3,
            jitter: false,
            ..RetryPolicy::default()
        };
        graph
            .node("flaky", move |cx: NodeCx| {
                let attempt = counted.up();
                async move {
                    assert_eq!(attempt, u64::from(cx.attempt()));
                    if attempt < 3 {
                        return Err(NodeError::new(ErrorClass::Transport, "broke off"));
                    }
                    Ok(Update::new().set("x", "third"))
                }
            })
            .retry(policy);
        graph.edge(START, "flaky");
    });
    let scene = Scene::new(graph);
    let outcome = scene.invoke(nothing()).unwrap();
    assert_eq!(outcome.exit.name(), "done");
    assert_eq!(tries.get(), 3);
    insta::assert_snapshot!(scene.transcript(), @r#"
    step 0
      ran    __start__
      next   flaky
    step 1
      ran    flaky
      failed flaky: broke off, tried again
      failed flaky: broke off, tried again
      wrote  flaky: x <- "third"
      next   nothing
    done
    "#);
}

#[test]
fn a_cancelled_run_stops_and_can_go_on() {
    let visits = Count::default();
    let graph = graph(|graph| {
        graph.node("fine", writes("x", "fine"));
        graph.node("stuck", move |_: NodeCx| {
            let first = visits.up() == 1;
            async move {
                if first {
                    std::future::pending::<()>().await;
                }
                Ok::<_, NodeError>(Update::new().set("x", "freed"))
            }
        });
        graph.edge(START, "fine").edge(START, "stuck");
    });
    let scene = Scene::new(graph);
    let options = RunOptions::default();
    let cancel = options.cancel.clone();
    let (outcome, ()) = block_on(async {
        tokio::join!(scene.run(nothing(), options), async {
            pause().await;
            cancel.cancel();
        })
    });
    assert_eq!(outcome.unwrap().exit.name(), "cancelled");
    scene.invoke(Input::Continue).unwrap();
    insta::assert_snapshot!(scene.transcript(), @r#"
    step 0
      ran    __start__
      next   fine stuck
    step 1
      ran    fine stuck
      wrote  fine: x <- "fine"
    cancelled
    step 1
      ran    fine stuck
      wrote  fine (stored): x <- "fine"
      wrote  stuck: x <- "freed"
      next   nothing
    done
    "#);
}

#[test]
fn a_thread_has_one_writer_at_a_time() {
    let graph = graph(|graph| {
        graph.node("slow", |_: NodeCx| async {
            pause().await;
            Ok::<_, NodeError>(())
        });
        graph.edge(START, "slow");
    });
    let runner =
        Runner::new(graph, SimWorld::new(0)).with_checkpointer(Arc::new(MemoryCheckpointer::new()));
    let key = thread();
    let run = || runner.invoke(&key, nothing(), RunOptions::default());
    let (first, second) = block_on(async { tokio::join!(run(), run()) });
    assert_eq!(first.unwrap().exit.name(), "done");
    insta::assert_snapshot!(second.unwrap_err(), @"the thread could not be stored or read: thread `t` is being run by another run of this process");
    assert_eq!(block_on(run()).unwrap().exit.name(), "done");
}

#[test]
fn a_message_that_no_node_could_read_does_not_enter_the_thread() {
    let refused = |message: serde_json::Value| {
        let mut graph = Graph::builder("g");
        graph.channel("messages", messages());
        graph.node("n", |_: NodeCx| async move { Ok(()) });
        graph.edge(START, "n");
        let scene = Scene::new(graph.build().unwrap());
        let input = input(json!({"messages": ["hi", message]}));
        // A refused input leaves no thread behind.
        match scene.invoke(input) {
            Ok(outcome) => {
                assert_eq!(outcome.exit.name(), "done");
                let kept = scene.state().values["messages"].as_list().unwrap().len();
                (kept, String::new())
            }
            Err(error) => {
                assert!(block_on(scene.runner.state(&thread())).unwrap().is_none());
                (0, error.to_string())
            }
        }
    };
    let (kept, error) = refused(json!({"role": "user", "content": "x", "id": 5}));
    assert_eq!(kept, 0);
    insta::assert_snapshot!(error, @"channel `messages` could not be written: the `id` of a message is a text, not a number; without one it gets a new id");
    let (kept, error) = refused(json!({"role": "ai", "content": "", "tool_calls": "x"}));
    assert_eq!(kept, 0);
    insta::assert_snapshot!(error, @r#"channel `messages` could not be written: the field `tool_calls` of a message does not fit: invalid type: string "x", expected a sequence"#);
    let openai = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]});
    assert_eq!(refused(openai), (2, String::new()));
}

#[test]
fn messages_with_an_empty_id_are_all_kept() {
    let mut graph = Graph::builder("g");
    graph.channel("messages", messages());
    graph.node("n", |_: NodeCx| async move { Ok(()) });
    graph.edge(START, "n");
    let scene = Scene::new(graph.build().unwrap());
    let said = |text: &str| json!({"role": "user", "content": text, "id": ""});
    let outcome = scene.invoke(input(json!({"messages": [said("one"), said("two")]})));
    let kept = &outcome.unwrap().values["messages"];
    assert_eq!(kept.as_list().unwrap().len(), 2);
}

#[test]
fn a_simulated_clock_stands_still_while_a_task_can_go_on() {
    let yields = |name: &'static str| {
        move |_: NodeCx| async move {
            for _ in 0..5 {
                tokio::task::yield_now().await;
            }
            pause().await;
            Ok::<_, NodeError>(Update::new().set("x", name))
        }
    };
    for names in [&["a"][..], &["a", "b"]] {
        let graph = graph(|graph| {
            for name in names {
                graph
                    .node(*name, yields(name))
                    .timeout(Duration::from_secs(60));
                graph.edge(START, *name);
            }
        });
        let outcome = Scene::new(graph).invoke(nothing()).unwrap();
        assert_eq!(outcome.exit.name(), "done", "{:?}", outcome.exit);
    }
}

#[test]
fn no_limit_of_parallel_tasks_costs_nothing() {
    let graph = graph(|graph| {
        for name in ["a", "b"] {
            graph.node(name, writes("x", name));
            graph.edge(START, name);
        }
    });
    let options = RunOptions {
        max_parallel: usize::MAX,
        ..RunOptions::default()
    };
    let scene = Scene::new(graph);
    let outcome = block_on(scene.run(nothing(), options)).unwrap();
    assert_eq!(outcome.exit.name(), "done");
}

#[test]
fn a_question_that_is_swallowed_is_an_error() {
    let mut graph = Graph::builder("deaf");
    graph.node("a", |cx: NodeCx| async move {
        cx.interrupt("well?").ok();
        Ok::<_, NodeError>(())
    });
    graph.edge(START, "a");
    let scene = Scene::new(graph.build().unwrap());
    let outcome = scene.invoke(nothing()).unwrap();
    assert_eq!(
        outcome.exit.error().unwrap().to_string(),
        "node `a` failed: asked a question and went on without the answer; hand the error of `interrupt` on with `?`"
    );
    assert!(scene.state().interrupts.is_empty());
}

#[test]
fn a_listener_that_panics_harms_no_run() {
    for at in 0..8 {
        let mut graph = Graph::builder("heard");
        graph.channel("x", append::<String>());
        graph.node("a", |cx: NodeCx| async move {
            cx.emit("said", || "a".into());
            Ok::<_, NodeError>(Update::new().set("x", "a"))
        });
        graph.edge(START, "a");
        let runner = Runner::new(graph.build().unwrap(), SimWorld::new(1))
            .with_checkpointer(Arc::new(MemoryCheckpointer::new()));
        let heard = Count::default();
        let count = heard.clone();
        let listener = move |_: &Event| assert!(count.up() <= at, "enough");
        let options = RunOptions {
            listener: Some(Arc::new(listener)),
            ..RunOptions::default()
        };
        let outcome = block_on(runner.invoke(&thread(), nothing(), options)).unwrap();
        assert_eq!(outcome.exit.name(), "done");
        assert_eq!(outcome.values["x"].to_string(), r#"["a"]"#);
        assert_eq!(outcome.deaf.as_deref(), Some("panicked: enough"));
        assert_eq!(heard.get(), at + 1);
    }
}
