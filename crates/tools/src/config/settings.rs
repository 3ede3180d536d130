use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{ConfigError, Place};
use crate::schema::describe;

/// Where the host's environment variables are looked up.
///
/// Configurations name secrets as `$NAME`; only the host knows their values.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not answer for environment variables",
    note = "implement `EnvSource`, or pass a `BTreeMap<String, String>`"
)]
pub trait EnvSource: Send + Sync {
    /// Gives the value of a variable, if it is set.
    fn var(&self, name: &str) -> Option<String>;
}

impl EnvSource for BTreeMap<String, String> {
    fn var(&self, name: &str) -> Option<String> {
        self.get(name).cloned()
    }
}

/// One value of a configuration and its place.
#[derive(Clone)]
struct Setting {
    value: Value,
    place: Place,
}

/// The keys of one entry of a configuration, as they were written.
///
/// `$NAME` values stay names here; [`with`](Self::with) looks them up. The
/// debug form shows keys only, because a value may be a secret.
#[derive(Clone)]
pub struct Settings {
    owner: String,
    place: Place,
    base: Arc<Path>,
    values: BTreeMap<String, Setting>,
}

impl Settings {
    pub(super) fn new(owner: String, place: Place, base: Arc<Path>) -> Self {
        Self {
            owner,
            place,
            base,
            values: BTreeMap::new(),
        }
    }

    /// Names the entry: `tools.web_search`.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Says where the entry begins.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Says where a key stands; where the entry begins, if it is not there.
    #[must_use]
    pub fn place_of(&self, key: &str) -> &Place {
        self.values.get(key).map_or(&self.place, |s| &s.place)
    }

    /// Lists the keys, sorted.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    /// Gives a value as it was written; `null` counts as not there.
    #[must_use]
    pub fn raw(&self, key: &str) -> Option<&Value> {
        self.values
            .get(key)
            .map(|setting| &setting.value)
            .filter(|value| !value.is_null())
    }

    /// Gives the values with `$NAME` looked up in `env` when they are read.
    #[must_use]
    pub fn with<'a>(&'a self, env: &'a dyn EnvSource) -> Resolved<'a> {
        Resolved {
            settings: self,
            env,
        }
    }

    pub(super) fn insert(&mut self, key: String, value: Value, place: Place) {
        self.values.insert(key, Setting { value, place });
    }

    pub(super) fn remove(&mut self, key: &str) -> Option<(Value, Place)> {
        self.values.remove(key).map(|s| (s.value, s.place))
    }

    /// Takes a text that must be there.
    pub(super) fn take_text(&mut self, key: &'static str) -> Result<String, ConfigError> {
        match self.remove(key) {
            None | Some((Value::Null, _)) => Err(ConfigError::Missing {
                place: self.place.clone(),
                what: self.owner.clone(),
                key,
            }),
            Some((Value::String(text), _)) => Ok(text),
            Some((other, place)) => Err(ConfigError::Value {
                place,
                what: self.what(key),
                expected: "a text",
                found: describe(&other),
            }),
        }
    }

    pub(super) fn what(&self, key: &str) -> String {
        format!("`{key}` of {}", self.owner)
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("owner", &self.owner)
            .field("keys", &self.values.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// The keys of one entry, with the environment at hand.
#[derive(Clone, Copy)]
pub struct Resolved<'a> {
    settings: &'a Settings,
    env: &'a dyn EnvSource,
}

impl Resolved<'_> {
    /// Gives a value with every `$NAME` in it replaced.
    ///
    /// A text that begins with `$` is a name as a whole; there are no partial
    /// replacements and no defaults.
    ///
    /// # Errors
    /// When a variable is not set.
    pub fn value(&self, key: &str) -> Result<Option<Value>, ConfigError> {
        match self.settings.raw(key) {
            None => Ok(None),
            Some(value) => self.replace(key, value).map(Some),
        }
    }

    /// Gives all values, each `$NAME` replaced.
    ///
    /// # Errors
    /// When a variable is not set.
    pub fn all(&self) -> Result<Map<String, Value>, ConfigError> {
        let mut all = Map::new();
        for key in self.settings.keys() {
            if let Some(value) = self.value(key)? {
                all.insert(key.to_owned(), value);
            }
        }
        Ok(all)
    }

    /// Gives a text.
    ///
    /// # Errors
    /// When the value is something else, or names an unset variable.
    pub fn text(&self, key: &str) -> Result<Option<String>, ConfigError> {
        match self.value(key)? {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong(key, "a text", &other)),
        }
    }

