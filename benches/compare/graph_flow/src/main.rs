//! graph-flow: tasks that go on by themselves, run by its `FlowRunner` with sessions in memory, as its README shows.
//!
//! It stores a session when a call ends, never between two tasks that go on by themselves; a chain with a checkpoint a
//! step is one call a task.

use async_trait::async_trait;
use compare_measure::{Run, Runtime, Workload, measure};
use graph_flow::{
    Context, ExecutionStatus, FlowRunner, GraphBuilder, InMemorySessionStorage, NextAction,
    Session, SessionStorage, Task, TaskResult,
};
use std::process::ExitCode;
use std::sync::Arc;

struct AddOne {
    id: String,
    next: NextAction,
}

#[async_trait]
impl Task for AddOne {
    fn id(&self) -> &str {
        &self.id
    }

    async fn run(&self, context: Context) -> graph_flow::Result<TaskResult> {
        let count: i64 = context.get("count").unwrap_or(0);
        context.set("count", count + 1)?;
        Ok(TaskResult::new(None, self.next.clone()))
    }
}

fn main() -> ExitCode {
    measure(|workload, size| {
        let next = match workload {
            Workload::Chain => NextAction::ContinueAndExecute,
            Workload::ChainCheckpoints => NextAction::Continue,
            // `FanOutTask` has a fixed list of children, which share one context: no inputs, no reducers.
            Workload::FanOut => return None,
        };
        let mut graph = GraphBuilder::new("chain");
        for at in 0..size {
            graph = graph.add_task(Arc::new(AddOne {
                id: format!("node{at}"),
                next: match at + 1 == size {
                    true => NextAction::End,
                    false => next.clone(),
                },
            }));
        }
        for at in 1..size {
            graph = graph.add_edge(format!("node{}", at - 1), format!("node{at}"));
        }
        let graph = Arc::new(graph.build().expect("a chain is a valid graph"));
        let storage = Arc::new(InMemorySessionStorage::new());
        let runner = FlowRunner::new(graph, storage.clone());
        Some(Box::new(move |runtime: &Runtime| {
            let (runner, storage) = (&runner, &storage);
            runtime.block_on(async move {
                let session = Session::new_from_task("compare".to_owned(), "node0");
                session
                    .context
                    .set("count", 0_i64)
                    .expect("a number is JSON");
                storage.save(session).await.expect("memory holds it");
                loop {
                    let result = runner.run("compare").await.expect("the tasks succeed");
                    match result.status {
                        ExecutionStatus::Completed => break,
                        ExecutionStatus::Paused { .. } => {}
                        ExecutionStatus::WaitingForInput => panic!("nothing asks"),
                    }
                }
                let session = storage.get("compare").await.expect("memory holds it");
                let count: Option<i64> = session.and_then(|session| session.context.get("count"));
                assert_eq!(count, Some(size as i64));
                storage.delete("compare").await.expect("memory holds it");
            });
        }) as Run)
    })
}
