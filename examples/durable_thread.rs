//! A question that outlives its process: the thread is in SQLite, and the next run of this program answers.
//!
//! ```console
//! $ cargo run --example durable_thread -- /tmp/threads.db
//! $ cargo run --example durable_thread -- /tmp/threads.db Ada
//! ```
#![allow(clippy::print_stdout)]

use std::sync::Arc;
use tine::engine::blocking::Runner;
use tine::engine::channel::append;
use tine::engine::node::from_fn;
use tine::engine::{Exit, Graph, Input, Resume, RunOptions, START, ThreadKey, TokioWorld, Update};
use tine::stores::{SqliteCheckpointer, SqliteOptions};

/// Each run of the program builds the same graph; only what happened is stored.
fn graph() -> Result<Graph, Box<dyn std::error::Error>> {
    let mut graph = Graph::builder("welcome");
    let log = graph.channel("log", append::<String>());
    let note = log.clone();
    let open = from_fn(move |_| Ok(Update::new().write(&note, vec!["doors open".to_owned()])));
    let welcome = from_fn(move |cx| {
        let name = cx.interrupt("Who is there?")?;
        let name = name.as_str().unwrap_or("stranger");
        Ok(Update::new().write(&log, vec![format!("welcome, {name}")]))
    });
    graph.node("open", open);
    graph.node("welcome", welcome);
    graph.edge(START, "open").edge("open", "welcome");
    Ok(graph.build()?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let file = args.next().ok_or("usage: durable_thread FILE [ANSWER]")?;
    let input: Input = match args.next() {
        Some(answer) => Resume::value(answer).into(),
        None => Update::new().into(),
    };

    let threads = SqliteCheckpointer::open(file, SqliteOptions::default())?;
    let runner = Runner::new(graph()?, TokioWorld::new()).with_checkpointer(Arc::new(threads));
    let outcome = runner.invoke(&ThreadKey::local("door"), input, RunOptions::default())?;
    match outcome.exit {
        Exit::Interrupted => println!("asks: {}", outcome.interrupts[0].payload),
        exit => println!("{}: {}", exit.name(), outcome.values["log"]),
    }
    Ok(())
}
