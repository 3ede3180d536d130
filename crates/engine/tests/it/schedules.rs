//! The order in which tasks go on and finish leaves no trace in what is stored.

use crate::scene::{block_on, input, pause, thread};
use crate::spy::Spy;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tine_engine::channel::{add, append, last, merge, messages};
use tine_engine::checkpoint::Checkpoint;
use tine_engine::run::{Call, ChildMemory, Effects, Snapshot, Subgraph};
use tine_engine::{
    Command, ErrorClass, Event, EventKind, Graph, GraphBuilder, Input, Message, NodeCx, NodeError,
    Resume, RetryPolicy, RunOptions, Runner, START, SimWorld, Target, Update, Value, World,
};

/// How many schedules each program is tried on.
const SCHEDULES: u64 = 200;

/// A number that follows from the program and a place in it, and from nothing else.
fn dice(program: u64, place: &str, below: u64) -> u64 {
    xxh(program, place) % below
}

fn xxh(program: u64, place: &str) -> u64 {
    // Any hash will do; this one is in the engine already.
    let world = SimWorld::new(place.bytes().fold(program, |hash, byte| {
        hash.wrapping_mul(31) + u64::from(byte)
    }));
    world.random()
}

/// Waits as long as the program says at this place: not at all, for some polls, or asleep.
async fn wait(cx: &NodeCx, program: u64, place: &str) {
    match dice(program, place, 4) {
        0 => {}
        1 => pause().await,
        seconds => cx.world().sleep(Duration::from_secs(seconds)).await,
    }
}

/// A fan-out of workers that wait, call, retry, ask and fail, beside two child graphs, gathered by a join.
fn graph(program: u64, round: &Arc<AtomicU64>) -> Graph {
    let mut graph = Graph::builder("schedules");
    channels(&mut graph);
    let workers = 2 + dice(program, "workers", 6);
    graph.node("plan", move |_: NodeCx| async move {
        let tasks = (0..workers).map(|at| Target::dispatch("work", at as i64));
        let children = (0..3).map(|at| Target::dispatch("child", json!({"log": [at]})));
        let goto = tasks.chain(children).chain([Target::from("keeps")]);
        Ok::<_, NodeError>(Command {
            goto: goto.collect(),
            ..Command::default()
        })
    });
    let fails_in = round.clone();
    let policy = RetryPolicy {
        max_attempts: 3,
        ..RetryPolicy::default()
    };
    graph
        .node("work", move |cx: NodeCx| {
            work(cx, program, fails_in.clone())
        })
        .retry(policy);
    graph.node("child", Subgraph::new(child(program, "inner")));
    graph.node(
        "keeps",
        Subgraph::new(child(program, "kept")).memory(ChildMemory::Thread),
    );
    graph.node("left", move |cx: NodeCx| async move {
        wait(&cx, program, "left").await;
        Ok::<_, NodeError>(Update::new().set("log", "left").set("sum", 1))
    });
    graph.node("right", move |cx: NodeCx| async move {
        wait(&cx, program, "right").await;
        Ok::<_, NodeError>(Update::new().set("log", "right").set("sum", 1))
    });
    graph.node("gather", |cx: NodeCx| async move {
        let again = cx.value("sum").and_then(|sum| sum.as_i64()) < Some(4);
        let update = Update::new().set("kept", cx.value("log").unwrap_or_default());
        Ok::<_, NodeError>(match again {
            true => Command::goto("plan").update(update),
            false => Command::default().update(update),
        })
    });
    graph.edge(START, "plan");
    graph.edge("keeps", "left").edge("keeps", "right");
    graph.join(["left", "right"], "gather");
    graph.build().unwrap()
}

fn channels(graph: &mut GraphBuilder) {
    graph.channel("log", append::<Value>());
    graph.channel("said", messages());
    graph.channel("by", merge::<Value>());
    graph.channel("sum", add::<i64>());
    graph.channel("kept", last::<Value>());
}

