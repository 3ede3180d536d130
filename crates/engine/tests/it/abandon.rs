//! Tasks in the middle of their work when new input comes: what they say remains of it.

use crate::scene::{Count, Scene, answer, block_on, input, nothing, pause, poll_until, thread};
use async_trait::async_trait;
use serde_json::json;
use tine_engine::channel::{append, last};
use tine_engine::checkpoint::CallState;
use tine_engine::command::Output;
use tine_engine::run::{Call, ChildMemory, Effects};
use tine_engine::{
    ClientCommand, ErrorClass, Graph, Input, Node, NodeCx, NodeError, RunOptions, START, Update,
    Value,
};

/// What a [`Payer`] does before it can be left.
#[derive(Clone, Copy, PartialEq)]
enum Does {
    /// Asks, and makes no call.
    Asks,
    /// Makes its call and asks.
    PaysAndAsks,
    /// Makes its call, which is torn.
    Pays,
    /// Makes its call, which fails before it took place.
    IsDenied,
    /// Makes its call and asks, and does not let new input come.
    Insists,
}

/// A node that makes one effectful call.
struct Payer {
    does: Does,
    paid: Count,
}

fn call() -> Call {
    Call::new("pay", &Value::from("rent"))
}

#[async_trait]
impl Node for Payer {
    async fn run(&self, cx: NodeCx) -> Result<Output, NodeError> {
        if self.does != Does::Asks {
            let pay = async |_: NodeCx| {
                if self.does == Does::IsDenied {
                    return Err(NodeError::new(ErrorClass::Denied, "no money"));
                }
                pause().await;
                let times = self.paid.up();
                pause().await;
                Ok(Value::from(times))
            };
            cx.call(&call(), Effects::Effectful, pay).await?;
        }
        cx.interrupt("well?")?;
        Ok(Update::new().set("log", "ran").into())
    }

    async fn abandon(&self, cx: NodeCx) -> Result<Update, NodeError> {
        if self.does == Does::Insists {
            return Err(NodeError::new(ErrorClass::Denied, "answer first"));
        }
        let stands = match cx.recorded(&call()) {
            Some(CallState::Done(_)) => "paid",
            Some(CallState::Started) => "perhaps paid",
            Some(CallState::Idle) => "not paid",
            None => "nothing",
        };
        let who = cx.value("who").unwrap_or_default();
        Ok(Update::new().set("log", vec![who, stands.into()]))
    }
}

fn graph(does: Does, paid: &Count) -> Graph {
    let paid = paid.clone();
    let mut graph = Graph::builder("paying");
    graph.channel("log", append::<Value>());
    graph.channel("who", last::<String>());
    graph.node("pay", Payer { does, paid });
    graph.edge(START, "pay");
    graph.build().unwrap()
}

/// A thread that was left in the middle of its work.
fn left(does: Does) -> Scene {
    let paid = Count::default();
    let scene = Scene::new(graph(does, &paid));
    let run = scene.run(input(json!({"who": "me"})), RunOptions::default());
    if does == Does::Pays {
        assert!(poll_until(run, 100, || paid.get() == 1).is_none());
    } else {
        block_on(run).unwrap();
    }
    scene
}

fn log(scene: &Scene) -> String {
    scene.state().values["log"].to_canonical()
}

/// Gives new input to a thread that was left. Shows how the node's writes and the input follow each other.
fn check(does: Does) -> String {
    let scene = left(does);
    scene
        .invoke(input(json!({"log": "input", "who": "you"})))
        .unwrap();
    log(&scene)
}

