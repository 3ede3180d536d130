use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Config, ConfigError, Place, SETTING_SECTIONS, Settings, sections, yaml};
use crate::nearest::nearest;

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
        let place = Place::Override {
            path: Arc::from(path),
        };
        let value = yaml::read_scalar(value);
        let parts: Vec<&str> = path.split('.').collect();
        if parts.iter().any(|part| part.is_empty()) {
            return Err(refuse(path, "write it as section.key or section.name.key"));
        }
        match parts.as_slice() {
            ["tools", name, key, rest @ ..] => self.set_tool(path, name, key, rest, value, place),
            ["models", name, key, rest @ ..] => self.set_model(path, name, key, rest, value, place),
            ["tools" | "models", ..] => Err(refuse(
                path,
                "name the entry and its key, as in tools.web_search.path",
            )),
            [section, key, rest @ ..] if SETTING_SECTIONS.contains(section) => {
                self.set_section(section, key, rest, value, place)
            }
            [section] if SETTING_SECTIONS.contains(section) => Err(refuse(
                path,
                "name a key of the section, as in sandbox.allow_host_bash",
            )),
            [section, ..] if sections::known().any(|known| known == *section) => Err(refuse(
                path,
                &format!("the section `{section}` cannot be set from outside the file"),
            )),
            [section, ..] => {
                let mut reason = format!("there is no section `{section}`");
                let settable = ["tools", "models"].into_iter().chain(SETTING_SECTIONS);
                match nearest(section, settable.clone()) {
                    Some(name) => reason.push_str(&format!("; did you mean `{name}`?")),
                    None => {
                        let settable: Vec<&str> = settable.collect();
                        reason.push_str(&format!("; there are {}", settable.join(", ")));
                    }
                }
                Err(refuse(path, &reason))
            }
            [] => Err(refuse(path, "the path is empty")),
        }
    }

    fn set_tool(
        &mut self,
        path: &str,
        name: &str,
        key: &str,
        rest: &[&str],
        value: Value,
        place: Place,
    ) -> Result<(), ConfigError> {
        let names = self.tools.iter().map(|tool| tool.name.as_str());
        let reason = no_entry("tool", name, names);
        let Some(tool) = self.tools.iter_mut().find(|tool| tool.name == name) else {
            return Err(refuse(path, &reason));
        };
        match key {
            "use" => {
                tool.use_path = own_text(path, rest, value)?;
                tool.use_place = place;
            }
            "group" => tool.group = own_text(path, rest, value)?,
            "name" => return Err(refuse(path, "a tool is renamed in the file")),
            _ => put(&mut tool.settings, path, key, rest, value, place)?,
        }
        Ok(())
    }

    fn set_model(
        &mut self,
        path: &str,
        name: &str,
        key: &str,
        rest: &[&str],
        value: Value,
        place: Place,
    ) -> Result<(), ConfigError> {
        let names = self.models.iter().map(|model| model.name.as_str());
        let reason = no_entry("model", name, names);
        let Some(model) = self.models.iter_mut().find(|model| model.name == name) else {
            return Err(refuse(path, &reason));
        };
        match key {
            "use" => {
                model.use_path = own_text(path, rest, value)?;
                model.use_place = place;
            }
            "name" => return Err(refuse(path, "a model is renamed in the file")),
            _ => put(&mut model.settings, path, key, rest, value, place)?,
        }
        Ok(())
    }

    fn set_section(
        &mut self,
        section: &str,
        key: &str,
        rest: &[&str],
        value: Value,
        place: Place,
    ) -> Result<(), ConfigError> {
        let before = self.sections.clone();
        let Some(known) = SETTING_SECTIONS.into_iter().find(|known| *known == section) else {
            return Ok(());
        };
        if !self.sections.iter().any(|(name, _)| *name == known) {
            let settings = Settings::new(known.to_owned(), place.clone(), Arc::clone(&self.base));
            self.sections.push((known, settings));
        }
        let path = format!("{section}.{key}");
        for (name, settings) in &mut self.sections {
            if *name == known {
                put(settings, &path, key, rest, value.clone(), place.clone())?;
            }
        }
        match self.read_typed() {
            Ok(typed) => self.typed = typed,
            Err(error) => {
                self.sections = before;
                return Err(error);
            }
        }
        Ok(())
    }
}

fn refuse(path: &str, reason: &str) -> ConfigError {
    ConfigError::Target {
        path: path.to_owned(),
        reason: reason.to_owned(),
    }
}

fn no_entry<'a>(kind: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    let mut reason = format!("there is no {kind} `{name}` in the configuration");
    match nearest(name, known.iter().copied()) {
        Some(near) => reason.push_str(&format!("; did you mean `{near}`?")),
        None if known.is_empty() => {}
        None => reason.push_str(&format!("; there are {}", known.join(", "))),
    }
    reason
}

/// Takes the new value of a key that is a plain text.
fn own_text(path: &str, rest: &[&str], value: Value) -> Result<String, ConfigError> {
    match value {
        Value::String(text) if rest.is_empty() => Ok(text),
        _ => Err(refuse(path, "its value must be a text")),
    }
}

/// Puts a value at `key`, or deeper in the mapping that stands there.
fn put(
    settings: &mut Settings,
    path: &str,
    key: &str,
    rest: &[&str],
    value: Value,
    place: Place,
) -> Result<(), ConfigError> {
    let Some((last, between)) = rest.split_last() else {
        settings.insert(key.to_owned(), value, place);
        return Ok(());
    };
    let mut whole = settings
        .raw(key)
        .cloned()
        .unwrap_or_else(|| Value::Object(Map::new()));
    let mut inner = &mut whole;
    for part in between {
        inner = match inner {
            Value::Object(fields) => fields
                .entry((*part).to_owned())
                .or_insert_with(|| Value::Object(Map::new())),
            _ => return Err(refuse(path, &format!("`{key}` is not a mapping there"))),
        };
    }
    match inner {
        Value::Object(fields) => fields.insert((*last).to_owned(), value),
        _ => return Err(refuse(path, &format!("`{key}` is not a mapping there"))),
    };
    settings.insert(key.to_owned(), whole, place);
    Ok(())
}
