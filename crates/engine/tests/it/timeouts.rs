//! Limits on time: of an attempt, of its silence, of a step.

use crate::scene::{Count, Scene, block_on, nothing};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tine_engine::channel::append;
use tine_engine::run::{Call, ChildMemory, Effects, Subgraph};
use tine_engine::{
    ErrorClass, Graph, GraphBuilder, Input, NodeCx, NodeDefaults, NodeError, RetryPolicy,
    RunOptions, START, Update, Value, World,
};

fn graph(build: impl FnOnce(&mut GraphBuilder)) -> Graph {
    let mut graph = Graph::builder("g");
    graph.channel("log", append::<String>());
    build(&mut graph);
    graph.build().unwrap()
}

fn log(text: &str) -> Update {
    Update::new().set("log", text)
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// How a run ends, when, and what it wrote.
fn check(scene: &Scene, options: RunOptions) -> String {
    let outcome = block_on(scene.run(nothing(), options)).unwrap();
    let error = outcome.exit.error().map(|error| format!(": {error}"));
    format!(
        "{}{} at {} ms {}",
        outcome.exit.name(),
        error.unwrap_or_default(),
        scene.world.now().0,
        outcome.values["log"]
    )
}

/// A node with an idle timeout of 100 ms that sleeps 60 ms three times, and between shows what it is given.
fn idles<F, R>(shows: F) -> String
where
    F: Fn(NodeCx, u32) -> R + Copy + Send + Sync + 'static,
    R: Future<Output = Result<(), NodeError>> + Send,
{
    let node = move |cx: NodeCx| async move {
        for at in 0..3 {
            cx.world().sleep(ms(60)).await;
            shows(cx.clone(), at).await?;
        }
        Ok::<_, NodeError>(log("fine"))
    };
    let graph = graph(|graph| {
        graph.node("a", node).idle_timeout(ms(100));
        graph.edge(START, "a");
    });
    check(&Scene::new(graph), RunOptions::default())
}

#[test]
fn an_attempt_may_not_be_silent_for_too_long() {
    let silent = idles(|_, _| async { Ok(()) });
    assert_eq!(
        silent,
        "failed: node `a` showed no progress for 100 ms, which is its idle timeout at 100 ms []"
    );
    let once = idles(|cx, at| async move {
        if at == 0 {
            cx.heartbeat();
        }
        Ok(())
    });
    assert_eq!(
        once,
        "failed: node `a` showed no progress for 100 ms, which is its idle timeout at 160 ms []"
    );
}

#[test]
fn all_that_a_node_tells_or_begins_is_progress() {
    let fine = r#"done at 180 ms ["fine"]"#;
    let beats = idles(|cx, _| async move {
        cx.heartbeat();
        Ok(())
    });
    assert_eq!(beats, fine);
    let emits = idles(|cx, _| async move {
        cx.emit("token", || "x".into());
        Ok(())
    });
    assert_eq!(emits, fine);
    let calls = idles(|cx, at| async move {
        let call = Call::new(format!("k{at}"), &Value::Null);
        cx.call(&call, Effects::ReadOnly, |_| async { Ok(Value::Null) })
            .await
            .map(drop)
    });
    assert_eq!(calls, fine);
    let children = idles(|cx, _| async move {
        let mut child = Graph::builder("child");
        child.node("inner", |_: NodeCx| async { Ok::<_, NodeError>(()) });
        child.edge(START, "inner");
        let child = child.build().unwrap();
        cx.child(&child, "", Update::new(), ChildMemory::Run)
            .await
            .map(drop)
    });
    assert_eq!(children, fine);
}

#[test]
fn what_a_child_shows_is_progress_of_the_tasks_it_runs_in() {
    let check = |shows: bool| {
        let mut graph = Graph::builder("inner");
        graph.channel("log", append::<String>());
        graph.node("a", move |cx: NodeCx| async move {
            for _ in 0..3 {
                cx.world().sleep(ms(60)).await;
                if shows {
                    cx.emit("token", || "x".into());
                }
            }
            Ok::<_, NodeError>(log("fine"))
        });
        graph.edge(START, "a");
        for name in ["middle", "outer"] {
            let child = graph.build().unwrap();
            graph = Graph::builder(name);
            graph.channel("log", append::<String>());
            graph
                .node("child", Subgraph::new(child))
                .idle_timeout(ms(100));
            graph.edge(START, "child");
        }
        check(&Scene::new(graph.build().unwrap()), RunOptions::default())
    };
    assert_eq!(check(true), r#"done at 180 ms ["fine"]"#);
    assert_eq!(
        check(false),
        "failed: node `child/child` showed no progress for 100 ms, which is its idle timeout at 100 ms []"
    );
}

#[test]
fn progress_without_a_listener_counts() {
    let graph = graph(|graph| {
        let node = |cx: NodeCx| async move {
            for _ in 0..3 {
                cx.world().sleep(ms(60)).await;
                cx.emit("token", || "x".into());
            }
            Ok::<_, NodeError>(log("fine"))
        };
        graph.node("a", node).idle_timeout(ms(100));
        graph.edge(START, "a");
    });
    let scene = Scene::new(graph);
    let key = crate::scene::thread();
    let run = scene.runner.invoke(&key, nothing(), RunOptions::default());
    assert_eq!(block_on(run).unwrap().exit.name(), "done");
}

#[test]
fn an_idle_attempt_is_tried_again() {
    let tries = Count::default();
    let graph = graph(|graph| {
        let node = move |cx: NodeCx| {
            let first = tries.up() == 1;
            async move {
                if first {
                    std::future::pending::<()>().await;
                }
                Ok::<_, NodeError>(log(&format!("attempt {}", cx.attempt())))
            }
        };
        graph.node("a", node);
        graph.edge(START, "a");
        let retry = RetryPolicy {
            max_attempts: 2,
            initial: ms(10),
            jitter: false,
            ..RetryPolicy::default()
        };
        // A node that says nothing has the limits of its graph.
        graph.set_node_defaults(NodeDefaults::new().retry(retry).idle_timeout(ms(100)));
    });
    let scene = Scene::new(graph);
    assert_eq!(
        check(&scene, RunOptions::default()),
        r#"done at 110 ms ["attempt 2"]"#
    );
}

#[test]
fn the_shorter_of_two_limits_is_met() {
    let check = |whole, idle| {
        let graph = graph(|graph| {
            let node = |_: NodeCx| async {
                std::future::pending::<()>().await;
                Ok::<_, NodeError>(())
            };
            let node = graph.node("a", node);
            node.timeout(ms(whole)).idle_timeout(ms(idle));
            graph.edge(START, "a");
        });
        check(&Scene::new(graph), RunOptions::default())
    };
    assert_eq!(
        check(50, 100),
        "failed: node `a` took longer than 50 ms at 50 ms []"
    );
    assert_eq!(
        check(200, 100),
        "failed: node `a` showed no progress for 100 ms, which is its idle timeout at 100 ms []"
    );
}

#[test]
fn a_late_attempt_can_do_nothing() {
    let keeps: Arc<Mutex<Vec<NodeCx>>> = Arc::default();
    let graph = graph(|graph| {
        let node = move |cx: NodeCx| {
            let late = keeps.lock().unwrap().first().cloned();
            keeps.lock().unwrap().push(cx);
            async move {
                let Some(late) = late else {
                    std::future::pending::<()>().await;
                    return Ok(Update::new());
                };
                late.emit("late", || "x".into());
                let call = Call::new("k", &Value::Null);
                let refused = late.start_calls(&[call]).await.unwrap_err();
                assert_eq!(refused.class(), ErrorClass::Canceled);
                let mut child = Graph::builder("child");
                child.node("inner", |_: NodeCx| async { Ok::<_, NodeError>(()) });
                child.edge(START, "inner");
                let child = child.build().unwrap();
                let child = late
                    .child(&child, "", Update::new(), ChildMemory::Run)
                    .await;
                assert_eq!(child.unwrap_err().class(), ErrorClass::Canceled);
                Ok(log(&refused.to_string()))
            }
        };
        let retry = RetryPolicy {
            max_attempts: 2,
            initial: ms(10),
            jitter: false,
            ..RetryPolicy::default()
        };
        graph.node("a", node).timeout(ms(100)).retry(retry);
        graph.edge(START, "a");
    });
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let hears = heard.clone();
    let options = RunOptions {
        listener: Some(Arc::new(move |event: &tine_engine::Event| {
            if let tine_engine::EventKind::Custom { kind, .. } = &event.kind {
                hears.lock().unwrap().push(kind.to_string());
            }
        })),
        ..RunOptions::default()
    };
    let scene = Scene::new(graph);
    let key = crate::scene::thread();
    let outcome = block_on(scene.runner.invoke(&key, nothing(), options)).unwrap();
    insta::assert_snapshot!(outcome.values["log"], @r#"["attempt 1 of `a` is over; what it left running can do nothing any more"]"#);
    assert_eq!(*heard.lock().unwrap(), Vec::<String>::new());
}

/// `fast` beside `slow`, which sleeps for a second, in a run whose steps may take 500 ms.
fn slow_step(build: impl FnOnce(&mut GraphBuilder)) -> (Scene, RunOptions) {
    let graph = graph(|graph| {
        graph.node("fast", |_: NodeCx| async {
            Ok::<_, NodeError>(log("fast"))
        });
        graph.node("slow", |cx: NodeCx| async move {
            let millis = if cx.now().0 == 0 { 1000 } else { 10 };
            cx.world().sleep(ms(millis)).await;
            Ok::<_, NodeError>(log("slow"))
        });
        build(graph);
    });
    let options = RunOptions {
        step_timeout: Some(ms(500)),
        ..RunOptions::default()
    };
    (Scene::new(graph), options)
}

#[test]
fn a_step_that_takes_too_long_keeps_what_is_finished() {
    let (scene, options) = slow_step(|graph| {
        graph.edge(START, "fast").edge(START, "slow");
    });
    assert_eq!(
        check(&scene, options.clone()),
        "failed: node `slow` was not finished after 500 ms, which is the time limit of a step at 500 ms [\"fast\"]"
    );
    let next = scene.state().next;
    let next: Vec<(&str, bool)> = next
        .iter()
        .map(|task| (&*task.node, task.error.is_some()))
        .collect();
    assert_eq!(next, [("slow", true)]);
    let outcome = block_on(scene.run(Input::Continue, options)).unwrap();
    assert_eq!(outcome.values["log"].to_canonical(), r#"["fast","slow"]"#);
    insta::assert_snapshot!(scene.transcript(), @r#"
    step 0
      ran    __start__
      next   fast slow
    step 1
      ran    fast slow
      wrote  fast: log <- "fast"
      failed slow: node `slow` was not finished after 500 ms, which is the time limit of a step
    failed
    step 1
      ran    fast slow
      wrote  fast (stored): log <- "fast"
      wrote  slow: log <- "slow"
      next   nothing
    done
    "#);
}

#[test]
fn a_step_limit_holds_for_one_task_and_over_all_attempts() {
    let (scene, options) = slow_step(|graph| {
        graph.edge(START, "slow");
    });
    assert_eq!(
        check(&scene, options),
        "failed: node `slow` was not finished after 500 ms, which is the time limit of a step at 500 ms []"
    );
    let handled = Count::default();
    let handles = handled.clone();
    let (scene, options) = slow_step(|graph| {
        let hangs = |_: NodeCx| async {
            std::future::pending::<()>().await;
            Ok::<_, NodeError>(())
        };
        let retry = RetryPolicy {
            max_attempts: 99,
            ..RetryPolicy::default()
        };
        let handler = move |_: NodeCx| {
            handles.up();
            async { Ok::<_, NodeError>(()) }
        };
        let node = graph.node("hangs", hangs).timeout(ms(10)).retry(retry);
        node.on_error(handler);
        graph.edge(START, "hangs");
    });
    assert_eq!(
        check(&scene, options),
        "failed: node `hangs` was not finished after 500 ms, which is the time limit of a step at 500 ms []"
    );
    // The time of the step is over for its handlers too.
    assert_eq!(handled.get(), 0);
}

#[test]
fn each_step_has_the_whole_time() {
    let (scene, options) = slow_step(|graph| {
        for name in ["a", "b"] {
            graph.node(name, move |cx: NodeCx| async move {
                cx.world().sleep(ms(400)).await;
                Ok::<_, NodeError>(log(name))
            });
        }
        graph.edge(START, "a").edge("a", "b");
    });
    assert_eq!(check(&scene, options), r#"done at 800 ms ["a","b"]"#);
}

#[test]
fn a_step_without_time_is_refused() {
    let (scene, _) = slow_step(|graph| {
        graph.edge(START, "fast");
    });
    let options = RunOptions {
        step_timeout: Some(Duration::ZERO),
        ..RunOptions::default()
    };
    let refused = block_on(scene.run(nothing(), options)).unwrap_err();
    insta::assert_snapshot!(refused, @"`step_timeout` of 0 lets nothing run; leave it out, or make it longer");
}
