//! The keys of a whole file, and of a channel.

use indexmap::IndexMap;
use serde::Deserialize;
use serde_yaml::Value;

use super::DurationText;
use super::number::above_zero;

/// The top level of a file. Sections whose parts are decoded one by one are kept as they are.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileKeys {
    /// Format version; checked before anything else is.
    #[serde(rename = "schema")]
    pub(crate) _schema: String,
    pub(crate) name: String,
    #[serde(default = "one")]
    pub(crate) revision: u64,
    pub(crate) description: Option<String>,
    #[serde(default)]
    pub(crate) types: IndexMap<String, Value>,
    pub(crate) state: IndexMap<String, Value>,
    pub(crate) input: Option<Vec<String>>,
    pub(crate) output: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) toolsets: IndexMap<String, Vec<String>>,
    #[serde(default)]
    pub(crate) defaults: IndexMap<String, Value>,
    #[serde(default)]
    pub(crate) limits: LimitsKeys,
    pub(crate) start: Value,
    pub(crate) nodes: IndexMap<String, Value>,
    pub(crate) migrate: Option<Value>,
}

fn one() -> u64 {
    1
}

/// The `limits` of a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LimitsKeys {
    #[serde(deserialize_with = "above_zero")]
    pub(crate) max_steps: u32,
    pub(crate) max_visits: IndexMap<String, u32>,
    #[serde(deserialize_with = "above_zero")]
    pub(crate) max_parallel: u32,
    pub(crate) deadline: Option<DurationText>,
}

impl Default for LimitsKeys {
    fn default() -> Self {
        Self {
            max_steps: 100,
            max_visits: IndexMap::new(),
            max_parallel: 16,
            deadline: None,
        }
    }
}

/// One channel of `state`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChannelKeys {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) reduce: Option<Value>,
    pub(crate) default: Option<Value>,
    #[serde(default)]
    pub(crate) keep: crate::graph::Keep,
    #[serde(rename = "description")]
    pub(crate) _description: Option<String>,
}
