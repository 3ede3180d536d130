//! When checkpoints become durable: what a run leaves behind in each mode, whatever happens to it.

use crate::scene::{Count, Scene, answer, block_on, input, nothing, pause, poll_some, poll_until};
use crate::store::Unsteady;
use serde_json::json;
use std::future::Future as _;
use std::sync::Arc;
use tine_engine::channel::{add, append, last};
use tine_engine::run::{Call, ChildMemory, Durability, Effects};
use tine_engine::{
    ErrorClass, Graph, Input, NodeCx, NodeError, Outcome, RunError, RunOptions, START, Update,
    Value,
};

const MODES: [Durability; 3] = [Durability::Sync, Durability::Async, Durability::Exit];

fn in_mode(durability: Durability) -> RunOptions {
    RunOptions {
        durability,
        ..RunOptions::default()
    }
}

fn run(scene: &Scene, with: impl Into<Input>, mode: Durability) -> Result<Outcome, RunError> {
    block_on(scene.run(with, in_mode(mode)))
}

/// A chain of `steps` nodes; every one writes to three kinds of channels.
fn chain(steps: usize) -> Graph {
    let mut graph = Graph::builder("chain");
    graph.channel("log", append::<i64>());
    graph.channel("sum", add::<i64>());
    graph.channel("at", last::<i64>());
    let mut before = START.to_owned();
    for number in 0..steps {
        let name = format!("n{number:02}");
        graph.node(name.as_str(), |cx: NodeCx| async move {
            let step = cx.step();
            Ok::<_, NodeError>(
                Update::new()
                    .set("log", step)
                    .set("sum", step)
                    .set("at", step),
            )
        });
        graph.edge(before.as_str(), name.as_str());
        before = name;
    }
    graph.build().unwrap()
}

/// The steps that were stored, newest first.
fn stored(scene: &Scene) -> Vec<i64> {
    scene
        .history()
        .iter()
        .map(|snapshot| snapshot.step)
        .collect()
}

#[test]
fn every_mode_comes_to_the_same_state() {
    for mode in MODES {
        let scene = Scene::new(chain(20));
        for _ in 0..2 {
            let outcome = run(&scene, nothing(), mode).unwrap();
            assert_eq!(outcome.exit.name(), "done");
            assert_eq!(outcome.values, scene.state().values, "{mode:?}");
        }
        let history = scene.history();
        match mode {
            Durability::Exit => {
                assert_eq!(stored(&scene), [42, 20]);
                assert_eq!(history[0].parent, Some(history[1].id));
            }
            _ => assert_eq!(history.len(), 44),
        }
        assert_eq!(history[0].values["sum"].to_string(), "860");
    }
}

#[test]
fn an_update_after_an_exit_is_made_as_the_node_that_ran_last() {
    let scene = Scene::new(chain(3));
    run(&scene, nothing(), Durability::Exit).unwrap();
    let by = tine_engine::run::UpdateAs::LastRan;
    let update = Update::new().set("log", 7);
    block_on(scene.runner.update(&crate::scene::thread(), by, update)).unwrap();
    // It is the end of the chain; as the start the whole chain would be next.
    assert!(scene.state().next.is_empty());
    assert_eq!(scene.state().values["log"].to_string(), "[1,2,3,7]");
}

/// A node that pays, then one that fails.
fn paying(paid: &Count) -> Graph {
    let paid = paid.clone();
    let mut graph = Graph::builder("paying");
    graph.channel("log", append::<Value>());
    graph.node("before", |_: NodeCx| async {
        Ok::<_, NodeError>(Update::new().set("log", "before"))
    });
    graph.node("pay", move |cx: NodeCx| {
        let paid = paid.clone();
        async move {
            let work = async |_: NodeCx| Ok(Value::from(paid.up()));
            let call = Call::new("pay", &Value::Null);
            let times = cx.call(&call, Effects::Effectful, work).await?;
            pause().await;
            Ok::<_, NodeError>(Update::new().set("log", times))
        }
    });
    graph.edge(START, "before").edge("before", "pay");
    graph.build().unwrap()
}

#[test]
fn an_effect_is_durable_before_its_run_is() {
    for mode in MODES {
        let paid = Count::default();
        let scene = Scene::new(paying(&paid));
        let first = scene.run(nothing(), in_mode(mode));
        assert!(
            poll_until(first, 200, || paid.get() == 1).is_none(),
            "{mode:?}"
        );
        // Dropped in the middle of the step. The journal holds, and the checkpoint at which it stands.
        let outcome = run(&scene, Input::Continue, mode);
        assert_eq!(
            outcome.unwrap().values["log"].to_string(),
            r#"["before",1]"#,
            "{mode:?}"
        );
        assert_eq!(paid.get(), 1, "{mode:?}");
    }
}

