//! Building graphs.

use super::check::BuildError;
use super::freeze::Freezer;
use super::options::{NodeDefaults, NodeDraft, NodeOptions};
use super::{Breakpoints, Graph};
use crate::channel::{Channel, ChannelSpec, Definition};
use crate::command::Target;
use crate::node::{Node, Router};
use std::fmt;
use std::sync::Arc;

/// Collects channels, nodes and edges, and checks them all at once in [`GraphBuilder::build`].
///
/// ```
/// use tine_engine::channel::append;
/// use tine_engine::node::from_fn;
/// use tine_engine::{Graph, START, Update};
///
/// # fn main() -> Result<(), tine_engine::BuildError> {
/// let mut graph = Graph::builder("report");
/// graph.channel("notes", append::<String>());
/// let says = |note: &'static str| from_fn(move |_| Ok(Update::from([("notes", note)])));
/// graph.node("web", says("from the web"));
/// graph.node("files", says("from files"));
/// graph.node("write", says("written"));
/// // Both search in one step; when both have, one writes.
/// graph.edge(START, "web").edge(START, "files");
/// graph.join(["web", "files"], "write");
/// let graph = graph.build()?;
/// # assert_eq!(&**graph.name(), "report");
///
/// let mut graph = Graph::builder("wrong");
/// graph.edge(START, "nobody");
/// assert!(graph.build().is_err());
/// # Ok(())
/// # }
/// ```
#[doc(alias = "StateGraph")]
pub struct GraphBuilder {
    pub(super) name: Arc<str>,
    pub(super) channels: Vec<(Arc<str>, ChannelSpec)>,
    pub(super) input: Option<Vec<Arc<str>>>,
    pub(super) output: Option<Vec<Arc<str>>>,
    pub(super) nodes: Vec<NodeDraft>,
    pub(super) edges: Vec<(Arc<str>, Arc<str>, bool)>,
    pub(super) joins: Vec<JoinDraft>,
    pub(super) branches: Vec<BranchDraft>,
    pub(super) before: Breakpoints,
    pub(super) after: Breakpoints,
    pub(super) count_visits: bool,
    pub(super) defaults: NodeDefaults,
}

pub(super) struct JoinDraft {
    pub(super) sources: Vec<Arc<str>>,
    pub(super) target: Arc<str>,
    /// Whether a source feeds the join only when it goes to the target.
    pub(super) waits: bool,
}

pub(super) struct BranchDraft {
    pub(super) from: Arc<str>,
    pub(super) router: Arc<dyn Router>,
    pub(super) labels: Option<Vec<(Arc<str>, Target)>>,
    pub(super) to: Option<Vec<Arc<str>>>,
    pub(super) default: bool,
}

