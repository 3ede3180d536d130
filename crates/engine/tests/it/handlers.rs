//! Error handlers: when they run, what counts of what they do, and how a thread goes on in the middle of one.

use crate::scene::{Count, Scene, answer, block_on, nothing, pause, poll_some};
use std::sync::Arc;
use std::time::Duration;
use tine_engine::channel::append;
use tine_engine::command::GraphScope;
use tine_engine::graph::Finding;
use tine_engine::run::Effects;
use tine_engine::run::{Call, Subgraph};
use tine_engine::{
    Command, ErrorClass, ErrorHandler, Exit, Graph, GraphBuilder, Input, MemoryCheckpointer, Node,
    NodeCx, NodeDefaults, NodeError, RetryPolicy, RunOptions, START, Target, Update, Value, World,
};

/// `a`, which has an edge to `n`, beside what `build` adds.
fn graph(build: impl FnOnce(&mut GraphBuilder)) -> Graph {
    let mut graph = Graph::builder("g");
    graph.channel("log", append::<String>());
    graph.node("n", writes("n"));
    build(&mut graph);
    graph.edge(START, "a").edge("a", "n");
    graph.build().unwrap()
}

fn writes(text: &'static str) -> impl Node {
    move |_: NodeCx| async move { Ok::<_, NodeError>(log(text)) }
}

fn log(text: &str) -> Update {
    Update::new().set("log", text)
}

fn fails(class: ErrorClass, message: &'static str) -> impl Node {
    move |_: NodeCx| async move { Err::<(), _>(NodeError::new(class, message)) }
}

fn boom() -> impl Node {
    fails(ErrorClass::Internal, "boom")
}

/// Notes what it handles.
fn notes() -> impl Node {
    |cx: NodeCx| async move {
        let error = cx.handled_error().unwrap();
        let text = format!(
            "{} after {} {:?}: {}",
            cx.path(),
            error.node(),
            error.class(),
            error.message()
        );
        Ok::<_, NodeError>(log(&text))
    }
}

fn twice(class: ErrorClass) -> RetryPolicy {
    RetryPolicy {
        max_attempts: 2,
        on: vec![class],
        ..RetryPolicy::default()
    }
}

/// Runs a graph from nothing. Shows how it ends, and what is written.
fn check(build: impl FnOnce(&mut GraphBuilder)) -> String {
    shown(&Scene::new(graph(build)), nothing())
}

fn shown(scene: &Scene, input: Input) -> String {
    let outcome = scene.invoke(input).unwrap();
    let state = scene.state();
    let next = state.next.iter().map(|task| match &task.error {
        Some(error) => format!(" {} ({error})", task.node),
        None => format!(" {}", task.node),
    });
    format!(
        "{} {} next{}",
        outcome.exit.name(),
        outcome.values["log"],
        next.collect::<String>()
    )
}

