//! A command writes and says where to go next, in one answer: no edges out of the node are needed.
#![allow(clippy::print_stdout)]

use tine::engine::blocking::Runner;
use tine::engine::channel::last;
use tine::engine::node::from_fn;
use tine::engine::{Command, END, Graph, RunOptions, START, ThreadKey, TokioWorld, Update, Value};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut graph = Graph::builder("helpdesk");
    let ticket = graph.channel("ticket", last::<String>());
    let queue = graph.channel("queue", last::<String>());
    let reply = graph.channel("reply", last::<String>());

    let triage = from_fn(move |cx| {
        let ticket = cx.read(&ticket)?;
        let (name, node) = match ticket.as_str() {
            text if text.contains("refund") => ("billing", "refund"),
            text if text.contains("crash") => ("engineering", "investigate"),
            _ => ("none", END),
        };
        let update = Update::new().write(&queue, name.to_owned());
        Ok(Command::goto(node).update(update))
    });
    let says = |text: &'static str| {
        let reply = reply.clone();
        from_fn(move |_| Ok(Update::new().write(&reply, text.to_owned())))
    };
    let ways = ["refund", "investigate", END];
    // `goes_to` forbids nothing: it lets `build` find nodes that nobody reaches, and drawings show the way.
    graph.node("triage", triage).goes_to(ways);
    graph.node("refund", says("the money is on its way"));
    graph.node("investigate", says("we look into it"));
    graph.edge(START, "triage");

    let runner = Runner::new(graph.build()?, TokioWorld::new());
    for ticket in ["I want a refund", "It did crash", "Hello"] {
        let input = Update::from([("ticket", ticket)]);
        let outcome = runner.invoke(&ThreadKey::local(ticket), input, RunOptions::default())?;
        let reply = outcome.values.get("reply").and_then(Value::as_str);
        println!("{ticket}: queue {}", outcome.values["queue"]);
        println!("  {}", reply.unwrap_or("no reply"));
    }
    Ok(())
}
