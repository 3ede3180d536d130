//! adk-graph: a `StateGraph` of function nodes, as its tests and README show.

use adk_graph::checkpoint::MemoryCheckpointer;
use adk_graph::edge::{END, START};
use adk_graph::graph::StateGraph;
use adk_graph::node::{ExecutionConfig, NodeOutput};
use adk_graph::state::State;
use compare_measure::{Run, Runtime, Workload, measure};
use serde_json::json;
use std::cell::Cell;
use std::process::ExitCode;

fn main() -> ExitCode {
    measure(|workload, size| {
        // It fans out along edges, to nodes of the graph; a router can not give a task an input of its own.
        if workload == Workload::FanOut {
            return None;
        }
        let name = |at: usize| format!("node{at}");
        let mut graph = StateGraph::with_channels(&["count"]);
        for at in 0..size {
            graph = graph.add_node_fn(&name(at), |cx| async move {
                let count = cx
                    .get("count")
                    .and_then(|count| count.as_i64())
                    .unwrap_or(0);
                Ok(NodeOutput::new().with_update("count", json!(count + 1)))
            });
            let before = at.checked_sub(1).map_or_else(|| START.to_owned(), name);
            graph = graph.add_edge(&before, &name(at));
        }
        let graph = graph.add_edge(&name(size - 1), END);
        let mut graph = graph.compile().expect("a chain is a valid graph");
        if workload == Workload::ChainCheckpoints {
            graph = graph.with_checkpointer(MemoryCheckpointer::new());
        }
        let runs = Cell::new(0_u64);
        Some(Box::new(move |runtime: &Runtime| {
            let mut input = State::new();
            input.insert("count".to_owned(), json!(0));
            // A thread of its own for each run: one that has checkpoints would go on from them.
            runs.set(runs.get() + 1);
            let thread = format!("compare{}", runs.get());
            let config = ExecutionConfig::new(&thread).with_recursion_limit(20_000);
            let state = runtime.block_on(graph.invoke(input, config));
            let state = state.expect("the run succeeds");
            assert_eq!(state.get("count"), Some(&json!(size)));
            if let Some(checkpointer) = graph.checkpointer() {
                let stored = runtime.block_on(checkpointer.list(&thread));
                assert!(stored.expect("memory holds them").len() >= size);
                let deleted = runtime.block_on(checkpointer.delete(&thread));
                deleted.expect("memory holds it");
            }
        }) as Run)
    })
}
