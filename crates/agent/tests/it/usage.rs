//! What models cost, and who pays.

use crate::fixture::{Bench, react};
use async_trait::async_trait;
use serde_json::json;
use std::sync::Arc;
use tine_agent::Agent;
use tine_engine::{
    Budget, ErrorClass, Input, Message, Outcome, RunOptions, Spend, ThreadKey, Update, from_value,
};
use tine_models::{
    Accumulator, Delta, DeltaSink, FinishReason, Model, ModelCx, ModelError, ModelReply,
    ModelRequest, Pricing, Usage,
};

/// Says `hi` for 1,000 and 200 tokens; to `down` it does not answer, to `breaks` it begins to, and of `uncounted` it
/// does not say what it took.
#[derive(Debug)]
struct Counted;

#[async_trait]
impl Model for Counted {
    fn name(&self) -> &str {
        "counted"
    }

    async fn stream(
        &self,
        _: &ModelCx,
        request: &ModelRequest,
        sink: &mut dyn DeltaSink,
    ) -> Result<ModelReply, ModelError> {
        let heard = request.messages.last().unwrap().content.text();
        if heard == "breaks" {
            sink.push(&Delta::Text("x".repeat(400)));
        }
        if heard == "down" || heard == "breaks" {
            return Err(ModelError::Transport {
                model: "counted".into(),
                message: "down".to_owned(),
            });
        }
        let mut reply = Accumulator::new();
        reply.push(&Delta::Text("hi".to_owned()));
        if heard != "uncounted" {
            reply.push(&Delta::Usage(Usage {
                input_tokens: 1_000,
                output_tokens: 200,
                ..Usage::default()
            }));
        }
        reply.push(&Delta::Finish(FinishReason::Stop));
        Ok(reply.finish(self.name(), request))
    }
}

fn bench(params: &str, prices: bool) -> Bench {
    let pricing = json!({"currency": "EUR", "input_per_million": 2.5, "output_per_million": 10});
    let pricing: Pricing = serde_json::from_value(pricing).unwrap();
    let model: Arc<dyn Model> = Arc::new(Counted);
    Bench::with(&react(params, ""), Vec::new(), |agent: Agent| {
        let agent = agent.with_models([("default".to_owned(), model)]);
        match prices {
            true => agent.with_pricing([("default".to_owned(), pricing)]),
            false => agent,
        }
    })
}

async fn send(bench: &Bench, text: &str, budget: Budget) -> Outcome {
    let options = RunOptions {
        budget,
        ..RunOptions::default()
    };
    let input: Input = Update::new().set("messages", text).into();
    let thread = ThreadKey::local("t");
    bench.runner.invoke(&thread, input, options).await.unwrap()
}

#[tokio::test]
async fn a_reply_is_paid_by_its_run_and_says_what_it_cost() {
    for (prices, cost_micros) in [(true, 4_500), (false, 0)] {
        let outcome = send(&bench("", prices), "hello", Budget::default()).await;
        let paid = Spend {
            tokens: 1_200,
            cost_micros,
        };
        assert_eq!(outcome.spent, paid);
        let messages: Vec<Message> = from_value(&outcome.values["messages"]).unwrap();
        let metadata = messages[1].response_metadata.clone().unwrap();
        let cost = metadata.get("cost").map(|cost| cost.to_canonical());
        let expected = r#"{"currency":"EUR","micros":4500}"#.to_owned();
        assert_eq!(cost, prices.then_some(expected));
        assert_eq!(
            metadata.get("finish_reason").unwrap().as_str(),
            Some("stop")
        );
    }
}

#[tokio::test]
async fn a_budget_stops_before_a_reply_that_may_be_too_long() {
    let tokens = |tokens| Budget {
        tokens: Some(tokens),
        ..Budget::default()
    };
    let cost = |micros| Budget {
        cost_micros: Some(micros),
        ..Budget::default()
    };
    for (params, budget, expected) in [
        ("    params: { max_tokens: 300 }", tokens(299), "budget 0"),
        (
            "    params: { max_tokens: 300 }",
            tokens(1_200),
            "done 1200",
        ),
        // What it took shows when it is over; the run ends there all the same.
        ("", tokens(1_100), "done 1200"),
        ("", cost(4_000), "done 1200"),
    ] {
        let outcome = send(&bench(params, true), "hello", budget).await;
        let end = format!("{} {}", outcome.exit.name(), outcome.spent.tokens);
        assert_eq!(end, expected, "{params} {budget:?}");
    }
}

#[tokio::test]
async fn who_did_not_answer_is_not_paid() {
    let bench = bench("    params: { max_tokens: 300 }", true);
    let outcome = send(&bench, "down", Budget::default()).await;
    assert_eq!(outcome.exit.error().unwrap().class(), ErrorClass::Transport);
    assert_eq!(outcome.spent, Spend::default());
}

#[tokio::test]
async fn what_nobody_counted_is_guessed() {
    for (text, output_tokens, ends) in [("uncounted", 1, "done"), ("breaks", 100, "failed")] {
        let bench = bench("    params: { max_tokens: 300 }", true);
        let outcome = send(&bench, text, Budget::default()).await;
        assert_eq!(outcome.exit.name(), ends);
        let input_tokens = outcome.spent.tokens - output_tokens;
        // Of the request most are the schemas of its tools.
        assert!((100..1_000).contains(&input_tokens), "{input_tokens}");
        let cost = input_tokens as f64 * 2.5 + output_tokens as f64 * 10.0;
        assert_eq!(outcome.spent.cost_micros, cost.round() as u64);
        let messages: Vec<Message> = from_value(&outcome.values["messages"]).unwrap();
        if let Some(reply) = messages.get(1) {
            let metadata = reply.response_metadata.as_ref().unwrap();
            assert_eq!(metadata.get("usage_estimated"), Some(&true.into()));
        }
    }
}

#[tokio::test]
async fn a_reply_that_came_whole_stays_if_its_task_did_not_end() {
    let graph = react("", "").replace(
        "has_tool_calls(last(state.messages))",
        "state.notes[7] == 'x'",
    );
    let model: Arc<dyn Model> = Arc::new(Counted);
    let bench = Bench::with(&graph, Vec::new(), |agent: Agent| {
        agent.with_models([("default".to_owned(), model)])
    });
    let outcome = send(&bench, "hello", Budget::default()).await;
    assert_eq!(outcome.exit.name(), "failed");
    let outcome = send(&bench, "hello again", Budget::default()).await;
    let messages: Vec<Message> = from_value(&outcome.values["messages"]).unwrap();
    let said: Vec<String> = messages
        .iter()
        .map(|message| message.content.text())
        .collect();
    assert_eq!(said, ["hello", "hi", "hello again"]);
}
