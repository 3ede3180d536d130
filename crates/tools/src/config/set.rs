use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Config, ConfigError, Place, SETTING_SECTIONS, Settings, sections, yaml};
use tine_engine::text::nearest;

/// Keys that hold a secret.
const SECRETS: [&str; 2] = ["api_key", "openai_api_key"];

/// The key below which everything is a secret.
const HEADERS: &str = "default_headers";

fn spells_secret<'a>(keys: &mut Vec<&'a str>, value: &'a Value) -> bool {
    match value {
        Value::Object(map) => map.iter().any(|(key, value)| {
            keys.push(key);
            let found = spells_secret(keys, value);
            keys.pop();
            found
        }),
        Value::Array(items) => items.iter().any(|item| spells_secret(keys, item)),
        Value::Null => false,
        Value::String(text) if text.is_empty() || text.starts_with('$') => false,
        _ => keys.last().is_some_and(|key| SECRETS.contains(key)) || keys.contains(&HEADERS),
    }
}

impl Config {
    /// Sets one value on top of the file: `tools.web_search.path`,
    /// `models.default.script`, `sandbox.allow_host_bash`.
    ///
    /// The value is read as YAML (`5` is a number, `"5"` a text); an empty one
    /// unsets. A relative path in it is taken from the working directory, not
    /// from the file's folder.
    ///
    /// # Errors
    /// When there is no such tool, model or section, or the value does not
    /// fit; the configuration is then unchanged.
    pub fn set(&mut self, path: &str, value: &str) -> Result<(), ConfigError> {
        self.set_from(path, value, Path::new(""))
    }

    /// As [`set`](Self::set); a relative path in the value is taken from
    /// `directory`.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn set_from(
        &mut self,
        path: &str,
        value: &str,
        directory: &Path,
    ) -> Result<(), ConfigError> {
        let parts: Vec<&str> = path.split('.').collect();
        if parts.iter().any(|part| part.is_empty()) {
            return Err(refuse(path, "write it as section.key or section.name.key"));
        }
        let assign = |key, deeper| Assignment {
            path,
            key,
            deeper,
            value: yaml::read_scalar(value),
            place: Place::Override {
                path: Arc::from(path),
                directory: Arc::from(directory),
            },
        };
        match parts.as_slice() {
            ["tools", name, key, deeper @ ..] => self.set_tool(name, assign(key, deeper)),
            ["models", name, key, deeper @ ..] => self.set_model(name, assign(key, deeper)),
            ["tools" | "models", ..] => Err(refuse(
                path,
                "name the entry and its key, as in tools.web_search.path",
            )),
            [section, key, deeper @ ..] => match find_section(section) {
                Some(section) => self.set_section(section, &assign(key, deeper)),
                None => Err(refuse(path, &not_settable(section))),
            },
            [section] if find_section(section).is_some() => Err(refuse(
                path,
                "name a key of the section, as in sandbox.allow_host_bash",
            )),
            [section] => Err(refuse(path, &not_settable(section))),
            [] => Err(refuse(path, "the path is empty")),
        }
    }

    /// Says whether setting this spells a secret out: a key of a provider or a header for it that is no `$NAME`.
    ///
    /// What keeps settings had better refuse that.
    #[must_use]
    pub fn spells_secret(path: &str, value: &str) -> bool {
        let mut keys: Vec<&str> = path.split('.').collect();
        spells_secret(&mut keys, &yaml::read_scalar(value))
    }

    fn set_tool(&mut self, name: &str, given: Assignment<'_>) -> Result<(), ConfigError> {
        let Some(at) = self.tools.iter().position(|tool| tool.name == name) else {
            let known: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_str()).collect();
            return Err(refuse(given.path, &no_entry("tool", name, &known)));
        };
        let tool = &mut self.tools[at];
        match given.key {
            "use" => {
                let place = given.place.clone();
                tool.use_path = given.text()?;
                tool.use_place = place;
            }
            "group" => tool.group = given.text()?,
            "name" => return Err(refuse(given.path, "a tool is renamed in the file")),
            _ => given.put(&mut tool.settings)?,
        }
        Ok(())
    }

    fn set_model(&mut self, name: &str, given: Assignment<'_>) -> Result<(), ConfigError> {
        let Some(at) = self.models.iter().position(|model| model.name == name) else {
            let known: Vec<&str> = self
                .models
                .iter()
                .map(|model| model.name.as_str())
                .collect();
            return Err(refuse(given.path, &no_entry("model", name, &known)));
        };
        let model = &mut self.models[at];
        match given.key {
            "use" => {
                let place = given.place.clone();
                model.use_path = given.text()?;
                model.use_place = place;
            }
            "name" => return Err(refuse(given.path, "a model is renamed in the file")),
            _ => given.put(&mut model.settings)?,
        }
        Ok(())
    }

    fn set_section(
        &mut self,
        name: &'static str,
        given: &Assignment<'_>,
    ) -> Result<(), ConfigError> {
        let before = self.sections.clone();
        if !self.sections.iter().any(|(known, _)| *known == name) {
            let (owner, base) = (name.to_owned(), Arc::clone(&self.base));
            let settings = Settings::new(owner, given.place.clone(), base);
            self.sections.push((name, settings));
        }
        let put = self
            .sections
            .iter_mut()
            .filter(|(known, _)| *known == name)
            .try_for_each(|(_, settings)| given.put(settings));
        match put.and_then(|()| self.read_typed()) {
            Ok(typed) => {
                self.typed = typed;
                self.notes
                    .extend(super::note_on(name, given.key, &given.place));
            }
            Err(error) => {
                self.sections = before;
                return Err(error);
            }
        }
        Ok(())
    }
}

