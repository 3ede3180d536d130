//! Channels hold Rust types: what does not fit a channel does not compile, and nobody parses JSON.
#![allow(clippy::print_stdout)]

use serde::{Deserialize, Serialize};
use tine::engine::blocking::Runner;
use tine::engine::channel::{add, append, last};
use tine::engine::node::from_fn;
use tine::engine::{Graph, RunOptions, START, ThreadKey, TokioWorld, Update, from_value};

#[derive(Debug, Serialize, Deserialize)]
struct Plan {
    title: String,
    hours: Vec<u32>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut graph = Graph::builder("trip");
    // How writes become the value is part of the channel: the last one wins, numbers add up, lists grow.
    let plan = graph.channel("plan", last::<Plan>());
    let total = graph.channel("total", add::<u32>());
    let log = graph.channel("log", append::<String>());

    // A handle is a name with a type; cloning one is cheap. Each node takes those that it needs.
    let (to, note) = (plan.clone(), log.clone());
    let draft = from_fn(move |_| {
        let title = "To the sea".to_owned();
        let drafted = format!("drafted {title}");
        let hours = vec![2, 5, 1];
        let update = Update::new().write(&to, Plan { title, hours });
        Ok(update.write(&note, vec![drafted]))
    });
    let count = from_fn(move |cx| {
        let plan = cx.read(&plan)?; // an Arc<Plan>
        let hours: u32 = plan.hours.iter().sum();
        let counted = format!("counted {} legs", plan.hours.len());
        let update = Update::new().write(&total, hours);
        Ok(update.write(&log, vec![counted]))
    });
    graph.node("draft", draft);
    graph.node("count", count);
    graph.edge(START, "draft").edge("draft", "count");

    let runner = Runner::new(graph.build()?, TokioWorld::new());
    let thread = ThreadKey::local("t1");
    let outcome = runner.invoke(&thread, Update::new(), RunOptions::default())?;
    let plan: Plan = from_value(&outcome.values["plan"])?;
    println!("{plan:?}");
    println!("{} hours", outcome.values["total"]);
    println!("{}", outcome.values["log"]);
    Ok(())
}
