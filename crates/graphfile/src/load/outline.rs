//! What is kept and shown of a file that was read.

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::json;
use serde_yaml::Value as Yaml;
use tine_engine::Value;

use super::{ChannelPlan, NodePlan, ThenPlan};
use crate::graph::{Edge, Limits, Outline, To, Why};
use crate::spec::{FileKeys, Goto};
use crate::syntax::At;
use crate::types::Types;
use crate::value::from_yaml;

#[expect(
    clippy::too_many_arguments,
    reason = "everything that was found out comes together here"
)]
pub(super) fn outline(
    keys: &FileKeys,
    root: &Yaml,
    files: &[(At, String)],
    types: &Arc<Types>,
    channels: &IndexMap<String, ChannelPlan>,
    nodes: &[NodePlan],
    start: &ThenPlan,
    width: Option<usize>,
) -> Outline {
    let edges = edges(nodes, start);
    let all = || keys.state.keys().cloned().collect::<Vec<_>>();
    Outline {
        name: keys.name.clone(),
        revision: keys.revision,
        description: keys.description.clone(),
        nodes: nodes
            .iter()
            .filter_map(|node| Some((node.id.clone(), node.kind?)))
            .collect(),
        joins: nodes
            .iter()
            .filter(|node| !node.wait_for.is_empty())
            .map(|node| (node.id.clone(), node.wait_for.clone()))
            .collect(),
        structure: structure(types, channels, nodes, &edges),
        edges,
        input: keys.input.clone().unwrap_or_else(all),
        output: keys.output.clone().unwrap_or_else(all),
        limits: Limits {
            max_steps: keys.limits.max_steps,
            max_visits: keys.limits.max_visits.clone(),
            max_parallel: keys.limits.max_parallel,
            deadline: keys.limits.deadline.map(|deadline| deadline.0),
        },
        width,
        definition: definition(root, files),
    }
}

fn edges(nodes: &[NodePlan], start: &ThenPlan) -> Vec<Edge> {
    let mut edges = Vec::new();
    let mut add = |from: Option<&str>, goto: &Goto, why: &Why| {
        for (to, _) in &goto.targets {
            let edge = Edge {
                from: from.map(str::to_owned),
                to: to.clone(),
                why: why.clone(),
            };
            if !edges.contains(&edge) {
                edges.push(edge);
            }
        }
    };
    let mut then = |from: Option<&str>, plan: &ThenPlan| match plan {
        ThenPlan::None => {}
        ThenPlan::Go(goto) => add(from, goto, &Why::Static),
        ThenPlan::Branches {
            branches,
            otherwise,
        } => {
            for (when, _, goto) in branches {
                add(from, goto, &Why::When(when.clone()));
            }
            if let Some(goto) = otherwise {
                add(from, goto, &Why::Else);
            }
        }
    };
    then(None, start);
    for node in nodes {
        then(Some(&node.id), &node.then);
    }
    for node in nodes {
        for (label, goto) in &node.routes {
            for (to, _) in &goto.targets {
                edges.push(Edge {
                    from: Some(node.id.clone()),
                    to: to.clone(),
                    why: Why::Route(label.clone()),
                });
            }
        }
    }
    edges
}

/// Hashes what threads depend on. Conditions may change: they decide anew whenever they are met.
fn structure(
    types: &Types,
    channels: &IndexMap<String, ChannelPlan>,
    nodes: &[NodePlan],
    edges: &[Edge],
) -> String {
    let name = |to: &To| match to {
        To::Node(name) => name.clone(),
        To::End => "end".to_owned(),
    };
    let mut ways: Vec<_> = edges
        .iter()
        .map(|edge| {
            let label = match &edge.why {
                Why::Route(label) => format!("route {label}"),
                Why::When(_) | Why::Else => "branch".to_owned(),
                Why::Static => "then".to_owned(),
            };
            json!([edge.from, name(&edge.to), label]).to_string()
        })
        .collect();
    ways.sort_unstable();
    ways.dedup();
    let kinds: std::collections::BTreeMap<_, _> = nodes
        .iter()
        .map(|node| {
            (
                node.id.as_str(),
                json!([node.kind.map(|kind| kind.as_str()), node.wait_for]),
            )
        })
        .collect();
    let slots: std::collections::BTreeMap<_, _> = channels
        .iter()
        .map(|(name, channel)| {
            let mut schema = channel.kind.to_schema(types);
            sort_required(&mut schema);
            (
                name.as_str(),
                json!([schema, channel.reduce.name(), format!("{:?}", channel.keep)]),
            )
        })
        .collect();
    let whole = Value::from_json(json!({ "nodes": kinds, "edges": ways, "channels": slots }));
    format!(
        "{:032x}",
        xxhash_rust::xxh3::xxh3_128(whole.to_canonical().as_bytes())
    )
}

/// Takes the order of its fields out of a schema: the definition that is kept of a file does not have it.
fn sort_required(schema: &mut serde_json::Value) {
    match schema {
        serde_json::Value::Object(entries) => {
            if let Some(serde_json::Value::Array(names)) = entries.get_mut("required") {
                names.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
            }
            entries.values_mut().for_each(sort_required);
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(sort_required),
        _ => {}
    }
}

/// Returns the file as data, prompt files written in.
fn definition(root: &Yaml, files: &[(At, String)]) -> Value {
    let mut definition = from_yaml(root).to_json();
    for (at, text) in files {
        let at = at.to_string();
        let Some((owner, key)) = at.rsplit_once('/') else {
            continue;
        };
        // Where the defaults name the file, each node that it holds for gets its text.
        if let Some(serde_json::Value::Object(owner)) = definition.pointer_mut(owner) {
            owner.insert(key.to_owned(), serde_json::Value::String(text.clone()));
        }
    }
    Value::from_json(definition)
}