async fn work(cx: NodeCx, program: u64, round: Arc<AtomicU64>) -> Result<Update, NodeError> {
    let at = cx.input().as_i64().unwrap_or_default();
    let place = format!("{at} in step {}", cx.step());
    wait(&cx, program, &place).await;
    let call = Call::new("look", &Value::from(at));
    let seen = cx
        .call(&call, Effects::Effectful, |cx| {
            let place = format!("call of {place}");
            async move {
                wait(&cx, program, &place).await;
                Ok(Value::from(place))
            }
        })
        .await?;
    let will = dice(program, &format!("what {place} does"), 6);
    if will == 0 && cx.attempt() < 3 {
        return Err(NodeError::new(ErrorClass::Transport, "lost"));
    }
    if will == 1 && round.load(Ordering::Relaxed) == 0 {
        return Err(NodeError::new(ErrorClass::Denied, "not in the first round"));
    }
    let answer = match will {
        2 | 3 => cx.interrupt(format!("what of {place}?"))?,
        _ => Value::Null,
    };
    let said = Message::human(format!("{place}: {answer}"));
    Ok(Update::new()
        .set("log", vec![seen, answer])
        .set("said", tine_engine::to_value(&said).unwrap())
        .set("by", json!({ format!("{}", at % 3): at })))
}

/// A child with two nodes side by side, both of which may ask.
fn child(program: u64, name: &'static str) -> Graph {
    let mut graph = Graph::builder(name);
    graph.channel("log", append::<Value>());
    for node in ["one", "two"] {
        graph.node(node, move |cx: NodeCx| async move {
            let place = format!("{name} {} {node}", cx.value("log").unwrap_or_default());
            wait(&cx, program, &place).await;
            let answer = match dice(program, &format!("asks {place}"), 3) {
                0 => cx.interrupt(place.clone())?,
                _ => Value::Null,
            };
            Ok::<_, NodeError>(Update::new().set("log", vec![Value::from(place), answer]))
        });
        graph.edge(START, node);
    }
    graph.build().unwrap()
}

/// What a program left behind.
#[derive(PartialEq)]
struct Left {
    /// The exits, questions and values of the invocations.
    told: Vec<String>,
    export: String,
    state: Snapshot,
}

/// What happened on the way.
#[derive(Default)]
struct Seen {
    order: Vec<String>,
    resumes: u64,
    failures: u64,
    retries: u64,
    checkpoints: u64,
    children: u64,
}

/// Runs a program until it is done: answers some of the open questions each time, and goes on after failures.
fn run(program: u64, schedule: Option<u64>) -> (Left, Seen) {
    let round = Arc::new(AtomicU64::new(0));
    let spy = Spy::default();
    let world = SimWorld::new(program);
    let world = match schedule {
        Some(seed) => world.shuffled(seed),
        None => world,
    };
    let runner =
        Runner::new(graph(program, &round), world).with_checkpointer(Arc::new(spy.clone()));
    let seen: Arc<Mutex<Seen>> = Arc::default();
    let heard = seen.clone();
    let listener = Arc::new(move |event: &Event| {
        let mut seen = heard.lock().unwrap();
        match &event.kind {
            EventKind::TaskFinished { task, .. } => seen.order.push(task.to_string()),
            EventKind::TaskFailed { retried: true, .. } => seen.retries += 1,
            _ => {}
        }
    });
    let max_parallel = [64, 3, 2, 1][program as usize % 4];
    let mut told = Vec::new();
    let mut next = input(json!({"log": ["begin"]}));
    for invocation in 0.. {
        assert!(invocation < 60, "program {program} does not end: {told:?}");
        let options = RunOptions {
            listener: Some(listener.clone()),
            max_parallel,
            ..RunOptions::default()
        };
        let outcome = block_on(runner.invoke(&thread(), next, options)).unwrap();
        round.fetch_add(1, Ordering::Relaxed);
        told.push(format!("{outcome:?}"));
        let open = block_on(runner.state(&thread()))
            .unwrap()
            .unwrap()
            .interrupts;
        let some = open.iter().enumerate().filter(|(at, _)| {
            *at == 0 || dice(program, &format!("answer {at} of {invocation}"), 2) == 0
        });
        let answers: Vec<_> = some
            .map(|(_, open)| (open.id, Value::from(format!("yes {invocation}"))))
            .collect();
        let mut seen = seen.lock().unwrap();
        next = match outcome.exit.name() {
            "done" => break,
            "failed" => {
                seen.failures += 1;
                Input::Continue
            }
            _ => {
                seen.resumes += 1;
                Input::Resume(Resume::by_id(answers))
            }
        };
    }
    let graphs = spy.graphs(&thread());
    let mut seen = std::mem::take(&mut *seen.lock().unwrap());
    seen.children = graphs.len() as u64 - 1;
    seen.checkpoints = graphs
        .iter()
        .map(|(_, history): &(_, Vec<Checkpoint>)| history.len() as u64)
        .sum();
    let left = Left {
        told,
        export: spy.export(&thread()),
        state: block_on(runner.state(&thread())).unwrap().unwrap(),
    };
    (left, seen)
}

