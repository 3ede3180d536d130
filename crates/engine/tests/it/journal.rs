//! Journaled calls: what is done once, and what is asked about.

use crate::scene::{Count, Scene, answer, nothing, pause, poll_until};
use std::time::Duration;
use tine_engine::channel::{append, last};
use tine_engine::run::{Call, Effects};
use tine_engine::{
    ErrorClass, Graph, Input, NodeCx, NodeError, RetryPolicy, RunOptions, START, Update, Value,
};

/// What happens to the task after its call.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    Ends,
    FailsOnce,
    Asks,
}

struct Calls {
    scene: Scene,
    done: Count,
}

impl Calls {
    fn done(&self) -> u64 {
        self.done.get()
    }
}

/// A node that makes one call, which waits before and after, and counts how often it was done.
fn calling(effects: Effects, then: Then) -> Calls {
    let done = Count::default();
    let count = done.clone();
    let mut graph = Graph::builder("calling");
    graph.channel("result", last::<Value>());
    let node = move |cx: NodeCx| {
        let count = count.clone();
        async move {
            let call = Call::new("send", &Value::from("letter"));
            let work = async |_: NodeCx| {
                pause().await;
                let times = count.up();
                pause().await;
                Ok(Value::from(times))
            };
            let result = cx.call(&call, effects, work).await?;
            if then == Then::FailsOnce && cx.attempt() == 1 {
                return Err(NodeError::new(ErrorClass::Transport, "broke off"));
            }
            if then == Then::Asks {
                cx.interrupt("well?")?;
            }
            Ok(Update::new().set("result", result))
        }
    };
    let policy = RetryPolicy {
        max_attempts: 2,
        initial: Duration::from_millis(1),
        ..RetryPolicy::default()
    };
    graph.node("call", node).retry(policy);
    graph.edge(START, "call");
    Calls {
        scene: Scene::new(graph.build().unwrap()),
        done,
    }
}

#[test]
fn a_finished_call_is_not_done_again_on_a_retry() {
    for effects in [Effects::ReadOnly, Effects::Idempotent, Effects::Effectful] {
        let calls = calling(effects, Then::FailsOnce);
        let outcome = calls.scene.invoke(nothing()).unwrap();
        assert_eq!(
            Value::from(outcome.values).to_canonical(),
            r#"{"result":1}"#
        );
        assert_eq!(calls.done(), 1);
    }
}

#[test]
fn a_finished_call_is_not_done_again_on_a_resume() {
    for effects in [Effects::ReadOnly, Effects::Idempotent, Effects::Effectful] {
        let calls = calling(effects, Then::Asks);
        let asked = calls.scene.invoke(nothing()).unwrap();
        assert_eq!(asked.exit.name(), "interrupted");
        let outcome = calls.scene.invoke(answer("go on")).unwrap();
        assert_eq!(
            Value::from(outcome.values).to_canonical(),
            r#"{"result":1}"#
        );
        assert_eq!(calls.done(), 1);
    }
}

/// Drops a run while its call was done and its result not recorded, and goes on. Gives how that ends and how often the
/// call was done.
fn torn(effects: Effects) -> (Calls, String) {
    let calls = calling(effects, Then::Ends);
    let run = calls.scene.run(nothing(), RunOptions::default());
    assert!(poll_until(run, 100, || calls.done() == 1).is_none());
    assert_eq!(calls.done(), 1);
    let outcome = calls.scene.invoke(Input::Continue).unwrap();
    let told = match outcome.interrupts.as_slice() {
        [] => Value::from(outcome.values).to_canonical(),
        [question] => question.payload.to_canonical(),
        _ => panic!("more than one question"),
    };
    (calls, format!("{}: {told}", outcome.exit.name()))
}

