//! What is recorded before a call begins, and what is asked when nobody knows whether it ended.

use crate::fixture::{Bench, Say, call, questions, react};
use crate::store::Noting;
use async_trait::async_trait;
use serde_json::json;
use tine_agent::middleware::{Middleware, ToolNext, ToolReply, ToolRequest};
use tine_engine::value::Value;
use tine_engine::{Exit, Input, MemoryCheckpointer, Resume, Update};
use tine_tools::ToolError;

/// A bench whose log also has the starts.
fn noting(tools: &str, calls: Vec<(&'static str, String)>, refuses: bool) -> Bench {
    let bench = Bench::new(
        &react("", tools),
        vec![Say::Calls(calls), Say::Text("done")],
    );
    let store = Noting {
        store: MemoryCheckpointer::new(),
        log: bench.log.clone(),
        refuses,
        pauses: false,
    };
    bench.over(store)
}

fn effects() -> Vec<(&'static str, String)> {
    ["a", "b"]
        .map(|say| call("effect", &json!({"say": say, "millis": 10})))
        .into()
}

#[tokio::test]
async fn the_calls_of_a_message_start_in_one_commit() {
    let bench = noting("    max_parallel: 1", effects(), false);
    assert_eq!(bench.send("go").await.exit, Exit::Done);
    let log = ["2 started", "a begins", "a ends", "b begins", "b ends"];
    assert_eq!(bench.log(), log);
}

#[tokio::test]
async fn a_call_that_is_asked_about_starts_when_it_is_allowed() {
    let tools = "    max_parallel: 1\n    ask_before: [effect]";
    let bench = noting(tools, effects(), false);
    let outcome = bench.send("go").await;
    assert_eq!(questions(&outcome), ["approval", "approval"]);
    assert!(bench.log().is_empty());
    let allow = outcome.interrupts.iter().map(|asked| (asked.id, "allow"));
    let outcome = bench.cut(Resume::by_id(allow), "effect").await;
    assert_eq!(outcome.exit.name(), "cancelled");
    assert_eq!(bench.log(), ["1 started", "a begins"]);

    let outcome = bench.invoke(Input::Continue).await;
    assert_eq!(questions(&outcome), ["unknown_outcome"]);
    assert_eq!(bench.log()[2..], ["1 started", "b begins", "b ends"]);
    let outcome = bench.invoke(Resume::value("retry")).await;
    assert_eq!(outcome.exit, Exit::Done);
    assert_eq!(bench.log()[5..], ["1 started", "a begins", "a ends"]);
}

#[tokio::test]
async fn nothing_is_unknown_of_a_call_that_nobody_allowed() {
    let calls = vec![
        call("effect", &json!({"say": "boom"})),
        call("probe", &json!({"say": "peek", "millis": 10})),
    ];
    let bench = noting("    ask_before: [effect]", calls, false);
    let go = Update::new().set("messages", "go");
    assert_eq!(bench.cut(go, "probe").await.exit.name(), "cancelled");
    assert_eq!(bench.log(), ["peek begins"]);
    let outcome = bench.invoke(Input::Continue).await;
    assert_eq!(questions(&outcome), ["approval"]);
}

#[tokio::test]
async fn an_edited_call_starts_by_its_new_arguments() {
    // The model's arguments do not fit, so by them nothing would run.
    let calls = vec![call("effect", &json!({"say": 7}))];
    let bench = noting("    ask_before: [effect]", calls, false);
    bench.send("go").await;
    let edit: Value = json!({"edit": {"say": "boom", "millis": 10}}).into();
    bench.cut(Resume::value(edit), "effect").await;
    assert_eq!(bench.log(), ["1 started", "boom begins"]);
    let outcome = bench.invoke(Input::Continue).await;
    assert_eq!(questions(&outcome), ["unknown_outcome"]);
}

#[tokio::test]
async fn nothing_begins_that_could_not_be_recorded() {
    for tools in ["", "    ask_before: [effect]"] {
        let bench = noting(tools, effects(), true);
        let mut outcome = bench.send("go").await;
        if outcome.exit == Exit::Interrupted {
            let allow = outcome.interrupts.iter().map(|asked| (asked.id, "allow"));
            outcome = bench.invoke(Resume::by_id(allow)).await;
        }
        assert_eq!(
            outcome.exit.error().map(ToString::to_string).as_deref(),
            Some("the thread could not be stored or read: the disk is damaged: it is full")
        );
        assert!(bench.log().is_empty());
    }
}

/// What a thread waits for after a call failed its node, and the run was to go on.
async fn check(graph: &str, args: serde_json::Value, expected: &[&str]) {
    let lines = vec![Say::Calls(vec![call("effect", &args)]), Say::Text("done")];
    let bench = Bench::new(graph, lines);
    let outcome = bench.send("go").await;
    assert_eq!(outcome.exit.name(), "failed");
    let outcome = bench.invoke(Input::Continue).await;
    assert_eq!(questions(&outcome), expected);
    let name = if expected.is_empty() {
        "failed"
    } else {
        "interrupted"
    };
    assert_eq!(outcome.exit.name(), name);
}

#[tokio::test]
async fn a_tool_that_failed_may_have_done_half_of_its_work() {
    let fail = react("", "    on_tool_error: fail");
    let unknown = ["unknown_outcome"];
    check(&fail, json!({"say": "x", "fail": "no"}), &unknown).await;
    check(&fail, json!({"say": 7}), &[]).await;
    check(
        &react("", ""),
        json!({"say": "x", "write": "messages"}),
        &unknown,
    )
    .await;
    let tool = fail
        .replace("start: agent", "start: act")
        .replace(
            "    type: tools\n    tools: [probe, alone, effect, ask_clarification]",
            "    type: tool\n    tool: effect\n    args: { say: x, fail: 'no' }",
        )
        .replace("    on_tool_error: fail\n", "");
    check(&tool, json!({}), &unknown).await;
}

#[tokio::test]
async fn a_call_that_was_not_allowed_has_not_taken_place() {
    let tools = "    on_tool_error: fail\n    ask_before: [effect]";
    let bench = noting(tools, effects(), false);
    let outcome = bench.send("go").await;
    let deny = outcome.interrupts.iter().map(|asked| (asked.id, "deny"));
    let outcome = bench.invoke(Resume::by_id(deny)).await;
    assert_eq!(outcome.exit.name(), "failed");
    let outcome = bench.invoke(Input::Continue).await;
    assert_eq!(outcome.exit.name(), "failed");
    assert!(bench.log().is_empty());
}

/// Asks without having said so: before the tool, or after it.
struct Asker {
    after: bool,
}

#[async_trait]
impl Middleware for Asker {
    fn name(&self) -> &'static str {
        "asker"
    }

    async fn wrap_tool_call(
        &self,
        call: ToolRequest<'_>,
        next: ToolNext<'_>,
    ) -> Result<ToolReply, ToolError> {
        let cx = call.cx.clone();
        let early = if self.after {
            Some(next.run(call.clone()).await?)
        } else {
            None
        };
        let asked = cx.interrupt(Value::from_pairs([("kind", "mine".into())]));
        asked.map_err(|_| ToolError::Interrupted)?;
        match early {
            Some(reply) => Ok(reply),
            None => next.run(call).await,
        }
    }
}

#[tokio::test]
async fn a_start_is_taken_back_if_the_tool_was_not_reached() {
    for (after, expected) in [(false, "mine"), (true, "unknown_outcome")] {
        let lines = vec![
            Say::Calls(vec![call("effect", &json!({"say": "x"}))]),
            Say::Text("done"),
        ];
        let bench = Bench::with(&react("", ""), lines, |agent| {
            agent.with_middleware(Asker { after })
        });
        assert_eq!(questions(&bench.send("go").await), ["mine"]);
        let outcome = bench.invoke(Input::Continue).await;
        assert_eq!(questions(&outcome), [expected]);
    }
}
