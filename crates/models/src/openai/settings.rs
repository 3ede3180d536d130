//! The settings of an endpoint, as DeerFlow's configurations have them.

use super::profile::Profile;
use super::secrets::Secrets;
use crate::registry::settings::Settings as Entry;
use crate::registry::{ModelEntry, ModelsError};
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// How long the reply may be in coming, unless `timeout` says.
const TIMEOUT: Duration = Duration::from_secs(600);
/// How long the next piece of a stream may be in coming, unless `stream_chunk_timeout` says.
const CHUNK_TIMEOUT: Duration = Duration::from_secs(240);
/// How often a request is made again, unless `max_retries` says.
const MAX_RETRIES: u64 = 2;

/// Settings with an effect of their own.
const OWN: [&str; 26] = [
    "model_name",
    "base_url",
    "api_base",
    "openai_api_base",
    "api_key",
    "openai_api_key",
    "organization",
    "openai_organization",
    "timeout",
    "request_timeout",
    "max_retries",
    "default_headers",
    "default_query",
    "streaming",
    "disable_streaming",
    "stream_usage",
    "max_tokens",
    "max_completion_tokens",
    "stop",
    "stop_sequences",
    "reasoning_effort",
    "model_kwargs",
    "extra_body",
    "thinking",
    "when_thinking_enabled",
    "when_thinking_disabled",
];

/// Settings that are sent as they are.
const SENT: [&str; 11] = [
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "seed",
    "logit_bias",
    "parallel_tool_calls",
    "verbosity",
    "service_tier",
    "store",
    "user",
];

/// Settings that LangChain's classes have and nothing here reads, with the way out. `false`, `0` and empty ones pass.
const UNSUPPORTED: [(&str, &str); 19] = [
    (
        "use_responses_api",
        "leave it out, and chat completions are spoken",
    ),
    ("output_version", "leave it out"),
    ("use_previous_response_id", "leave it out"),
    ("include", "leave it out"),
    ("truncation", "leave it out"),
    ("reasoning", "`reasoning_effort` says how much is thought"),
    ("n", "leave it out: one reply is read"),
    ("logprobs", "leave it out"),
    ("top_logprobs", "leave it out"),
    (
        "openai_proxy",
        "the variables HTTPS_PROXY and NO_PROXY name a proxy",
    ),
    ("http_client", "leave it out"),
    ("http_async_client", "leave it out"),
    (
        "rate_limiter",
        "leave it out; `max_retries` waits when asked to",
    ),
    ("disabled_params", "leave it out"),
    ("include_response_headers", "leave it out"),
    (
        "cache",
        "leave it out; `cache:` of a node keeps its results",
    ),
    ("callbacks", "leave it out"),
    ("tags", "leave it out"),
    (
        "metadata",
        "leave it out; `extra_body: {metadata: ...}` sends it",
    ),
];

/// What an endpoint is asked with.
pub(crate) struct Settings {
    /// The name in the configuration, for errors.
    pub(crate) alias: Arc<str>,
    /// The name that the provider knows.
    pub(crate) model: Arc<str>,
    pub(crate) profile: &'static Profile,
    /// Where requests go: base and `/chat/completions`.
    pub(crate) url: Url,
    /// The base without anything secret, for messages.
    pub(crate) endpoint: String,
    pub(crate) headers: HeaderMap,
    /// What must never be shown.
    pub(crate) secrets: Secrets,
    /// What is sent with each request.
    pub(crate) body: Map<String, Value>,
    /// The name of the parameter for the most tokens of a reply.
    pub(crate) most_tokens: &'static str,
    /// Whether it is OpenAI itself, which refuses what others pass over.
    pub(crate) is_openai: bool,
    /// How many characters the id of a call may have. Other endpoints take any, and some keep data in them.
    pub(crate) longest_id: Option<usize>,
    pub(crate) stream: bool,
    pub(crate) stream_usage: bool,
    pub(crate) timeout: Duration,
    pub(crate) chunk_timeout: Duration,
    pub(crate) max_retries: u64,
    pub(crate) thinking: Thinking,
    /// Whether an effort asked for at run time is sent.
    pub(crate) takes_effort: bool,
    /// Whether images are sent.
    pub(crate) sees: bool,
}

/// What is sent when the model is to think, and when not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Thinking {
    pub(crate) supported: bool,
    pub(crate) enabled: Map<String, Value>,
    pub(crate) disabled: Map<String, Value>,
}

