//! Right files, run.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use tine_engine::{
    Command, Exit, Input, MemoryCheckpointer, Node, NodeCx, NodeError, Outcome, Output, Resume,
    RunOptions, Runner, SimWorld, ThreadKey, Update, Value,
};

use super::registry;
use crate::*;

/// A host whose model says its prompt and whose tools say their names.
struct Fake;

fn failed(error: impl std::error::Error) -> NodeError {
    NodeError::new(tine_engine::ErrorClass::Expression, error.to_string())
}

impl NodeKinds for Fake {
    fn model(&self, spec: ModelSpec) -> Result<Arc<dyn Node>, String> {
        Ok(Arc::new(move |cx: NodeCx| {
            let spec = spec.clone();
            async move {
                let facts = CxFacts::new(&cx);
                let scene = Scene::new(&facts, &spec.info.channels);
                let prompt = spec.prompt.as_ref().or(spec.system.as_ref());
                let said = match prompt {
                    Some(prompt) => prompt.render(&scene).map_err(failed)?,
                    None => String::new(),
                };
                let mut message = json!({"type": "ai", "id": cx.new_id(), "content": said});
                if cx.visits() == 1 && !spec.tools.is_empty() {
                    let asks = spec.tools.iter().find(|tool| *tool == "ask_clarification");
                    let tool = asks.unwrap_or(&spec.tools[0]);
                    let args = json!({"question": "Which?"});
                    message["tool_calls"] = json!([{"name": tool, "args": args, "id": "c1"}]);
                }
                let mut update = Update::new();
                if let Some(channel) = &spec.messages {
                    update = update.set(channel.as_str(), Value::from_json(message));
                }
                if let Some(returns) = &spec.returns {
                    let value = returns.shape.accept(said.into()).map_err(failed)?;
                    update = update.set(returns.into.as_str(), value);
                }
                Ok(update)
            }
        }))
    }

    fn tools(&self, spec: ToolsSpec) -> Result<Arc<dyn Node>, String> {
        let label = spec.info.routes.labels().next().map(str::to_owned);
        let tells = spec
            .info
            .channels
            .names()
            .any(|name| name == "clarification");
        Ok(Arc::new(move |_: NodeCx| {
            let label = label.clone();
            async move {
                let question = json!({"call_id": "c1", "question": "Which?", "clarification_type": "missing_info"});
                let update = match tells {
                    true => Update::new().set("clarification", Value::from_json(question)),
                    false => Update::new(),
                };
                Ok(match label {
                    Some(label) => Command::goto(label).update(update),
                    None => Command::default(),
                })
            }
        }))
    }

    fn tool(&self, spec: ToolSpec) -> Result<Arc<dyn Node>, String> {
        Ok(Arc::new(move |cx: NodeCx| {
            let spec = spec.clone();
            async move {
                let facts = CxFacts::new(&cx);
                let args = spec
                    .args
                    .eval(&Scene::new(&facts, &spec.info.channels))
                    .map_err(failed)?;
                let output: Output = match (&*spec.tool, &spec.into) {
                    ("hand_off", _) => Command::goto("hand_off").into(),
                    (_, Some(into)) => Update::new().set(into.as_str(), args).into(),
                    (_, None) => Output::default(),
                };
                Ok(output)
            }
        }))
    }

    fn call(&self, spec: CallSpec) -> Result<Arc<dyn Node>, String> {
        Ok(Arc::new(move |cx: NodeCx| {
            let spec = spec.clone();
            async move {
                let facts = CxFacts::new(&cx);
                let input = spec
                    .input
                    .eval(&Scene::new(&facts, &spec.info.channels))
                    .map_err(failed)?;
                let text = input
                    .get("text")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                let channel = if text == "stray" { "stray" } else { "words" };
                Ok(Update::new().set(channel, text.split_whitespace().count()))
            }
        }))
    }
}

struct Thread {
    runner: Runner,
    key: ThreadKey,
}

impl Thread {
    fn new(text: &str) -> Self {
        let mut registry = registry();
        registry.tools.entry("ls".to_owned()).or_default();
        let (loaded, diagnostics) = load("t.yaml", text, &NoSources, &Fake, &registry);
        let loaded = loaded.unwrap_or_else(|| panic!("{}", diagnostics.render()));
        let runner = Runner::new(loaded.graph, SimWorld::new(1))
            .with_checkpointer(Arc::new(MemoryCheckpointer::new()));
        Self {
            runner,
            key: ThreadKey::local("t1"),
        }
    }