#[test]
fn a_run_dropped_anywhere_loses_steps_and_nothing_else() {
    for mode in MODES {
        let (mut polls, mut whole) = (0, false);
        while !whole {
            let store = Arc::new(Unsteady::default());
            let scene = Scene::over(chain(5), store.clone());
            whole = poll_some(scene.run(nothing(), in_mode(mode)), polls).is_some();
            let scene = Scene::over(chain(5), store);
            let next = if stored(&scene).is_empty() {
                nothing()
            } else {
                Input::Continue
            };
            let outcome = block_on(scene.run(next, in_mode(mode)));
            let outcome = outcome.unwrap();
            assert_eq!(
                outcome.values["log"].to_string(),
                "[1,2,3,4,5]",
                "{mode:?} after {polls}"
            );
            polls += 1;
        }
        assert!(
            polls > 10,
            "{mode:?}: only {polls} places to drop the run at"
        );
    }
}

#[test]
fn a_disk_that_fills_ends_the_run_in_every_mode() {
    for mode in MODES {
        let store = Arc::new(Unsteady::default());
        let full = Count::default();
        let (at, counted) = (store.clone(), full.clone());
        let mut graph = Graph::builder("filling");
        graph.channel("log", append::<i64>());
        graph.node("n", move |cx: NodeCx| {
            let (at, counted) = (at.clone(), counted.clone());
            async move {
                if counted.up() == 3 {
                    at.fill();
                }
                pause().await;
                let update = Update::new().set("log", cx.step());
                let more = tine_engine::Command::goto("n").update(update);
                Ok::<_, NodeError>(more)
            }
        });
        graph.edge(START, "n");
        let scene = Scene::over(graph.build().unwrap(), store.clone());
        let options = RunOptions {
            step_limit: 200,
            ..in_mode(mode)
        };
        let outcome = block_on(scene.run(nothing(), options)).unwrap();
        let error = outcome.exit.error().unwrap();
        assert_eq!(
            error.to_string(),
            "the thread could not be stored or read: disk: full",
            "{mode:?}"
        );
        // Behind by a few steps at most, then it stops.
        let most = match mode {
            Durability::Sync => 3,
            Durability::Async => 30,
            Durability::Exit => 300,
        };
        assert!(full.get() <= most, "{mode:?}: {} steps", full.get());
        // What was stored is whole.
        let kept = stored(&scene);
        let expected: Vec<i64> = (-1..=kept.first().copied().unwrap_or(-2)).rev().collect();
        assert_eq!(kept, expected, "{mode:?}");
    }
}

#[test]
fn a_thread_is_free_once_its_run_has_ended() {
    for mode in MODES {
        let scene = Scene::new(chain(2));
        block_on(async {
            for _ in 0..5 {
                let outcome = scene.run(nothing(), in_mode(mode)).await;
                assert_eq!(outcome.unwrap().exit.name(), "done", "{mode:?}");
            }
        });
    }
}

#[test]
fn questions_are_durable_when_they_are_asked() {
    for mode in MODES {
        let store = Arc::new(Unsteady::default());
        let mut graph = Graph::builder("asking");
        graph.channel("log", append::<Value>());
        graph.node("ask", |cx: NodeCx| async move {
            let said = vec![cx.interrupt("one?")?, cx.interrupt("two?")?];
            Ok::<_, NodeError>(Update::new().set("log", said))
        });
        graph.node("beside", |_: NodeCx| async {
            Ok::<_, NodeError>(Update::new().set("log", "beside"))
        });
        graph.edge(START, "ask").edge(START, "beside");
        let graph = graph.build().unwrap();
        let said = [nothing(), answer(1), answer(2)].map(|with| {
            // Each in a process of its own.
            let scene = Scene::over(graph.clone(), store.clone());
            let outcome = run(&scene, with, mode).unwrap();
            format!("{} {}", outcome.exit.name(), outcome.values["log"])
        });
        assert_eq!(
            said,
            [
                r#"interrupted ["beside"]"#,
                r#"interrupted ["beside"]"#,
                r#"done [1,2,"beside"]"#
            ],
            "{mode:?}"
        );
    }
}

/// A graph whose node runs a child of two nodes, the second of which fails the first time.
fn nested(runs: &[Count; 2]) -> Graph {
    let [first, second] = runs.clone();
    let mut child = Graph::builder("child");
    child.channel("n", add::<i64>());
    child.node("one", move |_: NodeCx| {
        let runs = first.up();
        async move {
            let _ = runs;
            Ok::<_, NodeError>(Update::new().set("n", 1))
        }
    });
    child.node("two", move |_: NodeCx| {
        let runs = second.up();
        async move {
            if runs == 1 {
                return Err(NodeError::new(ErrorClass::ToolFailed, "not yet"));
            }
            Ok::<_, NodeError>(Update::new().set("n", 10))
        }
    });
    child.edge(START, "one").edge("one", "two");
    let child = child.build().unwrap();
    let mut graph = Graph::builder("host");
    graph.channel("n", last::<i64>());
    graph.node("host", move |cx: NodeCx| {
        let child = child.clone();
        async move {
            let values = cx
                .child(&child, "", Update::new(), ChildMemory::Run)
                .await?;
            Ok::<_, NodeError>(Update::new().set("n", values["n"].clone()))
        }
    });
    graph.edge(START, "host");
    graph.build().unwrap()
}

