//! tine, with its default limits.

use compare_measure::{Run, Runtime, Workload, measure};
use std::process::ExitCode;
use std::sync::Arc;
use tine_engine::channel::{add, append, last};
use tine_engine::{
    Channel, Command, Graph, MemoryCheckpointer, NodeCx, RunOptions, Runner, START, Target,
    ThreadKey, TokioWorld, Update, Value,
};

fn main() -> ExitCode {
    measure(|workload, size| {
        let graph = match workload {
            Workload::Chain | Workload::ChainCheckpoints => chain(size),
            Workload::FanOut => fan_out(size),
        };
        let runner = Runner::new(graph, TokioWorld::new());
        let (channel, expected) = match workload {
            Workload::FanOut => ("sum", size * (size - 1) / 2),
            _ => ("count", size),
        };
        Some(Box::new(move |runtime: &Runtime| {
            let mut runner = runner.clone();
            if workload == Workload::ChainCheckpoints {
                runner = runner.with_checkpointer(Arc::new(MemoryCheckpointer::new()));
            }
            let thread = ThreadKey::local("compare");
            let input = match workload {
                Workload::FanOut => Update::new(),
                _ => Update::new().set("count", 0_i64),
            };
            let invoked = runner.invoke(&thread, input, RunOptions::default());
            let outcome = runtime.block_on(invoked).expect("the run starts");
            let value = outcome.values.get(channel).and_then(Value::as_i64);
            assert_eq!(value, Some(expected as i64));
        }) as Run)
    })
}

fn chain(nodes: usize) -> Graph {
    let mut graph = Graph::builder("chain");
    let count: Channel<i64> = graph.channel("count", last());
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
    graph.build().expect("a chain is a valid graph")
}

fn fan_out(tasks: usize) -> Graph {
    let mut graph = Graph::builder("fan_out");
    let found: Channel<Vec<i64>> = graph.channel("found", append());
    let sum: Channel<i64> = graph.channel("sum", add());
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
    graph.build().expect("a fan-out is a valid graph")
}
