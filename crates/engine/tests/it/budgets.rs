//! What a run may spend, and how it goes on with more.

use crate::scene::{Count, Scene, block_on, nothing};
use std::sync::Arc;
use std::time::Duration;
use tine_engine::channel::append;
use tine_engine::checkpoint::Scope;
use tine_engine::run::{Call, Effects, Subgraph, UpdateAs};
use tine_engine::{
    Budget, Checkpointer, ErrorClass, Graph, GraphBuilder, Input, MemoryCheckpointer, NodeCx,
    NodeError, RetryPolicy, RunOptions, START, Spend, Update, Value, World,
};

/// A node that reserves `most`, uses `used`, and writes what the run had spent before it.
fn pays(
    most: u64,
    used: u64,
) -> impl Fn(NodeCx) -> futures_util::future::BoxFuture<'static, Result<Update, NodeError>>
+ Clone
+ Send
+ Sync
+ 'static {
    move |cx: NodeCx| {
        Box::pin(async move {
            let before = cx.spent().tokens;
            let reservation = cx.reserve(Spend::tokens(most))?;
            reservation.settle(Spend::tokens(used)).await?;
            Ok(Update::new().set("log", format!("{} {before}", cx.node())))
        })
    }
}

fn graph(build: impl FnOnce(&mut GraphBuilder)) -> Graph {
    let mut graph = Graph::builder("g");
    graph.channel("log", append::<String>());
    build(&mut graph);
    graph.build().unwrap()
}

/// `a` to `c`, one after the other, that each spend 10 of 15 reserved tokens.
fn chain() -> Scene {
    Scene::new(graph(|graph| {
        for name in ["a", "b", "c"] {
            graph.node(name, pays(15, 10));
        }
        graph.edge(START, "a").edge("a", "b").edge("b", "c");
    }))
}

fn tokens(limit: u64) -> RunOptions {
    let budget = Budget {
        tokens: Some(limit),
        ..Budget::default()
    };
    RunOptions {
        budget,
        ..RunOptions::default()
    }
}

/// How a run ends, what it wrote and what it has spent.
fn check(scene: &Scene, input: Input, options: RunOptions) -> String {
    let outcome = block_on(scene.run(input, options)).unwrap();
    let error = outcome.exit.error().map(|error| format!(": {error}"));
    format!(
        "{}{} {} for {}",
        outcome.exit.name(),
        error.unwrap_or_default(),
        outcome.values["log"],
        outcome.spent.tokens
    )
}

#[test]
fn a_run_may_spend_what_it_has() {
    let done = r#"done ["a 0","b 10","c 20"] for 30"#;
    assert_eq!(check(&chain(), nothing(), RunOptions::default()), done);
    // The last reservation takes 20 of 35 to 35.
    assert_eq!(check(&chain(), nothing(), tokens(35)), done);
}

#[test]
fn a_reservation_that_is_too_large_ends_the_run_and_more_goes_on() {
    let scene = chain();
    let over = "budget: the run may spend 34 tokens; 20 are used up, and node `c` asks for 15 more; it can go on with a larger budget [\"a 0\",\"b 10\"] for 20";
    assert_eq!(check(&scene, nothing(), tokens(34)), over);
    let next = scene.state().next;
    assert_eq!((&*next[0].node, next[0].error.as_ref()), ("c", None));
    // With no more it comes no further.
    assert_eq!(check(&scene, Input::Continue, tokens(34)), over);
    assert_eq!(
        check(&scene, Input::Continue, tokens(35)),
        r#"done ["a 0","b 10","c 20"] for 30"#
    );
    // What a run spent is not the next one's.
    assert_eq!(
        check(&scene, nothing(), tokens(35)),
        r#"done ["a 0","b 10","c 20","a 0","b 10","c 20"] for 30"#
    );
}

#[test]
fn what_was_used_may_be_more_than_was_set_aside() {
    let scene = || {
        Scene::new(graph(|graph| {
            graph.node("a", pays(1, 50));
            graph.node("b", pays(0, 0));
            graph.edge(START, "a").edge("a", "b");
        }))
    };
    assert_eq!(
        check(&scene(), nothing(), tokens(49)),
        "budget: the run may spend 49 tokens; 50 are used up; it can go on with a larger budget [\"a 0\"] for 50"
    );
    assert_eq!(
        check(&scene(), nothing(), tokens(50)),
        r#"done ["a 0","b 50"] for 50"#
    );
}

