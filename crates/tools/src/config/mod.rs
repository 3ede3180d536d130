//! `config.yaml` in DeerFlow's format.
//!
//! Read are the parts that assembly needs; DeerFlow's other sections are
//! accepted and listed as notes, and a key that is neither is an error.

mod error;
mod place;
mod sections;
mod set;
mod settings;
mod yaml;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

pub use error::ConfigError;
pub(crate) use error::did_you_mean;
pub use place::Place;
use place::{DuplicateKey, Places};
pub use settings::{EnvSource, Resolved, Settings};

use crate::schema::describe;

/// One entry of `tools:`.
#[derive(Clone, Debug)]
pub struct ToolEntry {
    /// The name the model sees.
    pub name: String,
    /// What scenes filter by: `web`, `file:read`.
    pub group: String,
    /// The implementation: `tine.community.local:web_search_tool`.
    pub use_path: String,
    /// Where the implementation is named.
    pub use_place: Place,
    /// All other keys, for the implementation.
    pub settings: Settings,
}

/// One entry of `models:`.
#[derive(Clone, Debug)]
pub struct ModelEntry {
    /// The name graphs and agents use.
    pub name: String,
    /// The implementation: `tine.models.scripted:ScriptedModel`.
    pub use_path: String,
    /// Where the implementation is named.
    pub use_place: Place,
    /// All other keys, `model` included, for the implementation.
    pub settings: Settings,
}

/// The `sandbox:` section.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sandbox {
    /// The provider: `deerflow.sandbox.local:LocalSandboxProvider`.
    pub use_path: String,
    /// Whether the unisolated local provider may run shell commands.
    pub allow_host_bash: bool,
    /// After how many characters `read_file` cuts its text; 0 for never.
    pub read_file_output_max_chars: usize,
    /// After how many characters `ls` cuts its list; 0 for never.
    pub ls_output_max_chars: usize,
}

/// What a user may hand in with one message: the `uploads:` section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Uploads {
    /// How many files.
    pub max_files: usize,
    /// How large each may be, in bytes.
    pub max_file_size: usize,
    /// How large they may be together, in bytes.
    pub max_total_size: usize,
}

impl Default for Uploads {
    fn default() -> Self {
        const MIB: usize = 1 << 20;
        Self {
            max_files: 10,
            max_file_size: 50 * MIB,
            max_total_size: 100 * MIB,
        }
    }
}

/// When MCP tools are shown by name only until the model asks for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deferral {
    /// Never.
    #[default]
    Off,
    /// Always.
    On,
    /// When there are many of them.
    Auto,
}