#[test]
fn a_call_that_harms_nobody_is_done_again_without_a_question() {
    for effects in [Effects::ReadOnly, Effects::Idempotent] {
        let (calls, told) = torn(effects);
        assert_eq!(told, r#"done: {"result":2}"#);
        assert_eq!(calls.done(), 2);
    }
}

/// Answers the question about an unknown outcome. Gives how the run ends, and how often the call was done in all.
fn check(decision: &str) -> String {
    let (calls, _) = torn(Effects::Effectful);
    assert_eq!(calls.done(), 1);
    let outcome = calls.scene.invoke(answer(decision)).unwrap();
    let told = match outcome.exit.error() {
        Some(error) => error.to_string(),
        None => Value::from(outcome.values).to_canonical(),
    };
    format!("{} after {}: {told}", outcome.exit.name(), calls.done())
}

#[test]
fn an_unknown_outcome_is_asked_about() {
    insta::assert_snapshot!(torn(Effects::Effectful).1, @r#"interrupted: {"call":"send","kind":"unknown_outcome","options":["retry","skip","fail"],"text":"`send` was started before this run broke off, and nobody knows whether it took place."}"#);
    insta::assert_snapshot!(check("retry"), @r#"done after 2: {"result":2}"#);
    insta::assert_snapshot!(check("skip"), @r#"done after 1: {"result":null}"#);
    insta::assert_snapshot!(check("fail"), @"failed after 1: node `call` failed: `send` has an unknown outcome and was given up");
}

#[test]
fn an_answer_that_is_none_of_the_outcomes_is_refused() {
    let (calls, _) = torn(Effects::Effectful);
    let question = calls.scene.state().interrupts.remove(0);
    for given in [Value::from("what?"), Value::Null, Value::from(true)] {
        let error = calls.scene.invoke(answer(given)).unwrap_err();
        assert_eq!(error.code(), "invalid_answer");
        assert!(
            error
                .to_string()
                .contains("is none of `retry`, `skip` and `fail`"),
            "{error}"
        );
    }
    // Nothing is lost: the same question is open, and nothing was done in between.
    assert_eq!(calls.scene.state().interrupts, [question]);
    let outcome = calls.scene.invoke(answer("skip")).unwrap();
    assert_eq!((outcome.exit.name(), calls.done()), ("done", 1));
}

#[test]
fn a_call_that_was_given_up_is_asked_about_again() {
    let (calls, _) = torn(Effects::Effectful);
    let failed = calls.scene.invoke(answer("fail")).unwrap();
    assert_eq!(failed.exit.name(), "failed");
    let asked = calls.scene.invoke(Input::Continue).unwrap();
    assert_eq!(asked.exit.name(), "interrupted");
    let done = calls.scene.invoke(answer("retry")).unwrap();
    assert_eq!((done.exit.name(), calls.done()), ("done", 2));
}

#[test]
fn an_answer_speaks_of_one_start_only() {
    let (calls, _) = torn(Effects::Effectful);
    let run = calls.scene.run(answer("retry"), RunOptions::default());
    assert!(poll_until(run, 100, || calls.done() == 2).is_none());
    // Torn again after the second start: that one is as unknown as the first was.
    let asked = calls.scene.invoke(Input::Continue).unwrap();
    assert_eq!(asked.exit.name(), "interrupted");
    let done = calls.scene.invoke(answer("skip")).unwrap();
    assert_eq!((done.exit.name(), calls.done()), ("done", 2));
}

/// Makes an effectful call that fails with this error each time, with one retry. Gives how the run ends, and how often
/// the call was made.
fn check_error(class: ErrorClass) -> (&'static str, u64) {
    let made = Count::default();
    let counted = made.clone();
    let mut graph = Graph::builder("failing");
    graph.channel("result", last::<Value>());
    let node = move |cx: NodeCx| {
        let counted = counted.clone();
        async move {
            let work = async |_: NodeCx| {
                counted.up();
                Err(NodeError::new(class, "no luck"))
            };
            let call = Call::new("pay", &Value::Null);
            cx.call(&call, Effects::Effectful, work).await?;
            Ok::<_, NodeError>(())
        }
    };
    let policy = RetryPolicy {
        max_attempts: 2,
        on: vec![class],
        ..RetryPolicy::default()
    };
    graph.node("call", node).retry(policy);
    graph.edge(START, "call");
    let scene = Scene::new(graph.build().unwrap());
    let outcome = scene.invoke(nothing()).unwrap();
    (outcome.exit.name(), made.get())
}

#[test]
fn an_effect_is_repeated_unasked_only_if_its_error_says_that_it_did_not_happen() {
    // No answer came, so it may have happened.
    for unknown in [
        ErrorClass::Timeout,
        ErrorClass::Transport,
        ErrorClass::Canceled,
    ] {
        assert_eq!(check_error(unknown), ("interrupted", 1), "{unknown:?}");
    }
    for refused in [
        ErrorClass::RateLimited,
        ErrorClass::ToolFailed,
        ErrorClass::Denied,
    ] {
        assert_eq!(check_error(refused), ("failed", 2), "{refused:?}");
    }
}

#[test]
fn the_word_fail_gives_up_nothing_where_the_call_itself_asked() {
    let tries = Count::default();
    let mut graph = Graph::builder("spelling");
    graph.channel("result", last::<Value>());
    let node = move |cx: NodeCx| {
        let tries = tries.clone();
        async move {
            let work = async |cx: NodeCx| {
                let word = cx.interrupt("which word?")?;
                match tries.up() {
                    1 => Err(NodeError::new(ErrorClass::Internal, "pencil broke")),
                    _ => Ok(word),
                }
            };
            let call = Call::new("spell", &Value::Null);
            let word = cx.call(&call, Effects::ReadOnly, work).await?;
            Ok::<_, NodeError>(Update::new().set("result", word))
        }
    };
    graph.node("spell", node);
    graph.edge(START, "spell");
    let scene = Scene::new(graph.build().unwrap());
    scene.invoke(nothing()).unwrap();
    assert_eq!(scene.invoke(answer("fail")).unwrap().exit.name(), "failed");
    // The answer is kept for the next attempt.
    let done = scene.invoke(Input::Continue).unwrap();
    assert_eq!(done.values["result"], Value::from("fail"));
}

/// Makes calls with these keys and inputs, one after the other, twice over if the first time fails.
fn check_keys(calls: fn(attempt: u32) -> Vec<Call>) -> String {
    let mut graph = Graph::builder("keys");
    graph.channel("result", last::<Value>());
    let node = move |cx: NodeCx| async move {
        for call in calls(cx.attempt()) {
            let work = async |_: NodeCx| Ok(Value::Null);
            cx.call(&call, Effects::Idempotent, work).await?;
        }
        if cx.attempt() == 1 {
            return Err(NodeError::new(ErrorClass::Transport, "broke off"));
        }
        Ok(())
    };
    let policy = RetryPolicy {
        max_attempts: 2,
        ..RetryPolicy::default()
    };
    graph.node("call", node).retry(policy);
    graph.edge(START, "call");
    let outcome = Scene::new(graph.build().unwrap())
        .invoke(nothing())
        .unwrap();
    outcome.exit.error().map_or_else(
        || outcome.exit.name().to_owned(),
        |error| format!("{}: {error}", error.code()),
    )
}

#[test]
fn a_key_names_one_call_of_an_attempt() {
    assert_eq!(check_keys(|_| vec![Call::new("k", &Value::Null)]), "done");
    insta::assert_snapshot!(check_keys(|_| vec![Call::new("k", &Value::Null), Call::new("k", &Value::Null)]), @"node: node `call` failed: the journal key `k` was used twice in one attempt");
    insta::assert_snapshot!(check_keys(|attempt| vec![Call::new("k", &u64::from(attempt).into())]), @"journal_mismatch: node `call` did another call under the key `k` than the one recorded there");
    assert_eq!(
        check_keys(|attempt| vec![Call::new("k", &u64::from(attempt).into()).keyed_by_input()]),
        "done"
    );
}

#[test]
#[expect(clippy::disallowed_methods, reason = "it is real time that this takes")]
fn a_task_may_journal_thousands_of_calls() {
    const CALLS: u64 = 4000;
    let mut graph = Graph::builder("many");
    graph.channel("result", last::<Value>());
    let made = Count::default();
    let count = made.clone();
    graph.node("n", move |cx: NodeCx| {
        let count = count.clone();
        async move {
            for number in 0..CALLS {
                let call = Call::new(number.to_string(), &Value::Null);
                let work = async |_: NodeCx| {
                    count.up();
                    Ok(Value::Null)
                };
                cx.call(&call, Effects::Effectful, work).await?;
            }
            let more = cx.interrupt("more?")?;
            Ok(Update::new().set("result", more))
        }
    });
    graph.edge(START, "n");
    let scene = Scene::new(graph.build().unwrap());
    let begin = std::time::Instant::now();
    assert_eq!(scene.invoke(nothing()).unwrap().exit.name(), "interrupted");
    assert_eq!(scene.invoke(answer("no")).unwrap().exit.name(), "done");
    assert_eq!(made.get(), CALLS);
    // A quarter of a second when every call costs the same, a minute when each looks at all before it.
    assert!(begin.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_node_that_asks_until_it_hears_yes_does_each_thing_once() {
    let logged = Count::default();
    let counted = logged.clone();
    let mut graph = Graph::builder("g");
    graph.channel("log", append::<String>());
    graph.node("ask", move |cx: NodeCx| {
        let counted = counted.clone();
        async move {
            for round in 0.. {
                let call = Call::new(format!("round {round}"), &Value::Null);
                let work = async |_: NodeCx| Ok(Value::from(counted.up()));
                cx.call(&call, Effects::Effectful, work).await?;
                if cx.interrupt("enough?")? == Value::from("yes") {
                    break;
                }
            }
            Ok::<_, NodeError>(Update::new().set("log", "enough"))
        }
    });
    graph.edge(START, "ask");
    let scene = Scene::new(graph.build().unwrap());
    scene.invoke(nothing()).unwrap();
    let mut ends = Vec::new();
    for said in ["no", "no", "yes"] {
        let outcome = scene.invoke(answer(said)).unwrap();
        ends.push(format!("{} {}", outcome.exit.name(), logged.get()));
    }
    assert_eq!(ends, ["interrupted 2", "interrupted 3", "done 3"]);
}