impl GraphBuilder {
    /// An empty graph.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            channels: Vec::new(),
            input: None,
            output: None,
            nodes: Vec::new(),
            edges: Vec::new(),
            joins: Vec::new(),
            branches: Vec::new(),
            before: Breakpoints::None,
            after: Breakpoints::None,
            count_visits: false,
            defaults: NodeDefaults::default(),
        }
    }

    /// Declares a channel and gives its typed handle.
    pub fn channel<T>(
        &mut self,
        name: impl Into<Arc<str>>,
        definition: Definition<T>,
    ) -> Channel<T> {
        let name = name.into();
        let hint = u32::try_from(self.channels.len()).unwrap_or(u32::MAX);
        self.channels.push((name.clone(), definition.into_spec()));
        Channel::new(name, hint)
    }

    /// Declares which channels a caller may set; all, if this is not called.
    pub fn input<N: Into<Arc<str>>>(&mut self, channels: impl IntoIterator<Item = N>) -> &mut Self {
        self.input = Some(channels.into_iter().map(Into::into).collect());
        self
    }

    /// Declares which channels a caller gets; all, if this is not called.
    pub fn output<N: Into<Arc<str>>>(
        &mut self,
        channels: impl IntoIterator<Item = N>,
    ) -> &mut Self {
        self.output = Some(channels.into_iter().map(Into::into).collect());
        self
    }

    /// Adds a node.
    #[doc(alias = "add_node")]
    pub fn node(&mut self, name: impl Into<Arc<str>>, node: impl Node) -> NodeOptions<'_> {
        let place = self.nodes.len();
        self.nodes.push(NodeDraft::new(name.into(), node));
        NodeOptions {
            draft: &mut self.nodes[place],
        }
    }

    /// Adds an edge that always fires, whatever commands say.
    #[doc(alias = "add_edge")]
    pub fn edge(&mut self, from: impl Into<Arc<str>>, to: impl Into<Arc<str>>) -> &mut Self {
        self.edges.push((from.into(), to.into(), false));
        self
    }

    /// Adds an edge that fires unless a command of the task named a target.
    pub fn default_edge(
        &mut self,
        from: impl Into<Arc<str>>,
        to: impl Into<Arc<str>>,
    ) -> &mut Self {
        self.edges.push((from.into(), to.into(), true));
        self
    }

    /// Runs `to` once all of `from` have run since it last did, in the same step or not.
    #[doc(alias = "add_edge")]
    pub fn join<N: Into<Arc<str>>>(
        &mut self,
        from: impl IntoIterator<Item = N>,
        to: impl Into<Arc<str>>,
    ) -> &mut Self {
        let sources = from.into_iter().map(Into::into).collect();
        self.joins.push(JoinDraft {
            sources,
            target: to.into(),
            waits: false,
        });
        self
    }

    /// Makes `node` wait for all of `sources`: going there from one of them only counts until the others did too.
    /// Ways from other nodes still run it at once.
    pub fn wait_for<N: Into<Arc<str>>>(
        &mut self,
        node: impl Into<Arc<str>>,
        sources: impl IntoIterator<Item = N>,
    ) -> &mut Self {
        let sources = sources.into_iter().map(Into::into).collect();
        self.joins.push(JoinDraft {
            sources,
            target: node.into(),
            waits: true,
        });
        self
    }

    /// Lets a router choose where to go after `from`, beside its edges.
    #[doc(alias = "add_conditional_edges")]
    pub fn branch(&mut self, from: impl Into<Arc<str>>, router: impl Router) -> BranchOptions<'_> {
        self.add_branch(from.into(), Arc::new(router), false)
    }

    /// Lets a router choose where to go after `from` unless a command of the task named a target.
    pub fn default_branch(
        &mut self,
        from: impl Into<Arc<str>>,
        router: impl Router,
    ) -> BranchOptions<'_> {
        self.add_branch(from.into(), Arc::new(router), true)
    }

    fn add_branch(
        &mut self,
        from: Arc<str>,
        router: Arc<dyn Router>,
        default: bool,
    ) -> BranchOptions<'_> {
        let place = self.branches.len();
        self.branches.push(BranchDraft {
            from,
            router,
            labels: None,
            to: None,
            default,
        });
        BranchOptions {
            draft: &mut self.branches[place],
        }
    }

    /// Stops every run before these nodes.
    pub fn interrupt_before(&mut self, at: Breakpoints) -> &mut Self {
        self.before = at;
        self
    }

    /// Stops every run after these nodes.
    pub fn interrupt_after(&mut self, at: Breakpoints) -> &mut Self {
        self.after = at;
        self
    }

    /// Counts how often each node runs in a run, so that nodes can ask for it. A limit on visits does so too.
    pub fn count_visits(&mut self) -> &mut Self {
        self.count_visits = true;
        self
    }

    /// Sets what holds for nodes that do not say otherwise, those added before included.
    pub fn set_node_defaults(&mut self, defaults: NodeDefaults) -> &mut Self {
        self.defaults = defaults;
        self
    }

    /// Checks and freezes the graph.
    ///
    /// # Errors
    /// All problems at once.
    #[doc(alias = "compile")]
    pub fn build(self) -> Result<Graph, BuildError> {
        Freezer::new(self).freeze()
    }
}

impl fmt::Debug for GraphBuilder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes: Vec<_> = self.nodes.iter().map(|node| &node.name).collect();
        out.debug_struct("GraphBuilder")
            .field("name", &self.name)
            .field("nodes", &nodes)
            .finish_non_exhaustive()
    }
}

/// Options of a branch just added.
pub struct BranchOptions<'a> {
    draft: &'a mut BranchDraft,
}

impl BranchOptions<'_> {
    /// Says what the router's answers stand for. Any other answer is then an error.
    #[doc(alias = "path_map")]
    pub fn labels<L: Into<Arc<str>>, T: Into<Target>>(
        self,
        labels: impl IntoIterator<Item = (L, T)>,
    ) -> Self {
        self.draft.labels = Some(
            labels
                .into_iter()
                .map(|(label, target)| (label.into(), target.into()))
                .collect(),
        );
        self
    }

    /// Says where the router may go, for drawing and for telling unreachable nodes. Not a restriction.
    pub fn goes_to<N: Into<Arc<str>>>(self, targets: impl IntoIterator<Item = N>) -> Self {
        self.draft.to = Some(targets.into_iter().map(Into::into).collect());
        self
    }
}

impl fmt::Debug for BranchOptions<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "BranchOptions({})", self.draft.from)
    }
}