#[test]
fn a_handler_sees_the_error_and_takes_the_place_of_the_ways_out() {
    let done = check(|graph| {
        graph.node("a", boom()).on_error(notes());
    });
    assert_eq!(done, r#"done ["a#handler after a Internal: boom"] next"#);
}

#[test]
fn every_kind_of_failure_is_handled() {
    let check = |node: Arc<dyn Node>| {
        check(|graph| {
            graph
                .node("a", node)
                .timeout(Duration::from_secs(5))
                .on_error(notes());
        })
    };
    let panics = |_: NodeCx| async {
        if true {
            panic!("oh no");
        }
        Ok::<_, NodeError>(())
    };
    let hangs = |_: NodeCx| async {
        std::future::pending::<()>().await;
        Ok::<_, NodeError>(())
    };
    let strays = |_: NodeCx| async { Ok::<_, NodeError>(Command::goto("nowhere")) };
    let scribbles = |_: NodeCx| async { Ok::<_, NodeError>(Update::new().set("nothing", 1)) };
    let climbs = |_: NodeCx| async {
        Ok::<_, NodeError>(Command {
            scope: GraphScope::Parent,
            ..Command::goto("n")
        })
    };
    let nodes: [Arc<dyn Node>; 6] = [
        Arc::new(panics),
        Arc::new(hangs),
        Arc::new(strays),
        Arc::new(scribbles),
        Arc::new(climbs),
        Arc::new(fails(ErrorClass::Denied, "no")),
    ];
    let all: Vec<String> = nodes.into_iter().map(check).collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn a_router_that_fails_is_a_failure_of_its_node() {
    let done = check(|graph| {
        graph.node("a", writes("lost")).on_error(notes());
        graph.branch("a", |_: NodeCx| async {
            Err::<Target, _>(NodeError::new(ErrorClass::Internal, "which way?"))
        });
    });
    assert_eq!(
        done,
        r#"done ["a#handler after a Internal: which way?"] next"#
    );
}

#[test]
fn what_is_no_error_is_not_handled() {
    let asks = |cx: NodeCx| async move {
        let said = cx.interrupt("q")?;
        Ok::<_, NodeError>(log(said.as_str().unwrap_or_default()))
    };
    let scene = Scene::new(graph(|graph| {
        graph.node("a", asks).on_error(notes());
    }));
    assert_eq!(shown(&scene, nothing()), "interrupted [] next a");
    assert_eq!(shown(&scene, answer("fine")), r#"done ["fine","n"] next"#);
    let stopped = check(|graph| {
        graph
            .node("a", fails(ErrorClass::Canceled, "stopped"))
            .on_error(notes());
    });
    assert_eq!(stopped, "failed [] next a (node `a` failed: stopped)");
}

#[test]
fn retries_come_first_and_the_handler_has_its_own() {
    let tries = Count::default();
    let handler = move |cx: NodeCx| {
        let first = tries.up() == 1;
        async move {
            if first {
                return Err(NodeError::new(ErrorClass::Transport, "handler flaky"));
            }
            Ok(log(&format!("handled at attempt {}", cx.attempt())))
        }
    };
    let scene = Scene::new(graph(|graph| {
        graph
            .node("a", fails(ErrorClass::Transport, "flaky"))
            .retry(twice(ErrorClass::Transport))
            .on_error(ErrorHandler::new(handler).retry(twice(ErrorClass::Transport)));
    }));
    scene.invoke(nothing()).unwrap();
    insta::assert_snapshot!(scene.transcript());
}

#[test]
fn a_handler_goes_on_by_command() {
    let done = check(|graph| {
        graph.node("a", boom()).on_error(|_: NodeCx| async {
            Ok::<_, NodeError>(Command::goto("n").update(log("handled")))
        });
    });
    assert_eq!(done, r#"done ["handled","n"] next"#);
}

#[test]
fn a_handler_that_goes_to_a_node_that_waits_counts_as_its_node() {
    let scene = Scene::new(graph(|graph| {
        graph
            .node("a", boom())
            .on_error(|_: NodeCx| async { Ok::<_, NodeError>(Command::goto("z")) });
        graph.node("b", writes("b"));
        graph.node("c", writes("c"));
        graph.node("z", writes("z"));
        graph.edge(START, "b").edge("b", "c").edge("c", "z");
        graph.wait_for("z", ["a", "c"]);
    }));
    assert_eq!(shown(&scene, nothing()), r#"done ["b","c","z"] next"#);
}

#[test]
fn a_failing_handler_is_what_goes_on() {
    for panics in [false, true] {
        let (nodes, handlers) = (Count::default(), Count::default());
        let (node, handler) = (nodes.clone(), handlers.clone());
        let scene = Scene::new(graph(|graph| {
            graph
                .node("a", move |_: NodeCx| {
                    node.up();
                    async { Err::<(), _>(NodeError::new(ErrorClass::Denied, "first")) }
                })
                .on_error(move |cx: NodeCx| {
                    let first = handler.up() == 1;
                    async move {
                        if first && panics {
                            panic!("handler broke");
                        } else if first {
                            return Err(NodeError::new(ErrorClass::Internal, "handler broke"));
                        }
                        let error = cx.handled_error().unwrap();
                        Ok(log(&format!("{:?} {}", error.class(), error.message())))
                    }
                });
        }));
        let how = if panics { "panicked: " } else { "" };
        assert_eq!(
            shown(&scene, nothing()),
            format!("failed [] next a (node `a#handler` failed: {how}handler broke)")
        );
        assert_eq!(
            shown(&scene, Input::Continue),
            r#"done ["Denied first"] next"#
        );
        assert_eq!((nodes.get(), handlers.get()), (1, 2));
    }
}

#[test]
fn a_handler_may_ask_and_its_answers_are_its_own() {
    let nodes = Count::default();
    let node = nodes.clone();
    let scene = Scene::new(graph(|graph| {
        graph
            .node("a", move |cx: NodeCx| {
                node.up();
                async move {
                    let said = cx.interrupt("node?")?;
                    Err::<(), _>(NodeError::new(ErrorClass::Internal, said.to_string()))
                }
            })
            .on_error(|cx: NodeCx| async move {
                let said = cx.interrupt("handler?")?;
                let more = cx.interrupt("more?")?;
                let error = cx.handled_error().unwrap().message();
                Ok::<_, NodeError>(log(&format!("{error} {said} {more}")))
            });
    }));
    assert_eq!(shown(&scene, nothing()), "interrupted [] next a");
    let boom = r#"interrupted [] next a (node `a` failed: "one")"#;
    assert_eq!(shown(&scene, answer("one")), boom);
    let asked = scene.state().interrupts;
    assert_eq!(
        (&*asked[0].node, asked[0].payload.as_str()),
        ("a#handler", Some("handler?"))
    );
    assert_eq!(shown(&scene, answer("two")), boom);
    assert_eq!(
        shown(&scene, answer("three")),
        r#"done ["\"one\" \"two\" \"three\""] next"#
    );
    assert_eq!(nodes.get(), 2);
    insta::assert_snapshot!(scene.transcript());
}

#[test]
fn a_run_dropped_inside_a_handler_goes_on_there() {
    let (nodes, calls) = (Count::default(), Count::default());
    let (node, call) = (nodes.clone(), calls.clone());
    let build = || {
        let (node, call) = (node.clone(), call.clone());
        graph(|graph| {
            graph
                .node("a", move |cx: NodeCx| {
                    node.up();
                    async move {
                        let key = Call::new("k", &Value::Null);
                        cx.call(&key, Effects::Effectful, |_| async { Ok("node".into()) })
                            .await?;
                        Err::<(), _>(NodeError::new(ErrorClass::Internal, "boom"))
                    }
                })
                .on_error(move |cx: NodeCx| {
                    let call = call.clone();
                    async move {
                        // The key of the node's call, and another call.
                        let key = Call::new("k", &1.into());
                        let done = cx
                            .call(&key, Effects::Effectful, |_| async move {
                                call.up();
                                Ok("handler".into())
                            })
                            .await?;
                        pause().await;
                        Ok::<_, NodeError>(log(done.as_str().unwrap_or_default()))
                    }
                });
        })
    };
    let checkpointer = MemoryCheckpointer::new();
    let scene = Scene::over(build(), Arc::new(checkpointer.clone()));
    assert!(poll_some(scene.run(nothing(), RunOptions::default()), 2).is_none());
    assert_eq!((nodes.get(), calls.get()), (1, 1));
    let scene = Scene::over(build(), Arc::new(checkpointer));
    assert_eq!(shown(&scene, Input::Continue), r#"done ["handler"] next"#);
    assert_eq!((nodes.get(), calls.get()), (1, 1));
}

#[test]
fn a_handled_task_counts_as_finished_beside_a_sibling_that_fails() {
    let scene = Scene::new(graph(|graph| {
        graph.node("a", boom()).on_error(notes());
        let tries = Count::default();
        graph.node("b", move |_: NodeCx| {
            let first = tries.up() == 1;
            async move {
                match first {
                    true => Err(NodeError::new(ErrorClass::Internal, "b broke")),
                    false => Ok(log("b")),
                }
            }
        });
        graph.edge(START, "b");
    }));
    assert_eq!(
        shown(&scene, nothing()),
        r#"failed ["a#handler after a Internal: boom"] next b (node `b` failed: b broke)"#
    );
    scene.invoke(Input::Continue).unwrap();
    insta::assert_snapshot!(scene.transcript());
}

#[test]
fn each_dispatch_has_a_handler_of_its_own() {
    let done = check(|graph| {
        graph.node("a", |_: NodeCx| async {
            let goto = (0..3).map(|n| Target::dispatch("each", n)).collect();
            Ok::<_, NodeError>(Command {
                goto,
                ..Command::default()
            })
        });
        graph
            .node("each", |cx: NodeCx| async move {
                match cx.dispatched().and_then(Value::as_i64) {
                    Some(1) => Err(NodeError::new(ErrorClass::Internal, "one")),
                    n => Ok(log(&n.unwrap_or_default().to_string())),
                }
            })
            .on_error(|cx: NodeCx| async move {
                let input = cx.dispatched().unwrap();
                let error = cx.handled_error().unwrap();
                Ok::<_, NodeError>(log(&format!("{input} {}", error.message())))
            });
    });
    assert_eq!(done, r#"done ["n","0","1 one","2"] next"#);
}

#[test]
fn a_failing_child_is_handled_where_it_stands() {
    let mut child = Graph::builder("child");
    child.channel("log", append::<String>());
    child.node("inner", boom());
    child.edge(START, "inner");
    let child = child.build().unwrap();
    let done = check(|graph| {
        graph.node("a", Subgraph::new(child)).on_error(notes());
    });
    assert_eq!(done, r#"done ["a#handler after a Internal: boom"] next"#);
}

#[test]
fn defaults_are_for_nodes_that_say_nothing_and_never_handle_handlers() {
    let tries = Count::default();
    let defaults = |tries: &Count| {
        let tries = tries.clone();
        NodeDefaults::new()
            .retry(twice(ErrorClass::Internal))
            .on_error(move |_: NodeCx| {
                tries.up();
                async { Err::<(), _>(NodeError::new(ErrorClass::Internal, "default broke")) }
            })
    };
    // The retries of the graph are for handlers too.
    let failed = check(|graph| {
        graph.node("a", boom());
        graph.set_node_defaults(defaults(&tries));
    });
    assert_eq!(
        failed,
        "failed [] next a (node `a#handler` failed: default broke)"
    );
    assert_eq!(tries.get(), 2);
    let own = check(|graph| {
        graph.set_node_defaults(defaults(&tries));
        graph.node("a", boom()).on_error(notes());
    });
    assert_eq!(own, r#"done ["a#handler after a Internal: boom"] next"#);
    assert_eq!(tries.get(), 2);
}

#[test]
fn the_first_policy_for_an_error_decides_and_all_count_the_same_attempts() {
    let classes = [
        ErrorClass::Transport,
        ErrorClass::RateLimited,
        ErrorClass::Transport,
        ErrorClass::RateLimited,
    ];
    let policy = |max_attempts, millis, on: &[ErrorClass]| RetryPolicy {
        max_attempts,
        initial: Duration::from_millis(millis),
        factor: 1.0,
        jitter: false,
        on: on.to_vec(),
        ..RetryPolicy::default()
    };
    let check = |policies: Vec<RetryPolicy>| {
        let tries = Count::default();
        let node = tries.clone();
        let mut graph = Graph::builder("g");
        let mut options = graph.node("a", move |_: NodeCx| {
            let class = classes[usize::try_from(node.up() - 1).unwrap() % 4];
            async move { Err::<(), _>(NodeError::new(class, "x")) }
        });
        for policy in policies {
            options = options.retry(policy);
        }
        graph.edge(START, "a");
        let scene = Scene::new(graph.build().unwrap());
        let (outcome, now) = block_on(async {
            let outcome = scene.run(nothing(), RunOptions::default()).await.unwrap();
            (outcome, scene.world.now().0)
        });
        assert!(matches!(outcome.exit, Exit::Failed { .. }));
        format!("{} attempts in {now} ms", tries.get())
    };
    let (transport, limited) = (ErrorClass::Transport, ErrorClass::RateLimited);
    assert_eq!(check(vec![]), "1 attempts in 0 ms");
    let both = vec![policy(9, 10, &[transport]), policy(4, 100, &[limited])];
    // Waits of 10, 100 and 10 ms; the fourth attempt is the last for the second policy.
    assert_eq!(check(both), "4 attempts in 120 ms");
    let first = vec![
        policy(2, 10, &[transport, limited]),
        policy(9, 100, &[limited]),
    ];
    assert_eq!(check(first), "2 attempts in 10 ms");
}

#[test]
fn limits_of_no_time_are_no_limits() {
    let mut graph = Graph::builder("g");
    graph
        .node("a", boom())
        .timeout(Duration::ZERO)
        .idle_timeout(Duration::ZERO)
        .on_error(ErrorHandler::new(notes()).timeout(Duration::ZERO));
    graph.edge(START, "a");
    insta::assert_snapshot!(graph.build().unwrap_err());
}

#[test]
fn a_way_that_only_a_handler_takes_can_be_drawn() {
    let build = |drawn: bool| {
        let mut graph = Graph::builder("g");
        let node = graph.node("a", boom()).on_error(notes());
        if drawn {
            node.goes_to(["rescue"]);
        }
        graph.node("rescue", writes("rescue"));
        graph.edge(START, "a");
        graph.build().unwrap()
    };
    let rescue = Finding::Unreachable {
        node: "rescue".into(),
    };
    assert_eq!(build(false).findings(), [rescue]);
    assert_eq!(build(true).findings(), []);
}

#[test]
fn new_input_leaves_an_open_handler_behind() {
    let scene = Scene::new(graph(|graph| {
        let tries = Count::default();
        graph
            .node("a", move |_: NodeCx| {
                let first = tries.up() == 1;
                async move {
                    match first {
                        true => Err(NodeError::new(ErrorClass::Internal, "boom")),
                        false => Ok(log("a")),
                    }
                }
            })
            .on_error(boom());
    }));
    assert_eq!(
        shown(&scene, nothing()),
        "failed [] next a (node `a#handler` failed: boom)"
    );
    assert_eq!(shown(&scene, nothing()), r#"done ["a","n"] next"#);
    assert_eq!(scene.history().len(), 6);
}

#[test]
fn a_handler_that_hangs_is_broken_off() {
    let hangs = |_: NodeCx| async {
        std::future::pending::<()>().await;
        Ok::<_, NodeError>(())
    };
    let failed = |handler: ErrorHandler| {
        check(|graph| {
            graph.node("a", boom()).on_error(handler);
        })
    };
    let handler = ErrorHandler::new(hangs);
    assert_eq!(
        failed(handler.clone().timeout(Duration::from_millis(20))),
        "failed [] next a (node `a#handler` took longer than 20 ms)"
    );
    assert_eq!(
        failed(handler.idle_timeout(Duration::from_millis(20))),
        "failed [] next a (node `a#handler` showed no progress for 20 ms, which is its idle timeout)"
    );
}

#[test]
fn a_handler_may_send_its_command_to_the_parent() {
    let climbs = |cx: NodeCx| async move {
        Ok::<_, NodeError>(Command {
            scope: GraphScope::Parent,
            ..Command::goto("n").update(log(&cx.path()))
        })
    };
    let mut child = Graph::builder("child");
    child.channel("log", append::<String>());
    child.node("inner", boom()).on_error(climbs);
    child.edge(START, "inner");
    let child = child.build().unwrap();
    let done = check(|graph| {
        graph.node("a", Subgraph::new(child));
    });
    assert_eq!(done, r#"done ["a/inner#handler","n"] next"#);
}
