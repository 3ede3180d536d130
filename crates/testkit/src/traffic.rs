//! Recorded traffic of model providers, read by the code that reads what comes over the wire.
//!
//! A file is YAML with one or more documents, each an exchange: `when` has the request (`method`, `path`, `body`),
//! `then` the answer (`status`, `header`, `body`). Files lie at `PROVIDER/TOPIC/FILE.yaml`.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tine_engine::{ErrorClass, SimWorld};
use tine_models::openai::Recorded;
use tine_models::{Discard, ModelCx, ModelError, ModelReply, ModelRequest, ReplyCall};

/// The sizes that bodies are cut into; no cut may change what is read.
const CUTS: [usize; 3] = [usize::MAX, 1, 17];

/// One recorded exchange.
#[derive(Clone, Debug, Deserialize)]
pub struct Exchange {
    /// What was asked.
    pub when: Asked,
    /// What was answered.
    pub then: Answered,
}

/// A recorded request.
#[derive(Clone, Debug, Deserialize)]
pub struct Asked {
    /// `POST`.
    pub method: String,
    /// `/v1/chat/completions`.
    pub path: String,
    /// The body, as it was sent.
    #[serde(default)]
    pub body: Option<String>,
}

/// A recorded answer.
#[derive(Clone, Debug, Deserialize)]
pub struct Answered {
    /// The HTTP status.
    pub status: u16,
    /// The body, as it came.
    #[serde(default)]
    pub body: Option<String>,
    /// How the body is written down, if not as it came.
    #[serde(default)]
    pub body_encoding: Option<String>,
}

/// What became of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It was read: a reply, or an error of the provider told clearly and in the right class.
    Passed,
    /// What a provider really sent could not be read.
    Failed,
    /// Nothing here speaks to such an endpoint.
    Skipped,
}

/// What was read of an exchange.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The file.
    pub file: String,
    /// Which document of it, counted from 0.
    pub exchange: usize,
    /// The provider.
    pub provider: String,
    /// What became of it.
    pub verdict: Verdict,
    /// Why it failed, or the endpoint for which it was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What the model said.
    pub text: Option<String>,
    /// What it thought.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// `{id, name, args}`, or `{id, name, invalid}` with what is wrong.
    pub tool_calls: Vec<Value>,
    /// Why the reply ended.
    pub finish: Option<String>,
    /// `{input_tokens, output_tokens}`.
    pub usage: Option<Value>,
    /// `{class, message}`.
    pub error: Option<Value>,
}

/// Counts by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Read.
    pub passed: usize,
    /// Not read.
    pub failed: usize,
    /// Not tried.
    pub skipped: usize,
}

impl Count {
    /// Counts one more.
    pub fn add(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Passed => self.passed += 1,
            Verdict::Failed => self.failed += 1,
            Verdict::Skipped => self.skipped += 1,
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            passed,
            failed,
            skipped,
        } = self;
        write!(out, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

/// The files below a folder, sorted; a file is itself.
///
/// # Errors
/// If something can not be listed.
pub fn find(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut entries: Vec<PathBuf> = std::fs::read_dir(path)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    entries.sort();
    let mut found = Vec::new();
    for entry in entries {
        let is_traffic = entry
            .extension()
            .is_some_and(|end| end == "yaml" || end == "yml");
        if entry.is_dir() {
            found.extend(find(&entry)?);
        } else if is_traffic {
            found.push(entry);
        }
    }
    Ok(found)
}

/// Reads the exchanges of a file.
///
/// # Errors
/// If it is no such file; the text says where.
pub fn load(path: &Path) -> Result<Vec<Exchange>, String> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| format!("{shown}: {error}"))?;
    serde_yaml::Deserializer::from_str(&text)
        .map(|document| {
            Exchange::deserialize(document).map_err(|error| format!("{shown}: {error}"))
        })
        .collect()
}

