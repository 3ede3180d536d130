//! What answers are taken, and which are refused.

use crate::scene::{Count, Scene, answer, block_on, nothing, thread};
use serde_json::json;
use tine_engine::channel::append;
use tine_engine::run::{Call, Effects};
use tine_engine::{
    Command, ErrorClass, Graph, Input, NodeCx, NodeError, Outcome, Resume, RunError, RunOptions,
    START, Update, Value,
};

/// `one` and `two` ask side by side; `one` asks once more, in the next step, when it is told `again`.
fn asking() -> Scene {
    let mut graph = Graph::builder("asking");
    graph.channel("x", append::<Value>());
    for name in ["one", "two"] {
        graph.node(name, move |cx: NodeCx| async move {
            let answer = cx.interrupt(name)?;
            let again = answer.as_str() == Some("again");
            let said = Command::default().update(Update::new().set("x", vec![answer]));
            Ok::<_, NodeError>(if again { said.and_goto(name) } else { said })
        });
        graph.edge(START, name);
    }
    Scene::new(graph.build().unwrap())
}

fn told(outcome: Result<Outcome, RunError>) -> String {
    match outcome {
        Ok(outcome) => format!(
            "{}, {} answered, {} open, {}{}",
            outcome.exit.name(),
            outcome.answered,
            outcome.interrupts.len(),
            Value::from(outcome.values),
            if outcome.unknown_ids.is_empty() {
                String::new()
            } else {
                format!(", {} unknown", outcome.unknown_ids.len())
            },
        ),
        Err(error) => format!("{}: {error}", error.code()),
    }
}

/// Asks both questions, then gives the answers made from their ids.
fn check(answers: impl FnOnce(&[String]) -> Resume) -> String {
    let scene = asking();
    let asked = scene.invoke(nothing()).unwrap();
    let ids: Vec<String> = asked
        .interrupts
        .iter()
        .map(|question| question.id.to_string())
        .collect();
    let told = told(scene.invoke(answers(&ids)));
    ids.iter()
        .zip(["ONE", "TWO"])
        .fold(told, |told, (id, name)| told.replace(id.as_str(), name))
}

const NOBODY: &str = "00000000000000000000000000000001";