impl Settings {
    pub(crate) fn read(entry: &ModelEntry, profile: &'static Profile) -> Result<Self, ModelsError> {
        let alias = &entry.name;
        let given = Entry(entry);
        for (key, way_out) in UNSUPPORTED {
            if given.raw(key).is_some_and(|value| !is_nothing(value))
                && !(key == "n" && given.raw(key) == Some(&1.into()))
            {
                return Err(ModelsError::Unsupported {
                    model: alias.clone(),
                    key: key.to_owned(),
                    way_out,
                });
            }
        }
        let known: Vec<&str> = OWN.into_iter().chain(SENT).collect();
        let passed = |key: &str| UNSUPPORTED.iter().any(|(known, _)| *known == key);
        let rest = ModelEntry {
            settings: entry
                .settings
                .iter()
                .filter(|(key, _)| !passed(key))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            ..entry.clone()
        };
        Entry(&rest).only(&known)?;

        let (_, model) = given
            .text_of(&["model", "model_name"])?
            .filter(|(_, model)| !model.is_empty())
            .ok_or_else(|| ModelsError::Missing {
                model: alias.clone(),
                key: "model",
                example: "model: gpt-4o-mini",
            })?;
        let base = given.text_of(&["base_url", "api_base", "openai_api_base"])?;
        let mut base_url =
            endpoint(base.map_or(profile.base, |(_, base)| base)).ok_or_else(|| {
                given.wrong(
                    base.map_or("base_url", |(key, _)| key),
                    "an address such as `https://api.openai.com/v1`",
                )
            })?;
        let shown = shown(&base_url);
        let mut secrets = Secrets::default();
        let headers = headers(&given, profile, &base_url, &shown, &mut secrets)?;
        for (name, value) in given.texts("default_query")? {
            base_url.query_pairs_mut().append_pair(&name, &value);
        }
        secrets.add_address(&base_url);
        let url = join(&base_url, "chat/completions");
        // The newer models of OpenAI refuse the older name, and few others know the newer one.
        let is_openai = is_openai(&url);
        let most_tokens = match is_openai {
            true => "max_completion_tokens",
            false => "max_tokens",
        };
        Ok(Self {
            alias: alias.as_str().into(),
            model: model.into(),
            profile,
            endpoint: shown,
            headers,
            secrets,
            body: body(&given, profile, most_tokens)?,
            most_tokens,
            is_openai,
            longest_id: is_openai.then_some(40),
            stream: given.flag("streaming")?.unwrap_or(true)
                && !given.flag("disable_streaming")?.unwrap_or(false),
            stream_usage: given.flag("stream_usage")?.unwrap_or(true),
            timeout: match given.one_of(&["timeout", "request_timeout"])? {
                Some(key) => given.seconds(key)?.unwrap_or(TIMEOUT),
                None => TIMEOUT,
            },
            chunk_timeout: given
                .seconds("stream_chunk_timeout")?
                .unwrap_or(CHUNK_TIMEOUT),
            max_retries: given.whole("max_retries")?.unwrap_or(MAX_RETRIES),
            thinking: thinking(&given)?,
            takes_effort: given.flag("supports_reasoning_effort")?.unwrap_or(true),
            sees: given.flag("supports_vision")?.unwrap_or(true),
            url,
        })
    }

    /// A text without what must not be shown.
    pub(crate) fn clean(&self, text: &str) -> String {
        self.secrets.clean(text)
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
    }
}

/// Reads the address of an endpoint.
fn endpoint(text: &str) -> Option<Url> {
    let url = Url::parse(text.trim()).ok()?;
    (matches!(url.scheme(), "http" | "https") && url.has_host()).then_some(url)
}

/// Whether an endpoint is OpenAI's: of any region, or at Azure.
fn is_openai(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_end_matches('.');
    host == "api.openai.com"
        || host.ends_with(".api.openai.com")
        || host.ends_with(".openai.azure.com")
}

/// The address without user, password and query.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // Only addresses without a host have no user, and those are refused.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.as_str().trim_end_matches('/').to_owned()
}

/// An address below another, with the query of that.
fn join(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    let below = url.path().trim_end_matches('/');
    // An address that is given whole is meant as it is.
    let path = match below.ends_with("/chat/completions") {
        true => below.to_owned(),
        false => format!("{below}/{path}"),
    };
    url.set_path(&path);
    url.set_fragment(None);
    url
}

fn headers(
    given: &Entry<'_>,
    profile: &'static Profile,
    base: &Url,
    shown: &str,
    secrets: &mut Secrets,
) -> Result<HeaderMap, ModelsError> {
    let mut headers = HeaderMap::new();
    for (name, value) in given.texts("default_headers")? {
        let wrong = || given.wrong("default_headers", "a map of header names to values");
        let name = HeaderName::try_from(name).map_err(|_| wrong())?;
        let mut header = HeaderValue::try_from(&value).map_err(|_| wrong())?;
        header.set_sensitive(true);
        secrets.add_header(&value);
        headers.insert(name, header);
    }
    if let Some((key, organization)) = given.text_of(&["organization", "openai_organization"])? {
        let header = HeaderValue::try_from(organization)
            .map_err(|_| given.wrong(key, "a text that can stand in a header"))?;
        headers.insert("openai-organization", header);
    }
    let key = given.text_of(&["api_key", "openai_api_key"])?;
    match key.filter(|(_, key)| !key.trim().is_empty()) {
        Some((name, key)) => {
            let key = key.trim();
            let mut header = HeaderValue::try_from(format!("Bearer {key}"))
                .map_err(|_| given.wrong(name, "a text that can stand in a header"))?;
            header.set_sensitive(true);
            secrets.add(key);
            headers.insert(AUTHORIZATION, header);
        }
        None => {
            let own = Url::parse(profile.base).ok();
            let is_own = own.is_some_and(|own| own.host_str() == base.host_str());
            let needs = is_openai(base) || is_own;
            // Azure has a header of its own for keys.
            let has_own = headers.contains_key(AUTHORIZATION)
                || headers.contains_key("api-key")
                || base.password().is_some();
            if needs && !has_own {
                return Err(ModelsError::NoKey {
                    model: given.0.name.clone(),
                    endpoint: shown.to_owned(),
                    variable: profile.variable,
                });
            }
        }
    }
    Ok(headers)
}

