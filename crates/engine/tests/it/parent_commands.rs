//! Commands that a child graph sends to the graph that contains it.

use crate::scene::{Scene, answer, nothing};
use tine_engine::channel::{append, last};
use tine_engine::command::Output;
use tine_engine::run::{ChildMemory, Subgraph};
use tine_engine::{
    Command, Graph, GraphBuilder, GraphScope, Node, NodeCx, NodeError, START, Update, Value,
};

/// A graph with the channels `log` and `note`.
fn graph(name: &str, build: impl FnOnce(&mut GraphBuilder)) -> Graph {
    let mut graph = Graph::builder(name);
    graph.channel("log", append::<String>());
    graph.channel("note", last::<String>());
    build(&mut graph);
    graph.build().unwrap()
}

/// A node that appends its name to `log`.
fn says(name: &'static str) -> impl Node {
    move |_: NodeCx| async move { Ok::<_, NodeError>(Update::new().set("log", name)) }
}

fn to_parent(command: Command) -> Command {
    Command {
        scope: GraphScope::Parent,
        ..command
    }
}

/// A graph whose one node sends a command to its parent.
fn sending(command: impl Fn() -> Command + Send + Sync + 'static) -> Graph {
    graph("child", |graph| {
        graph.node("c", move |_: NodeCx| {
            let command = to_parent(command());
            async move { Ok::<_, NodeError>(command) }
        });
        graph.edge(START, "c");
    })
}

/// Runs a graph in which `a` is the child, and `b` and `next` are beside it.
fn check(child: Graph, build: impl FnOnce(&mut GraphBuilder)) -> String {
    let host = graph("host", |graph| {
        graph.node("a", Subgraph::new(child));
        graph.node("b", says("b"));
        graph.node("next", says("next"));
        graph.edge(START, "a");
        build(graph);
    });
    run(&Scene::new(host))
}

fn run(scene: &Scene) -> String {
    let outcome = scene.invoke(nothing()).unwrap();
    match outcome.exit.error() {
        None => format!("{} {}", outcome.exit.name(), Value::from(outcome.values)),
        Some(error) => format!("{}: {error}", error.code()),
    }
}

fn only(_: &mut GraphBuilder) {}

#[test]
fn a_command_updates_the_parent_and_goes_to_a_sibling() {
    let child = || {
        sending(|| {
            let update = Update::new().set("log", "child").set("note", "seen");
            Command::goto("b").update(update)
        })
    };
    assert_eq!(
        check(child(), only),
        r#"done {"log":["child","b"],"note":"seen"}"#
    );
    let update_alone = sending(|| Command::default().update([("note", "seen")]));
    assert_eq!(
        check(update_alone, only),
        r#"done {"log":[],"note":"seen"}"#
    );
}

#[test]
fn the_host_follows_its_edges_as_if_the_command_were_its_own() {
    let child = || sending(|| Command::goto("b"));
    let with_edge = check(child(), |host| {
        host.edge("a", "next");
    });
    assert_eq!(with_edge, r#"done {"log":["b","next"]}"#);
    let with_default = check(child(), |host| {
        host.default_edge("a", "next");
    });
    assert_eq!(with_default, r#"done {"log":["b"]}"#);
    // A command without a target leaves the way to the default edges too.
    let no_target = sending(|| Command::default().update([("log", "child")]));
    let with_default = check(no_target, |host| {
        host.default_edge("a", "next");
    });
    assert_eq!(with_default, r#"done {"log":["child","next"]}"#);
}

#[test]
fn nothing_else_of_the_child_counts() {
    let child = graph("child", |graph| {
        graph.node("before", says("before"));
        graph.node("beside", says("beside"));
        graph.node("send", |_: NodeCx| async {
            Ok::<_, NodeError>(Output {
                update: Update::new().set("log", "own"),
                commands: vec![to_parent(Command::goto("b"))],
            })
        });
        graph.node("after", says("after"));
        graph
            .edge(START, "before")
            .edge("before", "beside")
            .edge("before", "send")
            .edge("beside", "after")
            .edge("send", "after");
    });
    assert_eq!(check(child, only), r#"done {"log":["b"]}"#);
}

#[test]
fn a_command_goes_up_one_graph() {
    let inner = sending(|| Command::goto("beside").update([("log", "inner")]));
    let child = graph("child", |graph| {
        graph.node("inner", Subgraph::new(inner));
        graph.node("beside", says("beside"));
        graph.edge(START, "inner");
    });
    assert_eq!(check(child, only), r#"done {"log":["inner","beside"]}"#);
}

#[test]
fn a_command_waits_for_the_questions_of_its_step() {
    let child = graph("child", |graph| {
        graph.node("ask", |cx: NodeCx| async move {
            cx.interrupt("may I?")?;
            Ok::<_, NodeError>(())
        });
        graph.node("send", |_: NodeCx| async {
            Ok::<_, NodeError>(to_parent(Command::goto("b")))
        });
        graph.edge(START, "ask").edge(START, "send");
    });
    let host = graph("host", |graph| {
        graph.node("a", Subgraph::new(child));
        graph.node("b", says("b"));
        graph.edge(START, "a");
    });
    let scene = Scene::new(host);
    assert_eq!(run(&scene), r#"interrupted {"log":[]}"#);
    let done = scene.invoke(answer("yes")).unwrap();
    assert_eq!(done.exit.name(), "done");
    assert_eq!(done.values["log"].to_canonical(), r#"["b"]"#);
}

#[test]
fn a_child_that_remembers_begins_anew_after_it_sent_one() {
    let child = graph("child", |graph| {
        graph.node("count", says("visit"));
        graph.node("send", |cx: NodeCx| async move {
            let seen = cx.value("log").unwrap_or_default();
            let update = Update::new().set("note", seen.to_canonical());
            Ok::<_, NodeError>(to_parent(Command::default().update(update)))
        });
        graph.edge(START, "count").edge("count", "send");
        graph.input([] as [&str; 0]);
    });
    let host = graph("host", |graph| {
        graph.node("a", Subgraph::new(child).memory(ChildMemory::Thread));
        graph.edge(START, "a");
    });
    let scene = Scene::new(host);
    assert_eq!(run(&scene), r#"done {"log":[],"note":"[\"visit\"]"}"#);
    assert_eq!(
        run(&scene),
        r#"done {"log":[],"note":"[\"visit\",\"visit\"]"}"#
    );
}

#[test]
fn a_root_graph_has_no_parent() {
    let root = sending(|| Command::goto("b"));
    insta::assert_snapshot!(run(&Scene::new(root)), @"no_parent: node `c` sent a command to the parent graph, and there is none");
}

#[test]
fn a_command_that_does_not_fit_the_parent_is_an_error_of_the_host() {
    let nowhere = sending(|| Command::goto("nowhere"));
    insta::assert_snapshot!(check(nowhere, only), @"unknown_node: node `a` goes to `nowhere`, and graph `host` has no such node");
    let no_channel = sending(|| Command::goto("b").update([("z", 1)]));
    insta::assert_snapshot!(check(no_channel, only), @"invalid_update: node `a`: writes to `z`, and graph `host` declares no such channel; it has `log`, `note`");
}