#[test]
fn each_budget_is_named() {
    let scene = Scene::new(graph(|graph| {
        let node = |cx: NodeCx| async move {
            let spend = Spend {
                tokens: 5,
                cost_micros: 700,
            };
            cx.reserve(spend)?.settle(spend).await?;
            Ok::<_, NodeError>(())
        };
        graph.node("a", node);
        graph.edge(START, "a");
    }));
    let options = RunOptions {
        budget: Budget {
            tokens: Some(5),
            cost_micros: Some(699),
            wall: None,
        },
        ..RunOptions::default()
    };
    insta::assert_snapshot!(check(&scene, nothing(), options), @"budget: the run may spend 699 millionths; 0 are used up, and node `a` asks for 700 more; it can go on with a larger budget [] for 0");
}

#[test]
fn tasks_side_by_side_do_not_spend_the_same_twice() {
    let slow = |cx: NodeCx| async move {
        let reservation = cx.reserve(Spend::tokens(60))?;
        cx.world().sleep(Duration::from_millis(50)).await;
        reservation.settle(Spend::tokens(30)).await?;
        Ok::<_, NodeError>(Update::new().set("log", cx.node().to_string()))
    };
    let scene = Scene::new(graph(|graph| {
        graph.node("a", slow);
        graph.node("b", slow);
        graph.edge(START, "a").edge(START, "b");
    }));
    // What `a` set aside is not there for `b`, and what `a` did is kept.
    assert_eq!(
        check(&scene, nothing(), tokens(100)),
        "budget: the run may spend 100 tokens; 60 are used up, and node `b` asks for 60 more; it can go on with a larger budget [\"a\"] for 30"
    );
    assert_eq!(
        check(&scene, Input::Continue, tokens(100)),
        r#"done ["a","b"] for 60"#
    );
}

#[test]
fn what_failed_tasks_spent_is_not_forgotten() {
    let tries = Count::default();
    let scene = Scene::new(graph(|graph| {
        let node = move |cx: NodeCx| {
            let last = tries.up() == 3;
            async move {
                let reservation = cx.reserve(Spend::tokens(10))?;
                reservation.settle(Spend::tokens(7)).await?;
                match last {
                    true => Ok(()),
                    false => Err(NodeError::new(ErrorClass::Transport, "broke off")),
                }
            }
        };
        let retry = RetryPolicy {
            max_attempts: 2,
            ..RetryPolicy::default()
        };
        graph.node("a", node).retry(retry);
        graph.edge(START, "a");
    }));
    assert_eq!(
        check(&scene, nothing(), RunOptions::default()),
        "failed: node `a` failed: broke off [] for 14"
    );
    assert_eq!(
        check(&scene, Input::Continue, RunOptions::default()),
        "done [] for 21"
    );
}

#[test]
fn a_dropped_reservation_counts_in_full_and_a_released_one_not_at_all() {
    let scene = Scene::new(graph(|graph| {
        let hangs = |cx: NodeCx| async move {
            cx.reserve(Spend::tokens(100))?.release();
            let _kept = cx.reserve(Spend::tokens(40))?;
            std::future::pending::<()>().await;
            Ok::<_, NodeError>(())
        };
        graph.node("a", hangs).timeout(Duration::from_millis(10));
        graph.edge(START, "a");
    }));
    let failed = "failed: node `a` took longer than 10 ms [] for";
    assert_eq!(
        check(&scene, nothing(), tokens(100)),
        format!("{failed} 40")
    );
    // It is stored, so that going on counts it too.
    assert_eq!(
        check(&scene, Input::Continue, tokens(150)),
        format!("{failed} 80")
    );
}

#[test]
fn a_handler_pays_like_its_node() {
    let tries = Count::default();
    let scene = Scene::new(graph(|graph| {
        let node = |cx: NodeCx| async move {
            cx.reserve(Spend::tokens(5))?
                .settle(Spend::tokens(5))
                .await?;
            Err::<(), _>(NodeError::new(ErrorClass::Internal, "boom"))
        };
        let handler = move |cx: NodeCx| {
            let first = tries.up() == 1;
            async move {
                cx.reserve(Spend::tokens(6))?
                    .settle(Spend::tokens(6))
                    .await?;
                match first {
                    true => Err(NodeError::new(ErrorClass::Internal, "handler broke")),
                    false => Ok(()),
                }
            }
        };
        graph.node("a", node).on_error(handler);
        graph.node("b", pays(0, 0));
        graph.edge(START, "a").edge(START, "b");
    }));
    assert_eq!(
        check(&scene, nothing(), RunOptions::default()),
        "failed: node `a#handler` failed: handler broke [\"b 11\"] for 11"
    );
    assert_eq!(
        check(&scene, Input::Continue, RunOptions::default()),
        r#"done ["b 11"] for 17"#
    );
    // And so the account of the thread says.
    assert_eq!(
        check(&scene, Input::Continue, RunOptions::default()),
        r#"done ["b 11"] for 17"#
    );
}