    fn invoke(&self, input: impl Into<Input>) -> Outcome {
        self.try_invoke(input).unwrap()
    }

    fn try_invoke(&self, input: impl Into<Input>) -> Result<Outcome, tine_engine::RunError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let run = self.runner.invoke(&self.key, input, RunOptions::default());
        runtime.block_on(run)
    }
}

fn input(json: Json) -> Update {
    let values = Value::from_json(json);
    values
        .as_map()
        .unwrap()
        .iter()
        .fold(Update::new(), |update, (channel, value)| {
            update.set(Arc::clone(channel), value.clone())
        })
}

fn values(outcome: &Outcome) -> Json {
    assert_eq!(outcome.exit, Exit::Done);
    Value::from(outcome.values.clone()).to_json()
}

/// Runs a graph of one channel list and nodes, and compares what comes out.
#[expect(
    clippy::needless_pass_by_value,
    reason = "cases read better without `&`"
)]
fn check(state_and_nodes: &str, given: Json, expected: Json) {
    let text = format!("schema: graph/v1\nname: t\n{state_and_nodes}");
    let outcome = Thread::new(&text).invoke(input(given));
    assert_eq!(values(&outcome), expected, "{state_and_nodes}");
}

#[test]
fn the_react_example_asks_and_goes_on() {
    let text = include_str!("../../../../graphs/react.yaml");
    let thread = Thread::new(text);
    let outcome = thread.invoke(input(
        json!({"messages": [{"role": "user", "content": "Do it."}]}),
    ));
    assert_eq!(outcome.exit, Exit::Interrupted);
    insta::assert_snapshot!(outcome.interrupts[0].payload, @r#"{"call_id":"c1","clarification_type":"missing_info","question":"Which?"}"#);
    // An answer that does not fit is refused, and the question stays open.
    let wrong = Resume::value(Value::from_json(json!({"text": ""})));
    let error = thread.try_invoke(wrong).unwrap_err();
    assert_eq!(error.code(), "invalid_answer");
    let problem = "at `/text`: the text has 0 characters, 1 are the least";
    assert!(error.to_string().contains(problem), "{error}");
    let outcome = thread.invoke(Resume::value("The first."));
    let values = values(&outcome);
    let messages: Vec<_> = values["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| {
            (
                message["type"].as_str().unwrap(),
                message["content"].as_str().unwrap().lines().next().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        messages,
        [
            ("human", "Do it."),
            (
                "ai",
                "You are a careful assistant. Work in small steps and check your results."
            ),
            ("tool", "The first."),
            (
                "ai",
                "You are a careful assistant. Work in small steps and check your results."
            ),
        ]
    );
}

#[test]
fn values_keep_their_types_and_texts_are_put_together() {
    check(
        r#"
state:
  n: { type: integer, reduce: add }
  list: { type: list<integer> }
  text: { type: string }
  record: { type: any }
  copy: { type: optional<string> }
  gone: { type: optional<string> }
start: one
nodes:
  one:
    type: set
    set:
      list: "${[state.n, state.n * 2] + [7]}"
      text: "n is ${state.n}, twice ${state.n + state.n}, list ${[1, 2]}"
      record: { deep: ["${state.n > 1}", "${ {'a': state.n} }"], plain: "${'$'}{x}" }
      copy: "${state.gone}"
    then: end
"#,
        json!({"n": 2}),
        json!({
            "n": 2, "list": [2, 4, 7], "text": "n is 2, twice 4, list [1,2]", "copy": null,
            "record": {"deep": [true, {"a": 2}], "plain": "${x}"},
        }),
    );
}

#[test]
fn the_first_branch_that_holds_is_taken() {
    for (n, expected) in [(1, "small"), (5, "middle"), (9, "large")] {
        check(
            r#"
state:
  n: { type: integer }
  size: { type: string }
input: [n]
output: [size]
start:
  - when: state.n < 3
    goto: small
  - when: state.n < 7
    goto: middle
  - else: large
nodes:
  small: { type: set, set: { size: small }, then: end }
  middle: { type: set, set: { size: middle }, then: end }
  large: { type: set, set: { size: large }, then: end }
"#,
            json!({ "n": n }),
            json!({ "size": expected }),
        );
    }
}

#[test]
fn a_router_sees_the_writes_of_its_own_node() {
    check(
        r#"
state:
  n: { type: integer, reduce: add }
limits: { max_visits: { one: 10 } }
start: one
nodes:
  one:
    type: set
    set: { n: 1 }
    then:
      - when: state.n < 4
        goto: one
      - else: end
"#,
        json!({}),
        json!({"n": 4}),
    );
}

#[test]
fn visits_are_counted_where_they_are_asked_for() {
    check(
        r#"
state:
  n: { type: list<integer>, reduce: append }
start: one
nodes:
  one:
    type: set
    set: { n: "${run.visits}" }
    then:
      - when: run.visits < 3
        goto: one
      - else: end
"#,
        json!({}),
        json!({"n": [1, 2, 3]}),
    );
}

#[test]
fn a_route_replaces_then() {
    check(
        r#"
state:
  seen: { type: list<string>, reduce: append }
start: hand
nodes:
  hand:
    type: tool
    tool: hand_off
    routes: { hand_off: [b, a] }
    then: never
  a: { type: set, set: { seen: a }, then: end }
  b: { type: set, set: { seen: b }, then: end }
  never: { type: set, set: { seen: never }, then: end }
"#,
        json!({}),
        json!({"seen": ["a", "b"]}),
    );
}

#[test]
fn a_join_waits_for_all_its_sources() {
    check(
        r#"
state:
  seen: { type: list<string>, reduce: append }
start: [a, b]
nodes:
  a: { type: set, set: { seen: a }, then: join }
  b: { type: set, set: { seen: b }, then: c }
  c: { type: set, set: { seen: c }, then: join }
  join: { type: set, set: { seen: join }, wait_for: [a, c], then: end }
"#,
        json!({}),
        json!({"seen": ["a", "b", "c", "join"]}),
    );
}

#[test]
fn literal_keys_remove_and_replace_and_computed_ones_do_not() {
    check(
        r#"
state:
  messages: { type: list<message>, reduce: messages }
  map: { type: map<any>, reduce: merge }
  list: { type: list<string>, reduce: append, default: [old] }
  odd: { type: list<any>, reduce: append }
input: [messages, map, odd]
start: one
nodes:
  one:
    type: set
    set:
      messages:
        - remove: m1
        - { role: user, content: new, id: m3 }
      map: { remove: a }
      list: { $replace: [new] }
      odd: "${ [{'remove': 'all'}] }"
    then: end
"#,
        json!({
            "messages": [{"role": "user", "content": "1", "id": "m1"}, {"role": "user", "content": "2", "id": "m2"}],
            "map": {"a": 1, "b": 2}, "odd": [1],
        }),
        json!({
            "messages": [{"type": "human", "content": "2", "id": "m2"}, {"type": "human", "content": "new", "id": "m3"}],
            "map": {"b": 2}, "list": ["new"], "odd": [1, {"remove": "all"}],
        }),
    );
}

#[test]
fn prompts_see_the_state_and_returns_are_written() {
    check(
        r##"
state:
  topic: { type: string }
  notes: { type: list<any>, reduce: append }
  none: { type: optional<string> }
  report: { type: string }
output: [report]
start: write
nodes:
  write:
    type: model
    model: writer
    prompt: |
      # {{ state.topic | upper }}{% if state.none %} hidden{% endif %}
      {% for note in state.notes %}
      - {{ note.title }}: {{ note.tags | join(", ") }} {{ note | tojson }} {{ state.none | default("nothing") }}
      {% endfor %}
      {{ state.notes | length }} notes
    returns: { into: report }
    then: end
"##,
        json!({"topic": "tines", "notes": [{"title": "t", "tags": ["a", "<b>"]}]}),
        json!({"report": "# TINES\n\n- t: a, <b> {\"tags\":[\"a\",\"<b>\"],\"title\":\"t\"} nothing\n\n1 notes"}),
    );
}

#[test]
fn tools_and_functions_get_their_input_and_write_where_they_may() {
    check(
        r#"
state:
  text: { type: string }
  args: { type: any }
  words: { type: integer }
start: save
nodes:
  save:
    type: tool
    tool: write_file
    args: { path: a.md, content: "${state.text}" }
    into: args
    then: count
  count:
    type: call
    function: word_count
    input: { text: "${state.text}" }
    writes: [words]
    then: end
"#,
        json!({"text": "three little words"}),
        json!({
            "text": "three little words", "words": 3,
            "args": {"path": "a.md", "content": "three little words"},
        }),
    );
}

fn check_failure(nodes: &str, given: Json, expected: &str) {
    let text = format!("schema: graph/v1\nname: t\n{nodes}");
    let outcome = Thread::new(&text).invoke(input(given));
    let Exit::Failed { error } = outcome.exit else {
        panic!("{:?}", outcome.exit)
    };
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_run_that_fails_says_where_and_why() {
    let text = r#"
state:
  text: { type: optional<string> }
  n: { type: integer }
start: one
nodes:
  one: { type: set, set: { n: "${size(state.text)}" }, then: end }
"#;
    check_failure(
        text,
        json!({}),
        "node `one` failed: `size(state.text)`: `text` has no value",
    );
    let text = r#"
state:
  any: { type: any }
  n: { type: integer }
start: one
nodes:
  one: { type: set, set: { n: "${state.any}" }, then: end }
"#;
    check_failure(
        text,
        json!({"any": "x"}),
        "channel `n` by `one` could not be written: expected integer, found \"x\"",
    );
    let text = r#"
state:
  text: { type: string }
  words: { type: integer }
  stray: { type: integer }
start: count
nodes:
  count:
    type: call
    function: word_count
    input: { text: "${state.text}" }
    writes: [words]
    then: end
"#;
    check_failure(
        text,
        json!({"text": "stray"}),
        "node `count` failed: `count` writes `stray`, which its `writes` do not list",
    );
    let text = r#"
state:
  note: { type: any }
  report: { type: string }
start: write
nodes:
  write:
    type: model
    model: writer
    prompt: |
      A line.
      {{ state.note.title }}
    returns: { into: report }
    then: end
"#;
    check_failure(
        text,
        json!({"note": {}}),
        "node `write` failed: prompt, line 2: `state.note.title` is undefined",
    );
}

#[test]
fn a_default_survives_a_reload() {
    let text = r#"schema: graph/v1
name: t
state:
  list: { type: list<string>, reduce: append, default: [old] }
  once: { type: optional<string>, keep: run }
  seen: { type: list<boolean>, reduce: append }
output: [list, seen]
start: look
nodes:
  look:
    type: set
    set: { list: new, once: x, seen: "${has(state.once)}" }
    then: ask
  ask:
    type: interrupt
    payload: Go on?
    resume: boolean
    set: { seen: ["${has(state.once)}", "${resume}"] }
    then: end
"#;
    let thread = Thread::new(text);
    assert_eq!(thread.invoke(Update::new()).exit, Exit::Interrupted);
    let outcome = thread.invoke(Resume::value(false));
    assert_eq!(
        values(&outcome),
        json!({"list": ["old", "new"], "seen": [false, true, false]})
    );
    // Another run begins without what was kept for a run.
    assert_eq!(thread.invoke(Update::new()).exit, Exit::Interrupted);
    let outcome = thread.invoke(Resume::value(true));
    let expected =
        json!({"list": ["old", "new", "new"], "seen": [false, true, false, false, true, true]});
    assert_eq!(values(&outcome), expected);
}

#[test]
fn a_route_to_the_end_replaces_then_as_well() {
    check(
        r#"
state:
  seen: { type: list<string>, reduce: append }
start: hand
nodes:
  hand:
    type: tool
    tool: hand_off
    routes: { hand_off: end }
    then: never
  never: { type: set, set: { seen: never }, then: end }
"#,
        json!({}),
        json!({"seen": []}),
    );
}

#[test]
fn line_ends_of_windows_and_a_byte_order_mark_change_nothing() {
    let text = "schema: graph/v1\nname: t\nstate:\n  text: { type: string }\nstart: one\nnodes:\n  one:\n    type: set\n    set:\n      text: |\n        a\n        ${'b'}\n    then: end\n";
    let windows = format!("\u{feff}{}", text.replace('\n', "\r\n"));
    for text in [text, &windows] {
        let outcome = Thread::new(text).invoke(Update::new());
        assert_eq!(values(&outcome), json!({"text": "a\nb\n"}));
    }
    let wrong = windows.replace("'b'", "state.tetx");
    let (_, diagnostics) = crate::check("t.yaml", &wrong, &NoSources, &registry());
    let label = diagnostics.iter().next().unwrap().primary().unwrap();
    assert_eq!(&wrong[label.span.start..label.span.end], "state.tetx");
}
