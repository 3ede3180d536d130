//! What a graph that can not be built says.

use tine_engine::channel::{append, last};
use tine_engine::node::from_fn;
use tine_engine::{Breakpoints, END, Graph, GraphBuilder, START};

/// Adds a node that does nothing.
fn node(graph: &mut GraphBuilder, name: &str) {
    graph.node(name, from_fn(|_| Ok(())));
}

#[test]
fn every_problem_names_the_thing_the_place_and_the_way_out() {
    let mut told = Vec::new();
    let mut check = |title: &str, build: fn(&mut GraphBuilder)| {
        let mut graph = Graph::builder("g");
        build(&mut graph);
        told.push(format!("{title}: {}", graph.build().unwrap_err()));
    };
    check("nothing at all", |_| {});
    check("no start", |graph| {
        node(graph, "agent");
        graph.edge("agent", END);
    });
    check("a mistyped node", |graph| {
        node(graph, "agent");
        node(graph, "tools");
        graph.edge(START, "agent").edge("agent", "tols");
        graph.edge("Agent", "tools");
    });
    check("a node like none", |graph| {
        node(graph, "agent");
        graph.edge(START, "agent").edge("agent", "nowhere");
        graph.join(["agent", "nobody"], "agent");
        graph.interrupt_before(Breakpoints::Nodes(vec!["elsewhere".into()]));
    });
    check("mistyped channels", |graph| {
        graph.channel("messages", append::<String>());
        graph
            .node("agent", from_fn(|_| Ok(())))
            .reads(["mesages", "__account"]);
        graph.input(["massages"]).output(["answer"]);
        graph.edge(START, "agent");
    });
    check("names that stand twice", |graph| {
        graph.channel("log", last::<i64>());
        graph.channel("log", last::<i64>());
        node(graph, "agent");
        node(graph, "agent");
        graph.edge(START, "agent");
    });
    check("names that can not be", |graph| {
        node(graph, "");
        node(graph, "a/b");
        graph.edge(START, "a/b");
    });
    check("ways that can not be", |graph| {
        node(graph, "agent");
        graph
            .edge(START, "agent")
            .edge("agent", START)
            .edge(END, "agent");
        graph.join(Vec::<&str>::new(), "agent");
    });
    insta::assert_snapshot!(told.join("\n"));
}
