//! The model node.

use crate::fixture::{Bench, Say, call, conversation, react, text};
use async_trait::async_trait;
use serde_json::json;
use tine_agent::middleware::{Middleware, ModelCall, ModelNext};
use tine_engine::{Exit, Update};
use tine_models::{ModelError, ModelReply};

#[tokio::test]
async fn a_model_sees_its_prompt_its_tools_and_a_valid_history() {
    let model = "    system: \"You are {{ 'kind' if state.notes | length == 0 else 'tired' }}.\"\n    params: { temperature: 0 }";
    let lines = vec![
        Say::Calls(vec![call("probe", &json!({"say": "x"}))]),
        Say::Text("done"),
    ];
    let bench = Bench::new(&react(model, ""), lines);
    bench.send("go").await;
    let requests = bench.requests.lock().unwrap();
    let first = &requests[0];
    assert_eq!(first.system.as_deref(), Some("You are kind."));
    assert_eq!(first.params.temperature, Some(0.0));
    let names: Vec<&str> = first.tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["ask_clarification", "probe", "alone", "effect"]);
    assert_eq!(requests[1].messages.len(), 3);
}

fn judge(returns: &str) -> String {
    format!(
        "schema: graph/v1
name: judge
types:
  Verdict:
    type: object
    required: [good]
    properties:
      good: {{ type: boolean }}
      why: {{ type: string, default: none }}
state:
  question: {{ type: string }}
  verdict: {{ type: optional<Verdict> }}
  words: {{ type: optional<string> }}
input: [question]
start: judge
nodes:
  judge:
    type: model
    model: default
    prompt: \"Is {{{{ state.question }}}} good?\"
    returns: {returns}
    then: end
"
    )
}

async fn check_returns(
    returns: &str,
    says: &'static str,
    channel: &str,
    expected: Result<&str, &str>,
) {
    let bench = Bench::new(&judge(returns), vec![Say::Text(says)]);
    let outcome = bench
        .invoke(Update::new().set("question", text("it")))
        .await;
    assert_eq!(
        bench.requests.lock().unwrap()[0].messages[0].content.text(),
        "Is it good?"
    );
    match expected {
        Ok(value) => {
            assert_eq!(outcome.exit, Exit::Done);
            assert_eq!(outcome.values[channel].to_canonical(), value);
        }
        Err(message) => assert_eq!(
            outcome.exit.error().map(ToString::to_string).as_deref(),
            Some(message)
        ),
    }
}

#[tokio::test]
async fn a_reply_can_be_data() {
    let verdict = "{ type: Verdict, into: verdict }";
    check_returns(
        verdict,
        r#"{"good": true}"#,
        "verdict",
        Ok(r#"{"good":true,"why":"none"}"#),
    )
    .await;
    check_returns(
        verdict,
        "```json\n{\"good\": false, \"why\": \"x\"}\n```",
        "verdict",
        Ok(r#"{"good":false,"why":"x"}"#),
    )
    .await;
    check_returns("{ into: words }", "very", "words", Ok(r#""very""#)).await;
    let wrong = "node `judge` failed: the model was to reply with a Verdict: expected value at line 1 column 1 in \"yes\"";
    check_returns(verdict, "yes", "verdict", Err(wrong)).await;
}

#[tokio::test]
async fn calls_of_tools_that_were_not_offered_are_no_data() {
    let says = Say::Calls(vec![call("probe", &json!({}))]);
    let bench = Bench::new(&judge("{ into: words }"), vec![says]);
    let outcome = bench
        .invoke(Update::new().set("question", text("it")))
        .await;
    assert_eq!(
        outcome.exit.error().map(ToString::to_string).as_deref(),
        Some("node `judge` failed: the model only called `probe`, and this node offers no tools")
    );
}

#[tokio::test]
async fn a_reply_that_does_not_fit_is_asked_for_again() {
    let graph = judge(
        "{ type: Verdict, into: verdict }\n    retry: { max_attempts: 2, on: [invalid_output] }",
    );
    let bench = Bench::new(
        &graph,
        vec![Say::Text("yes"), Say::Text(r#"{"good": true}"#)],
    );
    let outcome = bench
        .invoke(Update::new().set("question", text("it")))
        .await;
    assert_eq!(outcome.exit, Exit::Done);
    assert_eq!(
        outcome.values["verdict"].to_canonical(),
        r#"{"good":true,"why":"none"}"#
    );
    assert_eq!(bench.requests.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_prompt_joins_the_conversation_once_if_it_is_to() {
    for (once, expected) in [
        (
            true,
            "Human: go\nHuman: Be brief.\nAi calls probe\nTool Success: x\nAi: done",
        ),
        (
            false,
            "Human: go\nHuman: Be brief.\nAi calls probe\nTool Success: x\nHuman: Be brief.\nAi: done",
        ),
    ] {
        let model = format!("    prompt: Be brief.\n    prompt_once: {once}");
        let graph = react(&model, "").replace(
            "start: agent",
            "limits: { max_visits: { agent: 9 } }\nstart: agent",
        );
        let lines = vec![
            Say::Calls(vec![call("probe", &json!({"say": "x"}))]),
            Say::Text("done"),
        ];
        let outcome = Bench::new(&graph, lines).send("go").await;
        assert_eq!(conversation(&outcome), expected);
    }
}

/// Tells the model where it is asked.
struct Signpost;

#[async_trait]
impl Middleware for Signpost {
    fn name(&self) -> &'static str {
        "signpost"
    }

    async fn wrap_model_call(
        &self,
        mut call: ModelCall,
        next: ModelNext<'_>,
    ) -> Result<ModelReply, ModelError> {
        call.request.system = Some(call.cx.path().into());
        next.run(call).await
    }
}

#[tokio::test]
async fn middleware_around_a_model_sees_the_task() {
    let bench = Bench::with(&react("", ""), vec![Say::Text("done")], |agent| {
        agent.with_middleware(Signpost)
    });
    bench.send("go").await;
    let requests = bench.requests.lock().unwrap();
    assert_eq!(requests[0].system.as_deref(), Some("agent"));
}
