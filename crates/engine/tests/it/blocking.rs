//! The blocking runner, called from every kind of place.

use crate::scene::thread;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tine_engine::blocking::{self, block_on};
use tine_engine::channel::{add, last};
use tine_engine::node::from_fn;
use tine_engine::{
    Graph, MemoryCheckpointer, NodeCx, Resume, RunOptions, START, SimWorld, ThreadKey, TokioWorld,
    Update, World,
};
use tokio::runtime::{Builder, Runtime};

/// A graph that waits for a timer, asks, and counts.
fn graph() -> Graph {
    let mut graph = Graph::builder("count");
    let sum = graph.channel("sum", add::<i64>());
    let name = graph.channel("name", last::<String>());
    graph.node("wait", move |cx: NodeCx| {
        let sum = sum.clone();
        async move {
            cx.world().sleep(Duration::ZERO).await;
            Ok(Update::new().write(&sum, 1))
        }
    });
    graph.node(
        "ask",
        from_fn(move |cx| {
            let answer = cx.interrupt("who?")?;
            Ok(Update::new().write(&name, answer.as_str().unwrap_or_default().to_owned()))
        }),
    );
    graph.edge(START, "wait").edge("wait", "ask");
    graph.build().unwrap()
}

/// What a program without async does with a thread, and sees.
fn program(world: impl World + 'static) -> String {
    let threads = Arc::new(MemoryCheckpointer::new());
    let runner = blocking::Runner::new(graph(), world).with_checkpointer(threads);
    let thread = thread();
    let asked = runner
        .invoke(&thread, Update::new(), RunOptions::default())
        .unwrap();
    let open = runner.state(&thread).unwrap().unwrap();
    let done = runner
        .invoke(&thread, Resume::value("Ada"), RunOptions::default())
        .unwrap();
    runner
        .update(&thread, "wait", Update::from([("sum", 41)]))
        .unwrap();
    let after = runner.state_with_children(&thread).unwrap().unwrap();
    let history = runner.history(&thread, Some(3)).unwrap();
    let steps: Vec<i64> = history.iter().map(|snapshot| snapshot.step).collect();
    let same = block_on(runner.asynchronous().state(&thread)).unwrap();
    assert_eq!(same.unwrap().unwrap(), after);
    format!(
        "{} at {}, {} with {}, {} then {}, steps {steps:?}",
        asked.exit.name(),
        open.next[0].node,
        done.exit.name(),
        done.values["name"],
        after.values["sum"],
        after.next[0].node,
    )
}

const SEEN: &str = r#"interrupted at ask, done with "Ada", 42 then ask, steps [3, 2, 1]"#;

/// The methods of `Runner` in the files of a folder whose signature begins with `prefix`.
fn methods(folder: &Path, prefix: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "rs") {
            continue;
        }
        let text = std::fs::read_to_string(path).unwrap();
        let blocks = text.split("\nimpl Runner {\n").skip(1);
        let blocks = blocks.filter_map(|rest| rest.split("\n}\n").next());
        let names = blocks.flat_map(str::lines).filter_map(|line| {
            let signature = line.trim_start().strip_prefix(prefix)?;
            Some(signature.split(['(', '<']).next()?.to_owned())
        });
        found.extend(names);
    }
    found
}

#[test]
fn every_method_of_the_runner_that_is_awaited_has_one_that_waits() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let awaited = methods(&source.join("run"), "pub async fn ");
    assert!(awaited.contains("invoke"), "{awaited:?}");
    let waits = methods(&source, "pub fn ");
    let missing: Vec<_> = awaited.difference(&waits).collect();
    assert!(
        missing.is_empty(),
        "give `blocking::Runner` a line for each of {missing:?}"
    );
}

/// Runs the program in a place, in the real world and in a simulated one.
fn check(place: &str, call: impl Fn(fn() -> String) -> String) {
    for program in [|| program(TokioWorld::new()), || program(SimWorld::new(1))] {
        assert_eq!(call(program), SEEN, "{place}");
    }
}

fn many() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).build().unwrap()
}

fn one() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}

#[test]
fn a_blocking_call_works_wherever_it_is_made() {
    check("no runtime", |program| program());
    check("block_on of a multi-thread runtime", |program| {
        many().block_on(async { program() })
    });
    check("a task of a multi-thread runtime", |program| {
        many().block_on(async { tokio::spawn(async move { program() }).await.unwrap() })
    });
    check("a current-thread runtime", |program| {
        one().block_on(async { program() })
    });
    check("a task of a current-thread runtime", |program| {
        one().block_on(async { tokio::spawn(async move { program() }).await.unwrap() })
    });
    check("a task that stays on its thread", |program| {
        let local = tokio::task::LocalSet::new();
        let task = local.spawn_local(async move { program() });
        local.block_on(&one(), task).unwrap()
    });
    for runtime in [many, one] {
        check("spawn_blocking", |program| {
            let work = async { tokio::task::spawn_blocking(program).await.unwrap() };
            runtime().block_on(work)
        });
        check("a thread that entered a runtime", |program| {
            let runtime = runtime();
            let _entered = runtime.enter();
            program()
        });
    }
}

#[test]
fn a_thread_that_entered_another_runtime_than_its_own_may_call() {
    check("a multi-thread one, from a current-thread one", |program| {
        let other = many();
        one().block_on(async {
            let _entered = other.enter();
            program()
        })
    });
    check("a current-thread one, from a multi-thread one", |program| {
        let other = one();
        let handle = other.handle().clone();
        many().block_on(async {
            tokio::spawn(async move {
                let _entered = handle.enter();
                program()
            })
            .await
            .unwrap()
        })
    });
}

