//! A request in the words of chat completions.

use super::content;
use super::settings::{Settings, merge};
use crate::accumulate::CALL_EXTRAS;
use crate::error::ModelError;
use crate::request::{ModelRequest, ResponseSchema, ToolChoice, ToolSchema};
use serde_json::{Map, Value as Json, json};
use std::borrow::Cow;
use tine_engine::Message;
use tine_engine::message::Role;
use tine_engine::value::Value;
use xxhash_rust::xxh3::xxh3_128;

/// What a request says by itself, and parameters must not.
const RESERVED: [&str; 6] = [
    "model",
    "messages",
    "tools",
    "tool_choice",
    "stream",
    "stream_options",
];

/// The body of a request.
pub(crate) fn body(
    settings: &Settings,
    request: &ModelRequest,
) -> Result<Map<String, Json>, ModelError> {
    let mut body = Map::new();
    body.insert("model".to_owned(), (*settings.model).into());
    body.insert("messages".to_owned(), messages(settings, request).into());
    if !request.tools.is_empty() {
        let tools: Vec<Json> = request.tools.iter().map(tool).collect();
        body.insert("tools".to_owned(), tools.into());
    }
    if let Some(choice) = tool_choice(settings, request)? {
        body.insert("tool_choice".to_owned(), choice);
    }
    if settings.stream {
        body.insert("stream".to_owned(), true.into());
        if settings.stream_usage {
            let options = json!({"include_usage": true});
            body.insert("stream_options".to_owned(), options);
        }
    }
    let mut params = settings.body.clone();
    run_time(settings, request, &mut params)?;
    // A parameter about tools says nothing where there are none, and some endpoints refuse it.
    if request.tools.is_empty() {
        params.remove("parallel_tool_calls");
    }
    if let Some(shape) = &request.response_schema {
        params.insert(
            "response_format".to_owned(),
            response_format(settings, shape),
        );
    }
    merge(&mut body, params);
    Ok(body)
}

/// Puts what this request asks for on top of what the configuration says.
fn run_time(
    settings: &Settings,
    request: &ModelRequest,
    params: &mut Map<String, Json>,
) -> Result<(), ModelError> {
    let invalid = |message: String| ModelError::InvalidRequest {
        model: settings.alias.clone(),
        message,
    };
    let mut extra = request.params.extra.clone();
    if let Some(reserved) = RESERVED.iter().find(|key| extra.contains_key(**key)) {
        return Err(invalid(format!(
            "`params` must not give `{reserved}`; the request has its own"
        )));
    }
    let asked = match extra.remove("thinking_enabled") {
        None | Some(Json::Null) => None,
        Some(Json::Bool(asked)) => Some(asked),
        Some(_) => {
            return Err(invalid(
                "`params.thinking_enabled` must be true or false".to_owned(),
            ));
        }
    };
    let thinking = &settings.thinking;
    if asked == Some(true) && !thinking.supported {
        return Err(invalid(
            "`params.thinking_enabled` is true, and the model is not said to think; \
             set `supports_thinking: true` in its entry of the configuration"
                .to_owned(),
        ));
    }
    let thinks = asked.unwrap_or(true) && thinking.supported;
    let switch = if thinks {
        &thinking.enabled
    } else {
        &thinking.disabled
    };
    merge(params, switch.clone());
    if extra.contains_key("reasoning_effort") && !settings.takes_effort {
        tracing::warn!(
            model = %settings.alias,
            "`params.reasoning_effort` is left out, as `supports_reasoning_effort` is false"
        );
        extra.remove("reasoning_effort");
    }
    if let Some(temperature) = request.params.temperature {
        params.insert("temperature".to_owned(), temperature.into());
    }
    if let Some(most) = request.params.max_tokens {
        for name in ["max_tokens", "max_completion_tokens"] {
            params.remove(name);
        }
        params.insert(settings.most_tokens.to_owned(), most.into());
    }
    extra.retain(|_, value| !value.is_null());
    merge(params, extra);
    Ok(())
}

fn tool_choice(settings: &Settings, request: &ModelRequest) -> Result<Option<Json>, ModelError> {
    let must = matches!(
        request.tool_choice,
        ToolChoice::Required | ToolChoice::Tool(_)
    );
    if request.tools.is_empty() && must {
        return Err(ModelError::InvalidRequest {
            model: settings.alias.clone(),
            message: "it must call a tool, and none is offered".to_owned(),
        });
    }
    Ok(match &request.tool_choice {
        _ if request.tools.is_empty() => None,
        ToolChoice::Auto => None,
        ToolChoice::None => Some("none".into()),
        ToolChoice::Required => Some("required".into()),
        ToolChoice::Tool(name) => Some(json!({"type": "function", "function": {"name": &**name}})),
    })
}

fn tool(schema: &ToolSchema) -> Json {
    let mut parameters = match &schema.parameters {
        Json::Object(parameters) => parameters.clone(),
        _ => Map::new(),
    };
    // Providers refuse an object that says nothing of its properties.
    if !parameters.contains_key("type") {
        parameters.insert("type".to_owned(), "object".into());
    }
    if parameters.get("type") == Some(&"object".into()) && !parameters.contains_key("properties") {
        parameters.insert("properties".to_owned(), json!({}));
    }
    let mut function = Map::new();
    function.insert("name".to_owned(), (*schema.name).into());
    if !schema.description.is_empty() {
        function.insert("description".to_owned(), (*schema.description).into());
    }
    function.insert("parameters".to_owned(), parameters.into());
    json!({"type": "function", "function": function})
}

