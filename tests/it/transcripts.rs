//! Whole runs in memory, step by step.

use crate::desk::Bench;
use crate::transcript::Transcript;
use async_trait::async_trait;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tine::engine::world::Id;
use tine::engine::{
    Event, EventKind, Exit, Input, Listener, Message, Outcome, Resume, RunOptions, SimWorld,
    Timestamp, Value, World,
};
use tokio::sync::Notify;

fn heard(transcript: &Transcript) -> RunOptions {
    RunOptions {
        listener: transcript.listener(),
        ..RunOptions::default()
    }
}

/// Invokes a graph with one input after the other, and compares what happened with a snapshot.
async fn check_transcript(name: &str, bench: &Bench, inputs: impl IntoIterator<Item = Input>) {
    let transcript = Transcript::default();
    for input in inputs {
        let outcome = bench.invoke(input, heard(&transcript)).await;
        transcript.end(&outcome);
    }
    let folder = bench.folder().to_str().unwrap();
    let text = transcript.text().replace(folder, "<home>");
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(format!("transcript_{name}"), text);
    });
}

#[tokio::test]
async fn the_main_job_searches_writes_and_presents() {
    let bench = Bench::main_job();
    let request = Bench::say("搜今天 AI 新闻并存成 Markdown");
    check_transcript("main_job", &bench, [request]).await;
}

#[tokio::test]
async fn a_question_waits_for_its_answer() {
    let bench = Bench::main_job();
    let answer = Resume::value("电池").into();
    check_transcript("clarification", &bench, [Bench::say("写份报告"), answer]).await;
}

/// An agent and its tools, over `messages` and `artifacts`.
const AGENT: &str = "
schema: graph/v1
name: agent
state:
  messages: { type: list<message>, reduce: messages }
  artifacts: { type: list<string>, reduce: dedupe }
start: agent
nodes:
  agent:
    type: model
    model: default
    tools: [wait, read_file, present_files]
    then:
      - when: has_tool_calls(last(state.messages))
        goto: act
      - else: end
  act:
    type: tools
    tools: [wait, read_file, present_files]
    then: agent
";

#[tokio::test]
async fn an_error_of_a_tool_is_a_message_and_the_run_goes_on() {
    let script = "
schema: script/v1
rules:
  - visit: 1
    tool_calls:
      - { name: read_file, args: { description: look, path: /mnt/user-data/uploads/missing.md } }
      - { name: read_file, args: { description: look, path: /mnt/user-data/../../etc/passwd } }
      - { name: raed_file, args: {} }
      - { name: wait, args: { ms: soon } }
      - { name: wait, args: { ms: 1 } }
  - content: I could not read it.
";
    let bench = Bench::new(AGENT, script, Arc::new(SimWorld::new(0)));
    check_transcript("failing_tool", &bench, [Bench::say("read it")]).await;
}

#[tokio::test]
async fn results_stand_in_the_order_of_the_calls() {
    let script = "
schema: script/v1
rules:
  - visit: 1
    tool_calls:
      - { name: wait, args: { ms: 300 } }
      - { name: wait, args: { ms: 200 } }
      - { name: wait, args: { ms: 100 } }
  - content: All three are back.
";
    let bench = Bench::new(AGENT, script, Arc::new(SimWorld::new(0)));
    check_transcript("parallel_calls", &bench, [Bench::say("wait")]).await;
}

/// A world in which others get a turn whenever something is stored.
struct Interruptible {
    world: SimWorld,
}

#[async_trait]
impl World for Interruptible {
    fn now(&self) -> Timestamp {
        self.world.now()
    }

    fn new_id(&self) -> Id {
        self.world.new_id()
    }

    fn random(&self) -> u64 {
        self.world.random()
    }

    async fn sleep(&self, _: Duration) {
        tokio::task::yield_now().await;
    }
}

/// What is left of a run when the ids are taken away, which tell checkpoints apart.
fn conversation(outcome: &Outcome) -> Vec<(String, Vec<String>, String)> {
    let messages = outcome.values["messages"].as_list().unwrap().iter();
    let messages = messages.map(|item| Message::from_value(item).unwrap());
    messages
        .map(|message| {
            let calls = message
                .tool_calls
                .iter()
                .map(|call| call.args.to_canonical());
            (
                format!("{:?}", message.role),
                calls.collect(),
                message.content.text(),
            )
        })
        .collect()
}

#[tokio::test]
async fn a_run_dropped_after_any_checkpoint_comes_to_the_same_end() {
    // Each tool waits, so that the run can be dropped in the step after each checkpoint.
    let script = "
schema: script/v1
rules:
  - visit: 1
    tool_calls: [{ name: wait, args: { ms: 1 } }]
  - visit: 2
    tool_calls: [{ name: wait, args: { ms: 2 } }, { name: wait, args: { ms: 3 } }]
  - content: Done, after {{ results('wait') | length }} waits.
";
    let new = || {
        let world = SimWorld::new(0);
        Bench::new(AGENT, script, Arc::new(Interruptible { world }))
    };
    let whole = new().invoke(Bench::say("go"), RunOptions::default()).await;
    assert_eq!(whole.exit, Exit::Done);
    let mut dropped = 0;
    for stop_at in 0..10 {
        let bench = new();
        let stop = Arc::new(Notify::new());
        let seen = AtomicUsize::new(0);
        let bell = stop.clone();
        let listener: Arc<dyn Listener> = Arc::new(move |event: &Event| {
            if matches!(event.kind, EventKind::Checkpoint { .. })
                && seen.fetch_add(1, Ordering::Relaxed) == stop_at
            {
                bell.notify_one();
            }
        });
        let options = RunOptions {
            listener: Some(listener),
            ..RunOptions::default()
        };
        let ended = tokio::select! {
            biased;
            () = stop.notified() => None,
            outcome = bench.invoke(Bench::say("go"), options) => Some(outcome),
        };
        let outcome = match ended {
            // It was through before anybody could drop it.
            Some(outcome) => outcome,
            None => {
                dropped += 1;
                bench.invoke(Input::Continue, RunOptions::default()).await
            }
        };
        assert_eq!(
            outcome.exit,
            Exit::Done,
            "dropped after checkpoint {stop_at}"
        );
        assert_eq!(
            conversation(&outcome),
            conversation(&whole),
            "dropped after checkpoint {stop_at}"
        );
        assert!(outcome.values["artifacts"] == Value::list());
    }
    assert!(dropped >= 3, "{dropped} runs were dropped");
}
