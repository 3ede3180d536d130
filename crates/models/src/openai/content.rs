//! What messages contain, in the words of chat completions.

use serde_json::{Value as Json, json};
use tine_engine::message::Content;
use tine_engine::value::Value;

/// What stands in for an image where the model sees none.
const UNSEEN: &str = "[an image that this model can not be shown]";

/// What a user says: text, or parts if there is more than text.
pub(crate) fn user(content: &Content, sees: bool) -> Json {
    match content {
        Content::Text(text) => (**text).into(),
        Content::Blocks(blocks) => blocks
            .iter()
            .map(|block| part(block, sees))
            .collect::<Vec<Json>>()
            .into(),
    }
}

/// What a tool gave: one text, as most endpoints take nothing else there, or parts if there is more than text.
pub(crate) fn result(content: &Content, sees: bool) -> Json {
    let parts = match content {
        Content::Text(text) => return (**text).into(),
        Content::Blocks(blocks) => blocks.iter().map(|block| part(block, sees)),
    };
    let parts: Vec<Json> = parts.collect();
    let texts: Option<Vec<&str>> = parts
        .iter()
        .map(|part| part.get("text").and_then(Json::as_str))
        .collect();
    match texts {
        Some(texts) => texts.join("\n").into(),
        None => parts.into(),
    }
}

fn part(block: &Value, sees: bool) -> Json {
    let text = |text: &str| json!({"type": "text", "text": text});
    let field = |key: &str| block.get(key).and_then(Value::as_str);
    if let Value::Text(said) = block {
        return text(said);
    }
    match field("type") {
        Some("text") => text(field("text").unwrap_or_default()),
        Some("image" | "image_url") if !sees => text(UNSEEN),
        Some("image") => match image(block) {
            Some(url) => json!({"type": "image_url", "image_url": {"url": url}}),
            None => block.to_json(),
        },
        // Other parts are meant for the provider as they are.
        _ => block.to_json(),
    }
}

/// The address of an image in one of LangChain's forms, or in Anthropic's.
fn image(block: &Value) -> Option<String> {
    let source = block.get("source").unwrap_or(block);
    let field = |key: &str| source.get(key).and_then(Value::as_str);
    if let Some(url) = field("url") {
        return Some(url.to_owned());
    }
    let data = field("base64").or_else(|| field("data"))?;
    let kind = field("mime_type").or_else(|| field("media_type"))?;
    Some(format!("data:{kind};base64,{data}"))
}
