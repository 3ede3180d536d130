//! A reducer of one's own: a list that keeps only the newest items.
#![allow(clippy::print_stdout)]

use std::sync::Arc;
use tine::engine::blocking::Runner;
use tine::engine::channel::{Fold, ReduceError, custom, last};
use tine::engine::node::from_fn;
use tine::engine::{
    Graph, MemoryCheckpointer, Reducer, RunOptions, START, ThreadKey, TokioWorld, Update, Value,
};

/// Keeps this many items of a list, the newest.
#[derive(Debug)]
struct Newest(usize);

impl Reducer for Newest {
    fn name(&self) -> &str {
        "newest_items"
    }

    fn empty(&self) -> Option<Value> {
        Some(Value::list())
    }

    /// Gets one write at a time, in task order. A checkpoint stores the changes made through `Fold`, so loading a
    /// thread calls no reducer.
    fn fold(&self, channel: &mut Fold<'_>, write: &Value) -> Result<(), ReduceError> {
        if write.as_str().is_none_or(str::is_empty) {
            let reason = format!("`newest_items` takes a text that says something, not {write}");
            return Err(ReduceError::new(reason));
        }
        channel.append(write.clone());
        while channel.len() > self.0 {
            channel.remove(0);
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut graph = Graph::builder("newspaper");
    let headline = graph.channel("headline", last::<String>());
    let news = graph.channel("news", custom::<Value>(Newest(3)));
    let publish = from_fn(move |cx| {
        let headline = cx.read(&headline)?;
        Ok(Update::new().write(&news, headline.as_str().into()))
    });
    graph.node("publish", publish);
    graph.edge(START, "publish");

    let runner = Runner::new(graph.build()?, TokioWorld::new())
        .with_checkpointer(Arc::new(MemoryCheckpointer::new()));
    let thread = ThreadKey::local("t1");
    for headline in ["spring", "summer", "autumn", "winter", ""] {
        let input = Update::from([("headline", headline)]);
        let outcome = runner.invoke(&thread, input, RunOptions::default())?;
        // What a reducer refuses fails the step, and nothing of the step is applied.
        println!("{}: {}", outcome.exit.name(), outcome.values["news"]);
        if let Some(error) = outcome.exit.error() {
            println!("  {error}");
        }
    }
    Ok(())
}
