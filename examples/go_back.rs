//! Going back to an old checkpoint: the same again, and another way from there on.
#![allow(clippy::print_stdout)]

use std::sync::Arc;
use tine::engine::blocking::Runner;
use tine::engine::channel::append;
use tine::engine::node::from_fn;
use tine::engine::run::{HistoryQuery, ThreadUpdate};
use tine::engine::{
    Graph, Input, MemoryCheckpointer, RunOptions, START, ThreadKey, TokioWorld, Update,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut graph = Graph::builder("story");
    graph.channel("told", append::<String>());
    for (name, says) in [
        ("morning", "She woke up."),
        ("noon", "She ate."),
        ("evening", "She slept."),
    ] {
        graph.node(name, from_fn(move |_| Ok(Update::from([("told", says)]))));
    }
    graph
        .edge(START, "morning")
        .edge("morning", "noon")
        .edge("noon", "evening");

    let threads = Arc::new(MemoryCheckpointer::new());
    let runner = Runner::new(graph.build()?, TokioWorld::new()).with_checkpointer(threads);
    let thread = ThreadKey::local("t1");
    runner.invoke(&thread, Update::new(), RunOptions::default())?;

    // The newest checkpoint comes first; each says what was to run next.
    let history = runner.history(&thread, HistoryQuery::default())?;
    for checkpoint in &history {
        let next: Vec<&str> = checkpoint.next.iter().map(|task| &*task.node).collect();
        println!(
            "step {}, next {next:?}: {}",
            checkpoint.step, checkpoint.values["told"]
        );
    }
    let before_noon = history
        .iter()
        .find(|checkpoint| checkpoint.next.iter().any(|task| &*task.node == "noon"))
        .map(|checkpoint| checkpoint.id);

    // Replay: the nodes after the checkpoint run again.
    let options = RunOptions {
        at: before_noon,
        ..RunOptions::default()
    };
    let outcome = runner.invoke(&thread, Input::Continue, options)?;
    println!("again: {}", outcome.values["told"]);

    // An update stands for what a node would have returned, and the node does not run; then the run goes on.
    let instead = ThreadUpdate::new("noon", Update::from([("told", "She fasted.")]));
    runner.bulk_update(&thread, before_noon, vec![vec![instead]])?;
    let outcome = runner.invoke(&thread, Input::Continue, RunOptions::default())?;
    println!("instead: {}", outcome.values["told"]);

    // Nothing that was stored is gone: the thread is a tree now.
    let all = runner.history(&thread, HistoryQuery::default())?;
    println!("{} checkpoints before, {} now", history.len(), all.len());
    Ok(())
}
