//! Models by name: the `models:` section of a configuration.

use crate::model::Model;
use crate::script::{Script, ScriptError};
use crate::scripted::ScriptedModel;
use crate::suggestion::suggestion;
use indexmap::IndexMap;
use serde_json::{Map, Value};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The implementation that replies from a script.
pub const SCRIPTED: &str = "tine.models.scripted:ScriptedModel";

/// The implementations that DeerFlow's configurations name. They are known, so that such a file can be read, and
/// can not be used yet.
const PLANNED: [&str; 14] = [
    "langchain_anthropic:ChatAnthropic",
    "langchain_deepseek:ChatDeepSeek",
    "langchain_google_genai:ChatGoogleGenerativeAI",
    "langchain_ollama:ChatOllama",
    "langchain_openai:ChatOpenAI",
    "deerflow.models.claude_provider:ClaudeChatModel",
    "deerflow.models.mindie_provider:MindIEChatModel",
    "deerflow.models.openai_codex_provider:CodexChatModel",
    "deerflow.models.patched_deepseek:PatchedChatDeepSeek",
    "deerflow.models.patched_mimo:PatchedChatMiMo",
    "deerflow.models.patched_minimax:PatchedChatMiniMax",
    "deerflow.models.patched_openai:PatchedChatOpenAI",
    "deerflow.models.patched_stepfun:PatchedChatStepFun",
    "deerflow.models.vllm_provider:VllmChatModel",
];

/// The settings that every model may have, whatever its implementation.
const GENERAL: [&str; 9] = [
    "model",
    "display_name",
    "description",
    "context_window",
    "supports_thinking",
    "supports_reasoning_effort",
    "supports_vision",
    "pricing",
    "stream_chunk_timeout",
];

/// One entry of `models:`.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelEntry {
    /// The name that graphs and agents use.
    pub name: String,
    /// The implementation: `tine.models.scripted:ScriptedModel`.
    pub use_path: String,
    /// All other keys.
    pub settings: Map<String, Value>,
}

/// Gives the text of a file that a setting names.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can not give the files that settings name",
    note = "`Folder` reads below a folder; closures `Fn(&str) -> std::io::Result<String>` do as well"
)]
pub trait Sources: Send + Sync {
    /// Reads the file at `path`, as the setting has it.
    ///
    /// # Errors
    /// If there is no such file, or it is not UTF-8.
    fn read(&self, path: &str) -> std::io::Result<String>;
}

impl<F: Fn(&str) -> std::io::Result<String> + Send + Sync> Sources for F {
    fn read(&self, path: &str) -> std::io::Result<String> {
        self(path)
    }
}

/// Reads files from a folder, that of the configuration; absolute paths as they are.
#[derive(Clone, Debug)]
pub struct Folder(pub PathBuf);

impl Sources for Folder {
    fn read(&self, path: &str) -> std::io::Result<String> {
        std::fs::read_to_string(self.0.join(path))
    }
}

/// The models of a configuration.
#[derive(Clone)]
pub struct Models {
    models: IndexMap<String, Slot>,
    sources: Arc<dyn Sources>,
}

#[derive(Clone, Debug)]
enum Slot {
    /// Settings that are made a model when somebody asks for it.
    Entry(ModelEntry),
    Ready(Arc<dyn Model>),
}

impl Models {
    /// Reads the entries of `models:`, in the order of the file. The files they name are read when a model is used.
    ///
    /// # Errors
    /// If two entries have one name, or an implementation is unknown. One that is known and can not be used yet is an
    /// error only for those who use it: a configuration written for DeerFlow can be read.
    pub fn from_entries(
        entries: impl IntoIterator<Item = ModelEntry>,
        sources: impl Sources + 'static,
    ) -> Result<Self, ModelsError> {
        let mut models = Self {
            models: IndexMap::new(),
            sources: Arc::new(sources),
        };
        for entry in entries {
            let known = || PLANNED.iter().copied().chain([SCRIPTED]);
            if !known().any(|known| known == entry.use_path) {
                return Err(ModelsError::UnknownUse {
                    suggestion: suggestion(&entry.use_path, known()),
                    model: entry.name,
                    use_path: entry.use_path,
                });
            }
            if models.models.contains_key(&entry.name) {
                return Err(ModelsError::Duplicate { model: entry.name });
            }
            models.models.insert(entry.name.clone(), Slot::Entry(entry));
        }
        Ok(models)
    }