/// One value for one place, as it was given.
struct Assignment<'a> {
    path: &'a str,
    key: &'a str,
    /// Keys within the mapping that stands at `key`.
    deeper: &'a [&'a str],
    value: Value,
    place: Place,
}

impl Assignment<'_> {
    /// Takes the new value of a key that is a plain text.
    fn text(self) -> Result<String, ConfigError> {
        match self.value {
            Value::String(text) if self.deeper.is_empty() => Ok(text),
            _ => Err(refuse(self.path, "its value must be a text")),
        }
    }

    /// Puts the value at its key, or deeper in the mapping that stands there.
    fn put(&self, settings: &mut Settings) -> Result<(), ConfigError> {
        let key = self.key.to_owned();
        let Some((last, between)) = self.deeper.split_last() else {
            settings.insert(key, self.value.clone(), self.place.clone());
            return Ok(());
        };
        let no_mapping = || refuse(self.path, &format!("`{}` is not a mapping there", self.key));
        let mut whole = match settings.raw(self.key) {
            Some(value) => value.clone(),
            None => Value::Object(Map::new()),
        };
        let mut inner = &mut whole;
        for part in between {
            let fields = inner.as_object_mut().ok_or_else(no_mapping)?;
            inner = fields
                .entry((*part).to_owned())
                .or_insert_with(|| Value::Object(Map::new()));
        }
        let fields = inner.as_object_mut().ok_or_else(no_mapping)?;
        fields.insert((*last).to_owned(), self.value.clone());
        settings.insert(key, whole, self.place.clone());
        Ok(())
    }
}

fn find_section(name: &str) -> Option<&'static str> {
    SETTING_SECTIONS.into_iter().find(|known| *known == name)
}

fn not_settable(section: &str) -> String {
    if sections::known().any(|known| known == section) {
        return format!("the section `{section}` cannot be set from outside the file");
    }
    let settable: Vec<&str> = ["tools", "models"]
        .into_iter()
        .chain(SETTING_SECTIONS)
        .collect();
    let way_out = suggest(section, &settable);
    format!("there is no section `{section}`{way_out}")
}

fn no_entry(kind: &str, name: &str, known: &[&str]) -> String {
    let way_out = suggest(name, known);
    format!("there is no {kind} `{name}` in the configuration{way_out}")
}

/// Names the likeliest of the known names, or else all.
fn suggest(name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("; did you mean `{near}`?"),
        None if known.is_empty() => String::new(),
        None => format!("; there are {}", known.join(", ")),
    }
}

fn refuse(path: &str, reason: &str) -> ConfigError {
    ConfigError::Target {
        path: path.to_owned(),
        reason: reason.to_owned(),
    }
}
