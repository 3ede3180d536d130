//! The keys of nodes: those of every node, and one closed struct per kind.

use indexmap::IndexMap;
use serde::Deserialize;
use serde_yaml::{Mapping, Value};

use super::number::{above_zero, growth};
use super::{DurationText, Goto, Then, decode, decode::report_missing, decode_goto, decode_then};
use crate::diag::{Diagnostic, G004, G007};
use crate::report::{Report, nearest, one_of};
use crate::syntax::At;

/// The kind of a node: the value of its `type` key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Asks a model.
    Model,
    /// Runs the tool calls of the last message.
    Tools,
    /// Runs one tool, without a model.
    Tool,
    /// Changes the state.
    Set,
    /// Asks a person.
    Interrupt,
    /// Calls a function of the host.
    Call,
}

impl Kind {
    pub(crate) const ALL: [Self; 6] = [
        Self::Model,
        Self::Tools,
        Self::Tool,
        Self::Set,
        Self::Interrupt,
        Self::Call,
    ];

    /// Returns the name of the kind in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Tools => "tools",
            Self::Tool => "tool",
            Self::Set => "set",
            Self::Interrupt => "interrupt",
            Self::Call => "call",
        }
    }
}

/// Kinds that are part of the format but do not run yet.
const PLANNED: [&str; 2] = ["map", "subgraph"];

/// The keys every node may have.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CommonKeys {
    pub(crate) description: Option<String>,
    pub(crate) then: Option<Value>,
    #[serde(default)]
    pub(crate) routes: Option<Value>,
    #[serde(default)]
    pub(crate) wait_for: Vec<String>,
    pub(crate) timeout: Option<DurationText>,
    pub(crate) retry: Option<RetryKeys>,
    pub(crate) on_error: Option<Value>,
    pub(crate) pause: Option<crate::graph::Pause>,
}

const COMMON: [&str; 9] = [
    "type",
    "description",
    "then",
    "routes",
    "wait_for",
    "timeout",
    "retry",
    "on_error",
    "pause",
];

/// How often and when a failed attempt is made again.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RetryKeys {
    #[serde(default = "one", deserialize_with = "above_zero")]
    pub(crate) max_attempts: u32,
    pub(crate) initial: Option<DurationText>,
    #[serde(default, deserialize_with = "growth")]
    pub(crate) factor: Option<f64>,
    pub(crate) max: Option<DurationText>,
    pub(crate) jitter: Option<bool>,
    pub(crate) on: Option<Vec<tine_engine::ErrorClass>>,
}

fn one() -> u32 {
    1
}