fn body(
    given: &Entry<'_>,
    profile: &Profile,
    most_tokens: &'static str,
) -> Result<Map<String, Value>, ModelsError> {
    let mut body: Map<String, Value> = serde_json::from_str(profile.body).unwrap_or_default();
    for key in SENT {
        if let Some(value) = given.raw(key) {
            let fits = match key {
                "parallel_tool_calls" | "store" => value.is_boolean(),
                "verbosity" | "service_tier" | "user" => value.is_string(),
                "logit_bias" => value.is_object(),
                _ => value.is_number(),
            };
            if !fits {
                return Err(given.wrong(
                    key,
                    match key {
                        "parallel_tool_calls" | "store" => "true or false",
                        "verbosity" | "service_tier" | "user" => "a text",
                        "logit_bias" => "a map",
                        _ => "a number",
                    },
                ));
            }
            body.insert(key.to_owned(), value.clone());
        }
    }
    if let Some(most) = given.whole("max_tokens")? {
        body.insert(most_tokens.to_owned(), most.into());
    }
    if let Some(most) = given.whole("max_completion_tokens")? {
        body.insert("max_completion_tokens".to_owned(), most.into());
    }
    if let Some(key) = given.one_of(&["stop", "stop_sequences"])? {
        match given.raw(key) {
            Some(stop @ (Value::String(_) | Value::Array(_))) => {
                body.insert("stop".to_owned(), stop.clone());
            }
            _ => return Err(given.wrong(key, "a text, or a list of texts")),
        }
    }
    if let Some(effort) = given.text("reasoning_effort")? {
        if given.flag("supports_reasoning_effort")? == Some(false) {
            return Err(given.wrong(
                "reasoning_effort",
                "left out, as `supports_reasoning_effort` is false",
            ));
        }
        body.insert("reasoning_effort".to_owned(), effort.into());
    }
    merge(&mut body, given.map("model_kwargs")?);
    merge(&mut body, given.map("extra_body")?);
    Ok(body)
}

/// What DeerFlow sends when a model is to think, and when not.
fn thinking(given: &Entry<'_>) -> Result<Thinking, ModelsError> {
    let flat = |key| Ok(flatten(given.map(key)?));
    let mut enabled = flat("when_thinking_enabled")?;
    let shortcut = given.map("thinking")?;
    if !shortcut.is_empty() {
        let thinking = Map::from_iter([("thinking".to_owned(), shortcut.into())]);
        merge(&mut enabled, thinking);
    }
    let mut disabled = flat("when_thinking_disabled")?;
    if disabled.is_empty() {
        let inner = |name: &str| enabled.get(name).and_then(Value::as_object);
        if inner("thinking").is_some_and(|thinking| thinking.contains_key("type")) {
            disabled.insert(
                "thinking".to_owned(),
                serde_json::json!({"type": "disabled"}),
            );
        } else if let Some(kwargs) = inner("chat_template_kwargs") {
            let off: Map<String, Value> = ["thinking", "enable_thinking"]
                .iter()
                .filter(|key| kwargs.contains_key(**key))
                .map(|key| ((*key).to_owned(), false.into()))
                .collect();
            disabled.insert("chat_template_kwargs".to_owned(), off.into());
        }
    }
    Ok(Thinking {
        supported: given.flag("supports_thinking")?.unwrap_or(false),
        enabled,
        disabled,
    })
}

/// Parameters with those of `extra_body` and `model_kwargs` among them, as they are sent.
fn flatten(mut given: Map<String, Value>) -> Map<String, Value> {
    for key in ["model_kwargs", "extra_body"] {
        if let Some(Value::Object(inner)) = given.remove(key) {
            merge(&mut given, inner);
        }
    }
    given
}

/// Puts values on top of others; maps are merged at every depth.
pub(crate) fn merge(below: &mut Map<String, Value>, above: Map<String, Value>) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(Value::Object(below)), Value::Object(above)) => merge(below, above),
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}
