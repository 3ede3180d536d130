//! Why a model gave no reply.

use crate::script::ScriptError;
use std::sync::Arc;
use std::time::Duration;
use tine_engine::{ErrorClass, NodeError};

/// Why a model gave no reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The provider could not be reached.
    #[error("model `{model}` could not be reached: {message}")]
    Transport {
        /// The model.
        model: Arc<str>,
        /// What went wrong.
        message: String,
    },
    /// The provider was reached, and failed at the request or is overloaded.
    #[error("model `{model}` failed at the request: {message}")]
    Unavailable {
        /// The model.
        model: Arc<str>,
        /// What the provider said.
        message: String,
    },
    /// The reply ended before it was whole.
    #[error("the reply of model `{model}` broke off: {message}")]
    BrokeOff {
        /// The model.
        model: Arc<str>,
        /// How far it came, and what went wrong.
        message: String,
    },
    /// The provider wants fewer requests.
    #[error("model `{model}` takes no more requests for now{}: {message}", wait(*retry_after))]
    RateLimited {
        /// The model.
        model: Arc<str>,
        /// How long the provider asks to wait.
        retry_after: Option<Duration>,
        /// What the provider said.
        message: String,
    },
    /// The answer, or the beginning of the reply, did not come in time; or a reply that is not streamed was not whole
    /// by then. The request is not made again, for it may have been answered, and billed, all the same. A piece that
    /// does not come behind others is [`BrokeOff`](Self::BrokeOff).
    #[error("model `{model}` did not answer within {}", shown(*limit))]
    Timeout {
        /// The model.
        model: Arc<str>,
        /// How long it may take.
        limit: Duration,
    },
    /// The provider answered with something that is no reply, or not the one asked for.
    #[error("model `{model}` gave a reply that can not be used: {message}")]
    InvalidOutput {
        /// The model.
        model: Arc<str>,
        /// What is wrong with it.
        message: String,
    },
    /// The provider refuses: a missing or wrong key, no right to the model, a policy.
    #[error("model `{model}` refused the request: {message}")]
    Denied {
        /// The model.
        model: Arc<str>,
        /// What the provider said.
        message: String,
    },
    /// The provider can not do anything with the request, so asking again will not help.
    #[error("model `{model}` can not take the request: {message}")]
    InvalidRequest {
        /// The model.
        model: Arc<str>,
        /// What the provider said.
        message: String,
    },
    /// The script of a scripted model has no reply.
    #[error("model `{model}`: {error}")]
    Script {
        /// The model.
        model: Arc<str>,
        /// What is wrong with the script.
        error: Box<ScriptError>,
    },
}

impl ModelError {
    /// The class, for retry policies and error handlers.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Transport { .. } | Self::Unavailable { .. } | Self::BrokeOff { .. } => {
                ErrorClass::Transport
            }
            Self::RateLimited { .. } => ErrorClass::RateLimited,
            Self::Timeout { .. } => ErrorClass::Timeout,
            Self::InvalidOutput { .. } => ErrorClass::InvalidOutput,
            Self::Denied { .. } => ErrorClass::Denied,
            Self::InvalidRequest { .. } => ErrorClass::Internal,
            Self::Script { error, .. } => match **error {
                ScriptError::Template { .. } | ScriptError::NotBoolean { .. } => {
                    ErrorClass::Expression
                }
                _ => ErrorClass::Internal,
            },
        }
    }

    /// Turns the error into that of a node, with its class kept; plain `?` would make it an internal error.
    #[must_use]
    pub fn into_node_error(self) -> NodeError {
        NodeError::new(self.class(), self.to_string())
    }
}

fn wait(retry_after: Option<Duration>) -> String {
    retry_after
        .filter(|wait| !wait.is_zero())
        .map(|wait| format!(" (asks to wait {})", shown(wait)))
        .unwrap_or_default()
}

/// A duration as people write it: whole seconds as such, everything else in milliseconds.
pub(crate) fn shown(duration: Duration) -> String {
    match duration.subsec_millis() {
        0 if duration.as_secs() > 0 => format!("{} s", duration.as_secs()),
        _ => format!("{} ms", duration.as_millis()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_error_keeps_the_class() {
        let error = ModelError::RateLimited {
            model: "m".into(),
            retry_after: Some(Duration::from_secs(2)),
            message: "429".into(),
        };
        let error = error.into_node_error();
        assert_eq!(error.class(), ErrorClass::RateLimited);
        assert_eq!(
            error.to_string(),
            "model `m` takes no more requests for now (asks to wait 2 s): 429"
        );
    }
}