/// The first line that differs: the whole would fill the screen many times.
fn first_difference(a: &str, b: &str) -> String {
    let differs = a.lines().zip(b.lines()).find(|(a, b)| a != b);
    format!("{differs:#?}")
}

#[test]
fn no_schedule_shows_in_what_is_stored_or_told() {
    let programs = 8;
    let mut orders = BTreeSet::new();
    let mut all = Seen::default();
    for program in 0..programs {
        let (expected, seen) = run(program, None);
        orders.insert(seen.order);
        for schedule in 0..SCHEDULES {
            let (left, seen) = run(program, Some(schedule));
            let at = format!("program {program}, schedule {schedule}");
            let differs = first_difference(&expected.export, &left.export);
            assert!(expected.export == left.export, "{at}: {differs}");
            assert_eq!(expected.told, left.told, "{at}");
            assert_eq!(expected.state, left.state, "{at}");
            orders.insert(seen.order);
            all.resumes += seen.resumes;
            all.failures += seen.failures;
            all.retries += seen.retries;
            all.checkpoints += seen.checkpoints;
            all.children += seen.children;
        }
    }
    println!(
        "{programs} programs on {SCHEDULES} schedules each: {} orders of tasks, {} resumes, {} failures, {} retries, \
         {} children, {} checkpoints compared",
        orders.len(),
        all.resumes,
        all.failures,
        all.retries,
        all.children,
        all.checkpoints
    );
    assert!(orders.len() > 400);
    assert!(all.resumes > 1_000 && all.failures > 200 && all.retries > 1_000);
    assert!(all.children > 1_000);
}

/// Waits between attempts have a random part, which must not go by who fails first.
#[test]
fn the_waits_of_retries_are_those_of_their_tasks() {
    let export = |schedule: u64| {
        let mut graph = Graph::builder("retries");
        graph.channel("log", append::<Value>());
        for (node, seconds) in [("a", 1), ("b", 2), ("c", 3)] {
            let policy = RetryPolicy {
                max_attempts: 3,
                initial: Duration::from_secs(seconds),
                ..RetryPolicy::default()
            };
            let fails = move |cx: NodeCx| async move {
                match cx.attempt() {
                    3 => Ok(()),
                    _ => Err(NodeError::new(ErrorClass::Transport, "lost")),
                }
            };
            graph.node(node, fails).retry(policy);
            graph.edge(START, node);
        }
        let spy = Spy::default();
        let world = SimWorld::new(3).shuffled(schedule);
        let runner =
            Runner::new(graph.build().unwrap(), world).with_checkpointer(Arc::new(spy.clone()));
        let key = thread();
        let run = runner.invoke(&key, input(json!({})), RunOptions::default());
        assert_eq!(block_on(run).unwrap().exit.name(), "done");
        spy.export(&thread())
    };
    let exports: BTreeSet<String> = (0..SCHEDULES).map(export).collect();
    assert_eq!(exports.len(), 1, "{exports:#?}");
}
