use std::error::Error;

use crate::paths::PathError;
use crate::schema::ArgumentErrors;

/// Says why a call of a tool gave no result.
///
/// The text is for the model: it names what went wrong and what to do. Two
/// variants are not for it: [`Interrupted`](Self::Interrupted) and
/// [`Cancelled`](Self::Cancelled) stop the task and become no message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The arguments do not fit the tool's schema; it was not run.
    #[error(transparent)]
    Arguments(#[from] ArgumentErrors),
    /// A path was refused, or a file could not be read or written.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The tool failed, in its own words.
    #[error("{message}")]
    Failed {
        /// What went wrong, and what to do about it.
        message: String,
        /// What it came from.
        source: Option<Box<dyn Error + Send + Sync>>,
    },
    /// The tool asked and waits: the task stops here and runs again with the
    /// answer. Pass it on unchanged.
    #[error("the call waits for an answer")]
    Interrupted,
    /// The run was cancelled while the tool worked.
    #[error("the call was cancelled")]
    Cancelled,
}

impl ToolError {
    /// Makes a failure from a text for the model.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed {
            message: message.into(),
            source: None,
        }
    }

    /// Tells the error and what it came from, in one line.
    #[must_use]
    pub fn with_causes(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            let more = error.to_string();
            // A transparent error repeats its cause.
            if !text.ends_with(&more) {
                text.push_str(": ");
                text.push_str(&more);
            }
            cause = error.source();
        }
        text
    }

    /// Tells whether the error is an answer for the model, as opposed to a
    /// reason to stop the task.
    #[must_use]
    pub fn is_for_model(&self) -> bool {
        !matches!(self, Self::Interrupted | Self::Cancelled)
    }
}