    /// Adds a model made in code; it replaces one of the same name.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, model: impl Model + 'static) -> Self {
        self.models
            .insert(name.into(), Slot::Ready(Arc::new(model)));
        self
    }

    /// The names, in the order of the file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.models.keys().map(String::as_str)
    }

    /// Gives the model of this name. If none is called `default`, that is the first.
    ///
    /// # Errors
    /// If there is no such model, its implementation can not be used yet, or its settings are wrong.
    pub fn get(&self, name: &str) -> Result<Arc<dyn Model>, ModelsError> {
        let slot = self.models.get(name).or_else(|| {
            let (_, first) = self.models.first()?;
            (name == "default").then_some(first)
        });
        match slot {
            Some(Slot::Ready(model)) => Ok(model.clone()),
            Some(Slot::Entry(entry)) => self.make(entry),
            None if self.models.is_empty() => Err(ModelsError::NoModels {
                model: name.to_owned(),
            }),
            None => Err(ModelsError::Unknown {
                suggestion: suggestion(name, self.names()),
                model: name.to_owned(),
                known: list(self.names()),
            }),
        }
    }

    fn make(&self, entry: &ModelEntry) -> Result<Arc<dyn Model>, ModelsError> {
        if entry.use_path != SCRIPTED {
            return Err(ModelsError::Planned {
                model: entry.name.clone(),
                use_path: entry.use_path.clone(),
            });
        }
        let settings = Settings(entry);
        settings.only(&["script", "delay_ms"])?;
        let path = settings
            .text("script")?
            .ok_or_else(|| ModelsError::Missing {
                model: entry.name.clone(),
                key: "script",
                example: "script: graphs/news_report.script.yaml",
            })?;
        let text = self
            .sources
            .read(path)
            .map_err(|error| ModelsError::Unreadable {
                model: entry.name.clone(),
                path: path.to_owned(),
                message: error.to_string(),
            })?;
        let script = Script::parse(path, &text).map_err(|error| ModelsError::Script {
            model: entry.name.clone(),
            error: Box::new(error),
        })?;
        let shown = settings.text("model")?.unwrap_or(&entry.name);
        let delay = Duration::from_millis(settings.millis("delay_ms")?);
        Ok(Arc::new(
            ScriptedModel::new(shown, script).with_delay(delay),
        ))
    }
}

impl fmt::Debug for Models {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Settings may hold keys, and are not shown.
        out.debug_list().entries(self.names()).finish()
    }
}

struct Settings<'a>(&'a ModelEntry);

impl Settings<'_> {
    fn only(&self, own: &[&str]) -> Result<(), ModelsError> {
        let known = || GENERAL.iter().chain(own).copied();
        match self
            .0
            .settings
            .keys()
            .find(|key| !known().any(|known| known == **key))
        {
            None => Ok(()),
            Some(key) => Err(ModelsError::UnknownSetting {
                model: self.0.name.clone(),
                suggestion: suggestion(key, known()),
                own: list(own.iter().copied()),
                key: key.clone(),
            }),
        }
    }

    fn text(&self, key: &'static str) -> Result<Option<&str>, ModelsError> {
        match self.0.settings.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(key, "a text")),
        }
    }

    fn millis(&self, key: &'static str) -> Result<u64, ModelsError> {
        match self.0.settings.get(key) {
            None | Some(Value::Null) => Ok(0),
            Some(value) => value
                .as_u64()
                .ok_or_else(|| self.wrong(key, "a number of milliseconds, 0 or more")),
        }
    }

    fn wrong(&self, key: &'static str, expected: &'static str) -> ModelsError {
        ModelsError::WrongSetting {
            model: self.0.name.clone(),
            key,
            expected,
        }
    }
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn or_what_works(suggestion: &str) -> String {
    if suggestion.is_empty() {
        format!("; what works is `use: {SCRIPTED}`")
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
        "model `{model}`: `use: {use_path}` is known, but can not be used yet; what works is `use: {SCRIPTED}`"
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

#[cfg(test)]
mod tests;