/// A text that stands in another file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileRef {
    pub(crate) file: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelKeys {
    pub(crate) model: String,
    pub(crate) system: Option<Value>,
    pub(crate) prompt: Option<Value>,
    #[serde(default)]
    pub(crate) prompt_once: bool,
    pub(crate) messages: Option<String>,
    pub(crate) tools: Option<Value>,
    pub(crate) tool_choice: Option<String>,
    pub(crate) returns: Option<ReturnsKeys>,
    #[serde(default)]
    pub(crate) params: Mapping,
    #[serde(default = "yes")]
    pub(crate) stream: bool,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReturnsKeys {
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    pub(crate) into: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolsKeys {
    pub(crate) tools: Value,
    pub(crate) from: Option<String>,
    #[serde(default = "eight", deserialize_with = "above_zero")]
    pub(crate) max_parallel: u32,
    #[serde(default)]
    pub(crate) ask_before: Vec<String>,
    #[serde(default)]
    pub(crate) on_tool_error: crate::host::OnToolError,
}

fn eight() -> u32 {
    8
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolKeys {
    pub(crate) tool: String,
    #[serde(default)]
    pub(crate) args: IndexMap<String, Value>,
    pub(crate) into: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetKeys {
    pub(crate) set: IndexMap<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InterruptKeys {
    pub(crate) payload: Value,
    pub(crate) resume: String,
    #[serde(default)]
    pub(crate) set: IndexMap<String, Value>,
    pub(crate) expires: Option<DurationText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallKeys {
    pub(crate) function: String,
    #[serde(default)]
    pub(crate) input: IndexMap<String, Value>,
    #[serde(default)]
    pub(crate) writes: Vec<String>,
}

/// The decoded keys of one kind.
#[derive(Debug)]
pub(crate) enum KindKeys {
    Model(Box<ModelKeys>),
    Tools(ToolsKeys),
    Tool(ToolKeys),
    Set(SetKeys),
    Interrupt(InterruptKeys),
    Call(CallKeys),
}

impl KindKeys {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Model(_) => Kind::Model,
            Self::Tools(_) => Kind::Tools,
            Self::Tool(_) => Kind::Tool,
            Self::Set(_) => Kind::Set,
            Self::Interrupt(_) => Kind::Interrupt,
            Self::Call(_) => Kind::Call,
        }
    }
}

/// One node as the file has it.
#[derive(Debug)]
pub(crate) struct NodeDraft {
    pub(crate) id: String,
    pub(crate) at: At,
    pub(crate) common: CommonKeys,
    /// Missing if the node has no `then` or a wrong one.
    pub(crate) then: Option<Then>,
    pub(crate) routes: IndexMap<String, Goto>,
    /// Missing if the keys of the kind did not decode: the node still counts as a target.
    pub(crate) kind: Option<KindKeys>,
}

/// Puts the defaults of a node's kind under its own keys.
pub(crate) fn merge_defaults(
    report: &mut Report<'_>,
    at: &At,
    node: &Value,
    defaults: &IndexMap<String, Value>,
) -> Value {
    let Value::Mapping(own) = node else {
        return node.clone();
    };
    let kind = own.get("type").and_then(Value::as_str).unwrap_or_default();
    let Some(Value::Mapping(below)) = defaults.get(kind) else {
        return node.clone();
    };
    let mut merged = own.clone();
    for (key, value) in below {
        let Some(name) = key.as_str() else { continue };
        if !merged.contains_key(name) {
            let from = At::root().key("defaults").key(kind).key(name);
            report.index.alias(&from, &at.key(name));
            merged.insert(key.clone(), value.clone());
        }
    }
    Value::Mapping(merged)
}

/// Decodes a node whose defaults are already under it.
pub(crate) fn decode_node(
    report: &mut Report<'_>,
    id: &str,
    at: At,
    node: &Value,
) -> Option<NodeDraft> {
    let Value::Mapping(entries) = node else {
        let finding = Diagnostic::new(&G004, format!("node `{id}` is no mapping"))
            .at(report.brief(&at), "expected the keys of a node");
        report.push(finding);
        return None;
    };
    let is_common = |key: &Value| key.as_str().is_some_and(|key| COMMON.contains(&key));
    let pick = |common: bool| -> Mapping {
        let wanted = |key: &Value| is_common(key) == common && key.as_str() != Some("type");
        entries
            .iter()
            .filter(|(key, _)| wanted(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    };
    let (common, own) = (Value::Mapping(pick(true)), Value::Mapping(pick(false)));
    let common: CommonKeys = decode(report, &at, &common, &[]).unwrap_or_default();
    let kind = decode_kind(report, &at, id, entries, &own);
    if common.on_error.is_some() {
        let finding = Diagnostic::new(&G007, "`on_error` is not supported yet")
            .at(
                report.key(&at.key("on_error")),
                "a failed node fails the run in this version",
            )
            .help("remove the key; `retry` repeats attempts that failed");
        report.push(finding);
    }
    let then = match &common.then {
        Some(then) => decode_then(report, &at.key("then"), then, id),
        None => None,
    };
    let routes = match &common.routes {
        Some(routes) => decode_routes(report, &at.key("routes"), routes),
        None => IndexMap::new(),
    };
    Some(NodeDraft {
        id: id.to_owned(),
        at,
        common,
        then,
        routes,
        kind,
    })
}

fn decode_kind(
    report: &mut Report<'_>,
    at: &At,
    id: &str,
    entries: &Mapping,
    own: &Value,
) -> Option<KindKeys> {
    let Some(name) = entries.get("type") else {
        report_missing(report, at, "type");
        return None;
    };
    let name = name.as_str().unwrap_or_default();
    let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.as_str() == name) else {
        let span = report.value(&at.key("type"));
        let finding = if PLANNED.contains(&name) {
            Diagnostic::new(&G007, format!("node type `{name}` is not supported yet"))
                .at(span, format!("`{id}` cannot run in this version"))
        } else {
            let names: Vec<_> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
            Diagnostic::new(&G004, format!("no node type named `{name}`"))
                .at(span, format!("expected {}", one_of(&names)))
                .help_if(
                    nearest(name, names.iter().copied()).map(|n| format!("did you mean `{n}`?")),
                )
        };
        report.push(finding);
        return None;
    };
    Some(match kind {
        Kind::Model => KindKeys::Model(Box::new(decode(report, at, own, &COMMON)?)),
        Kind::Tools => KindKeys::Tools(decode(report, at, own, &COMMON)?),
        Kind::Tool => KindKeys::Tool(decode(report, at, own, &COMMON)?),
        Kind::Set => KindKeys::Set(decode(report, at, own, &COMMON)?),
        Kind::Interrupt => KindKeys::Interrupt(decode(report, at, own, &COMMON)?),
        Kind::Call => KindKeys::Call(decode(report, at, own, &COMMON)?),
    })
}

fn decode_routes(report: &mut Report<'_>, at: &At, routes: &Value) -> IndexMap<String, Goto> {
    match routes {
        Value::Mapping(entries) => entries
            .iter()
            .filter_map(|(label, goto)| {
                let label = label.as_str()?;
                Some((label.to_owned(), decode_goto(report, &at.key(label), goto)?))
            })
            .collect(),
        // A list of nodes: each name is its own label.
        Value::Sequence(items) => items
            .iter()
            .enumerate()
            .filter_map(|(index, item)| {
                let goto = decode_goto(report, &at.item(index), item)?;
                Some((item.as_str()?.to_owned(), goto))
            })
            .collect(),
        _ => {
            let finding = Diagnostic::new(&G004, "`routes` is neither a mapping nor a list").at(
                report.brief(at),
                "expected `label: node`, or a list of nodes",
            );
            report.push(finding);
            IndexMap::new()
        }
    }
}
