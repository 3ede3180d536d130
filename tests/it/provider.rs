//! The command with a model over HTTP: a provider on this machine, scripted.
#![expect(clippy::needless_pass_by_value, reason = "`json!` reads better so")]

use crate::command::{Desk, agent_graph, shipped};
use serde_json::{Value, json};
use tine_testkit::provider::{Exchange, Provider};

/// A desk with the graph, and a configuration whose model is this.
fn desk(model: &str) -> Desk {
    let desk = Desk::new();
    desk.file("graph.yaml", &agent_graph("reader", "ls"));
    let config = std::fs::read_to_string(shipped("config/config.yaml")).unwrap();
    let (before, after) = config.split_once("models:\n").unwrap();
    let (_, after) = after.split_once("\n\n").unwrap();
    let after = after.replace("../graphs/", &shipped("graphs/"));
    let config = format!("{before}models:\n  - {model}\n\n{after}");
    desk.file("config.yaml", &config);
    desk
}

fn model(provider: &Provider) -> String {
    format!(
        "{{ name: default, use: \"langchain_openai:ChatOpenAI\", model: gpt-4o-mini, base_url: \"{}\", api_key: sk-a-secret }}",
        provider.base_url()
    )
}

fn delta(delta: Value) -> Value {
    json!({"model": "gpt-4o-mini-2024", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn end(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

/// What is asked of the desk's model, written down; nothing that is shown holds the key.
fn record(desk: &mut Desk, provider: &Provider, json: bool) -> String {
    let mut args = vec![
        "run",
        "graph.yaml",
        "what is there?",
        "--thread",
        "t",
        "--config",
        "config.yaml",
    ];
    if json {
        args.push("--json");
    }
    let ran = desk.record(&args);
    let shown = format!("{}{}", ran.stdout, ran.stderr);
    assert!(!shown.contains("sk-a-secret"), "{shown}");
    desk.rename(&provider.base_url(), "<provider>");
    shown
}

#[test]
fn a_tool_call_and_an_answer_drip_in() {
    let call = |call: Value| delta(json!({"tool_calls": [call]}));
    let asks = [
        delta(json!({"role": "assistant", "content": null})),
        call(
            json!({"index": 0, "id": "call_1", "type": "function", "function": {"name": "ls", "arguments": ""}}),
        ),
        call(json!({"index": 0, "function": {"arguments": "{\"description\": \"look\", "}})),
        call(
            json!({"index": 0, "function": {"arguments": "\"path\": \"/mnt/user-data/uploads\"}"}}),
        ),
        end("tool_calls"),
        json!({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 20}}),
    ];
    let answers = [
        delta(json!({"content": "Nothing"})),
        delta(json!({"content": " is there. 什么都没有。"})),
        end("stop"),
        json!({"choices": [], "usage": {"prompt_tokens": 150, "completion_tokens": 9}}),
    ];
    let provider = Provider::start([
        Exchange::events(&asks).cut(1),
        Exchange::events(&answers).cut(3),
    ])
    .unwrap();
    let mut desk = desk(&model(&provider));
    record(&mut desk, &provider, false);
    let requests = provider.requests();
    let last = requests.last().unwrap().json();
    let roles: Vec<&str> = last["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "tool"]);
    assert_eq!(last["tools"][0]["function"]["name"], "ls");
    assert_eq!(last["messages"][2]["tool_call_id"], "call_1");
    assert_eq!(
        requests[0].header("authorization"),
        Some("Bearer sk-a-secret")
    );
    desk.assert("provider_tool_call");
}

#[test]
fn a_reply_that_is_cut_off_is_told_to_the_model() {
    let call = json!({"index": 0, "id": "call_1", "function": {"name": "ls", "arguments": "{\"description\": \"look\", \"path\": \"/mnt\"}"}});
    let provider = Provider::start([
        Exchange::events(&[delta(json!({"tool_calls": [call]})), end("length")]),
        Exchange::events(&[delta(json!({"content": "Sorry."})), end("stop")]),
    ])
    .unwrap();
    let mut desk = desk(&model(&provider));
    record(&mut desk, &provider, false);
    let told = provider.requests()[1].json()["messages"][2].clone();
    assert_eq!(
        told,
        json!({
            "role": "tool",
            "tool_call_id": "call_1",
            "content": "The call of `ls` was not made: the reply was cut off (length), so none of its calls counts. \
                        Send the call again with the arguments as one complete JSON object. If they are long, make several calls with a part of them each.",
        })
    );
    desk.assert("provider_cut_off");
}

#[test]
fn what_goes_wrong_is_told_with_a_way_out() {
    let provider = |exchanges: Vec<Exchange>| Provider::start(exchanges).unwrap();
    let failing = |status: u16, message: &str| {
        Exchange::json(&json!({"error": {"message": message}})).status(status)
    };
    let busy = || failing(429, "Rate limit reached for gpt-4o-mini").header("retry-after", "0");
    let begun = Exchange::events(&[
        delta(json!({"content": "Well, "})),
        delta(json!({"content": "it"})),
    ]);
    for (name, exchanges) in [
        (
            "not_json",
            vec![Exchange::new(
                "text/html",
                "<html><body>Please sign in</body></html>",
            )],
        ),
        ("stops", vec![begun.first(150).then_close()]),
        (
            "denied",
            vec![failing(401, "Incorrect API key provided: sk-a-secret.")],
        ),
        ("busy", vec![busy(), busy(), busy()]),
        (
            "far_too_busy",
            vec![busy().status(429).header("retry-after-ms", "7200000")],
        ),
    ] {
        let provider = provider(exchanges);
        let mut desk = desk(&model(&provider));
        record(&mut desk, &provider, false);
        desk.assert(&format!("provider_{name}"));
    }
}

#[test]
fn an_endpoint_that_is_not_there_is_named() {
    let provider = Provider::start([]).unwrap();
    let model = model(&provider).replace(" }", ", max_retries: 0 }");
    let mut desk = desk(&model);
    let base = provider.base_url();
    drop(provider);
    desk.record(&[
        "run",
        "graph.yaml",
        "hi",
        "--thread",
        "t",
        "--config",
        "config.yaml",
    ]);
    desk.rename(&base, "<provider>");
    desk.assert("provider_not_there");
}

#[test]
fn a_key_that_is_missing_is_told_before_anything_begins() {
    let model = "{ name: gpt, use: \"langchain_openai:ChatOpenAI\", model: gpt-4o-mini }";
    let mut missing = desk(model);
    missing.record(&["run", "graph.yaml", "hi", "--config", "config.yaml"]);
    missing.assert("provider_no_key");
    let variable = model.replace(" }", ", api_key: $TINE_TEST_NO_SUCH_KEY }");
    let mut missing = desk(&variable);
    missing.record(&["run", "graph.yaml", "hi", "--config", "config.yaml"]);
    missing.record(&["validate", "graph.yaml", "--config", "config.yaml"]);
    assert!(
        !missing.home().join("threads.db").exists(),
        "nothing was begun"
    );
    missing.assert("provider_no_variable");
    // As long as no graph asks for it, it does not matter.
    let script = shipped("graphs/news_report.script.yaml");
    let two = format!(
        "{{ name: default, use: \"tine.models.scripted:ScriptedModel\", script: {script} }}\n  - {variable}"
    );
    let desk = desk(&two);
    let ran = desk.tine(&["validate", "graph.yaml", "--config", "config.yaml"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}
