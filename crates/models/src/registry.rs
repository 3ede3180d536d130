//! Models by name: the `models:` section of a configuration.

mod error;
pub(crate) mod settings;

pub use error::ModelsError;

use crate::model::Model;
use crate::openai::{self, OpenAi};
use crate::script::Script;
use crate::scripted::ScriptedModel;
use crate::suggestion::suggestion;
use indexmap::IndexMap;
use serde_json::{Map, Value};
use settings::{Settings, list};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The implementation that replies from a script.
pub const SCRIPTED: &str = "tine.models.scripted:ScriptedModel";

/// The implementation that speaks OpenAI's chat completions, which most endpoints do.
pub const OPENAI: &str = "langchain_openai:ChatOpenAI";

/// The implementations that DeerFlow's configurations name and that can not be used yet. They are known, so that such a
/// file can be read.
const PLANNED: [&str; 6] = [
    "langchain_anthropic:ChatAnthropic",
    "langchain_google_genai:ChatGoogleGenerativeAI",
    "langchain_ollama:ChatOllama",
    "deerflow.models.claude_provider:ClaudeChatModel",
    "deerflow.models.mindie_provider:MindIEChatModel",
    "deerflow.models.openai_codex_provider:CodexChatModel",
];

/// One entry of `models:`.
#[derive(Clone, PartialEq)]
pub struct ModelEntry {
    /// The name that graphs and agents use.
    pub name: String,
    /// The implementation: `langchain_openai:ChatOpenAI`, `tine.models.scripted:ScriptedModel`.
    pub use_path: String,
    /// All other keys.
    pub settings: Map<String, Value>,
}

impl fmt::Debug for ModelEntry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Settings may hold keys, and are not shown.
        out.debug_struct("ModelEntry")
            .field("name", &self.name)
            .field("use_path", &self.use_path)
            .field("settings", &self.settings.keys().collect::<Vec<_>>())
            .finish()
    }
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
            let known = || PLANNED.into_iter().chain(openai::names()).chain([SCRIPTED]);
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
        if let Some(profile) = openai::profile(&entry.use_path) {
            return Ok(Arc::new(OpenAi::new(entry, profile)?));
        }
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

#[cfg(test)]
mod tests;
