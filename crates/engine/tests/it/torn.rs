//! Runs dropped at an await: what another runner over the same store makes of the thread.

use crate::scene::{Scene, input, nothing, pause, poll_some};
use crate::store::Unsteady;
use serde_json::json;
use std::sync::Arc;
use tine_engine::channel::{add, append, last};
use tine_engine::command::Target;
use tine_engine::run::{Call, Effects};
use tine_engine::{
    Checkpointer, Command, Graph, Input, NodeCx, NodeError, RunOptions, START, Update, Value,
};

/// Two rounds of three tasks, two of them in parallel with a call each, joined and counted.
fn graph() -> Graph {
    let mut graph = Graph::builder("torn");
    graph.channel("x", append::<String>());
    graph.channel("rounds", add::<i64>());
    graph.channel("who", last::<String>());
    graph.node("begin", |_: NodeCx| async {
        pause().await;
        let to = ["l", "r"].map(|item| Target::dispatch("work", item));
        Ok::<_, NodeError>(Command {
            update: Update::new().set("x", "begin").set("rounds", 1),
            goto: to.into(),
            ..Command::default()
        })
    });
    graph.node("work", |cx: NodeCx| async move {
        let item = cx.dispatched().cloned().unwrap_or_default();
        let call = Call::new("look", &item);
        let work = async |_: NodeCx| {
            pause().await;
            Ok(item.clone())
        };
        let seen = cx.call(&call, Effects::ReadOnly, work).await?;
        Ok::<_, NodeError>(Update::new().set("x", seen))
    });
    graph.node("end", |cx: NodeCx| async move {
        pause().await;
        let who = cx.value("who").unwrap_or_default();
        Ok::<_, NodeError>(Update::new().set("x", who))
    });
    graph.edge(START, "begin").edge("work", "end");
    graph.branch("end", |cx: NodeCx| async move {
        let rounds = cx.value("rounds").and_then(|rounds| rounds.as_i64());
        Ok::<_, NodeError>(if rounds < Some(2) {
            Target::from("begin")
        } else {
            Target::End
        })
    });
    graph.build().unwrap()
}

fn begin() -> Input {
    input(json!({"who": "me"}))
}

/// The values and steps of all checkpoints, oldest first.
fn checkpoints(scene: &Scene) -> Vec<(i64, Value)> {
    let history = scene.history().into_iter().rev();
    history
        .map(|snapshot| (snapshot.step, snapshot.values.into()))
        .collect()
}

/// Drops the run of `first` after so many polls, then goes on with other runners that are dropped as early, the last of
/// them not. Gives false if the first one came to its end.
fn check(polls: usize, drops: usize, expected: &[(i64, Value)]) -> bool {
    let store = Arc::new(Unsteady::default());
    let mut dropped = false;
    for round in 0..=drops {
        let scene = Scene::over(graph(), store.clone());
        let is_stored = crate::scene::block_on(store.thread(&crate::scene::thread()))
            .unwrap()
            .is_some();
        let next = if is_stored { Input::Continue } else { begin() };
        if round == drops {
            assert_eq!(scene.invoke(next).unwrap().exit.name(), "done");
            assert_eq!(checkpoints(&scene), expected, "dropped after {polls} polls");
        } else {
            let run = scene.run(next, RunOptions::default());
            dropped |= poll_some(run, polls).is_none();
        }
    }
    dropped
}

fn undisturbed() -> Vec<(i64, Value)> {
    let scene = Scene::over(graph(), Arc::new(Unsteady::default()));
    scene.invoke(begin()).unwrap();
    checkpoints(&scene)
}

#[test]
fn a_run_dropped_anywhere_goes_on_to_the_same_checkpoints() {
    let expected = undisturbed();
    let mut polls = 0;
    while check(polls, 1, &expected) {
        polls += 1;
    }
    assert!(polls > 40, "only {polls} places to drop the run at");
}

#[test]
fn a_run_dropped_again_and_again_gets_to_its_end() {
    let expected = undisturbed();
    for polls in 1..40 {
        check(polls, 5, &expected);
    }
}

#[test]
fn a_run_dropped_between_two_steps_repeats_no_step() {
    let scene = Scene::over(graph(), Arc::new(Unsteady::default()));
    // As far as the checkpoint of the first step.
    let reached = (0..200).find(|polls| {
        let scene = Scene::over(graph(), Arc::new(Unsteady::default()));
        drop(poll_some(scene.run(begin(), RunOptions::default()), *polls));
        scene.transcript().contains("step 1\n")
            && !scene.transcript().contains("step 2\n")
            && scene.history().first().is_some_and(|head| head.step == 1)
    });
    drop(poll_some(
        scene.run(begin(), RunOptions::default()),
        reached.unwrap(),
    ));
    scene.transcript();
    scene.invoke(Input::Continue).unwrap();
    assert!(scene.transcript().starts_with("step 2\n"));
    // Nothing is left to go on with.
    scene.invoke(Input::Continue).unwrap();
    assert_eq!(scene.transcript(), "done\n");
    assert_eq!(scene.invoke(nothing()).unwrap().exit.name(), "done");
}