fn response_format(settings: &Settings, shape: &ResponseSchema) -> Json {
    if !settings.profile.json_schema {
        return json!({"type": "json_object"});
    }
    let allowed = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
            c
        } else {
            '_'
        }
    };
    let name: String = shape.name.chars().map(allowed).take(64).collect();
    json!({"type": "json_schema", "json_schema": {"name": name, "schema": &shape.schema}})
}

fn messages(settings: &Settings, request: &ModelRequest) -> Vec<Json> {
    let mut system = request.system.as_deref().unwrap_or_default().to_owned();
    if let Some(shape) = &request.response_schema
        && !settings.profile.json_schema
    {
        if !system.is_empty() {
            system.push_str("\n\n");
        }
        system.push_str("Reply with nothing but JSON that fits this JSON Schema: ");
        system.push_str(&shape.schema.to_string());
    }
    let first = (!system.is_empty()).then(|| json!({"role": "system", "content": system}));
    let mut sent: Vec<Json> = first.into_iter().collect();
    // Results have no images, so those are shown when all results of a reply have been told: nothing may stand between.
    let mut images = Vec::new();
    for message in &request.messages {
        if message.role != Role::Tool && !images.is_empty() {
            sent.push(content::shown(std::mem::take(&mut images)));
        }
        sent.push(self::message(settings, message, &mut images));
    }
    if !images.is_empty() {
        sent.push(content::shown(images));
    }
    sent
}

/// One message. The images of a result are added to `images`, to be shown behind it.
fn message(settings: &Settings, message: &Message, images: &mut Vec<Json>) -> Json {
    match message.role {
        Role::System => {
            json!({"role": "system", "content": content::some_words(settings, &message.content)})
        }
        Role::Human => {
            let content = content::user(settings, &message.content);
            let mut sent = json!({"role": "user", "content": content});
            let is_name = |name: &&str| {
                let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                (1..=64).contains(&name.len()) && name.chars().all(allowed)
            };
            if let Some(name) = message.name.as_deref().filter(is_name)
                && settings.profile.names
            {
                sent["name"] = name.into();
            }
            sent
        }
        Role::Tool => json!({
            "role": "tool",
            "tool_call_id": id(settings, message.tool_call_id.as_deref().unwrap_or_default()),
            "content": content::result(settings, &message.content, images),
        }),
        Role::Ai => assistant(settings, message),
    }
}

/// The id of a call as the endpoint takes it: one that is too long, of another provider, stands as a hash of it.
fn id<'a>(settings: &Settings, id: &'a str) -> Cow<'a, str> {
    match settings.longest_id {
        Some(most) if id.chars().nth(most).is_some() => {
            format!("call_{:032x}", xxh3_128(id.as_bytes())).into()
        }
        _ => id.into(),
    }
}

fn assistant(settings: &Settings, message: &Message) -> Json {
    let profile = settings.profile;
    let attached = |key: &str| {
        message
            .additional_kwargs
            .as_ref()
            .and_then(|all| all.get(key))
    };
    let mut sent = Map::new();
    sent.insert("role".to_owned(), "assistant".into());
    let calls = calls(settings, message, |id| {
        attached(CALL_EXTRAS)
            .filter(|_| profile.attachments)
            .and_then(|extras| extras.get(id))
    });
    let text = match calls.is_empty() {
        true => content::some_words(settings, &message.content),
        false => content::words(settings, &message.content),
    };
    let content = match text.is_empty() && !profile.empty_text {
        true => Json::Null,
        false => text.into(),
    };
    sent.insert("content".to_owned(), content);
    if let Some(field) = profile.reasoning
        && let Some(reasoning) = attached("reasoning_content").and_then(Value::as_str)
    {
        sent.insert(field.to_owned(), reasoning.into());
    }
    if profile.attachments
        && let Some(details) = attached("reasoning_details")
    {
        sent.insert("reasoning_details".to_owned(), details.to_json());
    }
    if !calls.is_empty() {
        sent.insert("tool_calls".to_owned(), calls.into());
    }
    sent.into()
}

/// The calls of a message: the valid ones, then those that could not be read. Those are sent with `{}` unless their
/// text is an object, for endpoints parse it; their results say what was wrong.
fn calls<'a>(
    settings: &Settings,
    message: &'a Message,
    extras: impl Fn(&str) -> Option<&'a Value>,
) -> Vec<Json> {
    let call = |id: &str, name: &str, arguments: String| {
        let mut sent = match extras(id).map(Value::to_json) {
            Some(Json::Object(extra)) => extra,
            _ => Map::new(),
        };
        sent.insert("id".to_owned(), self::id(settings, id).into());
        sent.insert("type".to_owned(), "function".into());
        sent.insert(
            "function".to_owned(),
            json!({"name": name, "arguments": arguments}),
        );
        Json::from(sent)
    };
    let valid = message
        .tool_calls
        .iter()
        .map(|valid| call(&valid.id, &valid.name, valid.args.to_canonical()));
    let invalid = message.invalid_tool_calls.iter().filter_map(|invalid| {
        let text = invalid.args.as_deref().unwrap_or_default();
        let is_object = serde_json::from_str::<Map<String, Json>>(text).is_ok();
        let arguments = if is_object { text } else { "{}" };
        let name = invalid.name.as_deref().unwrap_or("unknown");
        Some(call(invalid.id.as_deref()?, name, arguments.to_owned()))
    });
    valid.chain(invalid).collect()
}
