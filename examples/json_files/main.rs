//! A checkpointer of one's own: threads as JSON lines in a folder, see [`json_files`].
//!
//! ```console
//! $ cargo run --example json_files -- /tmp/threads
//! ```
#![allow(clippy::print_stdout)]

mod json_files;

use json_files::JsonFiles;
use std::sync::Arc;
use tine::engine::blocking::{Runner, block_on};
use tine::engine::channel::append;
use tine::engine::node::from_fn;
use tine::engine::{Checkpointer, Graph, Resume, RunOptions, START, ThreadKey, TokioWorld, Update};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: json_files FOLDER")?;
    let threads = Arc::new(JsonFiles::new(folder)?);

    let mut graph = Graph::builder("order");
    let order = graph.channel("order", append::<String>());
    graph.node(
        "waiter",
        from_fn(move |cx| {
            let dish = cx.interrupt("What will it be?")?;
            Ok(Update::new().write(&order, vec![dish.as_str().unwrap_or("water").to_owned()]))
        }),
    );
    graph.edge(START, "waiter");
    let runner = Runner::new(graph.build()?, TokioWorld::new()).with_checkpointer(threads.clone());

    let table = ThreadKey::local("table 4");
    runner.invoke(&table, Update::new(), RunOptions::default())?;
    let outcome = runner.invoke(&table, Resume::value("soup"), RunOptions::default())?;
    println!("{}: {}", outcome.exit.name(), outcome.values["order"]);

    // Each line of the file is one commit.
    for line in std::fs::read_to_string(threads.file(&table))?.lines() {
        let line: serde_json::Value = serde_json::from_str(line)?;
        match (&line["advance"]["advance"], &line["record"]["ops"]) {
            (advance, _) if advance.is_object() => println!("checkpoint {}", advance["step"]),
            (_, ops) if ops.is_array() => println!("records    {}", kinds(ops)),
            _ => println!("thread     {}", line["thread"]["thread"]),
        }
    }
    for thread in block_on(threads.threads("local"))?? {
        println!("{} has {} checkpoints", thread.key, thread.checkpoints);
    }
    Ok(())
}

/// What kinds of records were put.
fn kinds(ops: &serde_json::Value) -> String {
    let ops = ops.as_array().into_iter().flatten();
    let kinds = ops.filter_map(|op| Some(op["put"]["kind"].as_object()?.keys().next()?.clone()));
    kinds.collect::<Vec<_>>().join(", ")
}
