//! Whether the endpoints of models answer.

use super::Findings;
use super::configuration::Endpoint;
use crate::cli::Cx;
use std::error::Error;
use std::time::Duration;
use tine::engine::World as _;

const CHECK: &str = "online";

/// How long an endpoint may take.
const LIMIT: Duration = Duration::from_secs(5);

pub(super) async fn check(cx: &Cx, endpoints: &[Endpoint], findings: &mut Findings) {
    if endpoints.is_empty() {
        return findings.ok(CHECK, "no model has a `base_url`");
    }
    // Whoever came first has set the same.
    drop(rustls::crypto::ring::default_provider().install_default());
    let client = match reqwest::Client::builder().build() {
        Ok(client) => client,
        Err(error) => {
            let hint = "the system's certificates are needed for that";
            let text = format!("no connection can be made: {}", root(&error));
            return findings.problem(CHECK, text, hint);
        }
    };
    for endpoint in endpoints {
        let url = format!("{}/models", endpoint.base_url.trim_end_matches('/'));
        let mut request = client.get(&url);
        if let Some(key) = &endpoint.key {
            request = request.bearer_auth(key);
        }
        let answer = tokio::select! {
            answer = request.send() => Some(answer),
            () = cx.world.sleep(LIMIT) => None,
        };
        let model = &endpoint.model;
        let url = shown(&url);
        match answer {
            None => findings.problem(
                CHECK,
                format!(
                    "`{model}`: {url} did not answer within {} s",
                    LIMIT.as_secs()
                ),
                "is `base_url` right, and can this machine reach it?",
            ),
            Some(Err(error)) => findings.problem(
                CHECK,
                format!("`{model}`: {url} can not be reached: {}", root(&error)),
                "is `base_url` right, and can this machine reach it?",
            ),
            Some(Ok(response)) => match response.status().as_u16() {
                200..300 => findings.ok(CHECK, format!("`{model}`: {url} answers")),
                401 | 403 => findings.problem(
                    CHECK,
                    format!(
                        "`{model}`: {url} does not take the key ({})",
                        response.status()
                    ),
                    "set the variable that `api_key` names to a valid key",
                ),
                // It is there, and may well not list its models.
                404 | 405 => findings.note(
                    CHECK,
                    format!(
                        "`{model}`: {url} answers {}: it lists no models",
                        response.status()
                    ),
                ),
                _ => findings.problem(
                    CHECK,
                    format!("`{model}`: {url} answers {}", response.status()),
                    "is `base_url` right? It usually ends in /v1",
                ),
            },
        }
    }
}

/// An address without what may be secret in it.
fn shown(url: &str) -> String {
    match reqwest::Url::parse(url) {
        Ok(mut url) => {
            // Addresses that can hold neither say so; nothing is left to take out.
            let _: Result<(), ()> = url.set_password(None);
            let _: Result<(), ()> = url.set_username("");
            url.set_query(None);
            url.to_string()
        }
        Err(_) => "its address".to_owned(),
    }
}

/// What lies at the bottom of an error, where no address stands.
fn root(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    match std::ptr::eq(cause, error as &dyn Error) {
        true => "the address is not one".to_owned(),
        false => cause.to_string(),
    }
}
