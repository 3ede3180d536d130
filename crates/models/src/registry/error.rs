//! Why there is no such model.

use super::{OPENAI, SCRIPTED};
use crate::script::ScriptError;

fn or_what_works(suggestion: &str) -> String {
    if suggestion.is_empty() {
        format!("; what works is `use: {OPENAI}` or `use: {SCRIPTED}`")
    } else {
        suggestion.to_owned()
    }
}

/// Why there is no such model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelsError {
    /// No model at all.
    #[error(
        "there is no model `{model}`: no model is configured; give config.yaml a `models:` section"
    )]
    NoModels {
        /// The name that was asked for.
        model: String,
    },
    /// A name that no entry has.
    #[error("there is no model `{model}` (configured: {known}){suggestion}")]
    Unknown {
        /// The name that was asked for.
        model: String,
        /// The nearest name, if one is near.
        suggestion: String,
        /// The names that there are.
        known: String,
    },
    /// Two entries of one name.
    #[error("two models are called `{model}`; a name must be given once")]
    Duplicate {
        /// The name.
        model: String,
    },
    /// An implementation that nobody knows.
    #[error(
        "model `{model}`: `use: {use_path}` is not known{}",
        or_what_works(suggestion)
    )]
    UnknownUse {
        /// The model.
        model: String,
        /// The implementation.
        use_path: String,
        /// The nearest one, if one is near.
        suggestion: String,
    },
    /// An implementation that can not be used yet.
    #[error(
        "model `{model}`: `use: {use_path}` is known, but can not be used yet; what works is `use: {OPENAI}`, which most endpoints speak, or `use: {SCRIPTED}`"
    )]
    Planned {
        /// The model.
        model: String,
        /// The implementation.
        use_path: String,
    },
    /// A setting that the implementation does not have.
    #[error("model `{model}` has no setting `{key}`; its own are {own}{suggestion}")]
    UnknownSetting {
        /// The model.
        model: String,
        /// The setting.
        key: String,
        /// The settings of its implementation.
        own: String,
        /// The nearest one, if one is near.
        suggestion: String,
    },
    /// A setting of another type.
    #[error("model `{model}`: `{key}` must be {expected}")]
    WrongSetting {
        /// The model.
        model: String,
        /// The setting.
        key: &'static str,
        /// What it must be.
        expected: &'static str,
    },
    /// A setting that is needed.
    #[error("model `{model}` needs the setting `{key}`, such as `{example}`")]
    Missing {
        /// The model.
        model: String,
        /// The setting.
        key: &'static str,
        /// How it may look.
        example: &'static str,
    },
    /// A setting that is known and does nothing yet.
    #[error("model `{model}`: the setting `{key}` is known, but does nothing yet; {way_out}")]
    Unsupported {
        /// The model.
        model: String,
        /// The setting.
        key: String,
        /// What to do.
        way_out: &'static str,
    },
    /// Two settings of one meaning.
    #[error("model `{model}`: `{first}` and `{second}` mean the same; give one of them")]
    GivenTwice {
        /// The model.
        model: String,
        /// One setting.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// A key that the endpoint does not answer without.
    #[error(
        "model `{model}` has no key for {endpoint}: give its entry `api_key: ${variable}` and set that variable, or `base_url:` for an endpoint that needs none"
    )]
    NoKey {
        /// The model.
        model: String,
        /// Where requests would go.
        endpoint: String,
        /// The variable that such keys are usually in.
        variable: &'static str,
    },
    /// A file that a setting names and that can not be read.
    #[error("model `{model}`: {path} can not be read: {message}")]
    Unreadable {
        /// The model.
        model: String,
        /// The file.
        path: String,
        /// Why.
        message: String,
    },
    /// A script that is wrong.
    #[error("model `{model}`: {error}")]
    Script {
        /// The model.
        model: String,
        /// What is wrong with it.
        error: Box<ScriptError>,
    },
}
