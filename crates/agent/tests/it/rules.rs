//! Whether a request is one that a provider takes, told from the request itself and from its plainest translation.

use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::sync::LazyLock;
use tine_engine::Message;
use tine_engine::message::{Content, Role};
use tine_engine::value::Value;
use tine_models::{ModelEntry, ModelRequest, OpenAi, ToolChoice};
use tine_testkit::openai_rules;

/// What is wrong with a request, one line each.
pub(crate) fn broken(request: &ModelRequest) -> Vec<String> {
    let mut broken = own_rules(&request.messages);
    // Blocks are translated by the client, for each provider in its way.
    let told = openai_rules::check(&body(request)).into_iter();
    let told = told.filter(|told| told.rule != openai_rules::Rule::Part);
    broken.extend(told.map(|told| told.to_string()));
    // And so as the client of OpenAI sends it.
    let sent = OPENAI.body(request).unwrap();
    let told = openai_rules::check(&sent);
    broken.extend(told.iter().map(|told| format!("sent: {told}")));
    broken
}

static OPENAI: LazyLock<OpenAi> = LazyLock::new(|| {
    let settings = json!({"model": "m", "api_key": "k"});
    let entry = ModelEntry {
        name: "openai".to_owned(),
        use_path: "langchain_openai:ChatOpenAI".to_owned(),
        settings: settings.as_object().cloned().unwrap(),
    };
    OpenAi::from_entry(&entry).unwrap()
});

/// What is wrong with a conversation as a thread holds it.
pub(crate) fn broken_thread(messages: &[Message]) -> bool {
    let request = ModelRequest::new(messages.to_vec());
    !openai_rules::check(&body(&request)).is_empty()
}

/// What providers other than OpenAI ask for: instructions apart, ids that no two calls share, results in the order of
/// the calls and under their names.
fn own_rules(messages: &[Message]) -> Vec<String> {
    let mut broken = Vec::new();
    let mut ids = BTreeSet::new();
    let mut open = Vec::new();
    for (nth, message) in messages.iter().enumerate() {
        if message.role == Role::System {
            broken.push(format!("message {nth} is of the system"));
        }
        if !message.invalid_tool_calls.is_empty() {
            broken.push(format!("message {nth} has invalid calls"));
        }
        if message.role != Role::Ai && !message.tool_calls.is_empty() {
            broken.push(format!("message {nth} calls, and is not of the model"));
        }
        if message.role == Role::Tool {
            let answers = (message.tool_call_id.clone(), message.name.clone());
            let expected = open.first().cloned();
            if expected != Some(answers) {
                broken.push(format!("message {nth} does not answer the next call"));
            }
            open.drain(..open.len().min(1));
            continue;
        }
        for call in &message.tool_calls {
            if !ids.insert(call.id.clone()) {
                broken.push(format!("message {nth} has the id `{}` again", call.id));
            }
            open.push((Some(call.id.clone()), Some(call.name.clone())));
        }
    }
    broken
}

/// The request in OpenAI's JSON, with nothing put right.
fn body(request: &ModelRequest) -> Json {
    let system = request.system.iter();
    let system = system.map(|text| json!({"role": "system", "content": &**text}));
    let messages = request.messages.iter().map(translated);
    let mut body = json!({"messages": system.chain(messages).collect::<Vec<_>>()});
    let tool = |tool: &tine_models::ToolSchema| {
        json!({"type": "function", "function": {
            "name": &*tool.name, "description": &*tool.description, "parameters": tool.parameters}})
    };
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    match &request.tool_choice {
        ToolChoice::Auto => {}
        ToolChoice::Tool(name) => {
            body["tool_choice"] = json!({"type": "function", "function": {"name": &**name}});
        }
        other => body["tool_choice"] = serde_json::to_value(other).unwrap(),
    }
    body
}

fn translated(message: &Message) -> Json {
    let calls: Vec<Json> = message
        .tool_calls
        .iter()
        .map(|call| {
            json!({"id": &*call.id, "type": "function",
                "function": {"name": &*call.name, "arguments": call.args.to_canonical()}})
        })
        .collect();
    let role = match message.role {
        Role::Human => "user",
        Role::Ai => "assistant",
        Role::Tool => "tool",
        Role::System => "system",
    };
    let mut json = json!({"role": role, "content": content(&message.content)});
    if message.role == Role::Ai && message.content.is_empty() && !calls.is_empty() {
        json["content"] = Json::Null;
    }
    if !calls.is_empty() {
        json["tool_calls"] = calls.into();
    }
    if let Some(id) = &message.tool_call_id {
        json["tool_call_id"] = (**id).into();
    }
    json
}

fn content(content: &Content) -> Json {
    let part = |block: &Value| match block.as_str() {
        Some(text) => json!({"type": "text", "text": text}),
        None => block.to_json(),
    };
    match content {
        Content::Text(text) => (**text).into(),
        Content::Blocks(blocks) => blocks.iter().map(part).collect(),
    }
}
