//! Child graphs: where they are kept, what they ask, and what breaks off inside them.

use crate::scene::{Count, Scene, answer, block_on, input, nothing, pause, poll_until};
use serde_json::json;
use tine_engine::channel::{append, last};
use tine_engine::run::{Call, ChildMemory, Effects, Subgraph};
use tine_engine::{
    Breakpoints, Graph, Input, Node, NodeCx, NodeError, Outcome, RunOptions, START, Update, Value,
};

/// A graph of the one node `c`, with the channels `in` and `out`.
fn child(node: impl Node) -> Graph {
    let mut graph = Graph::builder("child");
    graph.channel("in", last::<Value>());
    graph.channel("out", last::<Value>());
    graph.node("c", node);
    graph.edge(START, "c");
    graph.build().unwrap()
}

/// A child that gives back what it got.
fn echo() -> Graph {
    child(|cx: NodeCx| async move {
        let got = cx.value("in").unwrap_or_default();
        Ok::<_, NodeError>(Update::new().set("out", got))
    })
}

/// The scene of a graph of the one node `a`, which shares the channels of [`child`].
fn hosting(node: impl Node) -> Scene {
    let mut graph = Graph::builder("host");
    graph.channel("in", last::<Value>());
    graph.channel("out", last::<Value>());
    graph.node("a", node);
    graph.edge(START, "a");
    Scene::new(graph.build().unwrap())
}

fn told(outcome: Outcome) -> String {
    let error = outcome.exit.error().map(|error| format!(": {error}"));
    format!(
        "{}{} {}",
        outcome.exit.name(),
        error.unwrap_or_default(),
        Value::from(outcome.values)
    )
}

#[test]
fn children_of_one_name_are_told_apart_by_their_order() {
    let echo = echo();
    let scene = hosting(move |cx: NodeCx| {
        let echo = echo.clone();
        async move {
            let mut out = Vec::new();
            for item in ["x", "y"] {
                let given = Update::new().set("in", item);
                let values = cx.child(&echo, "", given, ChildMemory::Run).await?;
                out.push(values["out"].clone());
            }
            // The first child is not taken for the second one when they are met again.
            cx.interrupt("well?")?;
            Ok::<_, NodeError>(Update::new().set("out", out))
        }
    });
    scene.invoke(nothing()).unwrap();
    assert_eq!(
        told(scene.invoke(answer("go on")).unwrap()),
        r#"done {"out":["x","y"]}"#
    );
}

#[test]
fn names_with_dots_do_not_make_two_children_one() {
    // `a` with the child `b`, and `a.b` with a child without a name.
    let mut graph = Graph::builder("host");
    graph.channel("log", append::<Value>());
    for (host, name) in [("a", "b"), ("a.b", "")] {
        let echo = echo();
        graph.node(host, move |cx: NodeCx| {
            let echo = echo.clone();
            async move {
                let given = Update::new().set("in", host);
                let values = cx.child(&echo, name, given, ChildMemory::Run).await?;
                Ok::<_, NodeError>(Update::new().set("log", values["out"].clone()))
            }
        });
        graph.edge(START, host);
    }
    let scene = Scene::new(graph.build().unwrap());
    assert_eq!(
        told(scene.invoke(nothing()).unwrap()),
        r#"done {"log":["a","a.b"]}"#
    );
}

