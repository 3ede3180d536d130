//! Nodes whose results are kept by what they were given.

use crate::scene::{Count, Scene, block_on, input, nothing};
use async_trait::async_trait;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tine_engine::cache::{CacheKey, CacheScope, CachedResult};
use tine_engine::channel::{append, last, messages};
use tine_engine::run::Subgraph;
use tine_engine::{
    CachePolicy, Command, ErrorClass, Exit, Graph, GraphBuilder, Input, Keep, MemoryCheckpointer,
    MemoryNodeCache, Message, NodeCache, NodeCx, NodeDefaults, NodeError, RunOptions, START,
    SimWorld, StoreError, Target, ThreadKey, Timestamp, Update, Value, World,
};

/// A graph whose node `a` reads `k` and counts, and what runs it on many threads.
struct Kept {
    cache: MemoryNodeCache,
    runs: Count,
    graph: Graph,
    world: Arc<SimWorld>,
}

impl Kept {
    fn new(policy: CachePolicy, build: impl FnOnce(&mut GraphBuilder)) -> Self {
        let runs = Count::default();
        let counts = runs.clone();
        let mut graph = Graph::builder("g");
        graph.channel("k", last::<Value>());
        graph.channel("log", append::<String>());
        graph
            .node("a", move |cx: NodeCx| {
                let run = counts.up();
                async move {
                    let k = cx.value("k").unwrap_or_default();
                    Ok::<_, NodeError>(Update::new().set("log", format!("{k} {run}")))
                }
            })
            .reads(["k"])
            .cache(policy);
        graph.edge(START, "a");
        build(&mut graph);
        Self {
            cache: MemoryNodeCache::new(),
            runs,
            graph: graph.build().unwrap(),
            world: Arc::new(SimWorld::new(0)),
        }
    }

    fn runner(&self) -> tine_engine::Runner {
        tine_engine::Runner::new(self.graph.clone(), self.world.clone())
            .with_checkpointer(Arc::new(MemoryCheckpointer::new()))
            .with_cache(Arc::new(self.cache.clone()))
    }

    /// The log of a run of its own.
    fn run(&self, key: &ThreadKey, input: serde_json::Value) -> String {
        let input = crate::scene::input(input);
        let outcome = block_on(self.runner().invoke(key, input, RunOptions::default()));
        outcome.unwrap().values["log"].to_canonical()
    }

    fn with(&self, k: impl Into<serde_json::Value>) -> String {
        self.run(&ThreadKey::local("t"), json!({"k": k.into()}))
    }
}

