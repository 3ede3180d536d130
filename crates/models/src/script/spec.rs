use super::error::ScriptError;
use crate::suggestion::suggestion;
use indexmap::IndexMap;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use std::fmt;
use std::sync::Arc;

/// What a script file says: data, not yet checked. See [the chapter on scripts](crate#scripts).
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "a script: `schema` and `rules`")]
pub struct ScriptSpec {
    /// The format: `script/v1`.
    pub schema: String,
    /// What the script is for.
    #[serde(default)]
    pub description: Option<String>,
    /// Named values, made in this order for each request, before the rules are tried.
    #[serde(default, rename = "let", deserialize_with = "names")]
    pub names: IndexMap<String, serde_json::Value>,
    /// The rules, in the order in which they are tried.
    pub rules: Vec<RuleSpec>,
}

/// A reply, and when it is given.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(
    deny_unknown_fields,
    default,
    expecting = "a rule: `content` or `tool_calls`, and when they are given"
)]
pub struct RuleSpec {
    /// Only requests of this node.
    pub node: Option<String>,
    /// Only the n-th visit of the node in a run, counted from 1.
    pub visit: Option<u64>,
    /// Only if this expression is true.
    pub when: Option<String>,
    /// What is said.
    pub content: Option<String>,
    /// Which tools are called.
    pub tool_calls: Vec<CallSpec>,
}

/// A call of a tool.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "a call: `name` and `args`")]
pub struct CallSpec {
    /// The name of the tool.
    pub name: String,
    /// The arguments; none if it is left out.
    #[serde(default, deserialize_with = "data")]
    pub args: Option<serde_json::Value>,
}

impl RuleSpec {
    /// Whether this rule fits whenever `later` does, as far as can be told without evaluating anything.
    pub(super) fn covers(&self, later: &Self) -> bool {
        let any_or_same =
            |mine: &Option<String>, other: &Option<String>| mine.is_none() || mine == other;
        any_or_same(&self.node, &later.node)
            && any_or_same(&self.when, &later.when)
            && (self.visit.is_none() || self.visit == later.visit)
    }
}

impl ScriptSpec {
    /// Reads YAML or JSON. `name` is what messages call the script: its path.
    ///
    /// # Errors
    /// If the text is not YAML, or a key is unknown, repeated or of the wrong type.
    pub fn parse(name: &str, text: &str) -> Result<Self, ScriptError> {
        serde_yaml::from_str(text).map_err(|error| ScriptError::Syntax {
            script: Arc::from(name),
            message: explain(&error.to_string()),
        })
    }
}

/// Adds the nearest key to serde's message about an unknown one: ``unknown field `a`, expected one of `b`, `c` ``.
fn explain(message: &str) -> String {
    let Some((_, rest)) = message.split_once("unknown field ") else {
        return message.to_owned();
    };
    let mut quoted = rest.split('`').skip(1).step_by(2);
    let Some(unknown) = quoted.next() else {
        return message.to_owned();
    };
    format!("{message}{}", suggestion(unknown, quoted))
}

/// Data in which no key stands twice.
fn data<'de, D: Deserializer<'de>>(from: D) -> Result<Option<serde_json::Value>, D::Error> {
    // YAML's own value type refuses repeated keys, serde_json's would take the last.
    let value = serde_yaml::Value::deserialize(from)?;
    json(value).map(Some).map_err(D::Error::custom)
}

fn json(value: serde_yaml::Value) -> Result<serde_json::Value, String> {
    use serde_json::Value as Json;
    use serde_yaml::Value as Yaml;
    Ok(match value {
        Yaml::Null => Json::Null,
        Yaml::Bool(value) => Json::Bool(value),
        Yaml::Number(number) => serde_json::to_value(&number).map_err(|error| error.to_string())?,
        Yaml::String(text) => Json::String(text),
        Yaml::Sequence(items) => items.into_iter().map(json).collect::<Result<_, _>>()?,
        Yaml::Mapping(entries) => {
            let entries = entries.into_iter().map(|(key, value)| match key {
                Yaml::String(key) => Ok((key, json(value)?)),
                other => Err(match serde_yaml::to_string(&other) {
                    Ok(key) => format!("a key must be a text: put `{}` in quotes", key.trim_end()),
                    Err(_) => "a key must be a text".to_owned(),
                }),
            });
            Json::Object(entries.collect::<Result<_, _>>()?)
        }
        Yaml::Tagged(tagged) => return Err(format!("the tag {} has no meaning here", tagged.tag)),
    })
}

fn names<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<IndexMap<String, serde_json::Value>, D::Error> {
    struct Names;

    impl<'de> Visitor<'de> for Names {
        type Value = IndexMap<String, serde_json::Value>;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("names with their values")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
            let mut names = IndexMap::new();
            while let Some(name) = entries.next_key::<String>()? {
                if names.contains_key(&name) {
                    return Err(A::Error::custom(format_args!("`{name}` is named twice")));
                }
                let value = json(entries.next_value()?).map_err(A::Error::custom)?;
                names.insert(name, value);
            }
            Ok(names)
        }
    }

    from.deserialize_map(Names)
}
