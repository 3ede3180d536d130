//! Whole runs of the engine: the thread is the same in memory and on disk.

use crate::kit::{open, wait};
use std::path::Path;
use std::sync::Arc;
use tine_engine::channel::{add, append, dedupe, last, merge, messages, upsert};
use tine_engine::checkpoint::Checkpointer;
use tine_engine::checkpoint::{Checkpoint, Scope};
use tine_engine::run::{Call, ChildMemory, Effects, Outcome, Snapshot};
use tine_engine::{
    END, Exit, Graph, GraphBuilder, Input, MemoryCheckpointer, Message, NodeCx, Resume, RunOptions,
    Runner, START, SimWorld, Target, ThreadKey, Update, Value,
};

fn child() -> Graph {
    let mut graph = GraphBuilder::new("child");
    let seen = graph.channel("seen", append::<i64>());
    graph.node("count", move |cx: NodeCx| {
        let seen = seen.clone();
        async move {
            let known = cx.get(&seen)?.unwrap_or_default().len() as i64;
            Ok(Update::new().write(&seen, vec![known]))
        }
    });
    graph.edge(START, "count").edge("count", END);
    graph.build().unwrap()
}

/// Three rounds of: plan, three workers side by side, gather, a child graph, and in the last a question.
fn graph() -> Graph {
    let mut graph = GraphBuilder::new("rounds");
    let round = graph.channel("round", add::<i64>());
    let log = graph.channel("log", append::<String>());
    let names = graph.channel("names", dedupe::<String>());
    let items = graph.channel("items", upsert::<Value>("id"));
    let notes = graph.channel("notes", merge::<Value>());
    let chat = graph.channel("messages", messages());
    let answer = graph.channel("answer", last::<Value>());
    graph.node("plan", {
        let round = round.clone();
        move |cx: NodeCx| {
            let (round, chat) = (round.clone(), chat.clone());
            async move {
                let next = cx.get(&round)?.unwrap_or_default() + 1;
                let said = Message::human(format!("round {next}"));
                Ok(Update::new().write(&round, 1).write(&chat, vec![said]))
            }
        }
    });
    graph
        .branch("plan", |_: NodeCx| async move {
            Ok((0..3)
                .map(|at| Target::dispatch("work", Value::from(at)))
                .collect::<Vec<_>>())
        })
        .goes_to(["work"]);
    graph.node("work", move |cx: NodeCx| {
        let (log, names, items, notes) = (log.clone(), names.clone(), items.clone(), notes.clone());
        async move {
            let at = cx.input();
            Ok(Update::new()
                .write(&log, vec![format!("worker {at}")])
                .write(&names, vec![format!("name {at}")])
                .write(
                    &items,
                    vec![Value::from_pairs([
                        ("id", at.clone()),
                        ("step", cx.step().into()),
                    ])],
                )
                .write(
                    &notes,
                    Value::from_pairs([(at.to_string(), cx.step().into())]),
                ))
        }
    });
    graph.node("ask", move |cx: NodeCx| {
        let answer = answer.clone();
        async move {
            // Done once, and not again when the answer comes: its null is a result too.
            let call = Call::new("null", &Value::Null);
            let work = |_: NodeCx| async { Ok(Value::Null) };
            cx.call(&call, Effects::Effectful, work).await?;
            let given = cx.interrupt("go on?")?;
            Ok(Update::new().write(&answer, given))
        }
    });
    let inner = child();
    graph.node("inner", move |cx: NodeCx| {
        let inner = inner.clone();
        async move {
            cx.child(&inner, "", Update::new(), ChildMemory::Thread)
                .await?;
            Ok(Update::new())
        }
    });
    graph
        .edge(START, "plan")
        .edge("work", "inner")
        .edge("ask", END);
    graph
        .branch("inner", move |cx: NodeCx| {
            let round = round.clone();
            async move {
                let round = cx.get(&round)?.unwrap_or_default();
                Ok(Target::Node(if round < 3 { "plan" } else { "ask" }.into()))
            }
        })
        .goes_to(["plan", "ask"]);
    graph.build().unwrap()
}

/// All that is left of a thread.
#[derive(Debug, PartialEq)]
struct Thread {
    outcomes: Vec<Outcome>,
    history: Vec<Snapshot>,
    stored: Vec<Checkpoint>,
    child: Vec<Checkpoint>,
}

/// Runs the graph to its end, `limit` steps an invocation, on a store that is opened anew for each.
async fn run(limit: u64, store: impl Fn() -> Arc<dyn Checkpointer>) -> Thread {
    let thread = ThreadKey::local("t");
    let world = Arc::new(SimWorld::new(0));
    let graph = graph();
    let mut outcomes = Vec::new();
    let mut input = Input::New(Update::new().set("log", "start"));
    loop {
        let runner = Runner::new(graph.clone(), world.clone()).with_checkpointer(store());
        let options = RunOptions {
            step_limit: limit,
            ..RunOptions::default()
        };
        let outcome = runner.invoke(&thread, input, options).await.unwrap();
        input = match &outcome.exit {
            Exit::Interrupted => Input::Resume(Resume::value("yes")),
            Exit::StepLimit { .. } => Input::Continue,
            _ => {
                outcomes.push(outcome);
                let stored = async |namespace: &str| {
                    let scope = Scope {
                        thread: thread.clone(),
                        namespace: namespace.into(),
                    };
                    store().history(&scope, None, None).await.unwrap()
                };
                return Thread {
                    outcomes,
                    history: runner.history(&thread, None).await.unwrap(),
                    stored: stored("").await,
                    child: stored("/inner").await,
                };
            }
        };
        outcomes.push(outcome);
    }
}

fn file(path: &Path) -> Arc<dyn Checkpointer> {
    Arc::new(open(path))
}

#[test]
fn a_run_leaves_the_same_thread_in_memory_and_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    wait(async {
        for limit in [1_000, 3] {
            let memory = MemoryCheckpointer::new();
            let expected = run(limit, || Arc::new(memory.clone())).await;
            let last = expected.outcomes.last().unwrap();
            assert_eq!(last.exit, Exit::Done);
            assert_eq!(expected.history.len(), expected.stored.len());
            assert!(expected.child.len() >= 6);
            let values = &last.values;
            assert_eq!(values["answer"], Value::from("yes"));
            assert_eq!(values["log"].as_list().unwrap().len(), 10);

            let path = folder.path().join(format!("one{limit}.db"));
            let one = file(&path);
            assert_eq!(run(limit, || one.clone()).await, expected);
            let path = folder.path().join(format!("many{limit}.db"));
            assert_eq!(run(limit, || file(&path)).await, expected);
        }
    });
}
