//! Answers that their questions do not take: refused before anything is recorded.

use crate::scene::{Scene, answer, block_on, nothing};
use async_trait::async_trait;
use std::sync::Arc;
use tine_engine::channel::append;
use tine_engine::run::{ChildMemory, Subgraph};
use tine_engine::{
    ClientCommand, Graph, GraphBuilder, Input, Interrupt, Node, NodeCx, NodeError, Output, Resume,
    RunOptions, START, Update, Value,
};

/// A node that asks for a number, and says so itself.
struct Ask;

#[async_trait]
impl Node for Ask {
    async fn run(&self, cx: NodeCx) -> Result<Output, NodeError> {
        let answer = cx.interrupt("how many?")?;
        Ok(Update::new().set("x", vec![answer]).into())
    }

    fn check_answer(&self, question: &Interrupt, answer: &Value) -> Result<(), String> {
        whole(answer).map_err(|problem| format!("{problem} for {}", question.payload))
    }
}

fn whole(answer: &Value) -> Result<(), String> {
    match answer.as_i64() {
        Some(_) => Ok(()),
        None => Err(format!("{answer} is no whole number")),
    }
}

async fn asks(cx: NodeCx) -> Result<Update, NodeError> {
    Ok(Update::new().set("x", vec![cx.interrupt("how many?")?]))
}

/// A graph of one node, `ask` or whatever it is, that starts at once.
fn of(name: &str, add: impl FnOnce(&mut GraphBuilder)) -> Graph {
    let mut graph = Graph::builder(name);
    graph.channel("x", append::<Value>());
    add(&mut graph);
    graph.build().unwrap()
}

fn inner() -> Graph {
    of("inner", |graph| {
        graph.node("ask", Ask);
        graph.edge(START, "ask");
    })
}

/// Gives a wrong answer, which changes nothing that is stored, then a right one. Gives what was said to the wrong one.
fn check(node: impl FnOnce(&mut GraphBuilder)) -> String {
    let scene = Scene::new(of("asking", |graph| {
        node(graph);
        graph.edge(START, "n");
    }));
    let asked = scene.invoke(nothing()).unwrap();
    let before = scene.history();
    scene.transcript();
    let error = scene.invoke(answer("many")).unwrap_err();
    assert_eq!(error.code(), "invalid_answer");
    assert_eq!(error.node(), Some(&asked.interrupts[0].node));
    assert_eq!(scene.transcript(), "", "nothing runs");
    assert_eq!(scene.history(), before, "nothing is stored");
    assert_eq!(scene.state().interrupts, asked.interrupts);
    let done = scene.invoke(answer(3)).unwrap();
    assert_eq!(Value::from(done.values).to_canonical(), r#"{"x":[3]}"#);
    let id = asked.interrupts[0].id.to_string();
    error.to_string().replace(&id, "ID")
}

#[test]
fn what_the_node_does_not_take_is_refused() {
    let own = check(|graph| {
        graph.node("n", Ask);
    });
    let shared = check(|graph| {
        let node: Arc<dyn Node> = Arc::new(Ask);
        graph.node("n", node);
    });
    let option = check(|graph| {
        graph.node("n", asks).answers(whole);
    });
    let child = check(|graph| {
        graph.node("n", Subgraph::new(inner()));
    });
    let grandchild = check(|graph| {
        let outer = of("outer", |graph| {
            let kept = Subgraph::new(inner()).memory(ChildMemory::Thread);
            graph.node("deep", kept);
            graph.edge(START, "deep");
        });
        graph.node("n", Subgraph::new(outer));
    });
    let panics = check(|graph| {
        graph
            .node("n", asks)
            .answers(|answer: &Value| match answer.as_i64() {
                Some(_) => Ok(()),
                None => panic!("the check broke"),
            });
    });
    let told = [own, shared, option, child, grandchild, panics].join("\n");
    insta::assert_snapshot!("refused_answers", told);
}

/// Two nodes that ask side by side.
fn two() -> (Scene, Vec<String>) {
    let scene = Scene::new(of("two", |graph| {
        graph.node("a", Ask);
        graph.node("b", Ask);
        graph.edge(START, "a").edge(START, "b");
    }));
    let asked = scene.invoke(nothing()).unwrap().interrupts;
    let ids = asked.iter().map(|question| question.id.to_string());
    (scene, ids.collect())
}

#[test]
fn one_that_does_not_fit_keeps_all_from_being_recorded() {
    let (scene, ids) = two();
    let before = scene.state();
    let answers = || {
        Resume::by_id([
            (ids[0].clone(), Value::from(1)),
            (ids[1].clone(), "x".into()),
        ])
    };
    let command = ClientCommand {
        update: Update::new().set("x", vec![9]),
        resume: Some(answers()),
        ..ClientCommand::default()
    };
    for input in [
        Input::Resume(answers()),
        Input::Resume(answers().lenient()),
        Input::Command(command),
    ] {
        let error = scene.invoke(input).unwrap_err();
        assert_eq!(error.code(), "invalid_answer");
        assert_eq!(error.node().map(|node| &**node), Some("b"));
        assert_eq!(scene.state(), before);
    }
    let both = Resume::by_id(ids.into_iter().zip([1, 2]));
    let done = scene.invoke(both).unwrap();
    assert_eq!(Value::from(done.values).to_canonical(), r#"{"x":[1,2]}"#);
}

#[test]
fn answers_at_an_old_checkpoint_are_checked_too() {
    let (scene, ids) = two();
    let at = scene.state().id;
    scene
        .invoke(Resume::by_id(ids.clone().into_iter().zip([1, 2])))
        .unwrap();
    let before = scene.history();
    let anew = |value: Value| {
        let options = RunOptions {
            at: Some(at),
            ..RunOptions::default()
        };
        block_on(scene.run(Resume::by_id([(ids[0].clone(), value)]), options))
    };
    assert_eq!(anew("x".into()).unwrap_err().code(), "invalid_answer");
    assert_eq!(scene.history(), before);
    assert_eq!(
        Value::from(anew(7.into()).unwrap().values).to_canonical(),
        r#"{"x":[7,2]}"#
    );
}

#[test]
fn a_graph_that_a_node_runs_itself_is_not_looked_into() {
    let scene = Scene::new(of("outer", |graph| {
        graph.node("n", |cx: NodeCx| async move {
            let memory = ChildMemory::Run;
            let values = cx.child(&inner(), "c", Update::new(), memory).await?;
            Ok::<_, NodeError>(Update::from(values))
        });
        graph.edge(START, "n");
    }));
    scene.invoke(nothing()).unwrap();
    let done = scene.invoke(answer("many")).unwrap();
    assert_eq!(Value::from(done.values).to_canonical(), r#"{"x":["many"]}"#);
}
