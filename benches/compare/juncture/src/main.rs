//! juncture: a `StateGraph` over a derived state, as the tests of its core show.

use compare_measure::{Run, Runtime, Workload, measure};
use juncture_core::command::SendTarget;
use juncture_core::node::{NodeFnCommand, NodeFnUpdate};
use juncture_core::{Command, CompiledGraph, RunnableConfig, StateGraph};
use juncture_derive::State;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::process::ExitCode;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Count {
    count: i64,
}

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Found {
    #[reducer(append)]
    found: Vec<i64>,
    item: i64,
}

fn main() -> ExitCode {
    measure(|workload, size| {
        let config = RunnableConfig::new().with_recursion_limit(20_000);
        if workload == Workload::FanOut {
            let graph = fan_out(size);
            return Some(Box::new(move |runtime: &Runtime| {
                let run = graph.invoke_async(Found::default(), &config);
                let output = runtime.block_on(run).expect("the run succeeds");
                assert_eq!(output.value.found.len(), size);
                let sum: i64 = output.value.found.iter().sum();
                assert_eq!(sum, (size * (size - 1) / 2) as i64);
            }) as Run);
        }
        // The checkpointer that a graph is compiled with is not used by `invoke_async`, which stores nothing.
        if workload == Workload::ChainCheckpoints {
            return None;
        }
        let graph = chain(size).compile().expect("a chain is a valid graph");
        Some(Box::new(move |runtime: &Runtime| {
            let run = graph.invoke_async(Count::default(), &config);
            let output = runtime.block_on(run).expect("the run succeeds");
            assert_eq!(output.value.count, size as i64);
        }) as Run)
    })
}

fn chain(nodes: usize) -> StateGraph<Count> {
    let mut graph = StateGraph::new();
    let name = |at: usize| format!("node{at}");
    for at in 0..nodes {
        let add = NodeFnUpdate(|state: &Count| {
            let count = state.count;
            async move {
                Ok(CountUpdate {
                    count: Some(count + 1),
                })
            }
        });
        graph.add_node_simple(name(at), add).expect("a new name");
    }
    graph.set_entry_point(name(0));
    for at in 1..nodes {
        graph.add_edge(name(at - 1), name(at));
    }
    graph.set_finish_point(name(nodes - 1));
    graph
}

fn fan_out(tasks: usize) -> CompiledGraph<Found> {
    let mut graph = StateGraph::new();
    let split = NodeFnCommand(move |_: &Found| {
        Box::pin(async move {
            let target = |item: usize| SendTarget {
                node: "work".to_owned(),
                state: json!({ "found": [], "item": item }),
                timeout: None,
            };
            Ok(Command::send((0..tasks).map(target).collect()))
        })
    });
    graph
        .add_node("split", split, false, None, None, vec![], vec![])
        .expect("a new name");
    let work = NodeFnUpdate(|state: &Found| {
        let item = state.item;
        async move {
            Ok(FoundUpdate {
                found: Some(vec![item]),
                item: None,
            })
        }
    });
    graph.add_node_simple("work", work).expect("a new name");
    graph.set_entry_point("split");
    // Without the edge, it takes the node for one that nothing reaches.
    graph.add_edge("split", "work");
    graph.set_finish_point("work");
    graph.compile().expect("a fan-out is a valid graph")
}