#[test]
fn a_finished_child_is_not_run_again_when_its_host_is() {
    for memory in [ChildMemory::Run, ChildMemory::Thread] {
        let runs = Count::default();
        let counted = runs.clone();
        let child = child(move |_: NodeCx| {
            let run = counted.up();
            async move { Ok::<_, NodeError>(Update::new().set("out", run)) }
        });
        let scene = hosting(move |cx: NodeCx| {
            let child = child.clone();
            async move {
                let values = cx.child(&child, "", Update::new(), memory).await?;
                cx.interrupt("well?")?;
                Ok::<_, NodeError>(Update::new().set("out", values["out"].clone()))
            }
        });
        scene.invoke(nothing()).unwrap();
        let done = scene.invoke(answer("go on")).unwrap();
        assert_eq!((told(done), runs.get()), (r#"done {"out":1}"#.into(), 1));
    }
}

#[test]
fn new_input_reaches_a_child_that_was_left_with_a_question() {
    for memory in [ChildMemory::Run, ChildMemory::Thread] {
        let child = child(|cx: NodeCx| async move {
            let file = cx.value("in").unwrap_or_default();
            let answer = cx.interrupt(file.clone())?;
            Ok::<_, NodeError>(Update::new().set("out", vec![file, answer]))
        });
        let scene = hosting(Subgraph::new(child).memory(memory));
        let first = scene.invoke(input(json!({"in": "A"}))).unwrap();
        let second = scene.invoke(input(json!({"in": "B"}))).unwrap();
        assert_eq!(second.interrupts[0].payload, Value::from("B"));
        assert_ne!(first.interrupts[0].id, second.interrupts[0].id);
        assert_eq!(
            told(scene.invoke(answer("yes")).unwrap()),
            r#"done {"in":"B","out":["B","yes"]}"#
        );
    }
}

#[test]
fn a_cancelled_child_is_no_failure_of_its_host() {
    let options = RunOptions::default();
    let cancel = options.cancel.clone();
    let child = child(move |_: NodeCx| {
        cancel.cancel();
        async {
            std::future::pending::<()>().await;
            Ok::<_, NodeError>(())
        }
    });
    let scene = hosting(Subgraph::new(child));
    let outcome = block_on(scene.run(nothing(), options)).unwrap();
    assert_eq!(outcome.exit.name(), "cancelled");
    // Nothing is marked as failed, and all of it can go on.
    assert_eq!(scene.state().next[0].error, None);
}

#[test]
fn a_child_with_breakpoints_is_refused_each_time() {
    let mut graph = Graph::builder("child");
    graph.channel("out", last::<Value>());
    graph.node("c", |_: NodeCx| async {
        Ok::<_, NodeError>(Update::new().set("out", "ran"))
    });
    graph.edge(START, "c");
    graph.interrupt_before(Breakpoints::at(["c"]));
    let scene = hosting(Subgraph::new(graph.build().unwrap()));
    let refused =
        "failed: graph `child` has breakpoints, and a child graph can not stop at one yet {}";
    assert_eq!(told(scene.invoke(nothing()).unwrap()), refused);
    // Going on does not pass the breakpoint by.
    assert_eq!(told(scene.invoke(Input::Continue).unwrap()), refused);
}

/// A child that makes one effectful call. Its run was dropped in the middle of the call, and went on to the question.
fn torn_call() -> (Scene, Count) {
    let paid = Count::default();
    let counted = paid.clone();
    let child = child(move |cx: NodeCx| {
        let counted = counted.clone();
        async move {
            let pay = async |_: NodeCx| {
                pause().await;
                let times = counted.up();
                pause().await;
                Ok(Value::from(times))
            };
            let call = Call::new("pay", &Value::Null);
            let result = cx.call(&call, Effects::Effectful, pay).await?;
            Ok::<_, NodeError>(Update::new().set("out", result))
        }
    });
    let scene = hosting(Subgraph::new(child));
    let run = scene.run(nothing(), RunOptions::default());
    assert!(poll_until(run, 100, || paid.get() == 1).is_none());
    let asked = scene.invoke(Input::Continue).unwrap();
    assert_eq!(asked.interrupts.len(), 1);
    assert_eq!(&*asked.interrupts[0].node, "a/c");
    (scene, paid)
}

#[test]
fn an_unknown_outcome_in_a_child_is_answered_from_outside() {
    let check = |decision: &str| {
        let (scene, paid) = torn_call();
        let outcome = scene.invoke(answer(decision)).unwrap();
        format!("{}, paid {}", told(outcome), paid.get())
    };
    assert_eq!(check("retry"), r#"done {"out":2}, paid 2"#);
    assert_eq!(check("skip"), r#"done {"out":null}, paid 1"#);
    assert_eq!(
        check("fail"),
        "failed: node `a/c` failed: `pay` has an unknown outcome and was given up {}, paid 1"
    );
}

#[test]
fn a_call_that_was_given_up_in_a_child_is_asked_about_again() {
    let (scene, paid) = torn_call();
    assert_eq!(scene.invoke(answer("fail")).unwrap().exit.name(), "failed");
    let asked = scene.invoke(Input::Continue).unwrap();
    assert_eq!((asked.exit.name(), paid.get()), ("interrupted", 1));
}

#[test]
fn an_answer_for_a_child_speaks_of_one_start_only() {
    let (scene, paid) = torn_call();
    let run = scene.run(answer("retry"), RunOptions::default());
    assert!(poll_until(run, 100, || paid.get() == 2).is_none());
    // Both the child and the host have the answer to the first question, and neither may take it for the second.
    for _ in 0..2 {
        let asked = scene.invoke(Input::Continue).unwrap();
        assert_eq!((asked.exit.name(), paid.get()), ("interrupted", 2));
        assert_eq!(scene.state().interrupts, asked.interrupts);
    }
    let done = scene.invoke(answer("skip")).unwrap();
    assert_eq!((done.answered, paid.get()), (1, 2));
    assert_eq!(told(done), r#"done {"out":null}"#);
}
