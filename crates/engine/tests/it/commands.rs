//! Commands that clients send to a thread.

use crate::scene::{Count, Scene, answer, block_on, input, nothing};
use serde_json::json;
use tine_engine::channel::{append, last};
use tine_engine::run::{Call, Effects};
use tine_engine::{
    ClientCommand, ErrorClass, Graph, Node, NodeCx, NodeError, Resume, RunOptions, START, Update,
    Value,
};

fn says(name: &'static str) -> impl Node {
    move |_: NodeCx| async move { Ok::<_, NodeError>(Update::new().set("log", name)) }
}

fn resume(value: &str) -> ClientCommand {
    ClientCommand {
        resume: Some(Resume::value(value)),
        ..ClientCommand::default()
    }
}

fn goto(node: &str) -> ClientCommand {
    ClientCommand {
        goto: vec![node.into()],
        ..ClientCommand::default()
    }
}

fn update(update: Update) -> ClientCommand {
    ClientCommand {
        update,
        ..ClientCommand::default()
    }
}

#[test]
fn a_command_adds_to_a_start_that_waits() {
    let mut graph = Graph::builder("g");
    graph.channel("log", append::<String>());
    graph.node("a", says("a"));
    graph.node("b", says("b"));
    graph.edge(START, "a");
    let scene = Scene::new(graph.build().unwrap());
    // Stopped after its input was stored, and before its first step.
    let options = RunOptions::default();
    options.cancel.cancel();
    let stopped = block_on(scene.run(nothing(), options)).unwrap();
    assert_eq!(stopped.exit.name(), "cancelled");
    let outcome = scene.invoke(goto("b")).unwrap();
    let log = outcome.values["log"].as_list().unwrap();
    let mut log: Vec<String> = log.iter().map(Value::to_canonical).collect();
    log.sort();
    assert_eq!(log, [r#""a""#, r#""b""#]);
}

#[test]
fn a_deferred_node_that_asked_keeps_its_place_beside_a_new_one() {
    let sent = Count::default();
    let counted = sent.clone();
    let mut graph = Graph::builder("g");
    graph.channel("log", append::<Value>());
    let ask = move |cx: NodeCx| {
        let counted = counted.clone();
        async move {
            let send = async |_: NodeCx| Ok(Value::from(counted.up()));
            let call = Call::new("send", &Value::Null);
            cx.call(&call, Effects::Effectful, send).await?;
            let answer = cx.interrupt("well?")?;
            Ok::<_, NodeError>(Update::new().set("log", answer))
        }
    };
    graph.node("last", ask).defer();
    graph.node("b", says("b"));
    graph.edge(START, "last");
    let scene = Scene::new(graph.build().unwrap());
    scene.invoke(nothing()).unwrap();
    let command = ClientCommand {
        resume: Some(Resume::value("yes")),
        ..goto("b")
    };
    // Were it deferred again, the answer would come for nobody, and the call would be made twice.
    let outcome = scene.invoke(command).unwrap();
    assert_eq!((outcome.exit.name(), outcome.answered), ("done", 1));
    assert_eq!(outcome.values["log"].to_canonical(), r#"["b","yes"]"#);
    assert_eq!(sent.get(), 1);
}

/// Asks whether to delete the file that `file` names, and fails after the first answer if it is to.
fn deleting(fails_once: bool) -> Scene {
    let tries = Count::default();
    let mut graph = Graph::builder("deleting");
    graph.channel("file", last::<Value>());
    graph.channel("out", last::<Value>());
    graph.node("delete", move |cx: NodeCx| {
        let tries = tries.clone();
        async move {
            let file = cx.value("file").unwrap_or_default();
            let answer = cx.interrupt(file.clone())?;
            if fails_once && tries.up() == 1 {
                return Err(NodeError::new(ErrorClass::Internal, "disk full"));
            }
            Ok(Update::new().set("out", vec![file, answer]))
        }
    });
    graph.edge(START, "delete");
    Scene::new(graph.build().unwrap())
}

#[test]
fn a_question_asked_after_an_update_is_another_one() {
    let scene = deleting(false);
    let first = scene.invoke(input(json!({"file": "A"}))).unwrap();
    let second = scene
        .invoke(update(Update::new().set("file", "B")))
        .unwrap();
    assert_eq!(second.interrupts[0].payload, Value::from("B"));
    assert_ne!(first.interrupts[0].id, second.interrupts[0].id);
    // Only the new one is open.
    let stale = Resume::by_id([(first.interrupts[0].id, "yes")]);
    assert_eq!(scene.invoke(stale).unwrap_err().code(), "unknown_interrupt");
    let done = scene.invoke(answer("yes")).unwrap();
    assert_eq!(done.values["out"].to_canonical(), r#"["B","yes"]"#);
}

#[test]
fn an_answer_from_before_an_update_is_no_answer_after_it() {
    let scene = deleting(true);
    scene.invoke(input(json!({"file": "A"}))).unwrap();
    let failed = scene.invoke(answer("yes, delete A")).unwrap();
    assert_eq!(failed.exit.name(), "failed");
    let asked = scene
        .invoke(update(Update::new().set("file", "B")))
        .unwrap();
    assert_eq!(asked.interrupts[0].payload, Value::from("B"));
}

#[test]
fn an_answer_that_comes_with_an_update_is_for_the_state_it_makes() {
    let scene = deleting(false);
    scene.invoke(input(json!({"file": "A"}))).unwrap();
    let command = ClientCommand {
        update: Update::new().set("file", "B"),
        ..resume("yes")
    };
    let done = scene.invoke(command).unwrap();
    assert_eq!(done.values["out"].to_canonical(), r#"["B","yes"]"#);
}

#[test]
fn a_command_with_nothing_but_an_answer_to_nothing_runs_nothing() {
    let runs = Count::default();
    let counted = runs.clone();
    let mut graph = Graph::builder("g");
    graph.channel("log", append::<String>());
    graph.node("a", move |_: NodeCx| {
        counted.up();
        async { Err::<(), _>(NodeError::new(ErrorClass::Internal, "no")) }
    });
    graph.edge(START, "a");
    let scene = Scene::new(graph.build().unwrap());
    scene.invoke(nothing()).unwrap();
    let outcome = scene.invoke(resume("x")).unwrap();
    assert_eq!((outcome.answered, runs.get()), (0, 1));
    // The failed task is left as it is.
    assert!(scene.state().next[0].error.is_some());
}

#[test]
fn commands_that_can_not_be_carried_out_are_refused() {
    let mut graph = Graph::builder("g");
    let number = graph.channel("number", last::<f64>());
    graph.channel("log", append::<String>());
    graph.node("ask", |cx: NodeCx| async move {
        cx.interrupt("well?")?;
        Ok::<_, NodeError>(())
    });
    graph.edge(START, "ask");
    let scene = Scene::new(graph.build().unwrap());
    let refused = |command: ClientCommand| {
        let error = scene.invoke(command).unwrap_err();
        format!("{}: {error}", error.code())
    };
    // There is no thread yet.
    insta::assert_snapshot!(refused(resume("x")), @"empty_input: thread `t` has nothing to go on with; give it an input");
    let asked = scene.invoke(nothing()).unwrap();
    insta::assert_snapshot!(refused(goto("nowhere")), @"unknown_node: graph `g` has no node `nowhere`");
    insta::assert_snapshot!(refused(update(Update::new().set("z", 1))), @"invalid_update: command: writes to `z`, and graph `g` declares no such channel; it has `number`, `log`");
    // What else the command writes does not come through alone.
    let not_a_number = Update::new().write(&number, f64::NAN).set("log", "x");
    insta::assert_snapshot!(refused(update(not_a_number)), @"invalid_update: command: the value for channel `number` can not be stored: JSON has no number NaN");
    let state = scene.state();
    assert_eq!(state.values["log"].to_canonical(), "[]");
    assert_eq!(state.interrupts, asked.interrupts);
}
