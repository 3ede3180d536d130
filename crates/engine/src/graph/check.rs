//! What can be wrong with a graph.

use super::Drawing;
use crate::command::{END, START};
use petgraph::graph::NodeIndex;
use petgraph::visit::Dfs;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Why a graph could not be built: all its problems.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildError {
    /// The graph.
    pub graph: Arc<str>,
    /// What is wrong with it.
    pub problems: Vec<Problem>,
}

impl fmt::Display for BuildError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "graph `{}` can not be built", self.graph)?;
        for (at, problem) in self.problems.iter().enumerate() {
            write!(out, "{} {problem}", if at == 0 { ":" } else { ";" })?;
        }
        Ok(())
    }
}

impl std::error::Error for BuildError {}

/// One problem of a graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Two nodes of one name.
    #[error("there are two nodes `{node}`")]
    DuplicateNode {
        /// The name.
        node: Arc<str>,
    },
    /// Two channels of one name.
    #[error("there are two channels `{channel}`")]
    DuplicateChannel {
        /// The name.
        channel: Arc<str>,
    },
    /// A name that is reserved, empty, or has a character that paths are made with.
    #[error("`{name}` can not be the name of a {what}: {}", bad_name(what))]
    BadName {
        /// What has the name.
        what: &'static str,
        /// The name.
        name: Arc<str>,
    },
    /// A node that is not there.
    #[error("{place} names `{node}`, and there is no such node{}", meant(nearest.as_deref()))]
    UnknownNode {
        /// Who names it.
        place: String,
        /// The name.
        node: Arc<str>,
        /// The node of a similar name, if there is one.
        nearest: Option<Arc<str>>,
    },
    /// A channel that is not there.
    #[error(
        "{place} names the channel `{channel}`, and there is no such channel{}",
        meant(nearest.as_deref())
    )]
    UnknownChannel {
        /// Who names it.
        place: String,
        /// The name.
        channel: Arc<str>,
        /// The channel of a similar name, if there is one.
        nearest: Option<Arc<str>>,
    },
    /// Nothing says where to begin.
    #[error("nothing leads from START to a node; add an edge from START to the node that begins")]
    NoStart,
    /// A way out of the end.
    #[error("{place} begins at END, which nothing leaves")]
    EndAsSource {
        /// Which way.
        place: String,
    },
    /// A way back to the start.
    #[error("{place} leads to START, which nothing can go to")]
    StartAsTarget {
        /// Which way.
        place: String,
    },
    /// A limit that lets nothing run.
    #[error(
        "the {limit} of node `{node}` is 0, which lets nothing run; leave it out, or make it longer"
    )]
    NoTime {
        /// The node.
        node: Arc<str>,
        /// Which limit.
        limit: String,
    },
    /// A join of nothing.
    #[error("the join into `{target}` has no sources")]
    EmptyJoin {
        /// The node that waits.
        target: Arc<str>,
    },
}

fn bad_name(what: &str) -> &'static str {
    match what {
        "channel" => "it is empty, or begins with `__`, as those of the engine do",
        _ => "it is empty, reserved, or has one of / : | #",
    }
}

fn meant(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"))
}

/// Something legal but odd.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finding {
    /// No way leads to this node. Said only if all ways are known: no router without its targets.
    Unreachable {
        /// The node.
        node: Arc<str>,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable { node } => write!(out, "no way leads to node `{node}`"),
        }
    }
}

/// The nodes that no way leads to.
pub(super) fn unreachable(
    drawing: &Drawing,
    drawn: &BTreeMap<Arc<str>, NodeIndex>,
) -> Vec<Finding> {
    let Some(start) = drawn.get(START) else {
        return Vec::new();
    };
    let mut reached = vec![false; drawing.node_count()];
    let mut walk = Dfs::new(drawing, *start);
    while let Some(node) = walk.next(drawing) {
        reached[node.index()] = true;
    }
    drawn
        .iter()
        .filter(|(name, node)| &***name != END && !reached[node.index()])
        .map(|(name, _)| Finding::Unreachable { node: name.clone() })
        .collect()
}
