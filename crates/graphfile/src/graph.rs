//! A checked graph, and the small vocabulary its parts are described in.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use serde::Deserialize;
use tine_engine::{Graph, Value};

use crate::spec::Kind;
use crate::types::{Type, Types};

/// How long a channel keeps its value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// As long as the thread lives.
    #[default]
    Thread,
    /// Until new input starts another run.
    Run,
    /// For the next step only.
    Step,
}

/// On which side of a node a static breakpoint stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pause {
    /// Stops before the node runs.
    Before,
    /// Stops after it has run.
    After,
}

/// Where an edge leads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum To {
    /// To a node.
    Node(String),
    /// To the end of the run.
    End,
}

/// Why an edge is taken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// Always, unless a Command goes elsewhere.
    Static,
    /// If this condition is the first that holds.
    When(String),
    /// If no condition holds.
    Else,
    /// If a Command raises this label.
    Route(String),
}

/// One edge of the drawing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// The node it leaves; `None` for the start.
    pub from: Option<String>,
    /// Where it leads.
    pub to: To,
    /// Why it is taken.
    pub why: Why,
}

/// Bounds of a run, as the file sets them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many steps one invocation may run: the engine's `RunOptions::max_steps`.
    pub max_steps: u32,
    /// How often single nodes may run in one run.
    pub max_visits: IndexMap<String, u32>,
    /// How many tasks run at once.
    pub max_parallel: u32,
    /// How long a whole run may take, waiting for people excluded.
    pub deadline: Option<Duration>,
}

/// The channels of a file, as expressions need to know them.
#[derive(Clone, Debug, Default)]
pub struct Channels {
    names: Arc<[Arc<str>]>,
    optional: Arc<BTreeSet<String>>,
}

impl Channels {
    pub(crate) fn new(state: &IndexMap<String, Type>, types: &Types) -> Self {
        let optional = state
            .iter()
            .filter(|(_, kind)| types.resolve(kind).is_optional());
        Self {
            names: state.keys().map(|name| name.as_str().into()).collect(),
            optional: Arc::new(optional.map(|(name, _)| name.clone()).collect()),
        }
    }

    /// Tells whether null in this channel means that it has no value.
    pub(crate) fn is_optional(&self, name: &str) -> bool {
        self.optional.contains(name)
    }

    /// Iterates over the names, in the order of the file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }
}

/// What is known of a graph without running it: enough to draw it, to store it, to compare it.
#[derive(Clone, Debug)]
pub struct Outline {
    /// Identity of the graph; part of every checkpoint.
    pub name: String,
    /// Revision of this definition.
    pub revision: u64,
    /// What it is for.
    pub description: Option<String>,
    /// Nodes with their kinds, in the order of the file.
    pub nodes: IndexMap<String, Kind>,
    /// Joins: a node and those it waits for.
    pub joins: IndexMap<String, Vec<String>>,
    /// All edges, in the order of the file.
    pub edges: Vec<Edge>,
    /// Channels a caller may set.
    pub input: Vec<String>,
    /// Channels a caller gets.
    pub output: Vec<String>,
    /// Bounds of a run.
    pub limits: Limits,
    /// The greatest number of nodes that can be active in one step, if all steps were examined.
    pub width: Option<usize>,
    /// Hash over node ids and kinds, edges, and channel names, types and reducers.
    ///
    /// Threads of a graph with the same hash go on without questions; prompts do not count.
    pub structure: String,
    /// The definition with defaults merged and prompt files included, for keeping beside threads.
    pub definition: Value,
}

/// A graph that can be run.
#[derive(Clone, Debug)]
pub struct LoadedGraph {
    /// The engine's graph.
    pub graph: Graph,
    /// What the file says about it.
    pub outline: Arc<Outline>,
}