#[test]
fn a_worker_that_waits_leaves_its_other_tasks_to_the_runtime() {
    let outcome = many().block_on(async {
        let call = tokio::spawn(async {
            let (send, sent) = tokio::sync::oneshot::channel();
            let sent = Arc::new(tokio::sync::Mutex::new(sent));
            let mut graph = Graph::builder("listen");
            let heard = graph.channel("heard", last::<String>());
            let listen = move |_: NodeCx| {
                let (heard, sent) = (heard.clone(), sent.clone());
                async move {
                    let text: &str = (&mut *sent.lock().await).await?;
                    Ok(Update::new().write(&heard, text.to_owned()))
                }
            };
            // Nobody waits that long, unless nobody speaks.
            graph
                .node("listen", listen)
                .timeout(Duration::from_secs(60));
            graph.edge(START, "listen");
            // The one worker would do this next.
            tokio::spawn(async move { send.send("from beside") });
            let runner = blocking::Runner::new(graph.build().unwrap(), TokioWorld::new());
            runner.invoke(&thread(), Update::new(), RunOptions::default())
        });
        call.await.unwrap()
    });
    let outcome = outcome.unwrap();
    assert_eq!(outcome.exit.error(), None);
    assert_eq!(outcome.values["heard"].as_str(), Some("from beside"));
}

/// Runs `work` in the node of a run, and gives what it says.
fn in_a_node(
    runner: impl Fn(Graph) -> blocking::Runner,
    work: impl Fn(NodeCx) -> String + Send + Sync + 'static,
) -> String {
    let mut graph = Graph::builder("outer");
    let said = graph.channel("said", last::<String>());
    graph.node(
        "inner",
        from_fn(move |cx| Ok(Update::new().write(&said, work(cx)))),
    );
    graph.edge(START, "inner");
    let runner = runner(graph.build().unwrap());
    let outcome = runner.invoke(&thread(), Update::new(), RunOptions::default());
    outcome.unwrap().values["said"].as_str().unwrap().to_owned()
}

#[test]
fn a_node_of_another_run_may_call() {
    check("a node", |program| {
        in_a_node(
            |graph| blocking::Runner::new(graph, SimWorld::new(1)),
            move |_| program(),
        )
    });
    check("a node of a run inside a runtime", |program| {
        one().block_on(async {
            in_a_node(
                |graph| blocking::Runner::new(graph, TokioWorld::new()),
                move |_| program(),
            )
        })
    });
}

#[test]
fn a_node_that_calls_for_its_own_thread_is_refused_and_does_not_wait_for_itself() {
    let threads = Arc::new(MemoryCheckpointer::new());
    let shared = threads.clone();
    let said = in_a_node(
        move |graph| {
            blocking::Runner::new(graph, SimWorld::new(1)).with_checkpointer(threads.clone())
        },
        move |cx| {
            let runner =
                blocking::Runner::new(graph(), SimWorld::new(1)).with_checkpointer(shared.clone());
            let refused = runner.invoke(cx.thread(), Update::new(), RunOptions::default());
            refused.unwrap_err().to_string()
        },
    );
    assert_eq!(
        said,
        "the thread could not be stored or read: thread `t` is being run by another run of this process"
    );
}

#[test]
fn a_runner_and_its_blocking_side_share_their_threads() {
    let runner = tine_engine::Runner::new(graph(), SimWorld::new(1))
        .with_checkpointer(Arc::new(MemoryCheckpointer::new()));
    let started = runner.blocking().invoke(
        &ThreadKey::local("shared"),
        Update::new(),
        RunOptions::default(),
    );
    let state = block_on(runner.state(&ThreadKey::local("shared")));
    let interrupts = state.unwrap().unwrap().unwrap().interrupts;
    assert_eq!(interrupts, started.unwrap().interrupts);
    assert_eq!(interrupts.len(), 1);
    assert_eq!(runner.blocking().graph().name(), runner.graph().name());
}

#[test]
fn a_panic_goes_through_to_the_caller() {
    fn call() -> Option<&'static str> {
        let panics = AssertUnwindSafe(|| block_on(async { panic!("of the future") }));
        let payload = catch_unwind(panics).map(|output: std::io::Result<()>| output.unwrap());
        payload.unwrap_err().downcast_ref::<&str>().copied()
    }
    let in_a_task = async { tokio::spawn(async { call() }).await.unwrap() };
    for told in [
        call(),
        one().block_on(async { call() }),
        many().block_on(in_a_task),
    ] {
        assert_eq!(told, Some("of the future"));
    }
}

#[test]
fn work_that_nobody_waits_for_does_not_hold_up_the_result() {
    let (release, released) = mpsc::channel::<()>();
    let (began, begins) = tokio::sync::oneshot::channel();
    let (ended, ends) = mpsc::channel();
    let result = block_on(async {
        tokio::task::spawn_blocking(move || {
            began.send(()).unwrap();
            ended.send(released.recv())
        });
        begins.await.unwrap();
        "here"
    });
    // Were it waited for, this line would never be reached, for only now it is let go.
    release.send(()).unwrap();
    assert_eq!(result.unwrap(), "here");
    assert_eq!(ends.recv().unwrap(), Ok(()));
}
