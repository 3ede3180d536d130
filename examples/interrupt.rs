//! A node asks, the run stops, and it goes on with the answer.
#![allow(clippy::print_stdout)]

use std::sync::Arc;
use tine::engine::blocking::Runner;
use tine::engine::channel::append;
use tine::engine::node::from_fn;
use tine::engine::{
    Graph, MemoryCheckpointer, Resume, RunOptions, START, ThreadKey, TokioWorld, Update,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut graph = Graph::builder("transfer");
    let log = graph.channel("log", append::<String>());

    let note = log.clone();
    let prepare = from_fn(move |_| Ok(Update::new().write(&note, vec!["prepared".to_owned()])));
    let approve = from_fn(move |cx| {
        // Without an answer, `?` leaves the node here. With one the node runs again from its top, and goes on.
        let answer = cx.interrupt("Send 100 coins to Ada?")?;
        let sent = answer.as_bool().unwrap_or(false);
        let said = if sent { "sent" } else { "kept" };
        Ok(Update::new().write(&log, vec![said.to_owned()]))
    });
    graph.node("prepare", prepare);
    graph.node("approve", approve);
    graph.edge(START, "prepare").edge("prepare", "approve");

    // What waits must be kept somewhere.
    let runner = Runner::new(graph.build()?, TokioWorld::new())
        .with_checkpointer(Arc::new(MemoryCheckpointer::new()));
    let thread = ThreadKey::local("t1");

    let outcome = runner.invoke(&thread, Update::new(), RunOptions::default())?;
    println!("{}: {}", outcome.exit.name(), outcome.interrupts[0].payload);

    let state = runner.state(&thread)?.ok_or("the thread is stored")?;
    println!("{} waits, log {}", state.next[0].node, state.values["log"]);

    let outcome = runner.invoke(&thread, Resume::value(true), RunOptions::default())?;
    println!("{}: log {}", outcome.exit.name(), outcome.values["log"]);
    Ok(())
}
