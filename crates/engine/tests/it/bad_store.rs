//! A store that fails or panics at any one of its calls: the run says so, and the thread can go on.

use crate::scene::{Scene, answer, block_on, nothing, pause, thread};
use async_trait::async_trait;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tine_engine::channel::append;
use tine_engine::checkpoint::{Advance, Checkpoint, RecordOp, Scope, ThreadInfo, ThreadWriter};
use tine_engine::run::{Call, Durability, Effects};
use tine_engine::value::Map;
use tine_engine::world::Id;
use tine_engine::{
    Checkpointer, ErrorClass, Exit, Graph, Input, MemoryCheckpointer, NodeCx, NodeError, Outcome,
    RetryPolicy, RunError, RunOptions, Runner, START, SimWorld, StoreError, ThreadKey, Update,
    Value, World,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Site {
    Open,
    Load,
    Advance,
    Record,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Error,
    Panic,
}

/// What is to go wrong, and how many calls have been made where it is to.
struct Plan {
    site: Site,
    at: u64,
    fault: Fault,
    calls: AtomicU64,
}

impl Plan {
    fn meet(&self, site: Site) -> Result<(), StoreError> {
        if site != self.site {
            return Ok(());
        }
        let call = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        if call != self.at {
            return Ok(());
        }
        assert!(self.fault != Fault::Panic, "the disk melted");
        Err(StoreError::Unavailable {
            place: "/mnt/threads".to_owned(),
            message: "the disk is gone".to_owned(),
        })
    }
}

/// A store in memory with one fault, that takes longer over checkpoints than over records.
struct Faulty {
    memory: MemoryCheckpointer,
    plan: Arc<Plan>,
    slow: Slow,
}

/// In whose time the next checkpoint takes nine seconds.
type Slow = Arc<Mutex<Option<Arc<SimWorld>>>>;

impl Faulty {
    fn new(memory: &MemoryCheckpointer, plan: &Arc<Plan>) -> Self {
        Self {
            memory: memory.clone(),
            plan: plan.clone(),
            slow: Slow::default(),
        }
    }
}

#[async_trait]
impl Checkpointer for Faulty {
    async fn open(&self, thread: &ThreadKey) -> Result<Arc<dyn ThreadWriter>, StoreError> {
        let writer = self.memory.open(thread).await?;
        self.plan.meet(Site::Open)?;
        Ok(Arc::new(Writer {
            writer,
            plan: self.plan.clone(),
            slow: self.slow.clone(),
        }))
    }
    async fn load(&self, scope: &Scope, id: Option<Id>) -> Result<Option<Checkpoint>, StoreError> {
        self.plan.meet(Site::Load)?;
        self.memory.load(scope, id).await
    }
    async fn history(
        &self,
        scope: &Scope,
        before: Option<Id>,
        limit: Option<usize>,
    ) -> Result<Vec<Checkpoint>, StoreError> {
        self.memory.history(scope, before, limit).await
    }
    async fn thread(&self, thread: &ThreadKey) -> Result<Option<ThreadInfo>, StoreError> {
        self.memory.thread(thread).await
    }
    async fn threads(&self, tenant: &str) -> Result<Vec<ThreadInfo>, StoreError> {
        self.memory.threads(tenant).await
    }
    async fn delete(&self, thread: &ThreadKey) -> Result<bool, StoreError> {
        self.memory.delete(thread).await
    }
}

struct Writer {
    writer: Arc<dyn ThreadWriter>,
    plan: Arc<Plan>,
    slow: Slow,
}

#[async_trait]
impl ThreadWriter for Writer {
    async fn advance(&self, namespace: &Arc<str>, advance: Advance) -> Result<(), StoreError> {
        let slow = self.slow.lock().expect("no panic before").take();
        match slow {
            Some(world) => world.sleep(Duration::from_secs(9)).await,
            None => pause().await,
        }
        self.plan.meet(Site::Advance)?;
        self.writer.advance(namespace, advance).await
    }
    async fn record(
        &self,
        namespace: &Arc<str>,
        checkpoint: Id,
        ops: Vec<RecordOp>,
    ) -> Result<(), StoreError> {
        self.plan.meet(Site::Record)?;
        self.writer.record(namespace, checkpoint, ops).await
    }
    async fn note(&self, entries: Map) -> Result<(), StoreError> {
        self.writer.note(entries).await
    }
}

/// Two nodes side by side that each make a journaled call, then one that asks.
fn graph() -> Graph {
    let mut graph = Graph::builder("g");
    graph.channel("log", append::<String>());
    for name in ["a", "b"] {
        graph.node(name, move |cx: NodeCx| async move {
            let look = async |_: NodeCx| Ok(Value::from(name));
            let call = Call::new("look", &Value::Null);
            let seen = cx.call(&call, Effects::Idempotent, look).await?;
            Ok::<_, NodeError>(Update::new().set("log", seen))
        });
    }
    graph.node("ask", |cx: NodeCx| async move {
        let answer = cx.interrupt("well?")?;
        Ok::<_, NodeError>(Update::new().set("log", answer))
    });
    graph.node("end", |_: NodeCx| async {
        Ok::<_, NodeError>(Update::new().set("log", "end"))
    });
    graph.edge(START, "a").edge(START, "b");
    graph.join(["a", "b"], "ask");
    graph.edge("ask", "end");
    graph.build().unwrap()
}

/// What a client would send next to a thread, by what it reads of it.
fn next_input(scene: &Scene) -> Input {
    match block_on(scene.runner.state(&thread())).unwrap() {
        None => nothing(),
        Some(state) if state.interrupts.is_empty() => Input::Continue,
        Some(_) => answer("yes"),
    }
}

/// Runs an input; gives what the run, or the panic that came out of it, says of the store.
fn attempt(scene: &Scene, input: Input, durability: Durability) -> Result<Outcome, String> {
    let options = RunOptions {
        durability,
        ..RunOptions::default()
    };
    let run = || block_on(scene.run(input, options));
    match catch_unwind(AssertUnwindSafe(run)) {
        Err(payload) => Err(format!("panicked: {}", payload.downcast::<&str>().unwrap())),
        Ok(Err(error @ RunError::Store(_))) => Err(format!("refused: {error}")),
        Ok(Err(error)) => panic!("{error}"),
        Ok(Ok(outcome)) => match outcome.exit.error() {
            Some(error) => Err(format!("failed: {error}")),
            None => Ok(outcome),
        },
    }
}

/// Runs a thread to its end over a store that goes wrong once. Gives what was told of it; nothing if nothing went wrong.
fn check(plan: Plan, mode: Durability) -> Option<String> {
    let title = format!("{:?} at {:?} {} {mode:?}", plan.fault, plan.site, plan.at);
    let memory = MemoryCheckpointer::new();
    let plan = Arc::new(plan);
    let scene = Scene::over(graph(), Arc::new(Faulty::new(&memory, &plan)));
    // Reads past the fault.
    let reader = Scene::over(graph(), Arc::new(memory));
    let mut told = None;
    let mut input = nothing();
    let outcome = loop {
        match attempt(&scene, input, mode) {
            Ok(outcome) if outcome.exit.name() == "done" => break outcome,
            Ok(outcome) => assert_eq!(outcome.exit.name(), "interrupted", "{title}"),
            Err(error) => {
                assert!(told.is_none(), "{title}: {told:?}, then {error}");
                told = Some(error);
            }
        }
        input = next_input(&reader);
    };
    assert_eq!(
        outcome.values["log"].to_canonical(),
        r#"["a","b","yes","end"]"#,
        "{title}"
    );
    assert_eq!(reader.state().values, outcome.values, "{title}");
    assert!(reader.state().next.is_empty(), "{title}");
    let met = plan.calls.load(Ordering::Relaxed) >= plan.at;
    assert_eq!(told.is_some(), met, "{title}: {told:?}");
    told
}

/// All that is told, over every call that can go wrong, in every mode.
fn every_call(fault: Fault, mode: Durability) -> String {
    let mut lines = Vec::new();
    for site in [Site::Open, Site::Load, Site::Advance, Site::Record] {
        let mut told = BTreeSet::new();
        let mut calls = 0;
        loop {
            let plan = Plan {
                site,
                at: calls + 1,
                fault,
                calls: AtomicU64::new(0),
            };
            let Some(error) = check(plan, mode) else {
                break;
            };
            told.insert(error);
            calls += 1;
        }
        for error in told {
            lines.push(format!("{site:?}, one of {calls}: {error}"));
        }
    }
    lines.join("\n")
}

#[test]
fn a_store_that_fails_once_is_named_and_loses_nothing() {
    insta::assert_snapshot!(every_call(Fault::Error, Durability::Sync), @"
Open, one of 2: refused: the thread could not be stored or read: /mnt/threads: the disk is gone
Load, one of 2: refused: the thread could not be stored or read: /mnt/threads: the disk is gone
Advance, one of 5: failed: the thread could not be stored or read: /mnt/threads: the disk is gone
Advance, one of 5: refused: the thread could not be stored or read: /mnt/threads: the disk is gone
Record, one of 4: failed: the thread could not be stored or read: /mnt/threads: the disk is gone
Record, one of 4: refused: the thread could not be stored or read: /mnt/threads: the disk is gone
");
    insta::assert_snapshot!(every_call(Fault::Error, Durability::Async), @"
Open, one of 2: refused: the thread could not be stored or read: /mnt/threads: the disk is gone
Load, one of 2: refused: the thread could not be stored or read: /mnt/threads: the disk is gone
Advance, one of 5: failed: the thread could not be stored or read: /mnt/threads: the disk is gone
Record, one of 4: failed: the thread could not be stored or read: /mnt/threads: the disk is gone
Record, one of 4: refused: the thread could not be stored or read: /mnt/threads: the disk is gone
");
    insta::assert_snapshot!(every_call(Fault::Error, Durability::Exit), @"
Open, one of 2: refused: the thread could not be stored or read: /mnt/threads: the disk is gone
Load, one of 2: refused: the thread could not be stored or read: /mnt/threads: the disk is gone
Advance, one of 3: failed: the thread could not be stored or read: /mnt/threads: the disk is gone
Record, one of 4: failed: the thread could not be stored or read: /mnt/threads: the disk is gone
Record, one of 4: refused: the thread could not be stored or read: /mnt/threads: the disk is gone
");
}

#[test]
fn a_store_that_panics_lets_the_thread_go() {
    insta::assert_snapshot!(every_call(Fault::Panic, Durability::Sync), @"
Open, one of 2: panicked: the disk melted
Load, one of 2: panicked: the disk melted
Advance, one of 5: failed: the thread could not be stored or read: the store: panicked: the disk melted
Advance, one of 5: refused: the thread could not be stored or read: the store: panicked: the disk melted
Record, one of 4: failed: the thread could not be stored or read: the store: panicked: the disk melted
Record, one of 4: refused: the thread could not be stored or read: the store: panicked: the disk melted
");
    insta::assert_snapshot!(every_call(Fault::Panic, Durability::Async), @"
Open, one of 2: panicked: the disk melted
Load, one of 2: panicked: the disk melted
Advance, one of 5: failed: the thread could not be stored or read: the store: panicked: the disk melted
Record, one of 4: failed: the thread could not be stored or read: the store: panicked: the disk melted
Record, one of 4: refused: the thread could not be stored or read: the store: panicked: the disk melted
");
    insta::assert_snapshot!(every_call(Fault::Panic, Durability::Exit), @"
Open, one of 2: panicked: the disk melted
Load, one of 2: panicked: the disk melted
Advance, one of 3: failed: the thread could not be stored or read: the store: panicked: the disk melted
Record, one of 4: failed: the thread could not be stored or read: the store: panicked: the disk melted
Record, one of 4: refused: the thread could not be stored or read: the store: panicked: the disk melted
");
}

/// The first attempt times out while the checkpoint is written that its call is to stand at; the second finds it
/// being written, and waits for it as long as it may.
#[test]
fn an_attempt_that_ends_while_its_checkpoint_is_written_leaves_it_to_the_next() {
    let world = Arc::new(SimWorld::new(7));
    let memory = MemoryCheckpointer::new();
    let plan = Arc::new(Plan {
        site: Site::Open,
        at: 0,
        fault: Fault::Error,
        calls: AtomicU64::new(0),
    });
    let mut store = Faulty::new(&memory, &plan);
    store.slow = Arc::new(Mutex::new(Some(world.clone())));
    let mut graph = Graph::builder("g");
    graph.channel("log", append::<String>());
    graph
        .node("a", |cx: NodeCx| async move {
            let call = Call::new("look", &Value::Null);
            let look = async |_: NodeCx| Ok(Value::from("seen"));
            let seen = cx.call(&call, Effects::Idempotent, look).await?;
            Ok::<_, NodeError>(Update::new().set("log", seen))
        })
        .timeout(Duration::from_secs(5))
        .retry(RetryPolicy {
            on: vec![ErrorClass::Timeout],
            ..RetryPolicy::attempts(3)
        });
    graph.edge(START, "a");
    let graph = graph.build().expect("a sound graph");
    let runner = Runner::new(graph, world).with_checkpointer(Arc::new(store));
    let options = RunOptions {
        durability: Durability::Exit,
        ..RunOptions::default()
    };
    let outcome = block_on(runner.invoke(&thread(), nothing(), options)).expect("it runs");
    assert_eq!(outcome.exit, Exit::Done);
    let log = outcome.values.get("log").cloned();
    assert_eq!(log, Some(Value::from(vec![Value::from("seen")])));
}
