//! Runs and updates at older checkpoints: what runs again there, under which names, and what stays as it was.

use crate::scene::{Count, Scene, answer, block_on, input, nothing, thread};
use serde_json::json;
use std::sync::{Arc, Mutex};
use tine_engine::channel::{append, last};
use tine_engine::checkpoint::Source;
use tine_engine::run::{Call, Effects, HistoryQuery, Snapshot, ThreadUpdate, UpdateAs};
use tine_engine::world::Id;
use tine_engine::{
    ClientCommand, Command, END, Graph, Input, NodeCx, NodeError, Outcome, Output, Resume,
    RunError, RunOptions, START, Target, ThreadKey, Update, Value,
};

/// `pay` makes a call and asks; `end` says what came of it.
struct Paying {
    scene: Scene,
    /// The idempotency keys under which was paid.
    paid: Arc<Mutex<Vec<String>>>,
}

fn paying() -> Paying {
    let paid: Arc<Mutex<Vec<String>>> = Arc::default();
    let keys = paid.clone();
    let mut graph = Graph::builder("paying");
    graph.channel("what", last::<String>());
    graph.channel("log", append::<Value>());
    graph.node("pay", move |cx: NodeCx| {
        let keys = keys.clone();
        async move {
            let what = cx.value("what").unwrap_or_default();
            let work = async |cx: NodeCx| {
                keys.lock().unwrap().push(cx.idempotency_key());
                Ok(what.clone())
            };
            let call = Call::new("pay", &what);
            let paid = cx.call(&call, Effects::Effectful, work).await?;
            let said = cx.interrupt("well?")?;
            Ok::<_, NodeError>(Update::new().set("log", vec![paid, said]))
        }
    });
    graph.node("end", |_: NodeCx| async {
        Ok::<_, NodeError>(Update::new().set("log", "end"))
    });
    graph.edge(START, "pay").edge("pay", "end");
    Paying {
        scene: Scene::new(graph.build().unwrap()),
        paid,
    }
}

impl Paying {
    /// How often was paid, and that no two were under one key.
    fn paid(&self) -> usize {
        let mut keys = self.paid.lock().unwrap().clone();
        let times = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), times, "two effects under one key");
        times
    }
}

impl Scene {
    fn at(&self, id: Id, with: impl Into<Input>) -> Result<Outcome, RunError> {
        let options = RunOptions {
            at: Some(id),
            ..RunOptions::default()
        };
        block_on(self.run(with, options))
    }

    fn update(&self, by: impl Into<UpdateAs>, output: impl Into<Output>) -> Result<Id, RunError> {
        block_on(self.runner.update(&thread(), by, output))
    }

    /// The newest checkpoint of this number and source.
    fn checkpoint(&self, step: i64, source: Source) -> Snapshot {
        let query = HistoryQuery {
            step: Some(step),
            source: Some(source),
            limit: Some(1),
            ..HistoryQuery::default()
        };
        let mut found = block_on(self.runner.history(&thread(), query)).unwrap();
        found.pop().unwrap()
    }

