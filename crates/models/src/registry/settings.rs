//! The settings of one entry, read with a word for what is wrong.

use super::{ModelEntry, ModelsError};
use crate::suggestion::suggestion;
use serde_json::{Map, Value};
use std::time::Duration;

/// The settings that every model may have, whatever its implementation.
pub(crate) const GENERAL: [&str; 9] = [
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

/// The settings of an entry. `null` counts as not there.
pub(crate) struct Settings<'a>(pub(crate) &'a ModelEntry);

impl<'a> Settings<'a> {
    /// Refuses what is neither general nor one of `own`.
    pub(crate) fn only(&self, own: &[&str]) -> Result<(), ModelsError> {
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

    pub(crate) fn raw(&self, key: &str) -> Option<&'a Value> {
        self.0.settings.get(key).filter(|value| !value.is_null())
    }

    pub(crate) fn text(&self, key: &'static str) -> Result<Option<&'a str>, ModelsError> {
        match self.raw(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(key, "a text")),
        }
    }

    /// The text that one of several keys of one meaning has.
    pub(crate) fn text_of(
        &self,
        keys: &[&'static str],
    ) -> Result<Option<(&'static str, &'a str)>, ModelsError> {
        let Some(key) = self.one_of(keys)? else {
            return Ok(None);
        };
        Ok(self.text(key)?.map(|text| (key, text)))
    }

    /// Which of several keys of one meaning is given.
    pub(crate) fn one_of(
        &self,
        keys: &[&'static str],
    ) -> Result<Option<&'static str>, ModelsError> {
        let mut given = keys.iter().copied().filter(|key| self.raw(key).is_some());
        match (given.next(), given.next()) {
            (Some(first), Some(second)) => Err(ModelsError::GivenTwice {
                model: self.0.name.clone(),
                first,
                second,
            }),
            (first, _) => Ok(first),
        }
    }

    pub(crate) fn flag(&self, key: &'static str) -> Result<Option<bool>, ModelsError> {
        match self.raw(key) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(self.wrong(key, "true or false")),
        }
    }

    pub(crate) fn map(&self, key: &'static str) -> Result<Map<String, Value>, ModelsError> {
        match self.raw(key) {
            None => Ok(Map::new()),
            Some(Value::Object(map)) => Ok(map.clone()),
            Some(_) => Err(self.wrong(key, "a map")),
        }
    }

    /// A map of texts; numbers and truth values count as what they are written as.
    pub(crate) fn texts(&self, key: &'static str) -> Result<Vec<(String, String)>, ModelsError> {
        let text = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        };
        let map = self.map(key)?;
        let texts: Option<Vec<_>> = map
            .into_iter()
            .map(|(name, value)| Some((name, text(&value)?)))
            .collect();
        texts.ok_or_else(|| self.wrong(key, "a map of texts"))
    }

    pub(crate) fn whole(&self, key: &'static str) -> Result<Option<u64>, ModelsError> {
        match self.raw(key) {
            None => Ok(None),
            Some(value) => match value.as_u64() {
                Some(number) => Ok(Some(number)),
                None => Err(self.wrong(key, "a whole number, 0 or more")),
            },
        }
    }

    pub(crate) fn seconds(&self, key: &'static str) -> Result<Option<Duration>, ModelsError> {
        let Some(value) = self.raw(key) else {
            return Ok(None);
        };
        let seconds = value.as_f64().filter(|seconds| *seconds > 0.0);
        match seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) {
            Some(duration) => Ok(Some(duration)),
            None => Err(self.wrong(key, "a number of seconds, more than 0")),
        }
    }

    pub(crate) fn millis(&self, key: &'static str) -> Result<u64, ModelsError> {
        match self.raw(key) {
            None => Ok(0),
            Some(value) => value
                .as_u64()
                .ok_or_else(|| self.wrong(key, "a number of milliseconds, 0 or more")),
        }
    }

    pub(crate) fn wrong(&self, key: &'static str, expected: &'static str) -> ModelsError {
        ModelsError::WrongSetting {
            model: self.0.name.clone(),
            key,
            expected,
        }
    }
}

pub(crate) fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}