#[test]
fn answers_go_to_the_questions_they_name() {
    let both = |ids: &[String]| Resume::by_id([(ids[1].clone(), "t"), (ids[0].clone(), "o")]);
    insta::assert_snapshot!(check(both), @r#"done, 2 answered, 0 open, {"x":["o","t"]}"#);
    insta::assert_snapshot!(check(|ids| Resume::by_id([(ids[1].clone(), "t")])), @r#"interrupted, 1 answered, 1 open, {"x":["t"]}"#);
}

#[test]
fn answers_to_nothing_are_refused() {
    insta::assert_snapshot!(check(|_| Resume::by_id([(NOBODY, 1)])), @"unknown_interrupt: `00000000000000000000000000000001` is no open question of the thread; open are `ONE`, `TWO`");
    insta::assert_snapshot!(check(|_| Resume::by_id([("no id", 1)])), @"unknown_interrupt: `no id` is no open question of the thread; open are `ONE`, `TWO`");
    insta::assert_snapshot!(check(|_| Resume::by_id([] as [(&str, i64); 0])), @"empty_resume: no answer was given");
    insta::assert_snapshot!(check(|_| Resume::value(1)), @"multiple_interrupts: 2 questions are open; answer by id: `ONE`, `TWO`");
}

#[test]
fn lenient_answers_skip_what_nobody_asked() {
    let lenient =
        |ids: &[String]| Resume::by_id([(NOBODY.to_owned(), 1), (ids[0].clone(), 2)]).lenient();
    insta::assert_snapshot!(check(lenient), @r#"interrupted, 1 answered, 1 open, {"x":[2]}, 1 unknown"#);
}

#[test]
fn one_unknown_id_refuses_all_answers() {
    let scene = asking();
    let asked = scene.invoke(nothing()).unwrap();
    let known = asked.interrupts[0].id.to_string();
    scene
        .invoke(Resume::by_id([(known, 1), (NOBODY.to_owned(), 2)]))
        .unwrap_err();
    assert_eq!(scene.state().interrupts, asked.interrupts);
}

#[test]
fn a_stale_answer_meets_no_later_question() {
    let scene = asking();
    let asked = scene.invoke(nothing()).unwrap();
    let ids: Vec<String> = asked
        .interrupts
        .iter()
        .map(|question| question.id.to_string())
        .collect();
    let both = Resume::by_id([(ids[0].clone(), "again"), (ids[1].clone(), "done")]);
    let again = scene.invoke(both).unwrap();
    assert_eq!(again.interrupts.len(), 1);
    assert_ne!(again.interrupts[0].id, asked.interrupts[0].id);
    let stale = scene.invoke(Resume::by_id([(ids[0].clone(), "late")]));
    assert_eq!(stale.unwrap_err().code(), "unknown_interrupt");
    assert_eq!(
        told(scene.invoke(answer("now"))),
        r#"done, 1 answered, 0 open, {"x":["again","done","now"]}"#
    );
}

#[test]
fn a_question_keeps_its_id_until_it_is_answered() {
    let scene = asking();
    let asked = scene.invoke(nothing()).unwrap();
    let asked_again = scene.invoke(Input::Continue).unwrap();
    assert_eq!(asked_again.interrupts, asked.interrupts);
}

#[test]
fn empty_values_are_answers() {
    for empty in [
        json!(null),
        json!(false),
        json!(0),
        json!(""),
        json!([]),
        json!({}),
    ] {
        let mut graph = Graph::builder("asking");
        graph.channel("x", append::<Value>());
        graph.node("ask", |cx: NodeCx| async move {
            let answer = cx.interrupt("q")?;
            Ok::<_, NodeError>(Update::new().set("x", vec![answer]))
        });
        graph.edge(START, "ask");
        let scene = Scene::new(graph.build().unwrap());
        scene.invoke(nothing()).unwrap();
        let outcome = scene
            .invoke(answer(Value::from_json(empty.clone())))
            .unwrap();
        assert_eq!(Value::from(outcome.values).to_json(), json!({"x": [empty]}));
    }
}

#[test]
fn an_answer_where_nothing_is_asked_runs_nothing() {
    let scene = asking();
    insta::assert_snapshot!(told(scene.invoke(answer(1))), @"empty_input: thread `t` has nothing to go on with; give it an input");
    let asked = scene.invoke(nothing()).unwrap();
    let answers = asked.interrupts.iter().map(|question| (question.id, "a"));
    scene.invoke(Resume::by_id(answers)).unwrap();
    scene.transcript();
    insta::assert_snapshot!(told(scene.invoke(answer(1))), @r#"done, 0 answered, 0 open, {"x":["a","a"]}"#);
    assert_eq!(scene.transcript(), "");
}

#[test]
fn a_question_that_its_task_no_longer_asks_is_not_open() {
    let asked = Count::default();
    let mut graph = Graph::builder("asking");
    graph.channel("x", append::<Value>());
    graph.node("once", move |cx: NodeCx| {
        let asked = asked.clone();
        async move {
            if asked.up() == 1 {
                cx.interrupt("once")?;
            }
            Ok::<_, NodeError>(())
        }
    });
    graph.node("always", |cx: NodeCx| async move {
        let answer = cx.interrupt("always")?;
        Ok::<_, NodeError>(Update::new().set("x", answer))
    });
    graph.edge(START, "once").edge(START, "always");
    let scene = Scene::new(graph.build().unwrap());
    assert_eq!(scene.invoke(nothing()).unwrap().interrupts.len(), 2);
    let again = scene.invoke(Input::Continue).unwrap();
    assert_eq!(again.interrupts[0].payload, Value::from("always"));
    assert_eq!(scene.state().interrupts, again.interrupts);
    // So an answer needs no id.
    assert_eq!(
        told(scene.invoke(answer("yes"))),
        r#"done, 1 answered, 0 open, {"x":["yes"]}"#
    );
}

#[test]
fn questions_are_told_though_a_sibling_failed() {
    let mut graph = Graph::builder("asking");
    graph.channel("x", append::<Value>());
    graph.node("fails", |_: NodeCx| async {
        Err::<(), _>(NodeError::new(ErrorClass::Internal, "no"))
    });
    graph.node("asks", |cx: NodeCx| async move {
        cx.interrupt("well?")?;
        Ok::<_, NodeError>(())
    });
    graph.edge(START, "fails").edge(START, "asks");
    let scene = Scene::new(graph.build().unwrap());
    let outcome = scene.invoke(nothing()).unwrap();
    assert_eq!(outcome.exit.name(), "failed");
    assert_eq!(outcome.interrupts.len(), 1);
    assert_eq!(scene.state().interrupts, outcome.interrupts);
}

/// Logs by a call and asks, until it is told `yes`; then writes what it was told.
fn asks_until_yes() -> (Scene, Count) {
    let logged = Count::default();
    let log = logged.clone();
    let mut graph = Graph::builder("patient");
    graph.channel("told", append::<Value>());
    graph.node("ask", move |cx: NodeCx| {
        let log = log.clone();
        async move {
            let mut told = Vec::new();
            loop {
                let key = format!("log {}", told.len());
                let call = Call::new(key, &Value::Null);
                let log = log.clone();
                let work = async |_: NodeCx| Ok(Value::from(log.up()));
                cx.call(&call, Effects::Effectful, work).await?;
                let answer = cx.interrupt("well?")?;
                told.push(answer.clone());
                if answer.as_str() == Some("yes") {
                    return Ok::<_, NodeError>(Update::new().set("told", told));
                }
            }
        }
    });
    graph.edge(START, "ask");
    (Scene::new(graph.build().unwrap()), logged)
}

#[test]
fn what_is_done_before_each_question_of_a_loop_is_done_once() {
    for answers in [
        vec!["yes"],
        vec!["no", "no", "yes"],
        vec!["", "no", "no", "perhaps", "no", "no", "no", "yes"],
    ] {
        let (scene, logged) = asks_until_yes();
        let mut outcome = scene.invoke(nothing()).unwrap();
        let mut ids = Vec::new();
        for (before, told) in answers.iter().enumerate() {
            assert_eq!(outcome.exit.name(), "interrupted");
            assert_eq!(logged.get(), before as u64 + 1);
            ids.push(outcome.interrupts[0].id);
            outcome = scene.invoke(answer(*told)).unwrap();
        }
        assert_eq!(outcome.exit.name(), "done");
        assert_eq!(logged.get(), answers.len() as u64);
        let told: Vec<Value> = answers.iter().copied().map(Value::from).collect();
        assert_eq!(outcome.values["told"], Value::from(told));
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), answers.len(), "each question is another one");
    }
}

#[test]
fn two_answers_at_one_checkpoint_make_two_branches_with_results_of_their_own() {
    for (first, second) in [
        (json!(true), json!(false)),
        (json!("a"), json!(null)),
        (json!(0), json!({})),
    ] {
        let mut graph = Graph::builder("fork");
        graph.channel("x", append::<Value>());
        graph.node("ask", |cx: NodeCx| async move {
            let answer = cx.interrupt("sure?")?;
            Ok::<_, NodeError>(Update::new().set("x", vec![answer]))
        });
        graph.edge(START, "ask");
        let scene = Scene::new(graph.build().unwrap());
        let asked = scene.invoke(nothing()).unwrap().interrupts[0].id;
        let at = scene.state().id;
        let mut results = Vec::new();
        for said in [&first, &second, &first] {
            let options = RunOptions {
                at: Some(at),
                ..RunOptions::default()
            };
            let resume = Resume::by_id([(asked, said.clone())]);
            let outcome = block_on(scene.run(resume, options)).unwrap();
            assert_eq!(outcome.exit.name(), "done");
            let expected = Value::from(vec![Value::from_json(said.clone())]);
            assert_eq!(outcome.values["x"], expected);
            results.push((scene.state().id, expected));
        }
        // What came of the other answers is still there.
        for (id, expected) in results {
            let state = block_on(scene.runner.state_at(&thread(), id)).unwrap();
            assert_eq!(state.values["x"], expected);
        }
    }
}
