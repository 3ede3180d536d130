//! Limits on steps and visits, and how a run goes on after one.

use crate::scene::{Scene, block_on, nothing, thread};
use tine_engine::channel::append;
use tine_engine::command::Target;
use tine_engine::{
    Breakpoints, Graph, GraphBuilder, Input, NodeCx, NodeError, RunOptions, START, Update, Value,
};

/// `a` to `c`, one after the other, that each append their name to `log`.
fn chain(build: impl FnOnce(&mut GraphBuilder)) -> Scene {
    let mut graph = Graph::builder("chain");
    graph.channel("log", append::<String>());
    for name in ["a", "b", "c"] {
        graph.node(name, move |_: NodeCx| async move {
            Ok::<_, NodeError>(Update::new().set("log", name))
        });
    }
    graph.edge(START, "a").edge("a", "b").edge("b", "c");
    build(&mut graph);
    Scene::new(graph.build().unwrap())
}

/// How a run ends, what has run so far, and what runs next.
fn check(scene: &Scene, input: Input, options: RunOptions) -> String {
    let outcome = block_on(scene.run(input, options)).unwrap();
    let error = outcome.exit.error().map(|error| format!(": {error}"));
    let next = scene.state().next;
    let next: Vec<&str> = next.iter().map(|task| &*task.node).collect();
    format!(
        "{}{} after {}, next {next:?}",
        outcome.exit.name(),
        error.unwrap_or_default(),
        outcome.values["log"]
    )
}

fn at_most(max_steps: u64) -> RunOptions {
    RunOptions {
        max_steps: Some(max_steps),
        ..RunOptions::default()
    }
}

#[test]
fn a_graph_that_ends_after_exactly_its_steps_ends_well() {
    let run = |max| check(&chain(|_| ()), nothing(), at_most(max));
    assert_eq!(run(4), r#"done after ["a","b","c"], next []"#);
    assert_eq!(run(3), r#"done after ["a","b","c"], next []"#);
    // The step that does not fit is not run.
    assert_eq!(
        run(2),
        r#"step_limit: stopped at the limit of 2 steps after ["a","b"], next ["c"]"#
    );
}

#[test]
fn tasks_side_by_side_are_one_step() {
    let scene = chain(|graph| {
        graph.edge(START, "b").edge(START, "c");
    });
    // All three, then `b` and `c` by the edges of `a` and `b`, then `c` by that of `b`.
    assert_eq!(
        check(&scene, nothing(), at_most(3)),
        r#"done after ["a","b","c","b","c","c"], next []"#
    );
}

#[test]
fn a_run_that_goes_on_may_make_as_many_steps_again() {
    let scene = chain(|_| ());
    assert_eq!(
        check(&scene, nothing(), at_most(1)),
        r#"step_limit: stopped at the limit of 1 steps after ["a"], next ["b"]"#
    );
    assert_eq!(
        check(&scene, Input::Continue, at_most(2)),
        r#"done after ["a","b","c"], next []"#
    );
}

#[test]
fn a_step_limit_counts_the_step_that_finds_the_end() {
    let run = |limit| {
        let options = RunOptions {
            step_limit: limit,
            ..RunOptions::default()
        };
        check(&chain(|_| ()), nothing(), options)
    };
    assert_eq!(run(4), r#"done after ["a","b","c"], next []"#);
    assert_eq!(
        run(3),
        r#"step_limit: stopped at the limit of 3 steps after ["a","b","c"], next []"#
    );
}

#[test]
fn a_breakpoint_is_met_after_a_limit() {
    let limits: [fn(u64) -> RunOptions; 2] = [at_most, |step_limit| RunOptions {
        step_limit,
        ..RunOptions::default()
    }];
    for limit in limits {
        let scene = chain(|graph| {
            graph.interrupt_before(Breakpoints::at(["b"]));
        });
        let stopped = check(&scene, nothing(), limit(1));
        assert_eq!(
            stopped,
            r#"step_limit: stopped at the limit of 1 steps after ["a"], next ["b"]"#
        );
        // The limit stopped the run first, so the breakpoint was not shown to anybody yet.
        let paused = check(&scene, Input::Continue, RunOptions::default());
        assert_eq!(paused, r#"paused after ["a"], next ["b"]"#);
        let done = check(&scene, Input::Continue, RunOptions::default());
        assert_eq!(done, r#"done after ["a","b","c"], next []"#);
    }
}

#[test]
fn an_update_keeps_the_counts_of_visits() {
    let mut graph = Graph::builder("g");
    graph.channel("n", append::<Value>());
    graph.node("a", |cx: NodeCx| async move {
        Ok::<_, NodeError>(Update::new().set("n", cx.visits()))
    });
    graph.edge(START, "a");
    graph.branch("a", |cx: NodeCx| async move {
        let seen = cx.value("n");
        let seen = seen
            .as_ref()
            .and_then(Value::as_list)
            .map_or(0, |n| n.len());
        Ok::<_, NodeError>(match seen {
            2 => Target::End,
            _ => Target::from("a"),
        })
    });
    graph.count_visits();
    let scene = Scene::new(graph.build().unwrap());
    scene.invoke(nothing()).unwrap();
    assert_eq!(scene.state().values["n"].to_canonical(), "[1,2]");
    let update = Update::new().overwrite("n", Vec::<Value>::new());
    block_on(scene.runner.update(&thread(), "a", update)).unwrap();
    let outcome = scene.invoke(Input::Continue).unwrap();
    // The update is no visit, for the node did not run.
    assert_eq!(outcome.values["n"].to_canonical(), "[3,4]");
}

#[test]
fn an_outcome_is_an_error_only_if_its_run_is() {
    for (steps, error) in [(1, Some("step_limit")), (5, None)] {
        let mut graph = Graph::builder("short");
        graph.node("a", |_: NodeCx| async { Ok::<_, NodeError>(()) });
        graph.edge(START, "a");
        let scene = Scene::new(graph.build().unwrap());
        let options = RunOptions {
            step_limit: steps,
            ..RunOptions::default()
        };
        let outcome = block_on(scene.run(nothing(), options)).unwrap();
        let found = outcome.into_result().err().map(|error| error.code());
        assert_eq!(found.as_deref(), error);
    }
}
