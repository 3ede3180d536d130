//! Graphs: collected by a builder, checked as a whole, and never changed after.
//!
//! What is defined with petgraph is frozen to integer tables for running.

mod builder;
mod check;
mod freeze;
mod options;

pub use builder::{BranchOptions, GraphBuilder};
pub use check::{BuildError, Finding, Problem};
pub(crate) use freeze::ACCOUNT;
pub(crate) use options::Patience;
pub use options::{ErrorHandler, NodeDefaults, NodeOptions};

use crate::cache::CachePolicy;
use crate::channel::Check;
use crate::command::{END, START, Target};
use crate::node::{Node, Router};
use crate::state::{ChannelIx, ChannelTable};
use petgraph::graph::DiGraph;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The place of a node; nodes are in the order of their names, so places sort as names do.
pub(crate) type NodeIx = u32;
/// The place of a join.
pub(crate) type JoinIx = u32;

/// A checked, immutable graph. Cheap to clone.
#[derive(Clone)]
pub struct Graph(pub(crate) Arc<Frozen>);

pub(crate) struct Frozen {
    pub(crate) name: Arc<str>,
    pub(crate) channels: Arc<ChannelTable>,
    /// Without the hidden channels at the end of the table.
    pub(crate) declared: usize,
    pub(crate) input: Vec<ChannelIx>,
    pub(crate) output: Vec<ChannelIx>,
    /// Channels that live for one step.
    pub(crate) ephemeral: Vec<ChannelIx>,
    /// Where visits are counted, if the graph counts them.
    pub(crate) visits: Option<ChannelIx>,
    /// Where it is kept what a run has spent.
    pub(crate) account: ChannelIx,
    pub(crate) nodes: Vec<NodeDef>,
    pub(crate) entry: Exits,
    pub(crate) joins: Vec<JoinDef>,
    pub(crate) before: Breakpoints,
    pub(crate) after: Breakpoints,
    pub(crate) drawing: Drawing,
    pub(crate) findings: Vec<Finding>,
}

pub(crate) struct NodeDef {
    pub(crate) name: Arc<str>,
    pub(crate) node: Arc<dyn Node>,
    pub(crate) reads: Option<Arc<[ChannelIx]>>,
    pub(crate) defer: bool,
    pub(crate) patience: Patience,
    pub(crate) handler: Option<HandlerDef>,
    pub(crate) cache: Option<CachePolicy>,
    pub(crate) max_visits: Option<u64>,
    /// A check of the answers to its questions.
    pub(crate) answers: Option<Arc<dyn Check>>,
    pub(crate) exits: Exits,
}

/// What runs when a node has failed, and the ways out that are left then.
pub(crate) struct HandlerDef {
    pub(crate) handler: ErrorHandler,
    pub(crate) exits: Exits,
}

/// The ways out of a node, or into the graph.
#[derive(Default)]
pub(crate) struct Exits {
    /// Edges that always fire.
    pub(crate) edges: Vec<NodeIx>,
    /// Joins that this node feeds whenever it finishes.
    pub(crate) joins: Vec<JoinIx>,
    /// Joins that this node feeds instead of triggering their target, when it goes there.
    pub(crate) waited: Vec<(NodeIx, JoinIx)>,
    /// Routers that always decide.
    pub(crate) branches: Vec<Branch>,
    /// Where to go if no command of the task named a target.
    pub(crate) default_edges: Vec<NodeIx>,
    /// Who decides if no command of the task named a target.
    pub(crate) default_branches: Vec<Branch>,
}

impl Exits {
    /// Whether nothing but edges leads on: no router decides, no join is fed, nobody waits.
    pub(crate) fn are_edges(&self) -> bool {
        self.joins.is_empty()
            && self.waited.is_empty()
            && self.branches.is_empty()
            && self.default_branches.is_empty()
    }

    /// The joins that going to `target` feeds instead of triggering it; none if it does not wait for this node.
    pub(crate) fn waits_of(&self, target: NodeIx) -> impl Iterator<Item = JoinIx> {
        let waits = self.waited.iter();
        waits
            .filter(move |(known, _)| *known == target)
            .map(|(_, join)| *join)
    }

