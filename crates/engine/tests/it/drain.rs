//! Runs that are asked to stop where they can go on.

use crate::scene::{Count, Scene, block_on, nothing};
use tine_engine::channel::append;
use tine_engine::run::{Call, ChildMemory, Effects, Subgraph};
use tine_engine::{
    Breakpoints, Drain, ErrorClass, ErrorHandler, Exit, Graph, GraphBuilder, Input, NodeCx,
    NodeError, RetryPolicy, RunOptions, Runner, START, SimWorld, Update, Value,
};

/// `a` to `c`, one after the other, that each write their name; the one called `drains` asks to stop while it runs.
fn chain(drains: &'static str) -> GraphBuilder {
    let mut graph = Graph::builder("chain");
    graph.channel("log", append::<String>());
    for name in ["a", "b", "c"] {
        graph.node(name, move |cx: NodeCx| async move {
            if name == drains {
                cx.request_drain();
            }
            Ok::<_, NodeError>(Update::new().set("log", name))
        });
    }
    graph.edge(START, "a").edge("a", "b").edge("b", "c");
    graph
}

fn scene(graph: GraphBuilder) -> Scene {
    Scene::new(graph.build().unwrap())
}

/// How a run ends, and what it wrote.
fn run(scene: &Scene, input: Input, options: RunOptions) -> String {
    let outcome = block_on(scene.run(input, options)).unwrap();
    format!("{} {}", outcome.exit.name(), outcome.values["log"])
}

fn check(scene: &Scene, input: Input) -> String {
    run(scene, input, RunOptions::default())
}

#[test]
fn a_run_stops_after_the_step_in_which_it_was_asked() {
    for (drains, stopped) in [
        ("a", r#"drained ["a"]"#),
        ("b", r#"drained ["a","b"]"#),
        // Nothing is left to stop before.
        ("c", r#"done ["a","b","c"]"#),
        ("nobody", r#"done ["a","b","c"]"#),
    ] {
        let scene = scene(chain(drains));
        assert_eq!(check(&scene, nothing()), stopped, "{drains}");
        if stopped.starts_with("drained") {
            assert!(scene.state().next.iter().all(|task| task.error.is_none()));
            assert_eq!(check(&scene, Input::Continue), r#"done ["a","b","c"]"#);
        }
    }
}

#[test]
fn a_run_that_is_asked_before_it_begins_keeps_its_input() {
    let scene = scene(chain("nobody"));
    let drain = Drain::new();
    drain.request();
    let options = RunOptions {
        drain,
        ..RunOptions::default()
    };
    assert_eq!(run(&scene, nothing(), options), "drained []");
    assert_eq!(check(&scene, Input::Continue), r#"done ["a","b","c"]"#);
}

#[test]
fn a_breakpoint_is_met_first() {
    let mut graph = chain("a");
    graph.interrupt_before(Breakpoints::at(["b"]));
    let scene = scene(graph);
    assert_eq!(check(&scene, nothing()), r#"paused ["a"]"#);
    assert_eq!(check(&scene, Input::Continue), r#"done ["a","b","c"]"#);
}

#[test]
fn a_child_stops_at_a_boundary_of_its_own() {
    let handled = Count::default();
    let handles = handled.clone();
    let mut graph = Graph::builder("g");
    graph.channel("log", append::<String>());
    let retry = RetryPolicy {
        max_attempts: 5,
        on: vec![ErrorClass::Canceled],
        ..RetryPolicy::default()
    };
    let handler = move |_: NodeCx| {
        handles.up();
        async { Ok::<_, NodeError>(()) }
    };
    graph
        .node("child", Subgraph::new(chain("b").build().unwrap()))
        .retry(retry)
        .on_error(ErrorHandler::new(handler));
    graph.node("beside", |_: NodeCx| async {
        Ok::<_, NodeError>(Update::new().set("log", "beside"))
    });
    graph.edge(START, "child").edge(START, "beside");
    let scene = scene(graph);
    assert_eq!(check(&scene, nothing()), r#"drained ["beside"]"#);
    let next = scene.state().next;
    assert_eq!((next.len(), next[0].error.as_ref()), (1, None));
    assert_eq!(
        check(&scene, Input::Continue),
        r#"done ["beside","a","b","c"]"#
    );
    assert_eq!(handled.get(), 0);
    insta::assert_snapshot!(scene.transcript());
}

#[test]
fn a_child_that_keeps_nothing_runs_to_its_end() {
    let mut graph = Graph::builder("g");
    graph.channel("log", append::<String>());
    graph.node("child", Subgraph::new(chain("a").build().unwrap()));
    graph.node("after", |_: NodeCx| async { Ok::<_, NodeError>(()) });
    graph.edge(START, "child").edge("child", "after");
    let runner = Runner::new(graph.build().unwrap(), SimWorld::new(0));
    let key = crate::scene::thread();
    let run = runner.invoke(&key, nothing(), RunOptions::default());
    let outcome = block_on(run).unwrap();
    // The child told the run that it was to stop, and the run did when the child was done.
    assert_eq!(
        (outcome.exit, outcome.values["log"].to_canonical().as_str()),
        (Exit::Drained, r#"["a","b","c"]"#)
    );
}

#[test]
fn a_journaled_child_that_stopped_is_not_unknown() {
    let mut graph = Graph::builder("g");
    graph.channel("log", append::<String>());
    let child = chain("a").build().unwrap();
    graph.node("calls", move |cx: NodeCx| {
        let child = child.clone();
        async move {
            let call = Call::new("child", &Value::Null);
            let work = |cx: NodeCx| async move {
                let values = cx
                    .child(&child, "", Update::new(), ChildMemory::Run)
                    .await?;
                Ok(values.into())
            };
            let values = cx.call(&call, Effects::Effectful, work).await?;
            let log = values.get("log").cloned().unwrap_or_default();
            Ok::<_, NodeError>(Update::new().set("log", log))
        }
    });
    graph.edge(START, "calls");
    let scene = scene(graph);
    assert_eq!(check(&scene, nothing()), "drained []");
    assert_eq!(check(&scene, Input::Continue), r#"done ["a","b","c"]"#);
}
