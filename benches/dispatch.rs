//! What the engine costs per node, with nodes that do next to nothing.
//!
//! Each group runs the same number of boxed futures in a bare loop first: its ratio to that is what `README.md` quotes.

#![allow(missing_docs, clippy::unwrap_used)]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::pin::Pin;
use std::sync::Arc;
use tine_engine::channel::{add, append, last};
use tine_engine::{
    Channel, Checkpointer, Command, Graph, MemoryCheckpointer, NodeCx, RunOptions, Runner, START,
    Target, ThreadKey, TokioWorld, Update,
};

/// N distinct nodes in a row; each adds 1 to a `last` channel.
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
        graph.edge(
            if at == 0 {
                START.to_owned()
            } else {
                name(at - 1)
            },
            name(at),
        );
    }
    graph.build().unwrap()
}

/// One node dispatches N tasks; their writes meet in two reducers.
fn fan_out(tasks: i64) -> Graph {
    let mut graph = Graph::builder("fan_out");
    let found: Channel<Vec<i64>> = graph.channel("found", append());
    let sum: Channel<i64> = graph.channel("sum", add());
    graph.node("split", move |_: NodeCx| async move {
        let goto = (0..tasks)
            .map(|item| Target::dispatch("work", item))
            .collect();
        Ok(Command {
            goto,
            ..Command::default()
        })
    });
    graph.node("work", move |cx: NodeCx| {
        let (found, sum) = (found.clone(), sum.clone());
        async move {
            let item = cx
                .dispatched()
                .and_then(tine_engine::Value::as_i64)
                .unwrap_or(0);
            Ok(Update::new().write(&found, vec![item]).write(&sum, item))
        }
    });
    graph.edge(START, "split");
    graph.build().unwrap()
}

/// The least any engine pays: a boxed future per node, awaited one after the other.
async fn bare(nodes: usize) -> i64 {
    let mut count = 0_i64;
    for _ in 0..nodes {
        let step: Pin<Box<dyn Future<Output = i64> + Send>> =
            Box::pin(async move { black_box(count) + 1 });
        count = step.await;
    }
    count
}

fn run(runtime: &tokio::runtime::Runtime, runner: &Runner, thread: &ThreadKey, input: &Update) {
    let outcome = runtime.block_on(runner.invoke(
        thread,
        input.clone(),
        RunOptions {
            step_limit: 20_000,
            ..RunOptions::default()
        },
    ));
    black_box(outcome.unwrap());
}

fn dispatch(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let thread = ThreadKey::local("bench");
    for nodes in [10, 100, 1_000, 10_000] {
        let mut group = criterion.benchmark_group(format!("chain/{nodes}"));
        group.throughput(Throughput::Elements(nodes as u64));
        group.bench_function("bare loop", |bench| {
            bench.iter(|| runtime.block_on(bare(black_box(nodes))));
        });
        let graph = chain(nodes);
        let input = Update::new().set("count", 0_i64);
        let runner = Runner::new(graph.clone(), TokioWorld::new());
        group.bench_function("tine", |bench| {
            bench.iter(|| run(&runtime, &runner, &thread, &input));
        });
        group.bench_function("tine, memory checkpoints", |bench| {
            bench.iter(|| {
                let store: Arc<dyn Checkpointer> = Arc::new(MemoryCheckpointer::new());
                run(
                    &runtime,
                    &runner.clone().with_checkpointer(store),
                    &thread,
                    &input,
                );
            });
        });
        group.finish();
    }
    for tasks in [10_usize, 100, 1_000] {
        let mut group = criterion.benchmark_group(format!("fan-out/{tasks}"));
        group.throughput(Throughput::Elements(tasks as u64));
        group.bench_function("bare loop", |bench| {
            bench.iter(|| runtime.block_on(bare(black_box(tasks))));
        });
        let runner = Runner::new(fan_out(tasks as i64), TokioWorld::new());
        group.bench_with_input(BenchmarkId::from_parameter("tine"), &tasks, |bench, _| {
            bench.iter(|| run(&runtime, &runner, &thread, &Update::new()));
        });
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().without_plots().sample_size(50).measurement_time(std::time::Duration::from_secs(3));
    targets = dispatch
}
criterion_main!(benches);