    /// The thread, newest checkpoint first: number, source, the number of lines up to its parent, values, what is next.
    fn tree(&self) -> String {
        let history = self.history();
        let line = |snapshot: &Snapshot| {
            let parent = history
                .iter()
                .position(|other| Some(other.id) == snapshot.parent);
            let next: Vec<&str> = snapshot.next.iter().map(|task| &*task.node).collect();
            format!(
                "{} {:?} of {} {} -> {}",
                snapshot.step,
                snapshot.source,
                parent.map_or("nothing".to_owned(), |place| place.to_string()),
                Value::from(snapshot.values.clone()),
                next.join(" ")
            )
        };
        history.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

fn log(outcome: &Outcome) -> String {
    format!("{} {}", outcome.exit.name(), outcome.values["log"])
}

#[test]
fn a_replay_does_every_call_again_under_a_new_key_and_asks_anew() {
    let paying = paying();
    let scene = &paying.scene;
    let first = scene.invoke(input(json!({"what": "rent"}))).unwrap();
    scene.invoke(answer("yes")).unwrap();
    assert_eq!(paying.paid(), 1);
    let asked = scene.checkpoint(0, Source::Loop).id;
    let again = scene.at(asked, Input::Continue).unwrap();
    assert_eq!(log(&again), "interrupted []");
    assert_eq!(paying.paid(), 2);
    // The old answer is none to the new question, which has another id.
    assert_ne!(first.interrupts[0].id, again.interrupts[0].id);
    let stale = scene.invoke(Resume::by_id([(first.interrupts[0].id, "yes")]));
    assert_eq!(stale.unwrap_err().code(), "unknown_interrupt");
    let fresh = scene.invoke(Resume::by_id([(again.interrupts[0].id, "no")]));
    assert_eq!(log(&fresh.unwrap()), r#"done ["rent","no","end"]"#);
    assert_eq!(paying.paid(), 2);
    insta::assert_snapshot!(scene.tree(), @r#"
    3 Loop of 1 {"log":["rent","no","end"],"what":"rent"} -> 
    2 Loop of 2 {"log":["rent","no"],"what":"rent"} -> end
    1 Fork of 5 {"log":[],"what":"rent"} -> pay
    2 Loop of 4 {"log":["rent","yes","end"],"what":"rent"} -> 
    1 Loop of 5 {"log":["rent","yes"],"what":"rent"} -> end
    0 Loop of 6 {"log":[],"what":"rent"} -> pay
    -1 Input of nothing {"log":[]} -> __start__
    "#);
}

#[test]
fn an_update_over_an_open_task_repeats_no_effect() {
    let paying = paying();
    let scene = &paying.scene;
    let first = scene.invoke(input(json!({"what": "rent"}))).unwrap();
    // `pay` is planned again, with its call done and its question asked anew.
    scene
        .update(START, Update::new().set("log", "note"))
        .unwrap();
    let again = scene.invoke(Input::Continue).unwrap();
    assert_eq!(log(&again), r#"interrupted ["note"]"#);
    assert_eq!(paying.paid(), 1);
    assert_ne!(first.interrupts[0].id, again.interrupts[0].id);
    assert_eq!(
        log(&scene.invoke(answer("yes")).unwrap()),
        r#"done ["note","rent","yes","end"]"#
    );
    assert_eq!(paying.paid(), 1);
}

#[test]
fn an_update_of_what_a_call_is_given_makes_it_another_call() {
    let paying = paying();
    let scene = &paying.scene;
    scene.invoke(input(json!({"what": "rent"}))).unwrap();
    scene
        .update(START, Update::new().set("what", "tax"))
        .unwrap();
    scene.invoke(Input::Continue).unwrap();
    assert_eq!(paying.paid(), 2);
    assert_eq!(
        log(&scene.invoke(answer("yes")).unwrap()),
        r#"done ["tax","yes","end"]"#
    );
}

#[test]
fn an_update_at_an_old_checkpoint_begins_a_branch_where_calls_are_made_again() {
    let paying = paying();
    let scene = &paying.scene;
    scene.invoke(input(json!({"what": "rent"}))).unwrap();
    scene.invoke(answer("yes")).unwrap();
    let asked = scene.checkpoint(0, Source::Loop).id;
    let step = vec![ThreadUpdate::new(START, Update::new())];
    block_on(scene.runner.bulk_update(&thread(), Some(asked), vec![step])).unwrap();
    scene.invoke(Input::Continue).unwrap();
    assert_eq!(paying.paid(), 2);
}

/// A thread whose run broke off in the middle of its one call.
fn torn() -> (Scene, Count) {
    let sent = Count::default();
    let count = sent.clone();
    let mut graph = Graph::builder("torn");
    graph.channel("log", append::<Value>());
    graph.node("send", move |cx: NodeCx| {
        let count = count.clone();
        async move {
            let work = async |_: NodeCx| {
                if count.up() == 1 {
                    crate::scene::pause().await;
                }
                Ok(Value::from("sent"))
            };
            let call = Call::new("send", &Value::Null);
            let sent = cx.call(&call, Effects::Effectful, work).await?;
            Ok::<_, NodeError>(Update::new().set("log", vec![sent]))
        }
    });
    graph.edge(START, "send");
    let scene = Scene::new(graph.build().unwrap());
    let run = scene.run(nothing(), RunOptions::default());
    assert!(crate::scene::poll_until(run, 100, || sent.get() == 1).is_none());
    (scene, sent)
}

#[test]
fn a_torn_call_is_asked_about_also_after_an_update() {
    let (scene, sent) = torn();
    scene.update(START, Update::new()).unwrap();
    let asked = scene.invoke(Input::Continue).unwrap();
    assert_eq!(
        asked.interrupts[0].payload.get("kind"),
        Some(&"unknown_outcome".into())
    );
    assert_eq!(sent.get(), 1);
    assert_eq!(log(&scene.invoke(answer("skip")).unwrap()), "done [null]");
    assert_eq!(sent.get(), 1);
}

#[test]
fn an_answer_given_before_an_update_meets_no_later_round_of_a_loop() {
    let mut graph = Graph::builder("loop");
    graph.channel("log", append::<Value>());
    graph.node("ask", |cx: NodeCx| async move {
        let said = cx.interrupt("more?")?;
        let update = Update::new().set("log", vec![said.clone()]);
        let command = Command::default().update(update);
        Ok::<_, NodeError>(if said.as_str() == Some("yes") {
            command.and_goto("ask")
        } else {
            command
        })
    });
    graph.edge(START, "ask");
    let scene = Scene::new(graph.build().unwrap());
    let ask = |outcome: Outcome| outcome.interrupts[0].id;
    let first = ask(scene.invoke(nothing()).unwrap());
    let second = ask(scene.invoke(Resume::by_id([(first, "yes")])).unwrap());
    let stale = scene.invoke(Resume::by_id([(first, "no")])).unwrap_err();
    assert_eq!(stale.code(), "unknown_interrupt");
    // At the checkpoint where it was asked, the first question can be answered anew.
    let asked = scene.checkpoint(0, Source::Loop).id;
    assert_eq!(
        log(&scene.at(asked, Resume::by_id([(first, "no")])).unwrap()),
        r#"done ["no"]"#
    );
    // The second one was asked elsewhere.
    let elsewhere = scene
        .at(asked, Resume::by_id([(second, "no")]))
        .unwrap_err();
    assert_eq!(elsewhere.code(), "unknown_interrupt");
}

#[test]
fn an_answer_that_may_come_of_the_changed_one_is_asked_for_again() {
    let mut graph = Graph::builder("two");
    graph.channel("log", append::<Value>());
    graph.node("ask", |cx: NodeCx| async move {
        let name = cx.interrupt("name?")?;
        let sure = cx.interrupt(format!("{}, sure?", name.as_str().unwrap_or_default()))?;
        Ok::<_, NodeError>(Update::new().set("log", vec![name, sure]))
    });
    graph.edge(START, "ask");
    let scene = Scene::new(graph.build().unwrap());
    let first = scene.invoke(nothing()).unwrap().interrupts[0].id;
    let second = scene.invoke(answer("ann")).unwrap().interrupts[0].id;
    scene.invoke(answer("yes")).unwrap();
    let asked = scene.checkpoint(0, Source::Loop).id;
    let renamed = scene.at(asked, Resume::by_id([(first, "bob")])).unwrap();
    assert_eq!(renamed.interrupts[0].payload, "bob, sure?".into());
    assert_eq!(
        log(&scene.invoke(answer("no")).unwrap()),
        r#"done ["bob","no"]"#
    );
    let unsure = scene.at(asked, Resume::by_id([(second, "no")])).unwrap();
    assert_eq!(log(&unsure), r#"done ["ann","no"]"#);
    // With another state, none of the old answers holds.
    let command = ClientCommand {
        update: Update::new().set("log", "note"),
        resume: Some(Resume::by_id([(second, "perhaps")])),
        ..ClientCommand::default()
    };
    let noted = scene.at(asked, command).unwrap();
    assert_eq!(noted.interrupts[0].payload, "name?".into());
    let plain = scene.at(asked, answer("carl")).unwrap_err();
    assert_eq!(plain.code(), "multiple_interrupts");
}

/// What an action at a checkpoint that is not there says, over a thread whose checkpoints stay as they were.
#[track_caller]
fn check_unknown(act: impl FnOnce(&Scene, Id) -> RunError) {
    let scene = paying().scene;
    scene.invoke(nothing()).unwrap();
    let before = scene.tree();
    let error = act(&scene, Id(77));
    assert_eq!(error.code(), "unknown_checkpoint");
    assert_eq!(
        error.to_string(),
        "thread `t` has no checkpoint `00000000-0000-0000-0000-00000000004d`; its history lists those it has"
    );
    assert_eq!(scene.tree(), before);
}

#[test]
fn a_checkpoint_that_is_not_there_is_an_error_for_everyone() {
    check_unknown(|scene, id| scene.at(id, Input::Continue).unwrap_err());
    check_unknown(|scene, id| scene.at(id, nothing()).unwrap_err());
    check_unknown(|scene, id| scene.at(id, answer("x")).unwrap_err());
    check_unknown(|scene, id| scene.at(id, ClientCommand::default()).unwrap_err());
    check_unknown(|scene, id| block_on(scene.runner.state_at(&thread(), id)).unwrap_err());
    check_unknown(|scene, id| {
        let step = vec![ThreadUpdate::new("end", Update::new())];
        block_on(scene.runner.bulk_update(&thread(), Some(id), vec![step])).unwrap_err()
    });
    check_unknown(|scene, id| {
        let query = HistoryQuery {
            before: Some(id),
            ..HistoryQuery::default()
        };
        block_on(scene.runner.history(&thread(), query)).unwrap_err()
    });
}

/// What a bulk update says that makes no sense. Nothing of it is stored.
fn check_refused(steps: Vec<Vec<ThreadUpdate>>) -> String {
    let scene = paying().scene;
    scene.invoke(nothing()).unwrap();
    let before = scene.tree();
    let refused = block_on(scene.runner.bulk_update(&thread(), None, steps));
    let error = refused.unwrap_err();
    assert_eq!(scene.tree(), before);
    format!("{}: {error}", error.code())
}

#[test]
fn updates_that_make_no_sense_are_refused_whole() {
    let note = || Update::new().set("log", "note");
    let by = |by: UpdateAs, output: Output| ThreadUpdate { by, output };
    insta::assert_snapshot!(check_refused(vec![]), @"invalid_update: update: there is nothing to update");
    insta::assert_snapshot!(check_refused(vec![vec![]]), @"invalid_update: update: there is nothing to update");
    insta::assert_snapshot!(
        check_refused(vec![vec![by(UpdateAs::LastRan, note().into()), ThreadUpdate::new("end", note())]]),
        @"invalid_update: update: each of several updates of one step must say as which node it is made"
    );
    insta::assert_snapshot!(
        check_refused(vec![vec![by(UpdateAs::End, note().into())]]),
        @"invalid_update: update: an update as the end can not write or go anywhere; make it as a node"
    );
    insta::assert_snapshot!(
        check_refused(vec![vec![by(UpdateAs::Copy, note().into())]]),
        @"invalid_update: update: a copy can not write or go anywhere; update it in another step"
    );
    insta::assert_snapshot!(
        check_refused(vec![vec![ThreadUpdate::new("end", note())], vec![by(UpdateAs::Copy, ().into())]]),
        @"invalid_update: update: only the first of several steps can be a copy"
    );
    insta::assert_snapshot!(
        check_refused(vec![vec![by(UpdateAs::Input, Command::goto("end").into())]]),
        @"invalid_update: update: an update as the input can not go anywhere; its writes are what the run starts with"
    );
    insta::assert_snapshot!(
        check_refused(vec![vec![by(UpdateAs::Input, note().into()), ThreadUpdate::new("end", note())]]),
        @"invalid_update: update: an update as the input must be alone in its step"
    );
    insta::assert_snapshot!(
        check_refused(vec![vec![by(UpdateAs::Input, Update::new().set("ghost", 1).into())]]),
        @"unknown_input: graph `paying` takes no input `ghost`; its inputs are `what`, `log`"
    );
    insta::assert_snapshot!(
        check_refused(vec![vec![ThreadUpdate::new("ghost", note())]]),
        @"unknown_node: graph `paying` has no node `ghost`"
    );
    // The first step fits, and is not stored without the second.
    insta::assert_snapshot!(
        check_refused(vec![
            vec![ThreadUpdate::new("pay", note())],
            vec![ThreadUpdate::new("end", Update::new().set("ghost", 1))],
        ]),
        @"invalid_update: node `end`: writes to `ghost`, and graph `paying` declares no such channel; it has `what`, `log`"
    );
    insta::assert_snapshot!(
        check_refused(vec![vec![
            ThreadUpdate::new("pay", Update::new().set("what", "a")),
            ThreadUpdate::new("end", Update::new().set("what", "b")),
        ]]),
        @"concurrent_update: `pay` and `end` wrote `what` in the same step, and its reducer `last` takes one write; give it one that merges, or write two channels"
    );
}

#[test]
fn nothing_can_not_be_copied() {
    let scene = paying().scene;
    let copied = scene.update(UpdateAs::Copy, ()).unwrap_err();
    assert_eq!(copied.to_string(), "update: there is nothing to copy");
    assert!(scene.history().is_empty());
    let ended = scene.update(END, ()).unwrap();
    assert_eq!(scene.history()[0].id, ended);
}

#[test]
fn names_stand_for_what_they_name() {
    assert_eq!(UpdateAs::from(START), UpdateAs::Start);
    assert_eq!(UpdateAs::from(END), UpdateAs::End);
    assert_eq!(UpdateAs::from("n"), UpdateAs::Node("n".into()));
    assert_eq!(UpdateAs::default(), UpdateAs::LastRan);
}

#[test]
fn a_branch_needs_a_store() {
    let mut graph = Graph::builder("bare");
    graph.node("n", |_: NodeCx| async { Ok::<_, NodeError>(()) });
    graph.edge(START, "n");
    let graph = graph.build().unwrap();
    let runner = tine_engine::Runner::new(graph, tine_engine::SimWorld::new(1));
    let options = RunOptions {
        at: Some(Id(1)),
        ..RunOptions::default()
    };
    let refused = block_on(runner.invoke(&ThreadKey::local("t"), nothing(), options));
    assert_eq!(
        refused.unwrap_err().to_string(),
        "beginning at a checkpoint needs a checkpointer"
    );
}

#[test]
fn histories_are_filtered_and_limited() {
    let mut graph = Graph::builder("long");
    graph.channel("log", append::<i64>());
    graph.node("n", |cx: NodeCx| async move {
        let step = cx.step();
        let command = Command::default().update(Update::new().set("log", step));
        let more = step % 150 != 0;
        Ok::<_, NodeError>(if more { command.and_goto("n") } else { command })
    });
    graph.edge(START, "n");
    let scene = Scene::new(graph.build().unwrap());
    scene.invoke(nothing()).unwrap();
    let run = scene.history()[0].run;
    scene.invoke(nothing()).unwrap();
    let check = |query: HistoryQuery, expected: &[i64]| {
        let found = block_on(scene.runner.history(&thread(), query)).unwrap();
        let steps: Vec<i64> = found.iter().map(|snapshot| snapshot.step).collect();
        assert_eq!(steps, expected);
    };
    let all = HistoryQuery::default();
    let inputs = HistoryQuery {
        source: Some(Source::Input),
        ..all
    };
    check(inputs, &[151, -1]);
    check(
        HistoryQuery {
            limit: Some(1),
            ..inputs
        },
        &[151],
    );
    check(
        HistoryQuery {
            limit: Some(0),
            ..inputs
        },
        &[],
    );
    check(
        HistoryQuery {
            run: Some(run),
            ..inputs
        },
        &[-1],
    );
    check(
        HistoryQuery {
            run: Some(Id(1234)),
            ..inputs
        },
        &[],
    );
    check(
        HistoryQuery {
            step: Some(7),
            ..HistoryQuery::default()
        },
        &[7],
    );
    let before = scene.checkpoint(2, Source::Loop).id;
    check(
        HistoryQuery {
            before: Some(before),
            limit: Some(2),
            ..HistoryQuery::default()
        },
        &[1, 0],
    );
    check(2.into(), &[300, 299]);
}

#[test]
fn going_on_from_an_update_makes_no_branch_until_something_came_of_it() {
    let scene = paying().scene;
    scene.invoke(input(json!({"what": "rent"}))).unwrap();
    let updated = scene
        .update("pay", Update::new().set("log", "note"))
        .unwrap();
    scene.at(updated, Input::Continue).unwrap();
    insta::assert_snapshot!(scene.tree(), @r#"
    2 Loop of 1 {"log":["note","end"],"what":"rent"} -> 
    1 Update of 2 {"log":["note"],"what":"rent"} -> end
    0 Loop of 3 {"log":[],"what":"rent"} -> pay
    -1 Input of nothing {"log":[]} -> __start__
    "#);
    scene.at(updated, Input::Continue).unwrap();
    assert_eq!(scene.history()[1].source, Source::Fork);
}

#[test]
fn a_call_made_twice_under_one_id_runs_once() {
    let scene = paying().scene;
    let options = |id| RunOptions {
        invocation: Some(Id(id)),
        ..RunOptions::default()
    };
    let run = |id| {
        let outcome = block_on(scene.run(input(json!({"log": "in"})), options(id)));
        log(&outcome.unwrap())
    };
    assert_eq!(run(1), r#"interrupted ["in"]"#);
    assert_eq!(run(1), r#"interrupted ["in"]"#);
    assert_eq!(run(2), r#"interrupted ["in","in"]"#);
    let query = HistoryQuery {
        invocation: Some(Id(1)),
        ..HistoryQuery::default()
    };
    let found = block_on(scene.runner.history(&thread(), query)).unwrap();
    assert_eq!(found.len(), 2);
}

#[test]
fn new_input_comes_to_a_thread_that_may_run_a_node_no_more() {
    let mut graph = Graph::builder("bounded");
    graph.channel("log", append::<Value>());
    let node = |cx: NodeCx| async move {
        let update = Update::new().set("log", cx.visits());
        Ok::<_, NodeError>(Command::goto("n").update(update))
    };
    graph.node("n", node).max_visits(2);
    graph.edge(START, "n");
    let scene = Scene::new(graph.build().unwrap());
    for log in ["[1,2]", "[1,2,1,2]"] {
        let outcome = scene.invoke(nothing()).unwrap();
        assert_eq!(outcome.exit.name(), "step_limit");
        assert_eq!(outcome.values["log"].to_string(), log);
    }
}

#[test]
fn dispatches_that_wait_are_dropped_by_an_update_and_kept_by_a_replay() {
    let mut graph = Graph::builder("sends");
    graph.channel("log", append::<Value>());
    graph.node("s", |_: NodeCx| async {
        let to = [1, 2].map(|item| Target::dispatch("w", item));
        Ok::<_, NodeError>(Command {
            goto: to.into(),
            ..Command::default()
        })
    });
    graph.node("w", |cx: NodeCx| async move {
        Ok::<_, NodeError>(Update::new().set("log", vec![cx.input()]))
    });
    graph.edge(START, "s");
    let scene = Scene::new(graph.build().unwrap());
    scene.invoke(nothing()).unwrap();
    let sent = scene.checkpoint(1, Source::Loop).id;
    assert_eq!(log(&scene.at(sent, Input::Continue).unwrap()), "done [1,2]");
    let step = vec![ThreadUpdate::new("w", Update::new().set("log", 3))];
    block_on(scene.runner.bulk_update(&thread(), Some(sent), vec![step])).unwrap();
    assert_eq!(log(&scene.invoke(Input::Continue).unwrap()), "done [3]");
}

/// A node that pays once for every input or visit, and asks.
fn pays(graph: &mut tine_engine::GraphBuilder, name: &str, paid: &Count) {
    let paid = paid.clone();
    graph.node(name, move |cx: NodeCx| {
        let paid = paid.clone();
        async move {
            let work = async |_: NodeCx| Ok(Value::from(paid.up()));
            let call = Call::new("pay", &Value::Null);
            cx.call(&call, Effects::Effectful, work).await?;
            cx.interrupt("well?")?;
            Ok::<_, NodeError>(Update::new())
        }
    });
}

#[test]
fn an_update_made_in_place_of_a_task_leaves_the_next_visit_its_own_calls() {
    let paid = Count::default();
    let mut graph = Graph::builder("loop");
    graph.channel("log", append::<Value>());
    pays(&mut graph, "work", &paid);
    graph.edge(START, "work").edge("work", "work");
    let scene = Scene::new(graph.build().unwrap());
    scene.invoke(nothing()).unwrap();
    scene
        .update("work", Update::new().set("log", "by hand"))
        .unwrap();
    scene.invoke(Input::Continue).unwrap();
    assert_eq!(paid.get(), 2);
}

#[test]
fn a_dispatch_with_another_input_makes_its_own_calls_after_an_update() {
    let paid = Count::default();
    let mut graph = Graph::builder("fan");
    graph.channel("log", append::<Value>());
    graph.node("fan", |_: NodeCx| async {
        Ok::<_, NodeError>(Command::goto(Target::dispatch("w", "A")))
    });
    pays(&mut graph, "w", &paid);
    graph.edge(START, "fan");
    let scene = Scene::new(graph.build().unwrap());
    scene.invoke(nothing()).unwrap();
    for (input, expected) in [("B", 2), ("B", 2), ("C", 3)] {
        let command = Command::goto(Target::dispatch("w", input));
        scene.update("fan", command).unwrap();
        scene.invoke(Input::Continue).unwrap();
        assert_eq!(paid.get(), expected, "dispatch of {input}");
    }
}

#[test]
fn going_on_from_an_update_by_its_id_repeats_no_effect() {
    let paying = paying();
    let scene = &paying.scene;
    scene.invoke(input(json!({"what": "rent"}))).unwrap();
    let updated = scene.update(START, Update::new()).unwrap();
    scene.at(updated, Input::Continue).unwrap();
    assert_eq!(paying.paid(), 1);
    assert_eq!(scene.history()[0].source, Source::Update);
}

#[test]
fn what_is_said_about_a_torn_call_holds_at_the_old_checkpoint_too() {
    let (scene, sent) = torn();
    let asked = scene.invoke(Input::Continue).unwrap().interrupts[0].id;
    let at = scene.state().id;
    for (said, expected) in [("skip", 1), ("skip", 1), ("retry", 2)] {
        let outcome = scene.at(at, Resume::by_id([(asked, said)])).unwrap();
        assert_eq!(outcome.exit.name(), "done", "{said}");
        assert_eq!(sent.get(), expected, "{said}");
    }
}

#[test]
fn a_repeated_call_passes_no_breakpoint() {
    let paid = Count::default();
    let mut graph = Graph::builder("gated");
    graph.channel("log", append::<Value>());
    pays(&mut graph, "pay", &paid);
    graph.edge(START, "pay");
    graph.interrupt_before(tine_engine::Breakpoints::at(["pay"]));
    let scene = Scene::new(graph.build().unwrap());
    let call = || RunOptions {
        invocation: Some(Id(9)),
        ..RunOptions::default()
    };
    for _ in 0..3 {
        let outcome = block_on(scene.run(nothing(), call())).unwrap();
        assert_eq!((outcome.exit.name(), paid.get()), ("paused", 0));
    }
    scene.invoke(Input::Continue).unwrap();
    assert_eq!(paid.get(), 1);
}

#[test]
fn two_updates_as_one_node_make_two_messages() {
    let mut graph = Graph::builder("chat");
    graph.channel("messages", tine_engine::channel::messages());
    graph.node("say", |_: NodeCx| async { Ok::<_, NodeError>(()) });
    graph.edge(START, "say");
    let scene = Scene::new(graph.build().unwrap());
    let say = |text: &str| {
        let message = Value::from_json(json!({"type": "human", "content": text}));
        ThreadUpdate::new("say", Update::new().set("messages", message))
    };
    let step = vec![say("one"), say("two")];
    block_on(scene.runner.bulk_update(&thread(), None, vec![step])).unwrap();
    let messages = &scene.state().values["messages"];
    assert_eq!(
        messages.as_list().map(tine_engine::value::List::len),
        Some(2)
    );
}

#[test]
fn a_copy_knows_who_ran_last() {
    let mut graph = Graph::builder("chain");
    graph.channel("log", append::<Value>());
    for name in ["a", "b", "c"] {
        graph.node(name, |_: NodeCx| async { Ok::<_, NodeError>(()) });
    }
    graph.edge(START, "a").edge("a", "b").edge("b", "c");
    graph.interrupt_before(tine_engine::Breakpoints::at(["c"]));
    let scene = Scene::new(graph.build().unwrap());
    scene.invoke(nothing()).unwrap();
    scene.update(UpdateAs::Copy, ()).unwrap();
    scene.update(UpdateAs::LastRan, Update::new()).unwrap();
    assert_eq!(&*scene.state().next[0].node, "c");
}

#[test]
fn an_answer_to_a_child_at_an_old_checkpoint_is_refused_with_the_way_out() {
    let mut child = Graph::builder("child");
    child.channel("log", append::<Value>());
    child.node("ask", |cx: NodeCx| async move {
        let said = vec![cx.interrupt("sure?")?];
        Ok::<_, NodeError>(Update::new().set("log", said))
    });
    child.edge(START, "ask");
    let mut graph = Graph::builder("host");
    graph.channel("log", append::<Value>());
    let child = tine_engine::run::Subgraph::new(child.build().unwrap());
    graph.node("sub", child);
    graph.edge(START, "sub");
    let scene = Scene::new(graph.build().unwrap());
    let id = scene.invoke(nothing()).unwrap().interrupts[0].id;
    let at = scene.state().id;
    scene.invoke(answer("yes")).unwrap();
    let before = scene.tree();
    let refused = scene.at(at, Resume::by_id([(id, "no")])).unwrap_err();
    assert_eq!(
        refused.to_string().replace(&id.to_string(), "ID"),
        "question `ID` was asked by `sub/ask` in a child graph, which begins anew on a branch; go on from the \
         checkpoint without an answer, and answer what is asked then"
    );
    assert_eq!(scene.tree(), before);
}

#[test]
fn an_update_that_is_refused_leaves_no_trace_of_what_its_routers_did() {
    let made = Count::default();
    let count = made.clone();
    let mut graph = Graph::builder("routed");
    graph.channel("log", append::<Value>());
    graph.node("a", |_: NodeCx| async { Ok::<_, NodeError>(()) });
    graph.branch("a", move |cx: NodeCx| {
        let count = count.clone();
        async move {
            let work = async |_: NodeCx| Ok(Value::from(count.up()));
            let call = Call::new("look", &Value::Null);
            cx.call(&call, Effects::Effectful, work).await?;
            Ok::<_, NodeError>(Target::End)
        }
    });
    graph.edge(START, "a");
    let scene = Scene::new(graph.build().unwrap());
    // On a new thread there is no checkpoint at which a router could record.
    scene.update("a", Update::new()).unwrap();
    assert_eq!(made.get(), 1);
    let steps = vec![
        vec![ThreadUpdate::new("a", Update::new())],
        vec![ThreadUpdate::new("ghost", Update::new())],
    ];
    let refused = block_on(scene.runner.bulk_update(&thread(), None, steps));
    assert_eq!(refused.unwrap_err().code(), "unknown_node");
    // Its nodes are looked up before any router is asked.
    assert_eq!(made.get(), 1);
}