#[test]
fn the_same_input_gives_the_same_result() {
    let kept = Kept::new(CachePolicy::new(), |_| ());
    assert_eq!(kept.with("p"), r#"["\"p\" 1"]"#);
    assert_eq!(kept.with("p"), r#"["\"p\" 1"]"#);
    assert_eq!(kept.with("q"), r#"["\"q\" 2"]"#);
    // What the node does not read makes no difference.
    let run = kept.run(&ThreadKey::local("t"), json!({"k": "p", "log": ["more"]}));
    assert_eq!(run, r#"["more","\"p\" 1"]"#);
    assert_eq!(kept.runs.get(), 2);
}

#[test]
fn tenants_and_graphs_have_results_of_their_own() {
    let kept = Kept::new(CachePolicy::new(), |_| ());
    let of = |tenant: &str| ThreadKey {
        tenant: tenant.into(),
        thread: "t".into(),
    };
    assert_eq!(kept.run(&of("one"), json!({"k": 1})), r#"["1 1"]"#);
    assert_eq!(kept.run(&of("two"), json!({"k": 1})), r#"["1 2"]"#);
    assert_eq!(kept.run(&of("one"), json!({"k": 1})), r#"["1 1"]"#);
    let clear = |scope: CacheScope| block_on(kept.cache.clear(&scope)).unwrap();
    clear(CacheScope::node("other", "a"));
    clear(CacheScope::node("g", "other"));
    clear(CacheScope::node("g", "a").of_tenant("two"));
    assert_eq!(kept.run(&of("one"), json!({"k": 1})), r#"["1 1"]"#);
    assert_eq!(kept.run(&of("two"), json!({"k": 1})), r#"["1 3"]"#);
    clear(CacheScope::node("g", "a"));
    assert_eq!(kept.run(&of("one"), json!({"k": 1})), r#"["1 4"]"#);
    clear(CacheScope::all());
    assert_eq!(kept.run(&of("one"), json!({"k": 1})), r#"["1 5"]"#);
}

#[test]
fn a_result_is_forgotten_when_its_time_is_over() {
    let kept = Kept::new(CachePolicy::new().ttl(Duration::from_millis(100)), |_| ());
    let wait = |millis| {
        let world = kept.world.clone();
        block_on(async {
            let mut sleep = world.sleep(Duration::from_millis(millis));
            std::future::poll_fn(|cx| {
                assert!(sleep.as_mut().poll(cx).is_pending());
                std::task::Poll::Ready(world.advance())
            })
            .await
        })
    };
    assert_eq!(kept.with(1), r#"["1 1"]"#);
    wait(99);
    assert_eq!(kept.with(1), r#"["1 1"]"#);
    wait(1);
    assert_eq!(kept.with(1), r#"["1 2"]"#);
}

#[test]
fn a_key_says_what_a_result_depends_on() {
    let parity = |input: &Value| {
        let k = input.get("k").and_then(Value::as_i64);
        Value::from(k.unwrap_or_default() % 2)
    };
    let kept = Kept::new(CachePolicy::new().key(parity), |_| ());
    assert_eq!(kept.with(1), r#"["1 1"]"#);
    assert_eq!(kept.with(2), r#"["2 2"]"#);
    assert_eq!(kept.with(3), r#"["1 1"]"#);
    let broken = CachePolicy::new().key(|_: &Value| panic!("no key"));
    let scene = Scene::new(Kept::new(broken, |_| ()).graph);
    // Without a cache nobody asks for a key.
    assert_eq!(scene.invoke(nothing()).unwrap().exit, Exit::Done);
    let kept = Kept::new(CachePolicy::new().key(|_: &Value| panic!("no key")), |_| ());
    let key = ThreadKey::local("t");
    let outcome = block_on(kept.runner().invoke(&key, nothing(), RunOptions::default()));
    insta::assert_snapshot!(outcome.unwrap().exit.error().unwrap(), @"node `a` failed: panicked: no key");
}

#[test]
fn without_a_cache_a_node_just_runs() {
    let kept = Kept::new(CachePolicy::new(), |_| ());
    let scene = Scene::new(kept.graph.clone());
    scene.invoke(nothing()).unwrap();
    scene.invoke(nothing()).unwrap();
    assert_eq!(kept.runs.get(), 2);
}

/// How often `node` runs in two runs of the same input.
fn runs_of(build: impl FnOnce(&mut GraphBuilder, Count)) -> (u64, Vec<String>) {
    let runs = Count::default();
    let mut graph = Graph::builder("g");
    graph.channel("log", append::<String>());
    build(&mut graph, runs.clone());
    graph.edge(START, "a");
    let mut scene = Scene::new(graph.build().unwrap());
    scene.runner = scene.runner.with_cache(Arc::new(MemoryNodeCache::new()));
    // A thread of its own each, for the log is part of the input.
    let ends: Vec<String> = (0..2)
        .map(|at| {
            let key = ThreadKey::local(format!("t{at}"));
            let options = RunOptions::default();
            let outcome = block_on(scene.runner.invoke(&key, nothing(), options)).unwrap();
            format!("{} {}", outcome.exit.name(), outcome.values["log"])
        })
        .collect();
    (runs.get(), ends)
}

#[test]
fn what_did_not_finish_is_not_kept() {
    let (runs, ends) = runs_of(|graph, runs| {
        let node = move |_: NodeCx| {
            let first = runs.up() == 1;
            async move {
                match first {
                    true => Err(NodeError::new(ErrorClass::Internal, "boom")),
                    false => Ok(Update::new().set("log", "fine")),
                }
            }
        };
        graph.node("a", node).cache(CachePolicy::new());
    });
    assert_eq!(
        (runs, ends),
        (
            2,
            vec!["failed []".to_owned(), r#"done ["fine"]"#.to_owned()]
        )
    );
    let (runs, ends) = runs_of(|graph, runs| {
        let node = move |_: NodeCx| {
            runs.up();
            async { Ok::<_, NodeError>(Update::new().set("log", "a")) }
        };
        graph.node("a", node).cache(CachePolicy::new());
        let routes = Count::default();
        graph.branch("a", move |_: NodeCx| {
            let first = routes.up() == 1;
            async move {
                match first {
                    true => Err(NodeError::new(ErrorClass::Internal, "which way?")),
                    false => Ok(Target::End),
                }
            }
        });
    });
    assert_eq!(
        (runs, ends),
        (2, vec!["failed []".to_owned(), r#"done ["a"]"#.to_owned()])
    );
}

#[test]
fn what_a_handler_did_is_not_kept() {
    let (runs, ends) = runs_of(|graph, runs| {
        let node = move |_: NodeCx| {
            runs.up();
            async { Err::<(), _>(NodeError::new(ErrorClass::Internal, "boom")) }
        };
        let handler = |_: NodeCx| async { Ok::<_, NodeError>(Update::new().set("log", "handled")) };
        graph
            .node("a", node)
            .cache(CachePolicy::new())
            .on_error(handler);
    });
    let handled = r#"done ["handled"]"#.to_owned();
    assert_eq!((runs, ends), (2, vec![handled.clone(), handled]));
}

#[test]
fn an_answer_is_no_input() {
    let kept = Kept::new(CachePolicy::new(), |graph| {
        graph
            .node("asks", |cx: NodeCx| async move {
                let said = cx.interrupt("q")?;
                Ok::<_, NodeError>(Update::new().set("log", said))
            })
            .reads(["k"])
            .cache(CachePolicy::new());
        graph.edge("a", "asks");
    });
    for (at, said) in ["one", "two"].into_iter().enumerate() {
        let runner = kept.runner();
        let key = ThreadKey::local(format!("t{at}"));
        let run = |input: Input| block_on(runner.invoke(&key, input, RunOptions::default()));
        let asked = run(input(json!({"k": 1}))).unwrap();
        assert_eq!(asked.exit, Exit::Interrupted);
        let done = run(crate::scene::answer(said)).unwrap();
        assert_eq!(
            done.values["log"].to_canonical(),
            format!(r#"["1 1","{said}"]"#)
        );
    }
}

#[test]
fn ways_and_dispatches_are_kept_too() {
    let (runs, ends) = runs_of(|graph, runs| {
        let node = move |_: NodeCx| {
            runs.up();
            async {
                let goto = [1, 2, 1].map(|n| Target::dispatch("each", n)).to_vec();
                Ok::<_, NodeError>(Command {
                    goto,
                    ..Command::default()
                })
            }
        };
        graph.node("a", node).cache(CachePolicy::new());
        let each = Count::default();
        let node = move |cx: NodeCx| {
            let run = each.up();
            async move {
                let n = cx.dispatched().cloned().unwrap_or_default();
                Ok::<_, NodeError>(Update::new().set("log", format!("{n} {run}")))
            }
        };
        graph
            .node("each", node)
            .reads(["log"])
            .cache(CachePolicy::new());
        let after = |_: NodeCx| async { Ok::<_, NodeError>(Update::new().set("log", "after")) };
        graph.node("after", after);
        graph.join(["a"], "after");
    });
    assert_eq!(runs, 1);
    // The third dispatch of the step is like the first, which has finished by then.
    let end = r#"done ["after","1 1","2 2","1 1"]"#.to_owned();
    assert_eq!(ends, [end.clone(), end]);
}

#[test]
fn a_child_graph_uses_the_cache_of_its_parent() {
    let (runs, ends) = runs_of(|graph, runs| {
        let mut child = Graph::builder("child");
        child.channel("log", append::<String>());
        let node = move |_: NodeCx| {
            runs.up();
            async { Ok::<_, NodeError>(Update::new().set("log", "inner")) }
        };
        child.node("inner", node);
        child.edge(START, "inner");
        child.set_node_defaults(NodeDefaults::new().cache(CachePolicy::new()));
        graph.node("a", Subgraph::new(child.build().unwrap()));
    });
    let done = r#"done ["inner"]"#.to_owned();
    assert_eq!((runs, ends), (1, vec![done.clone(), done]));
}

#[test]
fn messages_without_an_id_get_a_new_one_each_time() {
    let runs = Count::default();
    let counts = runs.clone();
    let mut graph = Graph::builder("g");
    graph.channel("messages", messages());
    let node = move |_: NodeCx| {
        counts.up();
        async {
            let message = Message::ai("hello").to_value()?;
            Ok::<_, NodeError>(Update::new().set("messages", vec![message]))
        }
    };
    let policy = CachePolicy::new().key(|_: &Value| Value::Null);
    graph.node("a", node).cache(policy);
    graph.edge(START, "a");
    let mut scene = Scene::new(graph.build().unwrap());
    scene.runner = scene.runner.with_cache(Arc::new(MemoryNodeCache::new()));
    scene.invoke(nothing()).unwrap();
    scene.invoke(nothing()).unwrap();
    let said = &scene.state().values["messages"];
    assert_eq!((runs.get(), said.as_list().unwrap().len()), (1, 2));
}

#[test]
fn what_is_never_stored_is_not_kept() {
    let (runs, _) = runs_of(|graph, runs| {
        graph.channel("secret", last::<String>().keep(Keep::Untracked));
        let node = move |_: NodeCx| {
            runs.up();
            async { Ok::<_, NodeError>(Update::new().set("secret", "s")) }
        };
        graph.node("a", node).cache(CachePolicy::new());
    });
    assert_eq!(runs, 2);
}

/// A cache that is out of order.
struct Broken {
    reads: bool,
}

#[async_trait]
impl NodeCache for Broken {
    async fn get(&self, _: &CacheKey, _: Timestamp) -> Result<Option<CachedResult>, StoreError> {
        match self.reads {
            true => Ok(None),
            false => Err(gone()),
        }
    }

    async fn put(
        &self,
        _: CacheKey,
        _: CachedResult,
        _: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        Err(gone())
    }

    async fn clear(&self, _: &CacheScope) -> Result<(), StoreError> {
        Err(gone())
    }
}

fn gone() -> StoreError {
    StoreError::Unavailable {
        place: "the cache".to_owned(),
        message: "gone".to_owned(),
    }
}

#[test]
fn a_broken_cache_is_not_silent() {
    for reads in [false, true] {
        let kept = Kept::new(CachePolicy::new(), |_| ());
        let mut scene = Scene::new(kept.graph.clone());
        scene.runner = scene.runner.with_cache(Arc::new(Broken { reads }));
        let outcome = scene.invoke(nothing()).unwrap();
        insta::allow_duplicates! {
            insta::assert_snapshot!(outcome.exit.error().unwrap(), @"the thread could not be stored or read: the cache: gone");
        }
        assert_eq!(kept.runs.get(), u64::from(reads));
    }
}

#[test]
fn a_stored_result_is_shown_as_one() {
    let kept = Kept::new(CachePolicy::new(), |_| ());
    let mut scene = Scene::new(kept.graph.clone());
    scene.runner = scene.runner.with_cache(Arc::new(kept.cache));
    scene.invoke(nothing()).unwrap();
    scene.transcript();
    scene.invoke(nothing()).unwrap();
    insta::assert_snapshot!(scene.transcript(), @r#"
    step 3
      ran    __start__
      next   a
    step 4
      ran    a
      wrote  a (stored): log <- "null 1"
      next   nothing
    done
    "#);
}
