//! What the benches run: graphs whose nodes do next to nothing, so that the numbers are the engine's own.

use std::fmt;
use std::hint::black_box;
use std::sync::Arc;
use tine_engine::channel::{add, append, last};
use tine_engine::{
    Channel, Checkpointer, Command, Exit, Graph, GraphBuilder, MemoryCheckpointer, NodeCx,
    RunOptions, Runner, START, Target, ThreadKey, TokioWorld, Update, Value,
};

/// The form of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// N distinct nodes in a row; each adds 1 to a `last` channel.
    Chain(usize),
    /// One node dispatches N tasks; their writes meet in an `append` and an `add` channel.
    FanOut(usize),
}

/// One thing to measure: a graph, and what surrounds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Workload {
    pub(crate) shape: Shape,
    /// How many bytes of text lie in another channel.
    pub(crate) beside: usize,
    /// Whether each step is stored in memory.
    pub(crate) checkpoints: bool,
}

pub(crate) const CHAINS: [usize; 3] = [10, 100, 10_000];
pub(crate) const FAN_OUTS: [usize; 3] = [10, 100, 1_000];
pub(crate) const BESIDE: [usize; 3] = [0, 1_000, 1_000_000];

impl Workload {
    /// Builds the graph and all else that is not measured.
    pub(crate) fn prepare(self) -> Prepared {
        let (graph, mut input) = match self.shape {
            Shape::Chain(nodes) => (chain(nodes), Update::new().set("count", 0_i64)),
            Shape::FanOut(tasks) => (fan_out(tasks), Update::new()),
        };
        if self.beside > 0 {
            let line: Value = "x".repeat(100).into();
            let lines = vec![line; self.beside / 100];
            input = input.set("notes", Value::List(lines.into_iter().collect()));
        }
        let runtime = tokio::runtime::Builder::new_current_thread();
        Prepared {
            runtime: { runtime }.build().unwrap(),
            runner: Runner::new(graph, TokioWorld::new()),
            thread: ThreadKey::local("bench"),
            input,
            checkpoints: self.checkpoints,
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chain(nodes) => write!(out, "chain {nodes}"),
            Self::FanOut(tasks) => write!(out, "fan-out {tasks}"),
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.shape)?;
        match self.beside {
            0 => {}
            1_000 => write!(out, ", 1 kB beside")?,
            1_000_000 => write!(out, ", 1 MB beside")?,
            bytes => write!(out, ", {bytes} B beside")?,
        }
        if self.checkpoints {
            write!(out, ", checkpoints")?;
        }
        Ok(())
    }
}

/// A workload that is ready to run, again and again.
pub(crate) struct Prepared {
    runtime: tokio::runtime::Runtime,
    runner: Runner,
    thread: ThreadKey,
    input: Update,
    checkpoints: bool,
}

impl Prepared {
    /// Runs the graph once, on a thread without a past, with the default limits.
    pub(crate) fn run(&self) {
        let mut runner = self.runner.clone();
        if self.checkpoints {
            let store: Arc<dyn Checkpointer> = Arc::new(MemoryCheckpointer::new());
            runner = runner.with_checkpointer(store);
        }
        let invoked = runner.invoke(&self.thread, self.input.clone(), RunOptions::default());
        let outcome = self.runtime.block_on(invoked).unwrap();
        assert_eq!(outcome.exit, Exit::Done);
        black_box(outcome);
    }
}

fn chain(nodes: usize) -> Graph {
    let mut graph = Graph::builder("chain");
    let count: Channel<i64> = graph.channel("count", last());
    notes(&mut graph);
    let name = |at: usize| format!("node{at}");
    for at in 0..nodes {
        let count = count.clone();
        graph.node(name(at), move |cx: NodeCx| {
            let count = count.clone();
            async move {
                let now = cx.get(&count)?.unwrap_or(0);
                Ok(Update::new().write(&count, now + 1))
            }
        });
        let before = at.checked_sub(1).map_or_else(|| START.to_owned(), name);
        graph.edge(before, name(at));
    }
    graph.build().unwrap()
}

fn fan_out(tasks: usize) -> Graph {
    let mut graph = Graph::builder("fan_out");
    let found: Channel<Vec<i64>> = graph.channel("found", append());
    let sum: Channel<i64> = graph.channel("sum", add());
    notes(&mut graph);
    graph.node("split", move |_: NodeCx| async move {
        let items = 0..tasks as i64;
        Ok(Command {
            goto: items.map(|item| Target::dispatch("work", item)).collect(),
            ..Command::default()
        })
    });
    graph.node("work", move |cx: NodeCx| {
        let (found, sum) = (found.clone(), sum.clone());
        async move {
            let item = cx.dispatched().and_then(Value::as_i64).unwrap_or(0);
            Ok(Update::new().write(&found, vec![item]).write(&sum, item))
        }
    });
    graph.edge(START, "split");
    graph.build().unwrap()
}

/// The channel of the other state.
fn notes(graph: &mut GraphBuilder) {
    drop::<Channel<Vec<String>>>(graph.channel("notes", last()));
}
