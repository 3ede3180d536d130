//! What providers say when they do not reply.

use super::settings::Settings;
use crate::error::ModelError;
use reqwest::StatusCode;
use serde_json::Value;
use std::time::Duration;

/// The most characters of what a provider says.
const MOST_SAID: usize = 1000;

/// A request that failed, and whether it may be made again.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: ModelError,
    pub(crate) again: Again,
}

/// Whether a request may be made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// It would fail again.
    No,
    /// After a while.
    Yes,
    /// After as long as the provider says.
    After(Duration),
}

/// An answer with a status that is no success.
pub(crate) fn of_status(
    settings: &Settings,
    status: u16,
    retry_after: Option<Duration>,
    should_retry: Option<bool>,
    body: &[u8],
) -> Failure {
    let value = serde_json::from_slice::<Value>(body).ok();
    let said = value.as_ref().and_then(message);
    let name = match StatusCode::from_u16(status) {
        Ok(code) => match code.canonical_reason() {
            Some(reason) if said.is_none() => format!("HTTP {status} {reason}"),
            _ => format!("HTTP {status}"),
        },
        Err(_) => format!("HTTP {status}"),
    };
    let said = said.unwrap_or_else(|| settings.start(body));
    let text = match said.is_empty() {
        true => name,
        false => format!("{name}: {said}"),
    };
    let codes = value.as_ref().map(codes).unwrap_or_default();
    let class = Class::of(status, &codes);
    let error = class.error(settings, &text, retry_after);
    let may_pass = matches!(class, Class::Busy | Class::Unavailable);
    // Whatever a header says, a request that was refused for what it is stays refused.
    let is_final = class == Class::Denied || status == 400;
    let may = should_retry.unwrap_or(may_pass) && !is_final;
    let again = match (may, retry_after) {
        (false, _) => Again::No,
        (true, None) => Again::Yes,
        (true, Some(wait)) => Again::After(wait),
    };
    Failure { error, again }
}

/// An error in the place of a reply, or of a piece of one.
pub(crate) fn in_reply(settings: &Settings, error: &Value) -> ModelError {
    let codes = codes(error);
    let status = codes.iter().find_map(|code| code.parse::<u16>().ok());
    let said = message(error).unwrap_or_else(|| settings.start(error.to_string().as_bytes()));
    let class = match status {
        Some(status @ 400..=599) => Class::of(status, &codes),
        _ => Class::of_codes(&codes),
    };
    class.error(settings, &said, None)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Denied,
    Busy,
    Invalid,
    Unavailable,
}

impl Class {
    fn of(status: u16, codes: &[String]) -> Self {
        match status {
            // A quota that is used up does not come back by waiting a little.
            429 if codes.iter().any(|code| is_quota(code)) => Self::Denied,
            429 => Self::Busy,
            401 | 402 | 403 | 407 | 451 => Self::Denied,
            408 | 500.. => Self::Unavailable,
            _ => Self::Invalid,
        }
    }

    fn of_codes(codes: &[String]) -> Self {
        let has = |words: &[&str]| {
            codes
                .iter()
                .any(|code| words.iter().any(|word| code.contains(word)))
        };
        if codes.iter().any(|code| is_quota(code))
            || has(&["auth", "permission", "api_key", "forbidden"])
        {
            Self::Denied
        } else if has(&["rate_limit", "too_many"]) {
            Self::Busy
        } else if has(&[
            "invalid",
            "not_found",
            "context_length",
            "exceed_context",
            "unsupported",
        ]) {
            Self::Invalid
        } else {
            Self::Unavailable
        }
    }

    fn error(self, settings: &Settings, text: &str, retry_after: Option<Duration>) -> ModelError {
        let model = settings.alias.clone();
        let message = bounded(&settings.clean(text));
        match self {
            Self::Denied => ModelError::Denied { model, message },
            Self::Busy => ModelError::RateLimited {
                model,
                retry_after,
                message,
            },
            Self::Invalid => ModelError::InvalidRequest { model, message },
            Self::Unavailable => ModelError::Unavailable { model, message },
        }
    }
}

fn is_quota(code: &str) -> bool {
    code.contains("insufficient_quota")
        || code.contains("billing")
        || code.contains("insufficient_balance")
}

/// The codes and types of an error, in lower case.
fn codes(error: &Value) -> Vec<String> {
    let inner = error.get("error").unwrap_or(error);
    ["code", "type", "status"]
        .iter()
        .filter_map(|key| inner.get(*key))
        .filter_map(|code| match code {
            Value::String(code) => Some(code.to_ascii_lowercase()),
            Value::Number(code) => Some(code.to_string()),
            _ => None,
        })
        .collect()
}

/// What an error says, in any of the shapes that providers give errors.
fn message(error: &Value) -> Option<String> {
    match error {
        Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Value::Array(errors) => errors.iter().find_map(message),
        Value::Object(fields) => {
            let keys = [
                "error", "message", "msg", "detail", "details", "errors", "title",
            ];
            let said = keys.iter().find_map(|key| message(fields.get(*key)?))?;
            // Gateways put what the provider behind them said beside their own words.
            let behind = fields
                .get("metadata")
                .and_then(|metadata| metadata.get("raw"));
            Some(match behind.and_then(message) {
                Some(raw) if !said.contains(&raw) => format!("{said}: {raw}"),
                _ => said,
            })
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn bounded(text: &str) -> String {
    match text.char_indices().nth(MOST_SAID) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}