    /// Makes edges that always fire feed the joins of targets that wait for this node.
    fn hold_back(&mut self) {
        let edges = std::mem::take(&mut self.edges);
        for target in edges {
            let joins: Vec<JoinIx> = self.waits_of(target).collect();
            if joins.is_empty() {
                self.edges.push(target);
            }
            self.joins.extend(joins);
        }
    }
}

pub(crate) struct Branch {
    pub(crate) router: Arc<dyn Router>,
    /// What its answers stand for; without it they are names of nodes.
    pub(crate) labels: Option<BTreeMap<Arc<str>, Target>>,
}

pub(crate) struct JoinDef {
    pub(crate) name: Arc<str>,
    pub(crate) sources: Vec<NodeIx>,
    pub(crate) target: NodeIx,
}

/// At which nodes a run stops.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Breakpoints {
    /// At none.
    #[default]
    None,
    /// At every node.
    All,
    /// At these.
    Nodes(Vec<Arc<str>>),
}

impl Breakpoints {
    /// Breakpoints at nodes.
    pub fn at<N: Into<Arc<str>>>(nodes: impl IntoIterator<Item = N>) -> Self {
        Self::Nodes(nodes.into_iter().map(Into::into).collect())
    }

    pub(crate) fn includes(&self, node: &str) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Nodes(nodes) => nodes.iter().any(|name| &**name == node),
        }
    }

    pub(crate) fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

/// The shape of a graph, for drawing and analysis: node names, [`START`] and [`END`] included, and edges by kind.
pub type Drawing = DiGraph<Arc<str>, EdgeKind>;

/// What kind of way leads from one node to another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EdgeKind {
    /// An edge that always fires.
    Static,
    /// An edge that fires if no command named a target.
    Default,
    /// A part of a join of this name.
    Join(Arc<str>),
    /// A way a router may choose; with its label if it has one.
    Branch(Option<Arc<str>>),
    /// A way a command may choose; with its label if it has one.
    Command(Option<Arc<str>>),
}

impl Graph {
    /// Begins a graph.
    #[must_use]
    pub fn builder(name: impl Into<Arc<str>>) -> GraphBuilder {
        GraphBuilder::new(name)
    }

    /// The graph's name.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.0.name
    }

    /// The names of the nodes, sorted.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.nodes.iter().map(|node| &node.name)
    }

    /// The names of the declared channels, in the order of declaration, with the names of their reducers.
    pub fn channels(&self) -> impl Iterator<Item = (&Arc<str>, &str)> {
        let table = &self.0.channels;
        table
            .names
            .iter()
            .zip(&table.specs)
            .take(self.0.declared)
            .map(|(name, spec)| (name, spec.reducer.name()))
    }

    /// The names of the input channels.
    pub fn input(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.input.iter().map(|ix| self.0.channels.name(*ix))
    }

    /// The names of the output channels.
    pub fn output(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.output.iter().map(|ix| self.0.channels.name(*ix))
    }

    /// The shape, for drawing and analysis.
    #[must_use]
    pub fn drawing(&self) -> &Drawing {
        &self.0.drawing
    }

    /// What is legal but odd about the graph.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.0.findings
    }

    pub(crate) fn find(&self, name: &str) -> Option<NodeIx> {
        let place = self
            .0
            .nodes
            .binary_search_by(|node| (*node.name).cmp(name))
            .ok()?;
        NodeIx::try_from(place).ok()
    }

    pub(crate) fn node(&self, ix: NodeIx) -> &NodeDef {
        &self.0.nodes[ix as usize]
    }

    pub(crate) fn is_output(&self, ix: ChannelIx) -> bool {
        self.0.output.contains(&ix)
    }

    /// What a target's name stands for, [`END`] excluded.
    pub(crate) fn is_reserved(name: &str) -> bool {
        name == START || name == END
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes: Vec<_> = self.nodes().collect();
        let channels: Vec<_> = self.channels().collect();
        out.debug_struct("Graph")
            .field("name", &self.0.name)
            .field("nodes", &nodes)
            .field("channels", &channels)
            .finish_non_exhaustive()
    }
}
