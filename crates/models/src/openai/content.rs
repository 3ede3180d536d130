//! What messages contain, in the words of chat completions.

use super::settings::Settings;
use serde_json::{Value as Json, json};
use tine_engine::message::Content;
use tine_engine::value::Value;

/// What stands in for an image where the model sees none.
const UNSEEN: &str = "[an image that this model can not be shown]";
/// What stands in for an image that has neither an address nor data.
const NO_IMAGE: &str = "[an image without an address and without data]";
/// What stands in for words that are not there; no endpoint takes a message that says nothing.
const NO_WORDS: &str = "(nothing)";
/// The same for a tool.
const NO_OUTPUT: &str = "(no output)";
/// Blocks of a reply that stand in fields of their own as well: its thoughts and its calls.
const ELSEWHERE: [&str; 8] = [
    "reasoning",
    "thinking",
    "redacted_thinking",
    "tool_use",
    "input_json_delta",
    "tool_call",
    "invalid_tool_call",
    "tool_call_chunk",
];

/// A block as it can be said.
enum Part {
    Text(String),
    /// An image that the model is shown, as the endpoint wants it.
    Image(Json),
    /// Another part that users may have, as it is.
    Other(Json),
}

/// What a user says: text, or parts if there is more than text.
pub(crate) fn user(settings: &Settings, content: &Content) -> Json {
    let blocks = match content {
        Content::Text(text) if text.is_empty() => return NO_WORDS.into(),
        Content::Text(text) => return (**text).into(),
        Content::Blocks(blocks) => blocks,
    };
    let parts = blocks.iter().filter_map(|block| part(settings, block));
    let parts: Vec<Json> = parts.map(Part::into_json).collect();
    match parts.is_empty() {
        true => NO_WORDS.into(),
        false => parts.into(),
    }
}

/// What a model or the instructions say: a text, with what stands in for other blocks. Empty if there is nothing.
pub(crate) fn words(settings: &Settings, content: &Content) -> String {
    let blocks = match content {
        Content::Text(text) => return text.to_string(),
        Content::Blocks(blocks) => blocks,
    };
    let mut words = String::new();
    for block in blocks.iter() {
        let kind = block.get("type").and_then(Value::as_str);
        if kind.is_some_and(|kind| ELSEWHERE.contains(&kind)) {
            continue;
        }
        match part(settings, block) {
            None => {}
            // Texts of a reply are pieces of one, and join as they are.
            Some(Part::Text(text)) => words.push_str(&text),
            Some(Part::Image(_)) => words.push_str("[image]"),
            Some(Part::Other(_)) => words.push_str(&unknown(block)),
        }
    }
    words
}

/// The same, for a message that must say something.
pub(crate) fn some_words(settings: &Settings, content: &Content) -> String {
    let words = words(settings, content);
    match words.is_empty() {
        true => NO_WORDS.to_owned(),
        false => words,
    }
}

/// What a tool gave, as one text: endpoints take nothing else there. Its images are added to `images`, and the text
/// names each by its number among those.
pub(crate) fn result(settings: &Settings, content: &Content, images: &mut Vec<Json>) -> String {
    let text = match content {
        Content::Text(text) => text.to_string(),
        Content::Blocks(blocks) => {
            let parts = blocks.iter().filter_map(|block| {
                Some(match part(settings, block)? {
                    Part::Text(text) => text,
                    Part::Image(image) => {
                        images.push(image);
                        named(images.len())
                    }
                    Part::Other(_) => unknown(block),
                })
            });
            parts.collect::<Vec<String>>().join("\n")
        }
    };
    match text.is_empty() {
        true => NO_OUTPUT.to_owned(),
        false => text,
    }
}

/// The message that shows the images of the results before it.
pub(crate) fn shown(images: Vec<Json>) -> Json {
    let parts = (1..).zip(images).flat_map(|(nth, image)| {
        let text = format!("{} of the results above:", named(nth));
        [Part::Text(text).into_json(), image]
    });
    json!({"role": "user", "content": parts.collect::<Vec<Json>>()})
}

fn named(nth: usize) -> String {
    format!("[image {nth}]")
}

impl Part {
    fn into_json(self) -> Json {
        match self {
            Self::Text(text) => json!({"type": "text", "text": text}),
            Self::Image(part) | Self::Other(part) => part,
        }
    }
}

/// A block as a part; none if it is an empty text.
fn part(settings: &Settings, block: &Value) -> Option<Part> {
    let field = |key: &str| block.get(key).and_then(Value::as_str);
    let text = |text: &str| (!text.is_empty()).then(|| Part::Text(text.to_owned()));
    if let Value::Text(said) = block {
        return text(said);
    }
    Some(match field("type") {
        Some("text") => return text(field("text").unwrap_or_default()),
        Some("image" | "image_url") => match image(block) {
            None => Part::Text(NO_IMAGE.to_owned()),
            Some(_) if !settings.sees => Part::Text(UNSEEN.to_owned()),
            Some(image) => Part::Image(image),
        },
        Some(kind) if is_whole(settings, kind, block) => Part::Other(block.to_json()),
        _ => Part::Text(unknown(block)),
    })
}

/// What stands in for a block that no chat completion has.
fn unknown(block: &Value) -> String {
    match block.get("type").and_then(Value::as_str) {
        Some(kind) => {
            let kind: String = kind.chars().take(60).collect();
            format!("[a part of type `{kind}` that this model can not be shown]")
        }
        None => "[a part without a type that this model can not be shown]".to_owned(),
    }
}

/// Whether a block is a part that users of the endpoint may send, with what belongs to it.
fn is_whole(settings: &Settings, kind: &str, block: &Value) -> bool {
    let inner = block.get(kind);
    let has = |key: &str| {
        let field = inner.and_then(|inner| inner.get(key)?.as_str());
        field.is_some_and(|text| !text.is_empty())
    };
    match kind {
        "input_audio" => has("data") && has("format"),
        "file" => ["file_id", "file_data"].iter().any(|key| has(key)),
        // Qwen, vLLM and OpenRouter take videos; OpenAI refuses the whole request.
        "video_url" => !settings.is_openai && has("url"),
        _ => false,
    }
}

/// An image in OpenAI's form, from that, one of LangChain's forms, or Anthropic's.
fn image(block: &Value) -> Option<Json> {
    let of = |url: &str| json!({"type": "image_url", "image_url": {"url": url}});
    let given = |text: Option<&Value>| {
        let text = text.and_then(Value::as_str);
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    match block.get("image_url") {
        None | Some(Value::Null) => {}
        Some(Value::Text(url)) => return (!url.is_empty()).then(|| of(url)),
        Some(inner) => {
            given(inner.get("url"))?;
            return Some(json!({"type": "image_url", "image_url": inner.to_json()}));
        }
    }
    let source = block.get("source").unwrap_or(block);
    if let Some(url) = given(source.get("url")) {
        return Some(of(&url));
    }
    let data = given(source.get("base64")).or_else(|| given(source.get("data")))?;
    let kind = given(source.get("mime_type")).or_else(|| given(source.get("media_type")))?;
    Some(of(&format!("data:{kind};base64,{data}")))
}