/// The provider whose traffic a file has: the folder that its topic is in.
#[must_use]
pub fn provider_of(path: &Path) -> String {
    let mut folders = path.ancestors().skip(1).filter_map(Path::file_name);
    let (topic, provider) = (folders.next(), folders.next());
    let name = provider.or(topic).unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Reads an exchange and judges what came of it.
pub async fn replay(file: &str, provider: &str, number: usize, exchange: &Exchange) -> Line {
    let mut line = Line {
        file: file.to_owned(),
        exchange: number,
        provider: provider.to_owned(),
        verdict: Verdict::Skipped,
        why: None,
        text: None,
        reasoning: None,
        tool_calls: Vec::new(),
        finish: None,
        usage: None,
        error: None,
    };
    if let Some(endpoint) = unspoken(exchange) {
        line.why = Some(endpoint);
        return line;
    }
    let body = exchange.then.body.as_deref().unwrap_or_default();
    let status = exchange.then.status;
    let first = read(status, body.as_bytes(), CUTS[0]).await;
    let problem = match &first {
        Ok(reply) => empty(reply, body),
        Err(error) => misjudged(status, error),
    };
    let mut problem = problem;
    for size in &CUTS[1..] {
        if problem.is_none() && read(status, body.as_bytes(), *size).await != first {
            problem = Some(format!(
                "cut into pieces of {size} bytes it reads otherwise"
            ));
        }
    }
    match first {
        Ok(reply) => line.tell(&reply),
        Err(error) => {
            line.error = Some(json!({"class": error.class(), "message": error.to_string()}));
        }
    }
    line.verdict = match problem {
        None => Verdict::Passed,
        Some(_) => Verdict::Failed,
    };
    line.why = problem;
    line
}

impl Line {
    fn tell(&mut self, reply: &ModelReply) {
        self.text = Some(reply.content.text());
        self.reasoning = reply.reasoning.as_deref().map(str::to_owned);
        self.tool_calls = reply.calls.iter().map(call).collect();
        self.finish = Some(reply.finish.name().to_owned());
        self.usage = reply.usage.map(|usage| {
            json!({"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens})
        });
    }
}

fn call(call: &ReplyCall) -> Value {
    match call {
        ReplyCall::Valid(call) => json!({"id": call.id, "name": call.name, "args": call.args}),
        ReplyCall::Invalid(call) => {
            json!({"id": call.id, "name": call.name, "invalid": call.error})
        }
    }
}

async fn read(status: u16, body: &[u8], size: usize) -> Result<ModelReply, ModelError> {
    let chunks = body.chunks(size.min(body.len().max(1)));
    let recorded = Recorded {
        status,
        chunks: chunks.map(<[u8]>::to_vec).collect(),
    };
    let cx = ModelCx::new(Arc::new(SimWorld::new(0)));
    recorded
        .read(&cx, &ModelRequest::default(), &mut Discard)
        .await
}

/// The endpoint, if nothing here speaks to it.
fn unspoken(exchange: &Exchange) -> Option<String> {
    let Asked { method, path, .. } = &exchange.when;
    if let Some(encoding) = &exchange.then.body_encoding {
        return Some(format!("{method} {path}, body in {encoding}"));
    }
    let speaks = method == "POST" && path.ends_with("/chat/completions");
    (!speaks).then(|| format!("{method} {path}"))
}

/// Says so if a reply has nothing in it, and the body does not say that it has nothing.
fn empty(reply: &ModelReply, body: &str) -> Option<String> {
    let has_something = !reply.content.is_empty()
        || !reply.calls.is_empty()
        || reply.reasoning.is_some()
        || !reply.extra.is_empty();
    if has_something || reply.finish.is_cut_off() {
        return None;
    }
    // A model may have nothing to say; then no piece of the body has a text or a call.
    let speaks = ["\"content\": \"", "\"content\":\"", "\"arguments\""];
    let says = speaks.iter().any(|key| {
        body.match_indices(key)
            .any(|(at, _)| !body[at + key.len()..].starts_with('"'))
    });
    says.then(|| "the reply that was read is empty, and the body is not".to_owned())
}

/// Says so if an error is not what the status says, or says nothing.
fn misjudged(status: u16, error: &ModelError) -> Option<String> {
    let class = error.class();
    let fits = match status {
        200..=299 => !matches!(
            error,
            ModelError::InvalidOutput { .. }
                | ModelError::BrokeOff { .. }
                | ModelError::Transport { .. }
                | ModelError::Timeout { .. }
        ),
        401..=403 => class == ErrorClass::Denied,
        429 => matches!(class, ErrorClass::RateLimited | ErrorClass::Denied),
        400..=499 => class == ErrorClass::Internal,
        _ => class == ErrorClass::Transport,
    };
    let text = error.to_string();
    // The provider's own words, not its JSON.
    let is_clear = text.contains(": ") && !text.contains("{\"");
    match (fits, is_clear) {
        (false, _) => Some(format!(
            "status {status} became an error of class {class:?}"
        )),
        (_, false) => Some(format!("the error is not clear: {text}")),
        (true, true) => None,
    }
}

/// Reads everything below a folder or file; each line is told as it is read.
///
/// # Errors
/// If a file can not be read; the text says which.
pub async fn replay_all(
    path: &Path,
    mut tell: impl FnMut(&Line),
) -> Result<BTreeMap<String, Count>, String> {
    let files = find(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    for file in files {
        let provider = provider_of(&file);
        let shown = file.strip_prefix(path).unwrap_or(&file);
        for (number, exchange) in load(&file)?.iter().enumerate() {
            let shown = shown.display().to_string();
            let line = replay(&shown, &provider, number, exchange).await;
            counts
                .entry(provider.clone())
                .or_default()
                .add(line.verdict);
            tell(&line);
        }
    }
    Ok(counts)
}