    /// Gives true or false.
    ///
    /// # Errors
    /// When the value is something else, or names an unset variable.
    pub fn flag(&self, key: &str) -> Result<Option<bool>, ConfigError> {
        match self.value(key)? {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(other) => Err(self.wrong(key, "true or false", &other)),
        }
    }

    /// Gives a whole number, 0 or more.
    ///
    /// # Errors
    /// When the value is something else, or names an unset variable.
    pub fn whole(&self, key: &str) -> Result<Option<usize>, ConfigError> {
        match self.value(key)? {
            None => Ok(None),
            Some(value) => match value.as_u64().and_then(|n| usize::try_from(n).ok()) {
                Some(number) => Ok(Some(number)),
                None => Err(self.wrong(key, "a whole number of 0 or more", &value)),
            },
        }
    }

    /// Gives a path of the host.
    ///
    /// A relative one is taken from the folder of the configuration file; one
    /// given on top of the file, from the working directory.
    ///
    /// # Errors
    /// When the value is no text, or names an unset variable.
    pub fn path(&self, key: &str) -> Result<Option<PathBuf>, ConfigError> {
        let Some(path) = self.text(key)? else {
            return Ok(None);
        };
        Ok(Some(match self.settings.place_of(key) {
            Place::File { .. } => self.settings.base.join(path),
            Place::Override { directory, .. } => directory.join(path),
        }))
    }

    /// Makes the error for a value that is out of place.
    #[must_use]
    pub fn wrong(&self, key: &str, expected: &'static str, found: &Value) -> ConfigError {
        let found = match self.settings.raw(key) {
            // What a variable holds may be a secret.
            Some(Value::String(raw)) if raw.starts_with('$') => format!("what {raw} holds"),
            _ => describe(found),
        };
        ConfigError::Value {
            place: self.settings.place_of(key).clone(),
            what: self.settings.what(key),
            expected,
            found,
        }
    }

    /// Makes the error for a key that must be there.
    #[must_use]
    pub fn missing(&self, key: &'static str) -> ConfigError {
        ConfigError::Missing {
            place: self.settings.place.clone(),
            what: self.settings.owner.clone(),
            key,
        }
    }

    fn replace(&self, key: &str, value: &Value) -> Result<Value, ConfigError> {
        Ok(match value {
            Value::String(text) => match text.strip_prefix('$').filter(|name| !name.is_empty()) {
                None => value.clone(),
                Some(name) => match self.env.var(name) {
                    Some(found) => Value::String(found),
                    None => {
                        return Err(ConfigError::Variable {
                            place: self.settings.place_of(key).clone(),
                            what: self.settings.what(key),
                            variable: name.to_owned(),
                        });
                    }
                },
            },
            Value::Array(items) => Value::Array(
                items
                    .iter()
                    .map(|item| self.replace(key, item))
                    .collect::<Result<_, _>>()?,
            ),
            Value::Object(fields) => Value::Object(
                fields
                    .iter()
                    .map(|(name, field)| Ok((name.clone(), self.replace(key, field)?)))
                    .collect::<Result<_, ConfigError>>()?,
            ),
            other => other.clone(),
        })
    }
}

impl fmt::Debug for Resolved<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(f)
    }
}