/// A configuration: what may be assembled, with the place of every value.
#[derive(Clone, Debug)]
pub struct Config {
    file: Arc<str>,
    base: Arc<Path>,
    tools: Vec<ToolEntry>,
    models: Vec<ModelEntry>,
    tool_groups: Vec<String>,
    sections: Vec<(&'static str, Settings)>,
    typed: Typed,
    notes: Vec<String>,
}

/// The sections that are read as a whole.
#[derive(Clone, Debug, Default)]
struct Typed {
    sandbox: Option<Sandbox>,
    deferral: Deferral,
    skill_evolution: bool,
}

/// The sections whose keys are settings.
const SETTING_SECTIONS: [&str; 5] = [
    "sandbox",
    "skill_evolution",
    "subagents",
    "tool_search",
    "uploads",
];

/// The keys of those sections that are read with the file, when no
/// environment is at hand.
const WRITTEN_OUT: [&str; 5] = [
    "allow_host_bash",
    "enabled",
    "ls_output_max_chars",
    "read_file_output_max_chars",
    "use",
];

impl Config {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// When the file cannot be read, or as [`parse`](Self::parse).
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let file = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&text, path),
            Err(source) => Err(ConfigError::Read { file, source }),
        }
    }

    /// Reads a configuration from its text; `path` names it in errors, and
    /// relative paths in it are taken from that path's folder.
    ///
    /// # Errors
    /// When the text is not YAML, holds an unknown section, or an entry lacks
    /// what it needs.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let file: Arc<str> = Arc::from(path.display().to_string());
        let base: Arc<Path> = Arc::from(path.parent().unwrap_or(Path::new("")));
        let (sections, places) = yaml::read(&file, text)?;
        let mut config = Self {
            file,
            base,
            tools: Vec::new(),
            models: Vec::new(),
            tool_groups: Vec::new(),
            sections: Vec::new(),
            typed: Typed::default(),
            notes: Vec::new(),
        };
        for (name, value) in sections {
            config.section(&name, value, &places)?;
        }
        config.typed = config.read_typed()?;
        Ok(config)
    }

    /// Names the file.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Lists the tools, in the order of the file.
    #[must_use]
    pub fn tools(&self) -> &[ToolEntry] {
        &self.tools
    }

    /// Lists the models, in the order of the file; the first is the default.
    #[must_use]
    pub fn models(&self) -> &[ModelEntry] {
        &self.models
    }

    /// Finds a model by name; of two with one name, the first.
    #[must_use]
    pub fn model(&self, name: &str) -> Option<&ModelEntry> {
        self.models.iter().find(|model| model.name == name)
    }

    /// Lists the names of `tool_groups`, which are for people only.
    #[must_use]
    pub fn tool_groups(&self) -> &[String] {
        &self.tool_groups
    }

    /// Gives the sandbox section, if there is one.
    #[must_use]
    pub fn sandbox(&self) -> Option<&Sandbox> {
        self.typed.sandbox.as_ref()
    }

    /// Says where the provider of the sandbox is named.
    #[must_use]
    pub fn sandbox_place(&self) -> Option<&Place> {
        let (_, settings) = self.sections.iter().find(|(name, _)| *name == "sandbox")?;
        Some(settings.place_of("use"))
    }

    /// Gives the limits of what a user may hand in; DeerFlow's own where the file says nothing.
    ///
    /// # Errors
    /// When a limit is no whole number, or names an unset variable.
    pub fn uploads(&self, env: &dyn EnvSource) -> Result<Uploads, ConfigError> {
        let mut uploads = Uploads::default();
        let section = self.sections.iter().find(|(name, _)| *name == "uploads");
        if let Some((_, settings)) = section {
            let values = settings.with(env);
            for (key, limit) in [
                ("max_files", &mut uploads.max_files),
                ("max_file_size", &mut uploads.max_file_size),
                ("max_total_size", &mut uploads.max_total_size),
            ] {
                *limit = values.whole(key)?.unwrap_or(*limit);
            }
        }
        Ok(uploads)
    }

    /// Says when MCP tools are deferred.
    #[must_use]
    pub fn deferral(&self) -> Deferral {
        self.typed.deferral
    }

    /// Tells whether agents may manage skills.
    #[must_use]
    pub fn skill_evolution(&self) -> bool {
        self.typed.skill_evolution
    }

    /// Lists what was accepted and has no effect.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    fn section(&mut self, name: &str, value: Value, places: &Places) -> Result<(), ConfigError> {
        let place = places.at(name);
        if sections::NOT_READ.contains(&name) {
            if !value.is_null() {
                self.notes.push(format!(
                    "{place}: the section `{name}` has no effect: tine does not support it yet"
                ));
            }
            return Ok(());
        }
        if !sections::READ.contains(&name) {
            return Err(ConfigError::UnknownSection {
                place,
                name: name.to_owned(),
                nearest: tine_engine::text::nearest(name, sections::known()).map(str::to_owned),
            });
        }
        if name == "config_version" {
            return match value {
                Value::Null | Value::Number(_) | Value::String(_) => Ok(()),
                other => Err(ConfigError::Value {
                    place,
                    what: "`config_version`".to_owned(),
                    expected: "a number",
                    found: describe(&other),
                }),
            };
        }
        if let Some(known) = SETTING_SECTIONS.iter().find(|known| **known == name) {
            if !value.is_null() {
                let settings = self.settings(name, name, value, places)?;
                for key in settings.keys() {
                    self.notes
                        .extend(note_on(name, key, settings.place_of(key)));
                }
                self.sections.push((known, settings));
            }
            return Ok(());
        }
        for (index, entry) in self.list(name, value, places)?.into_iter().enumerate() {
            let at = format!("{name}/{index}");
            let label = match entry.get("name").and_then(Value::as_str) {
                Some(entry_name) => format!("{name}.{entry_name}"),
                None => format!("entry {} of {name}", index + 1),
            };
            let mut settings = self.settings(&label, &at, entry, places)?;
            let name_of_entry = settings.take_text("name")?;
            let use_place = settings.place_of("use").clone();
            match name {
                "tools" => self.tools.push(ToolEntry {
                    name: name_of_entry,
                    group: settings.take_text("group")?,
                    use_path: settings.take_text("use")?,
                    use_place,
                    settings,
                }),
                "models" => self.models.push(ModelEntry {
                    name: name_of_entry,
                    use_path: settings.take_text("use")?,
                    use_place,
                    settings,
                }),
                _ => self.tool_groups.push(name_of_entry),
            }
        }
        Ok(())
    }

    fn list(&self, name: &str, value: Value, places: &Places) -> Result<Vec<Value>, ConfigError> {
        match value {
            Value::Null => Ok(Vec::new()),
            Value::Array(items) => Ok(items),
            other => Err(ConfigError::Value {
                place: places.at(name),
                what: format!("`{name}`"),
                expected: "a list",
                found: describe(&other),
            }),
        }
    }

    fn settings(
        &self,
        owner: &str,
        at: &str,
        value: Value,
        places: &Places,
    ) -> Result<Settings, ConfigError> {
        let Value::Object(fields) = value else {
            return Err(ConfigError::Value {
                place: places.at(at),
                what: owner.to_owned(),
                expected: "a mapping",
                found: describe(&value),
            });
        };
        let mut settings = Settings::new(owner.to_owned(), places.at(at), Arc::clone(&self.base));
        for (key, value) in fields {
            let place = places.at(&format!("{at}/{key}"));
            settings.insert(key, value, place);
        }
        Ok(settings)
    }

    fn read_typed(&self) -> Result<Typed, ConfigError> {
        let env = std::collections::BTreeMap::new();
        let mut typed = Typed::default();
        for (name, settings) in &self.sections {
            let values = settings.with(&env);
            for key in WRITTEN_OUT {
                if let Some(Value::String(text)) = settings.raw(key)
                    && text.starts_with('$')
                {
                    let place = settings.place_of(key).clone();
                    return Err(ConfigError::Value {
                        place,
                        what: settings.what(key),
                        expected: "written out, because it decides what is assembled",
                        found: text.clone(),
                    });
                }
            }
            match *name {
                "sandbox" => {
                    typed.sandbox = Some(Sandbox {
                        use_path: values.text("use")?.ok_or_else(|| values.missing("use"))?,
                        allow_host_bash: values.flag("allow_host_bash")?.unwrap_or(false),
                        read_file_output_max_chars: values
                            .whole("read_file_output_max_chars")?
                            .unwrap_or(DEFAULT_READ_FILE_CHARS),
                        ls_output_max_chars: values
                            .whole("ls_output_max_chars")?
                            .unwrap_or(DEFAULT_LS_CHARS),
                    });
                }
                "tool_search" => {
                    typed.deferral = match settings.raw("enabled") {
                        None | Some(Value::Bool(false)) => Deferral::Off,
                        Some(Value::Bool(true)) => Deferral::On,
                        Some(Value::String(text)) if text == "auto" => Deferral::Auto,
                        Some(other) => {
                            return Err(values.wrong("enabled", "true, false or auto", other));
                        }
                    };
                }
                "skill_evolution" => {
                    typed.skill_evolution = values.flag("enabled")?.unwrap_or(false);
                }
                _ => {}
            }
        }
        Ok(typed)
    }
}

/// Notes a key of a section of settings that nothing reads.
fn note_on(section: &str, key: &str, place: &Place) -> Option<String> {
    let known = sections::keys(section)?;
    if known.contains(&key) {
        return None;
    }
    let near = did_you_mean(tine_engine::text::nearest(key, known.iter().copied()));
    Some(format!(
        "{place}: `{key}` of {section} has no effect: tine does not support it yet{near}"
    ))
}

/// The limits of a configuration that names none.
pub(crate) const DEFAULT_READ_FILE_CHARS: usize = 50_000;
pub(crate) const DEFAULT_LS_CHARS: usize = 20_000;

impl From<DuplicateKey> for ConfigError {
    fn from(twice: DuplicateKey) -> Self {
        Self::DuplicateKey {
            place: twice.place,
            key: twice.key,
            first: twice.first,
        }
    }
}
