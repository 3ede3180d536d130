//! Nodes that fail: tried again, broken off, handled; and an end to spending.
#![allow(clippy::print_stdout)]

use std::time::Duration;
use tine::engine::blocking::Runner;
use tine::engine::channel::append;
use tine::engine::node::from_fn;
use tine::engine::{
    Budget, Command, ErrorClass, Graph, Input, MemoryCheckpointer, NodeCx, NodeError, RetryPolicy,
    RunOptions, START, SimWorld, Spend, ThreadKey, Update,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut graph = Graph::builder("forecast");
    let log = graph.channel("log", append::<String>());
    let note = move |text: String| Update::new().write(&log, vec![text]);

    let noted = note.clone();
    let fetch = from_fn(move |cx| match cx.attempt() {
        // The class says what a policy goes by; what `?` makes of an error is `Internal`.
        1 | 2 => Err(NodeError::new(ErrorClass::Transport, "no network")),
        attempt => Ok(noted(format!("fetched at attempt {attempt}"))),
    });
    graph.node("fetch", fetch).retry(RetryPolicy {
        max_attempts: 3,
        ..RetryPolicy::default()
    });

    // A handler runs in place of what is left of the failed task. It goes on by a command, for the ways out of the failed
    // node are not taken.
    let noted = note.clone();
    let give_up = from_fn(move |cx| {
        let failure = cx
            .handled_error()
            .ok_or_else(|| NodeError::new(ErrorClass::Internal, "no failure"))?;
        let update = noted(format!("handled: {}", failure.message()));
        Ok(Command::goto("ask_model").update(update))
    });
    let compute = async |cx: NodeCx| {
        cx.world().sleep(Duration::from_secs(3600)).await;
        Ok(())
    };
    graph
        .node("compute", compute)
        .timeout(Duration::from_secs(5))
        .on_error(give_up)
        .goes_to(["ask_model"]);

    graph.node("ask_model", move |cx: NodeCx| {
        let note = note.clone();
        async move {
            // The most that it may use is set aside first; what it did use is counted.
            let reserved = cx.reserve(Spend::tokens(500))?;
            reserved.settle(Spend::tokens(320)).await?;
            Ok(note("asked the model".to_owned()))
        }
    });
    graph
        .edge(START, "fetch")
        .edge("fetch", "compute")
        .edge("compute", "ask_model");

    // In a simulated world nobody waits for the retries and the timeout.
    let threads = std::sync::Arc::new(MemoryCheckpointer::new());
    let runner = Runner::new(graph.build()?, SimWorld::new(0)).with_checkpointer(threads);
    let thread = ThreadKey::local("t1");
    let with_tokens = |tokens| RunOptions {
        budget: Budget {
            tokens: Some(tokens),
            ..Budget::default()
        },
        ..RunOptions::default()
    };
    let outcome = runner.invoke(&thread, Update::new(), with_tokens(400))?;
    println!("{}: {}", outcome.exit.name(), outcome.values["log"]);
    if let Some(error) = outcome.exit.error() {
        println!("  {error}");
    }
    // The thread goes on where it stopped, with more to spend.
    let outcome = runner.invoke(&thread, Input::Continue, with_tokens(1000))?;
    println!("{}: {}", outcome.exit.name(), outcome.values["log"]);
    println!("  {} tokens spent", outcome.spent.tokens);
    Ok(())
}