#[test]
fn children_spend_what_the_root_has() {
    let child = || {
        graph(|graph| {
            graph.node("x", pays(15, 10));
            graph.node("y", pays(15, 10));
            graph.edge(START, "x").edge("x", "y");
        })
    };
    let scene = Scene::new(graph(|graph| {
        graph.node("a", pays(15, 10));
        graph.node("child", Subgraph::new(child()));
        graph.edge(START, "a").edge("a", "child");
    }));
    assert_eq!(
        check(&scene, nothing(), tokens(30)),
        "budget: the run may spend 30 tokens; 20 are used up, and node `child/y` asks for 15 more; it can go on with a larger budget [\"a 0\"] for 20"
    );
    // The child goes on where it was, and knows what was spent before.
    assert_eq!(
        check(&scene, Input::Continue, tokens(35)),
        r#"done ["a 0","a 0","x 10","y 20"] for 30"#
    );
}

#[test]
fn children_of_children_spend_it_too_and_what_they_spent_is_not_forgotten() {
    let tries = Count::default();
    let mut inner = graph(|graph| {
        let node = move |cx: NodeCx| {
            let first = tries.up() == 1;
            async move {
                cx.reserve(Spend::tokens(9))?
                    .settle(Spend::tokens(9))
                    .await?;
                match first {
                    true => Err(NodeError::new(ErrorClass::Internal, "boom")),
                    false => Ok(()),
                }
            }
        };
        graph.node("x", node);
        graph.edge(START, "x");
    });
    for _ in 0..2 {
        inner = graph(|graph| {
            graph.node("child", Subgraph::new(inner));
            graph.edge(START, "child");
        });
    }
    let scene = Scene::new(inner);
    assert_eq!(
        check(&scene, nothing(), RunOptions::default()),
        "failed: node `child/child/x` failed: boom [] for 9"
    );
    assert_eq!(
        check(&scene, Input::Continue, RunOptions::default()),
        "done [] for 18"
    );
}

#[test]
fn the_order_of_finishing_changes_nothing_that_is_stored() {
    let stored = |waits: [u64; 3]| {
        let graph = graph(|graph| {
            for (at, wait) in waits.into_iter().enumerate() {
                let name = ["a", "b", "c"][at];
                let node = move |cx: NodeCx| async move {
                    let used = Spend::tokens(10 + at as u64);
                    let reservation = cx.reserve(Spend::tokens(20))?;
                    cx.world().sleep(Duration::from_millis(wait)).await;
                    reservation.settle(used).await?;
                    match at {
                        1 => Err(NodeError::new(ErrorClass::Internal, "boom")),
                        _ => Ok(Update::new().set("log", cx.node().to_string())),
                    }
                };
                let handler = |cx: NodeCx| async move {
                    cx.reserve(Spend::tokens(1))?
                        .settle(Spend::tokens(1))
                        .await?;
                    Ok::<_, NodeError>(Update::new().set("log", cx.node().to_string()))
                };
                graph.node(name, node).on_error(handler);
                graph.edge(START, name);
            }
        });
        let checkpointer = MemoryCheckpointer::new();
        let scene = Scene::over(graph, Arc::new(checkpointer.clone()));
        let outcome = block_on(scene.run(nothing(), tokens(100))).unwrap();
        assert_eq!(outcome.exit.name(), "done");
        let scope = Scope::root(crate::scene::thread());
        let stored = block_on(checkpointer.load(&scope, None)).unwrap().unwrap();
        Value::from(stored.values).to_canonical()
    };
    let expected = r##"{"__account":{"tokens":34},"log":["a","b#handler","c"]}"##;
    for waits in [[1, 2, 3], [3, 2, 1], [2, 3, 1], [1, 1, 1], [2, 1, 2]] {
        assert_eq!(stored(waits), expected, "{waits:?}");
    }
}

#[test]
fn a_recorded_call_is_not_paid_for_again() {
    let asks = |cx: NodeCx| async move {
        let call = Call::new("model", &Value::Null);
        let work = |cx: NodeCx| async move {
            cx.reserve(Spend::tokens(9))?
                .settle(Spend::tokens(8))
                .await?;
            Ok("said".into())
        };
        cx.call(&call, Effects::ReadOnly, work).await?;
        cx.interrupt("go on?")?;
        Ok::<_, NodeError>(())
    };
    let scene = Scene::new(graph(|graph| {
        graph.node("a", asks);
        graph.edge(START, "a");
    }));
    assert_eq!(check(&scene, nothing(), tokens(10)), "interrupted [] for 8");
    assert_eq!(
        check(&scene, crate::scene::answer("yes"), tokens(10)),
        "done [] for 8"
    );
}