#[test]
fn a_node_says_what_remains_before_the_input_comes() {
    assert_eq!(check(Does::PaysAndAsks), r#"["me","paid","input"]"#);
    assert_eq!(check(Does::IsDenied), r#"["me","not paid","input"]"#);
    assert_eq!(check(Does::Pays), r#"["me","perhaps paid","input"]"#);
}

#[test]
fn a_node_that_made_no_call_is_asked_too() {
    assert_eq!(check(Does::Asks), r#"["me","nothing","input"]"#);
}

#[test]
fn a_node_that_can_not_say_keeps_its_task() {
    let scene = left(Does::Insists);
    let before = scene.state();
    let refused = scene.invoke(input(json!({"log": "input"}))).unwrap_err();
    insta::assert_snapshot!(refused, @"node `pay` failed: answer first");
    assert_eq!(scene.state(), before);
    assert_eq!(scene.invoke(answer("yes")).unwrap().exit.name(), "done");
    assert_eq!(log(&scene), r#"["ran"]"#);
}

#[test]
fn what_goes_on_is_not_abandoned() {
    let goto = ClientCommand {
        update: Update::new().set("log", "update"),
        ..ClientCommand::default()
    };
    for (goes_on, expected) in [
        (Input::Continue, r#"["ran"]"#),
        (Input::Command(goto), r#"["update","ran"]"#),
    ] {
        let scene = left(Does::PaysAndAsks);
        scene.invoke(goes_on).unwrap();
        scene.invoke(answer("yes")).unwrap();
        assert_eq!(log(&scene), expected);
    }
}

#[test]
fn a_task_is_abandoned_once() {
    let scene = left(Does::PaysAndAsks);
    // Refused before the node is asked.
    scene.invoke(input(json!({"z": 1}))).unwrap_err();
    let options = RunOptions::default();
    options.cancel.cancel();
    let stopped = block_on(scene.run(input(json!({"log": "input"})), options)).unwrap();
    assert_eq!(stopped.exit.name(), "cancelled");
    scene.invoke(Input::Continue).unwrap();
    assert_eq!(log(&scene), r#"["me","paid","input"]"#);
}

#[test]
fn a_child_that_remembers_is_asked_when_it_is_visited_again() {
    let child = graph(Does::PaysAndAsks, &Count::default());
    let mut host = Graph::builder("host");
    host.channel("log", last::<Value>());
    let node = move |cx: NodeCx| {
        let child = child.clone();
        async move {
            let seen = cx
                .child(&child, "", Update::new(), ChildMemory::Thread)
                .await?;
            Ok::<_, NodeError>(Update::new().set("log", seen["log"].clone()))
        }
    };
    host.node("a", node);
    host.edge(START, "a");
    let scene = Scene::new(host.build().unwrap());
    scene.invoke(nothing()).unwrap();
    scene.invoke(nothing()).unwrap();
    scene.invoke(answer("yes")).unwrap();
    assert_eq!(log(&scene), r#"[null,"paid","ran"]"#);
}

/// A node that works for ever, and says what is to be kept of that; when it finds something kept, or `who` is set, it is
/// quick.
struct Worker(&'static str);

fn kept() -> Call {
    Call::new("kept", &Value::Null)
}

#[async_trait]
impl Node for Worker {
    async fn run(&self, cx: NodeCx) -> Result<Output, NodeError> {
        let name = self.0;
        let found = cx.recorded(&kept());
        cx.keep_if_cancelled(&kept(), || Some("never asked for".into()));
        cx.keep_if_cancelled(&kept(), move || Some(name.into()));
        if let Some(CallState::Done(found)) = found {
            cx.abandon_calls(&[kept()]).await?;
            assert_eq!(cx.recorded(&kept()), Some(CallState::Idle));
            return Ok(Update::new().set("log", vec!["again".into(), found]).into());
        }
        while cx.value("who").is_none() {
            pause().await;
        }
        Ok(Output::default())
    }

    async fn abandon(&self, cx: NodeCx) -> Result<Update, NodeError> {
        Ok(match cx.recorded(&kept()) {
            Some(CallState::Done(found)) => Update::new().set("log", vec![found]),
            _ => Update::new(),
        })
    }
}

#[test]
fn what_a_cancelled_task_wants_kept_waits_for_what_comes_next() {
    let check = |nodes: &[&'static str], next: Input| {
        let mut graph = Graph::builder("workers");
        graph.channel("log", append::<Value>());
        graph.channel("who", last::<String>());
        for name in nodes {
            graph.node(*name, Worker(name));
            graph.edge(START, *name);
        }
        let scene = Scene::new(graph.build().unwrap());
        let options = RunOptions::default();
        let cancel = options.cancel.clone();
        let (outcome, ()) = block_on(async {
            tokio::join!(scene.run(nothing(), options), async {
                pause().await;
                cancel.cancel();
            })
        });
        assert_eq!(outcome.unwrap().exit.name(), "cancelled");
        assert_eq!(scene.invoke(next).unwrap().exit.name(), "done");
        log(&scene)
    };
    let new = || input(json!({"log": "input", "who": "me"}));
    assert_eq!(check(&["a"], Input::Continue), r#"["again","a"]"#);
    assert_eq!(check(&["a"], new()), r#"["a","input"]"#);
    assert_eq!(
        check(&["a", "b"], Input::Continue),
        r#"["again","a","again","b"]"#
    );
    assert_eq!(check(&["a", "b"], new()), r#"["a","b","input"]"#);
}

/// A node that never says what remains of it.
struct Stubborn;

#[async_trait]
impl Node for Stubborn {
    async fn run(&self, cx: NodeCx) -> Result<Output, NodeError> {
        cx.interrupt("well?")?;
        Ok(Output::default())
    }

    async fn abandon(&self, cx: NodeCx) -> Result<Update, NodeError> {
        cx.world().sleep(std::time::Duration::from_secs(5)).await;
        if cx.value("who").is_none() {
            std::future::pending::<()>().await;
        }
        Ok(Update::new().set("log", "left"))
    }
}

#[test]
fn leaving_a_task_may_take_time_and_can_be_cancelled() {
    let mut graph = Graph::builder("stubborn");
    graph.channel("log", append::<Value>());
    graph.channel("who", last::<String>());
    graph.node("ask", Stubborn);
    graph.edge(START, "ask");
    let graph = graph.build().unwrap();
    let scene = Scene::new(graph.clone());
    scene.invoke(input(json!({"who": "me"}))).unwrap();
    let left = scene.invoke(nothing()).unwrap();
    assert_eq!(left.values["log"].to_string(), r#"["left"]"#);
    // One that waits for ever is left alone when the run is cancelled, and the thread stays as it was.
    let scene = Scene::new(graph);
    scene.invoke(nothing()).unwrap();
    let options = RunOptions::default();
    let cancel = options.cancel.clone();
    cancel.cancel();
    let refused = block_on(scene.run(nothing(), options)).unwrap_err();
    assert_eq!(refused.code(), "cancelled");
    assert_eq!(scene.state().interrupts.len(), 1);
}

#[test]
fn a_thread_that_is_cancelled_has_nothing_left_to_run() {
    let scene = left(Does::PaysAndAsks);
    let cancelled = block_on(scene.runner.cancel(&thread())).unwrap();
    let state = scene.state();
    assert_eq!(Some(state.id), cancelled);
    assert_eq!(log(&scene), r#"["me","paid"]"#);
    assert!(state.next.is_empty() && state.interrupts.is_empty());
    assert_eq!(block_on(scene.runner.cancel(&thread())).unwrap(), None);
    assert_eq!(scene.invoke(Input::Continue).unwrap().exit.name(), "done");
    scene
        .invoke(input(json!({"log": "input", "who": "you"})))
        .unwrap();
    scene.invoke(answer("yes")).unwrap();
    assert_eq!(log(&scene), r#"["me","paid","input","ran"]"#);
}

#[test]
fn a_run_that_is_cancelled_before_it_started_keeps_its_input() {
    let scene = Scene::new(graph(Does::Asks, &Count::default()));
    let options = RunOptions::default();
    options.cancel.cancel();
    let stopped = block_on(scene.run(input(json!({"log": "input"})), options)).unwrap();
    assert_eq!(stopped.exit.name(), "cancelled");
    block_on(scene.runner.cancel(&thread())).unwrap();
    assert_eq!(log(&scene), r#"["input"]"#);
    assert!(scene.state().next.is_empty());
}

#[test]
fn what_finished_before_a_thread_was_cancelled_is_kept_and_goes_nowhere() {
    let mut graph = Graph::builder("two");
    graph.channel("log", append::<Value>());
    graph.node("ask", async |cx: NodeCx| {
        cx.interrupt("well?")?;
        Ok::<_, NodeError>(())
    });
    graph.node("work", async |_: NodeCx| {
        Ok::<_, NodeError>(Update::new().set("log", "worked"))
    });
    graph.node("after", async |_: NodeCx| {
        Ok::<_, NodeError>(Update::new().set("log", "after"))
    });
    graph
        .edge(START, "ask")
        .edge(START, "work")
        .edge("work", "after");
    let scene = Scene::new(graph.build().unwrap());
    scene.invoke(nothing()).unwrap();
    block_on(scene.runner.cancel(&thread())).unwrap();
    assert_eq!(log(&scene), r#"["worked"]"#);
    assert!(scene.state().next.is_empty());
    assert_eq!(scene.invoke(Input::Continue).unwrap().exit.name(), "done");
    assert_eq!(log(&scene), r#"["worked"]"#);
}
