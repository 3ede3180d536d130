//! What a subscriber of `tracing` hears of runs.

use crate::scene::{Count, Scene, answer, input, nothing};
use serde_json::json;
use std::cell::RefCell;
use std::fmt::{Debug, Write as _};
use std::sync::LazyLock;
use tine_engine::channel::{append, last};
use tine_engine::run::Subgraph;
use tine_engine::{
    ErrorClass, Graph, GraphBuilder, NodeCx, NodeError, RetryPolicy, START, Update, Value,
};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;

/// Notes everything that is opened and told on a thread, each below the span that it was in.
struct Tree;

thread_local! {
    static LINES: RefCell<Vec<Line>> = const { RefCell::new(Vec::new()) };
}

/// The one that listens, and another. They never go away, and are two: of a single one `tracing` asks the thread that
/// comes by a place first whether it may tell, and that may be the thread of a test that nobody listens to.
static DISPATCHES: LazyLock<[Dispatch; 2]> = LazyLock::new(|| {
    [
        Dispatch::new(tracing_subscriber::registry().with(Tree)),
        Dispatch::new(tracing_subscriber::registry()),
    ]
});

struct Line {
    depth: usize,
    text: String,
}

/// Where the line of a span stands.
struct At(usize);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Tree {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, cx: Context<'_, S>) {
        let span = cx.span(id).unwrap();
        let mut text = span.name().to_owned();
        attributes.record(&mut Fields(&mut text));
        let depth = span.scope().skip(1).count();
        LINES.with_borrow_mut(|lines| {
            span.extensions_mut().insert(At(lines.len()));
            lines.push(Line { depth, text });
        });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, cx: Context<'_, S>) {
        let span = cx.span(id).unwrap();
        let at = span.extensions().get::<At>().unwrap().0;
        LINES.with_borrow_mut(|lines| values.record(&mut Fields(&mut lines[at].text)));
    }

    fn on_event(&self, event: &Event<'_>, cx: Context<'_, S>) {
        let mut text = format!("{}:", event.metadata().level());
        event.record(&mut Fields(&mut text));
        let depth = cx.event_scope(event).map_or(0, Iterator::count);
        LINES.with_borrow_mut(|lines| lines.push(Line { depth, text }));
    }
}

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => write!(self.0, " {value:?}"),
            // Another in every run.
            "run" => write!(self.0, " run=[id]"),
            name => write!(self.0, " {name}={value:?}"),
        }
        .unwrap();
    }
}

/// Does something and shows what was heard meanwhile.
fn heard(work: impl FnOnce()) -> String {
    tracing::dispatcher::with_default(&DISPATCHES[0], work);
    let lines = LINES.take();
    let lines = lines
        .iter()
        .map(|line| format!("{}{}\n", "  ".repeat(line.depth), line.text));
    lines.collect()
}

fn graph(build: impl FnOnce(&mut GraphBuilder)) -> Graph {
    let mut graph = Graph::builder("g");
    graph.channel("x", append::<Value>());
    build(&mut graph);
    graph.build().unwrap()
}

fn says(word: &'static str) -> impl tine_engine::Node {
    move |_: NodeCx| async move {
        tracing::info!("inside");
        Ok::<_, NodeError>(Update::new().set("x", vec![Value::from(word)]))
    }
}

#[test]
fn a_step_is_in_its_run_and_a_task_in_its_step() {
    let scene = Scene::new(graph(|graph| {
        graph.node("one", says("secret"));
        graph.node("left", says("secret"));
        graph.node("right", says("secret"));
        graph.edge(START, "one");
        graph.edge("one", "left").edge("one", "right");
    }));
    let text = heard(|| {
        scene.invoke(input(json!({"x": ["secret"]}))).unwrap();
    });
    assert!(!text.contains("secret"), "values are not told:\n{text}");
    insta::assert_snapshot!(text, @"
    run graph=g thread=t run=[id] exit=done
      DEBUG: begins run=[id] goes_on=false
      step number=1 tasks=one
        task node=one path=one
          INFO: inside
      step number=2 tasks=left, right
        task node=left path=left
          INFO: inside
        task node=right path=right
          INFO: inside
      INFO: the run ended exit=done questions=0 tokens=0 cost_micros=0
    ");
}

#[test]
fn a_child_graph_is_in_its_task() {
    let mut child = Graph::builder("child");
    child.channel("x", append::<Value>());
    child.node("deep", says("x"));
    child.edge(START, "deep");
    let child = Subgraph::new(child.build().unwrap());
    let scene = Scene::new(graph(|graph| {
        graph.node("host", child);
        graph.edge(START, "host");
    }));
    insta::assert_snapshot!(heard(|| { scene.invoke(nothing()).unwrap(); }), @"
    run graph=g thread=t run=[id] exit=done
      DEBUG: begins run=[id] goes_on=false
      step number=1 tasks=host
        task node=host path=host
          graph graph=child
            DEBUG: begins run=[id] goes_on=false
            step number=1 tasks=deep
              task node=deep path=deep
                INFO: inside
      INFO: the run ended exit=done questions=0 tokens=0 cost_micros=0
    ");
}

#[test]
fn a_failed_attempt_is_a_warning_and_a_failed_run_an_error() {
    let calls = Count::default();
    let scene = Scene::new(graph(|graph| {
        let count = calls.clone();
        let node = graph.node("shaky", move |_: NodeCx| {
            let n = count.up();
            async move { Err::<(), _>(NodeError::new(ErrorClass::Transport, format!("no {n}"))) }
        });
        node.retry(RetryPolicy::attempts(2));
        graph.edge(START, "shaky");
    }));
    insta::assert_snapshot!(heard(|| { scene.invoke(nothing()).unwrap(); }), @"
    run graph=g thread=t run=[id] exit=failed
      DEBUG: begins run=[id] goes_on=false
      step number=1 tasks=shaky
        task node=shaky path=shaky
          WARN: failed, and is tried again class=Transport attempt=1 millis=789
          DEBUG: in its words error=no 1
          WARN: failed class=Transport attempt=2
          DEBUG: in its words error=no 2
      ERROR: the run failed code=node exit=failed
      DEBUG: in its words error=node `shaky` failed: no 2
    ");
}

#[test]
fn a_question_is_no_error_and_its_answer_goes_on_with_the_run() {
    let mut ask = Graph::builder("g");
    ask.channel("y", last::<Value>());
    ask.node("ask", |cx: NodeCx| async move {
        let answer = cx.interrupt("which?")?;
        Ok::<_, NodeError>(Update::new().set("y", answer))
    });
    ask.edge(START, "ask");
    let scene = Scene::new(ask.build().unwrap());
    let text = heard(|| {
        scene.invoke(nothing()).unwrap();
        scene.invoke(answer("this one")).unwrap();
    });
    insta::assert_snapshot!(text, @"
    run graph=g thread=t run=[id] exit=interrupted
      DEBUG: begins run=[id] goes_on=false
      step number=1 tasks=ask
        task node=ask path=ask
      INFO: the run ended exit=interrupted questions=1 tokens=0 cost_micros=0
    run graph=g thread=t run=[id] exit=done
      DEBUG: begins run=[id] goes_on=true
      step number=1 tasks=ask
        task node=ask path=ask
      INFO: the run ended exit=done questions=0 tokens=0 cost_micros=0
    ");
}