#[test]
fn a_node_that_swallows_the_error_still_comes_no_further() {
    let scene = Scene::new(graph(|graph| {
        let node = |cx: NodeCx| async move {
            let text = match cx.reserve(Spend::tokens(99)) {
                Ok(reservation) => {
                    reservation.release();
                    "fine".to_owned()
                }
                Err(error) => format!("stops: {}", error.stops_run()),
            };
            Ok::<_, NodeError>(Update::new().set("log", text))
        };
        graph.node("a", node);
        graph.edge(START, "a");
    }));
    assert_eq!(
        check(&scene, nothing(), tokens(9)),
        r#"done ["stops: true"] for 0"#
    );
}

#[test]
fn amounts_that_are_too_large_stay_the_largest() {
    let scene = Scene::new(graph(|graph| {
        graph.node("a", pays(u64::MAX, u64::MAX));
        graph.node("b", pays(u64::MAX, u64::MAX));
        graph.edge(START, "a").edge("a", "b");
    }));
    assert_eq!(
        check(&scene, nothing(), RunOptions::default()),
        format!(r#"done ["a 0","b {max}"] for {max}"#, max = u64::MAX)
    );
    assert_eq!(
        check(&scene, Input::Continue, RunOptions::default()),
        format!(r#"done ["a 0","b {max}"] for {max}"#, max = u64::MAX)
    );
}

/// `a` to `c`, one after the other, that take 100 ms each.
fn slow() -> Scene {
    Scene::new(graph(|graph| {
        for name in ["a", "b", "c"] {
            graph.node(name, move |cx: NodeCx| async move {
                cx.world().sleep(Duration::from_millis(100)).await;
                Ok::<_, NodeError>(Update::new().set("log", name))
            });
        }
        graph.edge(START, "a").edge("a", "b").edge("b", "c");
    }))
}

fn wall(millis: u64) -> RunOptions {
    RunOptions {
        budget: Budget {
            wall: Some(Duration::from_millis(millis)),
            ..Budget::default()
        },
        ..RunOptions::default()
    }
}

#[test]
fn time_counts_from_the_beginning_of_the_run() {
    let done = r#"done ["a","b","c"] for 0"#;
    assert_eq!(check(&slow(), nothing(), wall(301)), done);
    let scene = slow();
    // In the middle of a step, whose task has not failed.
    assert_eq!(
        check(&scene, nothing(), wall(150)),
        "budget: the run may take 150 ms; 150 are used up; it can go on with a larger budget [\"a\"] for 0"
    );
    assert_eq!(scene.world.now().0, 150);
    let next = scene.state().next;
    assert_eq!((&*next[0].node, next[0].error.as_ref()), ("b", None));
    assert_eq!(
        check(&scene, Input::Continue, wall(150)),
        "budget: the run may take 150 ms; 150 are used up; it can go on with a larger budget [\"a\"] for 0"
    );
    assert_eq!(check(&scene, Input::Continue, wall(1000)), done);
    // A new run begins anew.
    assert_eq!(
        check(&scene, nothing(), wall(301)),
        r#"done ["a","b","c","a","b","c"] for 0"#
    );
}

#[test]
fn a_run_that_was_not_bounded_finds_out_when_it_began() {
    let scene = slow();
    let one = RunOptions {
        max_steps: Some(1),
        ..RunOptions::default()
    };
    // An earlier run of the thread does not count.
    block_on(scene.run(nothing(), RunOptions::default())).unwrap();
    assert_eq!(scene.world.now().0, 300);
    block_on(scene.run(nothing(), one.clone())).unwrap();
    block_on(scene.run(Input::Continue, one)).unwrap();
    assert_eq!(scene.world.now().0, 500);
    assert_eq!(
        check(&scene, Input::Continue, wall(250)),
        "budget: the run may take 250 ms; 250 are used up; it can go on with a larger budget [\"a\",\"b\",\"c\",\"a\",\"b\"] for 0"
    );
    assert_eq!(scene.world.now().0, 550);
}

#[test]
fn who_spends_nothing_stores_nothing() {
    let keys = |graph: Graph, options: RunOptions| {
        let checkpointer = MemoryCheckpointer::new();
        let scene = Scene::over(graph, Arc::new(checkpointer.clone()));
        block_on(scene.run(nothing(), options)).unwrap();
        let scope = Scope::root(crate::scene::thread());
        let stored = block_on(checkpointer.load(&scope, None)).unwrap().unwrap();
        let values = stored.values.iter();
        let values = values.map(|(key, value)| format!("{key} {value}"));
        values.collect::<Vec<String>>().join(", ")
    };
    let spends = |amount| {
        graph(|graph| {
            graph.node("a", pays(amount, amount));
            graph.edge(START, "a");
        })
    };
    let log = r#"log ["a 0"]"#;
    assert_eq!(keys(spends(0), RunOptions::default()), log);
    assert_eq!(keys(spends(0), tokens(5)), log);
    assert_eq!(
        keys(spends(7), RunOptions::default()),
        format!(r#"__account {{"tokens":7}}, {log}"#)
    );
    assert_eq!(
        keys(spends(0), wall(100)),
        format!(r#"__account {{"began":0}}, {log}"#)
    );
}

#[test]
fn neither_an_update_nor_a_fork_forgets_what_was_spent() {
    let scene = Scene::new(graph(|graph| {
        graph.node("pay", |cx: NodeCx| async move {
            let reservation = cx.reserve(Spend::tokens(10))?;
            reservation.settle(Spend::tokens(10)).await?;
            cx.interrupt("well?")?;
            Ok::<_, NodeError>(Update::new())
        });
        graph.edge(START, "pay");
    }));
    let spent = |with: Input, options: RunOptions| {
        let outcome = block_on(scene.run(with, options)).unwrap();
        assert_eq!(outcome.exit.name(), "interrupted");
        outcome.spent.tokens
    };
    assert_eq!(spent(nothing(), RunOptions::default()), 10);
    let thread = crate::scene::thread();
    block_on(scene.runner.update(&thread, START, Update::new())).unwrap();
    assert_eq!(spent(Input::Continue, RunOptions::default()), 20);
    let again = RunOptions {
        at: Some(scene.state().id),
        ..RunOptions::default()
    };
    assert_eq!(spent(Input::Continue, again), 30);
    assert_eq!(spent(Input::Continue, RunOptions::default()), 40);
}

/// Spends once, and fails the first time; what was spent by the run and the thread.
fn pays_and_fails_once() -> (Scene, impl Fn() -> [(u64, u64); 2]) {
    let store = MemoryCheckpointer::new();
    let node = {
        let count = Count::default();
        move |cx: NodeCx| {
            let first = count.up() == 1;
            async move {
                let paid = Spend {
                    tokens: 3,
                    cost_micros: 50,
                };
                cx.reserve(paid)?.settle(paid).await?;
                match first {
                    true => Err(NodeError::new(ErrorClass::Internal, "later")),
                    false => Ok(()),
                }
            }
        }
    };
    let scene = Scene::over(
        graph(|graph| {
            graph.node("a", node);
            graph.edge(START, "a");
        }),
        Arc::new(store.clone()),
    );
    let spent = move || {
        let stored = block_on(store.load(&Scope::root(crate::scene::thread()), None));
        let spent = stored.unwrap().unwrap().spent();
        let sides = [spent.run, spent.thread];
        sides.map(|side| (side.tokens, side.cost_micros))
    };
    (scene, spent)
}

#[test]
fn new_input_does_not_forget_what_the_step_it_replaces_has_spent() {
    let (scene, spent) = pays_and_fails_once();
    let run = |input| block_on(scene.run(input, RunOptions::default())).unwrap();
    run(nothing());
    assert_eq!(spent(), [(3, 50), (3, 50)]);
    run(nothing());
    assert_eq!(spent(), [(3, 50), (6, 100)]);
    let (scene, spent) = pays_and_fails_once();
    block_on(scene.run(nothing(), RunOptions::default())).unwrap();
    let thread = crate::scene::thread();
    block_on(scene.runner.update(&thread, UpdateAs::Input, Update::new())).unwrap();
    assert_eq!(spent(), [(0, 0), (3, 50)]);
}

#[test]
fn a_thread_knows_what_all_its_runs_have_spent() {
    let (scene, spent) = pays_and_fails_once();
    let run = |input| block_on(scene.run(input, RunOptions::default())).unwrap();
    // What an open step has spent counts, and counts once.
    run(nothing());
    assert_eq!(spent(), [(3, 50), (3, 50)]);
    run(Input::Continue);
    assert_eq!(spent(), [(6, 100), (6, 100)]);
    for run_before in 2..4 {
        let outcome = run(nothing());
        assert_eq!(outcome.spent.tokens, 3, "of this run alone");
        assert_eq!(
            spent(),
            [(3, 50), (3 * run_before + 3, 50 * run_before + 50)]
        );
    }
}