#[test]
fn a_child_that_failed_goes_on_where_it_was() {
    for mode in MODES {
        let runs: [Count; 2] = Default::default();
        let scene = Scene::new(nested(&runs));
        assert_eq!(run(&scene, nothing(), mode).unwrap().exit.name(), "failed");
        let outcome = run(&scene, Input::Continue, mode).unwrap();
        assert_eq!(outcome.values["n"].to_string(), "11", "{mode:?}");
        assert_eq!(runs.map(|count| count.get()), [1, 2], "{mode:?}");
    }
}

#[test]
fn a_replay_in_every_mode_leaves_the_old_branch_as_it_was() {
    for mode in MODES {
        let scene = Scene::new(chain(3));
        run(&scene, input(json!({"at": 0})), Durability::Sync).unwrap();
        let before = scene.history();
        let options = RunOptions {
            at: Some(before[2].id),
            ..in_mode(mode)
        };
        let outcome = block_on(scene.run(Input::Continue, options)).unwrap();
        assert_eq!(outcome.values["log"].to_string(), "[1,3,4]", "{mode:?}");
        let after = scene.history();
        assert_eq!(after[after.len() - before.len()..], before[..], "{mode:?}");
    }
}

#[test]
fn an_effect_in_a_child_is_made_once_whatever_the_mode_and_the_crash() {
    for mode in MODES {
        let paid = Count::default();
        let mut graph = Graph::builder("host");
        graph.channel("log", append::<Value>());
        for name in ["first", "before"] {
            graph.node(name, |_: NodeCx| async { Ok::<_, NodeError>(()) });
        }
        graph.node("host", tine_engine::run::Subgraph::new(paying(&paid)));
        graph.edge(START, "first").edge("first", "before");
        graph.edge("before", "host");
        let scene = Scene::new(graph.build().unwrap());
        let some = RunOptions {
            max_steps: Some(1),
            ..in_mode(mode)
        };
        block_on(scene.run(nothing(), some)).unwrap();
        let crashed = scene.run(Input::Continue, in_mode(mode));
        assert!(
            poll_until(crashed, 400, || paid.get() == 1).is_none(),
            "{mode:?}"
        );
        let outcome = run(&scene, Input::Continue, mode).unwrap();
        assert_eq!((outcome.exit.name(), paid.get()), ("done", 1), "{mode:?}");
    }
}

#[test]
fn a_question_is_told_when_it_is_stored() {
    for mode in MODES {
        let store = Arc::new(tine_engine::MemoryCheckpointer::new());
        let mut graph = Graph::builder("asking");
        graph.channel("log", append::<Value>());
        graph.node("ask", |cx: NodeCx| async move {
            let said = cx.interrupt("well?")?;
            Ok::<_, NodeError>(Update::new().set("log", vec![said]))
        });
        graph.edge(START, "ask");
        let runner =
            tine_engine::Runner::new(graph.build().unwrap(), tine_engine::SimWorld::new(1))
                .with_checkpointer(store.clone());
        let stored = Arc::new(std::sync::Mutex::new(Vec::new()));
        let (seen, memory) = (stored.clone(), store);
        let listener = move |event: &tine_engine::Event| {
            if matches!(event.kind, tine_engine::EventKind::TaskInterrupted { .. }) {
                use tine_engine::Checkpointer as _;
                let scope = tine_engine::checkpoint::Scope::root(crate::scene::thread());
                let load = std::pin::pin!(memory.load(&scope, None));
                let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
                let std::task::Poll::Ready(loaded) = load.poll(&mut cx) else {
                    return;
                };
                let head = loaded.unwrap();
                seen.lock()
                    .unwrap()
                    .push(head.map_or(0, |head| head.open_questions().len()));
            }
        };
        let options = RunOptions {
            listener: Some(Arc::new(listener)),
            ..in_mode(mode)
        };
        block_on(runner.invoke(&crate::scene::thread(), nothing(), options)).unwrap();
        assert_eq!(*stored.lock().unwrap(), [1], "{mode:?}");
    }
}

#[test]
fn limits_beyond_all_numbers_are_no_limits() {
    for limit in [u64::MAX, i64::MAX as u64, i64::MAX as u64 - 1] {
        let scene = Scene::new(chain(2));
        let options = RunOptions {
            step_limit: limit,
            ..RunOptions::default()
        };
        let outcome = block_on(scene.run(nothing(), options)).unwrap();
        assert_eq!(outcome.exit.name(), "done");
    }
}
