//! Map and reduce: one node dispatches a task for each text, a reducer gathers what they count.
#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use tine::engine::channel::{add, last, merge};
use tine::engine::node::from_fn;
use tine::engine::{
    Command, Graph, RunOptions, Runner, START, Target, ThreadKey, TokioWorld, Update, Value,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut graph = Graph::builder("count_words");
    let texts = graph.channel("texts", last::<Vec<String>>());
    let counts = graph.channel("counts", merge::<BTreeMap<String, usize>>());
    let total = graph.channel("total", add::<usize>());

    let split = from_fn(move |cx| {
        let texts = cx.read(&texts)?;
        let parts = texts.iter().map(String::as_str);
        // A dispatch is a target with an input of its own: each becomes a task, and they run side by side.
        let tasks = parts.map(|text| Target::dispatch("count", text));
        Ok(tasks.fold(Command::default(), Command::and_goto))
    });
    let count = from_fn(move |cx| {
        let text = cx.dispatched().and_then(Value::as_str).unwrap_or_default();
        let words = text.split_whitespace().count();
        let count = BTreeMap::from([(text.to_owned(), words)]);
        Ok(Update::new().write(&counts, count).write(&total, words))
    });
    graph.node("split", split).goes_to(["count"]);
    graph.node("count", count);
    graph.edge(START, "split");

    let runner = Runner::new(graph.build()?, TokioWorld::new());
    let texts = vec!["to be or not to be", "that is the question", "whether"];
    let input = Update::from([("texts", texts)]);
    let thread = ThreadKey::local("t1");
    let outcome = runner.invoke(&thread, input, RunOptions::default()).await?;
    println!("{}", outcome.values["counts"]);
    println!("{} words in all", outcome.values["total"]);
    Ok(())
}
