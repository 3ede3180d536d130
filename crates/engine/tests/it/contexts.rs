//! Contexts that outlive the attempt or the run they were made for.

use crate::scene::{Scene, block_on, nothing};
use std::sync::{Arc, Mutex};
use tine_engine::channel::last;
use tine_engine::run::Call;
use tine_engine::{ErrorClass, Graph, NodeCx, NodeError, RetryPolicy, START, Value};

/// A node whose contexts are all kept, and that fails in its first attempt.
fn keeping(
    work: impl Fn(&NodeCx, &[NodeCx]) + Send + Sync + 'static,
) -> (Scene, Arc<Mutex<Vec<NodeCx>>>) {
    let kept: Arc<Mutex<Vec<NodeCx>>> = Arc::default();
    let keeps = kept.clone();
    let mut graph = Graph::builder("keeping");
    graph.channel("x", last::<Value>());
    let node = move |cx: NodeCx| {
        let mut kept = keeps.lock().unwrap();
        work(&cx, &kept);
        kept.push(cx.clone());
        async move {
            if cx.attempt() == 1 {
                return Err(NodeError::new(ErrorClass::Transport, "broke off"));
            }
            Ok(())
        }
    };
    let policy = RetryPolicy {
        max_attempts: 2,
        ..RetryPolicy::default()
    };
    graph.node("n", node).retry(policy);
    graph.edge(START, "n");
    (Scene::new(graph.build().unwrap()), kept)
}

#[test]
fn an_earlier_attempt_does_not_disturb_a_later_one() {
    let ids: Arc<Mutex<Vec<[String; 2]>>> = Arc::default();
    let made = ids.clone();
    let (scene, _kept) = keeping(move |cx, earlier| {
        let first = cx.new_id();
        for earlier in earlier {
            drop(earlier.new_id());
        }
        made.lock().unwrap().push([first, cx.new_id()]);
    });
    scene.invoke(nothing()).unwrap();
    let ids = ids.lock().unwrap();
    assert_eq!(ids.len(), 2);
    assert_eq!(ids[0], ids[1]);
}

#[test]
fn a_kept_context_does_not_hold_the_thread() {
    let (scene, kept) = keeping(|_, _| ());
    scene.invoke(nothing()).unwrap();
    assert_eq!(kept.lock().unwrap().len(), 2);
    assert_eq!(scene.invoke(nothing()).unwrap().exit.name(), "done");
}

#[test]
fn a_kept_context_begins_no_effect_once_its_run_is_over() {
    let (scene, kept) = keeping(|_, _| ());
    scene.invoke(nothing()).unwrap();
    let cx = kept.lock().unwrap()[1].clone();
    let refused = block_on(cx.start_calls(&[Call::new("pay", &Value::Null)])).unwrap_err();
    let said = refused.to_string();
    assert!(said.contains("nothing more is written here"), "{said}");
}
