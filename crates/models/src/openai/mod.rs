//! Models behind endpoints that speak OpenAI's chat completions.
//!
//! A request is translated (`request`), sent (`wire`), made again if that may help (`retry`), and its reply read as it
//! comes (`stream`, `reply`); what differs between endpoints is in `profile`, what a configuration says in `settings`.

mod content;
mod failure;
mod profile;
mod recorded;
mod reply;
mod request;
mod retry;
mod secrets;
mod settings;
mod stream;
mod wire;

pub use recorded::Recorded;

pub(crate) use profile::{names, profile};

use crate::delta::DeltaSink;
use crate::error::{ModelError, shown};
use crate::model::{Model, ModelCx};
use crate::registry::{ModelEntry, ModelsError};
use crate::reply::ModelReply;
use crate::request::ModelRequest;
use crate::suggestion::suggestion;
use async_trait::async_trait;
use failure::{Again, Failure};
use profile::Profile;
use settings::Settings;
use std::fmt;
use stream::{Reply, Told};
use wire::{Deadline, Wire};

/// A model behind an endpoint that speaks chat completions.
pub struct OpenAi {
    settings: Settings,
    wire: Wire,
}

impl OpenAi {
    /// Makes the model of an entry, for those who have no list of them.
    ///
    /// # Errors
    /// If its `use:` is none of those that speak chat completions, or its settings are wrong.
    pub fn from_entry(entry: &ModelEntry) -> Result<Self, ModelsError> {
        match profile(&entry.use_path) {
            Some(profile) => Self::new(entry, profile),
            None => Err(ModelsError::UnknownUse {
                model: entry.name.clone(),
                suggestion: suggestion(&entry.use_path, names()),
                use_path: entry.use_path.clone(),
            }),
        }
    }

    /// The body that a request is sent with: a JSON object.
    ///
    /// # Errors
    /// If the request asks for what can not be said, such as a call of a tool when none is offered.
    pub fn body(&self, request: &ModelRequest) -> Result<serde_json::Value, ModelError> {
        request::body(&self.settings, request).map(Into::into)
    }

    pub(crate) fn new(entry: &ModelEntry, profile: &'static Profile) -> Result<Self, ModelsError> {
        Ok(Self {
            settings: Settings::read(entry, profile)?,
            wire: Wire::default(),
        })
    }

    /// Makes a request once.
    async fn attempt(
        &self,
        cx: &ModelCx,
        request: &ModelRequest,
        body: &[u8],
        sink: &mut dyn DeltaSink,
    ) -> Result<ModelReply, Failure> {
        let settings = &self.settings;
        // For the answer and, unless it is streamed, all of the reply.
        let mut deadline = Deadline::after(&*cx.world, settings.timeout);
        let mut answer = self.wire.send(settings, cx, body, &mut deadline).await?;
        let mut told = Told::default();
        let reply = Reply::new(settings, sink, &mut told)
            .read(cx, request, &mut answer, &mut deadline)
            .await;
        reply.map_err(|error| {
            // What was told can not be taken back.
            let may = !told.0
                && matches!(
                    error,
                    ModelError::BrokeOff { .. }
                        | ModelError::Unavailable { .. }
                        | ModelError::RateLimited { .. }
                );
            Failure {
                error,
                again: if may { Again::Yes } else { Again::No },
            }
        })
    }
}

impl fmt::Debug for OpenAi {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("OpenAi")
            .field("alias", &self.settings.alias)
            .field("model", &self.settings.model)
            .field("endpoint", &self.settings.endpoint)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Model for OpenAi {
    fn name(&self) -> &str {
        &self.settings.model
    }

    async fn stream(
        &self,
        cx: &ModelCx,
        request: &ModelRequest,
        sink: &mut dyn DeltaSink,
    ) -> Result<ModelReply, ModelError> {
        let settings = &self.settings;
        let body = request::body(settings, request)?;
        let body = serde_json::to_vec(&body).map_err(|error| ModelError::InvalidRequest {
            model: settings.alias.clone(),
            message: error.to_string(),
        })?;
        let mut retries = 0;
        loop {
            let Failure { error, again } = match self.attempt(cx, request, &body, sink).await {
                Ok(reply) => return Ok(reply),
                Err(failure) => failure,
            };
            let pause = retry::pause(&*cx.world, again, retries);
            let Some(pause) = pause.filter(|_| retries < settings.max_retries) else {
                return Err(told(error, again, retries));
            };
            tracing::info!(model = %settings.alias, %error, pause = %shown(pause), "asks again");
            cx.world.sleep(pause).await;
            retries += 1;
        }
    }
}

/// Says how often a request was made, and why not again.
fn told(mut error: ModelError, again: Again, retries: u64) -> ModelError {
    let mut more = String::new();
    if retries > 0 {
        more = format!(" (asked {} times)", retries + 1);
    }
    if let Again::After(wait) = again
        && wait > retry::MOST_ASKED
    {
        // An error of this kind tells the wait itself.
        let asks = match error {
            ModelError::RateLimited { .. } => String::new(),
            _ => format!("asks to wait {}; ", shown(wait)),
        };
        let most = shown(retry::MOST_ASKED);
        more.push_str(&format!(" ({asks}pauses longer than {most} are not made)"));
    }
    match &mut error {
        ModelError::Transport { message, .. }
        | ModelError::Unavailable { message, .. }
        | ModelError::BrokeOff { message, .. }
        | ModelError::RateLimited { message, .. }
        | ModelError::Denied { message, .. }
        | ModelError::InvalidRequest { message, .. }
        | ModelError::InvalidOutput { message, .. } => message.push_str(&more),
        ModelError::Timeout { .. } | ModelError::Script { .. } => {}
    }
    error
}

#[cfg(test)]
mod tests;
