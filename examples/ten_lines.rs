//! A graph in ten lines: two nodes that write to one list.
#![allow(clippy::print_stdout)]

use tine::engine::blocking::Runner;
use tine::engine::channel::append;
use tine::engine::node::from_fn;
use tine::engine::{Graph, RunOptions, START, ThreadKey, TokioWorld, Update};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut graph = Graph::builder("greeting");
    graph.channel("words", append::<String>());
    graph.node("hello", from_fn(|_| Ok(Update::from([("words", "hello")]))));
    graph.node("world", from_fn(|_| Ok(Update::from([("words", "world")]))));
    graph.edge(START, "hello").edge("hello", "world");

    let runner = Runner::new(graph.build()?, TokioWorld::new());
    let thread = ThreadKey::local("t1");
    let outcome = runner.invoke(&thread, Update::new(), RunOptions::default())?;
    println!("{}: {}", outcome.exit.name(), outcome.values["words"]);
    Ok(())
}
