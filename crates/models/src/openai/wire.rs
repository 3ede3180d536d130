//! Requests over HTTP.

use super::failure::{self, Again, Failure};
use super::retry;
use super::settings::Settings;
use super::stream::Body;
use crate::error::ModelError;
use crate::model::ModelCx;
use async_trait::async_trait;
use futures_util::future::{Either, select};
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use std::error::Error;
use std::pin::{Pin, pin};
use std::sync::OnceLock;
use std::time::Duration;
use tine_engine::World;

/// How long a connection may be in coming.
const CONNECT: Duration = Duration::from_secs(30);
/// The most bytes of an answer that says why there is no reply.
const MOST_FAILURE: usize = 64 << 10;

/// The time until which something may take.
pub(crate) struct Deadline<'a>(Pin<Box<dyn Future<Output = ()> + Send + 'a>>);

impl<'a> Deadline<'a> {
    pub(crate) fn after(world: &'a dyn World, limit: Duration) -> Self {
        Self(world.sleep(limit))
    }

    /// The output of a future, unless the time runs out.
    pub(crate) async fn or<T>(&mut self, future: impl Future<Output = T> + Send) -> Option<T> {
        match select(pin!(future), &mut self.0).await {
            Either::Left((output, _)) => Some(output),
            Either::Right(_) => None,
        }
    }
}

/// The client of one endpoint, made when it is first needed.
#[derive(Default)]
pub(crate) struct Wire {
    client: OnceLock<Result<Client, String>>,
}

impl Wire {
    fn client(&self, settings: &Settings) -> Result<&Client, Failure> {
        let client = self.client.get_or_init(|| connect(settings));
        client.as_ref().map_err(|error| Failure {
            error: unreached(settings, error),
            again: Again::No,
        })
    }

    /// Sends a request; gives the answer if it is a success.
    pub(crate) async fn send(
        &self,
        settings: &Settings,
        cx: &ModelCx,
        body: &[u8],
        deadline: &mut Deadline<'_>,
    ) -> Result<Answer, Failure> {
        let client = self.client(settings)?;
        let sent = client
            .post(settings.url.clone())
            .header("content-type", "application/json")
            .headers(settings.headers.clone())
            .body(body.to_vec())
            .send();
        let Some(sent) = deadline.or(Box::pin(sent)).await else {
            return Err(Failure {
                error: ModelError::Timeout {
                    model: settings.alias.clone(),
                    limit: settings.timeout,
                },
                again: Again::No,
            });
        };
        let response = sent.map_err(|error| Failure {
            again: if error.is_builder() {
                Again::No
            } else {
                Again::Yes
            },
            error: unreached(settings, &root(&error)),
        })?;
        if response.status().is_success() {
            return Ok(Answer(response));
        }
        Err(failed(settings, cx, response).await)
    }
}

fn unreached(settings: &Settings, message: &str) -> ModelError {
    ModelError::Transport {
        model: settings.alias.clone(),
        message: settings.clean(&format!("{}: {message}", settings.endpoint)),
    }
}

/// What lies at the bottom of an error, in which the address does not stand.
fn root(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    match error.is_timeout() {
        true => format!("no connection within {} s", CONNECT.as_secs()),
        false => cause.to_string(),
    }
}

fn connect(settings: &Settings) -> Result<Client, String> {
    // The first one counts; a program may have installed another.
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut builder = Client::builder()
        .user_agent(concat!("tine/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        // A request must not become another one, nor its key go elsewhere.
        .redirect(Policy::none());
    let url = &settings.url;
    let is_local = match url.host_str() {
        Some("localhost") => true,
        Some(host) => host
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback()),
        None => false,
    };
    if is_local {
        builder = builder.no_proxy();
    }
    if url.scheme() == "http" && is_local {
        // Nothing to verify, and certificates may not be there.
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(|error| root(&error))
}

async fn failed(settings: &Settings, cx: &ModelCx, response: Response) -> Failure {
    let status = response.status().as_u16();
    let headers = response.headers().clone();
    let header = |name: &'static str| headers.get(name)?.to_str().ok();
    let retry_after = retry::asked(header, cx.world.now());
    let should_retry = header("x-should-retry").and_then(|text| text.parse().ok());
    if let Some(place) = header("location").filter(|_| (300..400).contains(&status)) {
        let said = format!("it has moved to {place}; set `base_url` to where it is now");
        return failure::of_status(settings, status, None, None, said.as_bytes());
    }
    let mut answer = Answer(response);
    let mut said = Vec::new();
    let all = async {
        // What came before a failure is still worth telling.
        while let Ok(Some(more)) = answer.next().await {
            said.extend(more);
            if said.len() > MOST_FAILURE {
                break;
            }
        }
    };
    let _ = Deadline::after(&*cx.world, settings.chunk_timeout)
        .or(all)
        .await;
    failure::of_status(settings, status, retry_after, should_retry, &said)
}

/// The answer to a request, its body still to come.
pub(crate) struct Answer(Response);

#[async_trait]
impl Body for Answer {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, String> {
        let bytes = self.0.chunk().await.map_err(|error| root(&error))?;
        Ok(bytes.map(|bytes| bytes.to_vec()))
    }
}
