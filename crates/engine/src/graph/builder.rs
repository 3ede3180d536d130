//! Building graphs.

use super::check::{BuildError, Finding, Problem, unreachable};
use super::{
    Branch, Breakpoints, Drawing, EdgeKind, Exits, Frozen, Graph, JoinDef, JoinIx, NodeDef, NodeIx,
};
use crate::channel::{Channel, ChannelSpec, Definition, Keep, Merge};
use crate::command::{END, START, Target};
use crate::node::{Node, Router};
use crate::policy::RetryPolicy;
use crate::state::{ChannelIx, ChannelTable};
use petgraph::graph::NodeIndex;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The channel that counts visits; no declared channel can have its name.
const VISITS: &str = "__visits";

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
pub struct GraphBuilder {
    name: Arc<str>,
    channels: Vec<(Arc<str>, ChannelSpec)>,
    input: Option<Vec<Arc<str>>>,
    output: Option<Vec<Arc<str>>>,
    nodes: Vec<NodeDraft>,
    edges: Vec<(Arc<str>, Arc<str>, bool)>,
    joins: Vec<JoinDraft>,
    branches: Vec<BranchDraft>,
    before: Breakpoints,
    after: Breakpoints,
    count_visits: bool,
}

struct NodeDraft {
    name: Arc<str>,
    node: Arc<dyn Node>,
    reads: Option<Vec<Arc<str>>>,
    defer: bool,
    retry: Option<RetryPolicy>,
    timeout: Option<Duration>,
    max_visits: Option<u64>,
    goto: Vec<(Option<Arc<str>>, Arc<str>)>,
}

struct JoinDraft {
    sources: Vec<Arc<str>>,
    target: Arc<str>,
    /// Whether a source feeds the join only when it goes to the target.
    waits: bool,
}

struct BranchDraft {
    from: Arc<str>,
    router: Arc<dyn Router>,
    labels: Option<Vec<(Arc<str>, Target)>>,
    to: Option<Vec<Arc<str>>>,
    default: bool,
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
    pub fn node(&mut self, name: impl Into<Arc<str>>, node: impl Node) -> NodeOptions<'_> {
        let place = self.nodes.len();
        self.nodes.push(NodeDraft {
            name: name.into(),
            node: Arc::new(node),
            reads: None,
            defer: false,
            retry: None,
            timeout: None,
            max_visits: None,
            goto: Vec::new(),
        });
        NodeOptions {
            draft: &mut self.nodes[place],
        }
    }

    /// Adds an edge that always fires, whatever commands say.
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

    /// Checks and freezes the graph.
    ///
    /// # Errors
    /// All problems at once.
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

/// Options of a node just added.
pub struct NodeOptions<'a> {
    draft: &'a mut NodeDraft,
}

impl NodeOptions<'_> {
    /// Shows the node only these channels.
    pub fn reads<N: Into<Arc<str>>>(self, channels: impl IntoIterator<Item = N>) -> Self {
        self.draft.reads = Some(channels.into_iter().map(Into::into).collect());
        self
    }

    /// Holds the node back until nothing else is left to run.
    pub fn defer(self) -> Self {
        self.draft.defer = true;
        self
    }

    /// Tries the node again when it fails.
    pub fn retry(self, policy: RetryPolicy) -> Self {
        self.draft.retry = Some(policy);
        self
    }

    /// Bounds each attempt.
    pub fn timeout(self, limit: Duration) -> Self {
        self.draft.timeout = Some(limit);
        self
    }

    /// Bounds how often the node runs in one run.
    pub fn max_visits(self, limit: u64) -> Self {
        self.draft.max_visits = Some(limit);
        self
    }

    /// Says where commands of the node may go, for drawing and for telling unreachable nodes. Not a restriction.
    pub fn goes_to<N: Into<Arc<str>>>(self, targets: impl IntoIterator<Item = N>) -> Self {
        self.draft
            .goto
            .extend(targets.into_iter().map(|target| (None, target.into())));
        self
    }

    /// Says where commands of the node may go, with the label that stands for it.
    pub fn goes_to_labelled<L: Into<Arc<str>>, N: Into<Arc<str>>>(
        self,
        targets: impl IntoIterator<Item = (L, N)>,
    ) -> Self {
        self.draft.goto.extend(
            targets
                .into_iter()
                .map(|(label, target)| (Some(label.into()), target.into())),
        );
        self
    }
}

impl fmt::Debug for NodeOptions<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "NodeOptions({})", self.draft.name)
    }
}

/// Options of a branch just added.
pub struct BranchOptions<'a> {
    draft: &'a mut BranchDraft,
}

impl BranchOptions<'_> {
    /// Says what the router's answers stand for. Any other answer is then an error.
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

/// Turns names into places, and collects what is wrong on the way.
struct Freezer {
    draft: GraphBuilder,
    names: Vec<Arc<str>>,
    problems: Vec<Problem>,
    drawing: Drawing,
    drawn: BTreeMap<Arc<str>, NodeIndex>,
    /// Whether every way out of every node is known.
    closed: bool,
}

impl Freezer {
    fn new(mut draft: GraphBuilder) -> Self {
        draft.nodes.sort_by(|a, b| a.name.cmp(&b.name));
        let names: Vec<Arc<str>> = draft.nodes.iter().map(|node| node.name.clone()).collect();
        let mut drawing = Drawing::new();
        let mut drawn = BTreeMap::new();
        for name in [START.into(), END.into()]
            .into_iter()
            .chain(names.iter().cloned())
        {
            drawn
                .entry(name.clone())
                .or_insert_with(|| drawing.add_node(name));
        }
        Self {
            draft,
            names,
            problems: Vec::new(),
            drawing,
            drawn,
            closed: true,
        }
    }

    fn freeze(mut self) -> Result<Graph, BuildError> {
        self.check_names();
        let declared = self.draft.channels.len();
        let mut channels = std::mem::take(&mut self.draft.channels);
        let counts = self.draft.count_visits
            || self
                .draft
                .nodes
                .iter()
                .any(|node| node.max_visits.is_some());
        if counts {
            channels.push((
                VISITS.into(),
                ChannelSpec {
                    keep: Keep::Run,
                    ..ChannelSpec::new(Merge)
                },
            ));
        }
        let table = ChannelTable::new(channels, declared);
        let all: Vec<ChannelIx> = (0..).take(declared).collect();
        let input = self
            .draft
            .input
            .take()
            .map(|names| self.channels(&table, "input", &names));
        let output = self
            .draft
            .output
            .take()
            .map(|names| self.channels(&table, "output", &names));
        let ephemeral = all
            .iter()
            .copied()
            .filter(|ix| table.spec(*ix).keep == Keep::Step)
            .collect();

        let mut exits: Vec<Exits> = self.names.iter().map(|_| Exits::default()).collect();
        let mut entry = Exits::default();
        self.add_edges(&mut exits, &mut entry);
        let joins = self.add_joins(&mut exits);
        self.add_branches(&mut exits, &mut entry);
        if entry.edges.is_empty() && entry.branches.is_empty() {
            self.problems.push(Problem::NoStart);
        }
        for breakpoints in [self.draft.before.clone(), self.draft.after.clone()] {
            if let Breakpoints::Nodes(nodes) = breakpoints {
                for node in nodes {
                    self.node("a breakpoint", &node);
                }
            }
        }

        let drafts = std::mem::take(&mut self.draft.nodes);
        let nodes: Vec<NodeDef> = drafts
            .into_iter()
            .zip(exits)
            .map(|(draft, exits)| self.node_def(&table, draft, exits))
            .collect();
        if !self.problems.is_empty() {
            return Err(BuildError {
                graph: self.draft.name,
                problems: self.problems,
            });
        }
        let findings: Vec<Finding> = if self.closed {
            unreachable(&self.drawing, &self.drawn)
        } else {
            Vec::new()
        };
        Ok(Graph(Arc::new(Frozen {
            name: self.draft.name,
            visits: counts.then_some(all.len() as ChannelIx),
            channels: Arc::new(table),
            declared,
            input: input.unwrap_or_else(|| all.clone()),
            output: output.unwrap_or(all),
            ephemeral,
            nodes,
            entry,
            joins,
            before: self.draft.before,
            after: self.draft.after,
            drawing: self.drawing,
            findings,
        })))
    }

    fn check_names(&mut self) {
        for pair in self.names.windows(2) {
            if pair[0] == pair[1] {
                self.problems.push(Problem::DuplicateNode {
                    node: pair[0].clone(),
                });
            }
        }
        for name in &self.names {
            if Graph::is_reserved(name) || name.is_empty() || name.contains(['/', ':', '|', '#']) {
                self.problems.push(Problem::BadName {
                    what: "node",
                    name: name.clone(),
                });
            }
        }
        let mut seen = BTreeSet::new();
        for (name, _) in &self.draft.channels {
            if name.is_empty() || name.starts_with("__") {
                self.problems.push(Problem::BadName {
                    what: "channel",
                    name: name.clone(),
                });
            }
            if !seen.insert(name.clone()) {
                self.problems.push(Problem::DuplicateChannel {
                    channel: name.clone(),
                });
            }
        }
    }

    fn node_def(&mut self, table: &ChannelTable, draft: NodeDraft, exits: Exits) -> NodeDef {
        let reads = draft.reads.map(|names| {
            self.channels(table, &format!("node `{}`", draft.name), &names)
                .into()
        });
        for (label, target) in draft.goto {
            if self
                .target(&format!("node `{}`", draft.name), &target)
                .is_some()
                || &*target == END
            {
                self.draw(&draft.name, &target, EdgeKind::Command(label));
            }
        }
        NodeDef {
            name: draft.name,
            node: draft.node,
            reads,
            defer: draft.defer,
            retry: draft.retry,
            timeout: draft.timeout,
            max_visits: draft.max_visits,
            exits,
        }
    }

    fn add_edges(&mut self, exits: &mut [Exits], entry: &mut Exits) {
        for (from, to, default) in std::mem::take(&mut self.draft.edges) {
            let place = format!("the edge from `{from}` to `{to}`");
            let source = self.source(&place, &from);
            let target = self.target(&place, &to);
            let Some(source) = source else { continue };
            self.draw(
                &from,
                &to,
                if default {
                    EdgeKind::Default
                } else {
                    EdgeKind::Static
                },
            );
            let exits = source.map_or(&mut *entry, |ix| &mut exits[ix as usize]);
            let edges = if default {
                &mut exits.default_edges
            } else {
                &mut exits.edges
            };
            if let Some(target) = target
                && !edges.contains(&target)
            {
                edges.push(target);
            }
        }
    }

    fn add_joins(&mut self, exits: &mut [Exits]) -> Vec<JoinDef> {
        let mut joins: Vec<JoinDef> = Vec::new();
        for draft in std::mem::take(&mut self.draft.joins) {
            let place = format!("the join into `{}`", draft.target);
            if draft.sources.is_empty() {
                self.problems.push(Problem::EmptyJoin {
                    target: draft.target.clone(),
                });
            }
            let target = self.node(&place, &draft.target);
            // A set: naming a source twice, or the same sources in another order, makes no other join.
            let sources: BTreeSet<NodeIx> = draft
                .sources
                .iter()
                .filter_map(|source| self.node(&place, source))
                .collect();
            let Some(target) = target else { continue };
            let name = self.join_name(&sources, target, draft.waits);
            if joins.iter().any(|join| join.name == name) {
                continue;
            }
            let join = joins.len() as JoinIx;
            for source in &sources {
                let from = self.names[*source as usize].clone();
                self.draw(&from, &draft.target, EdgeKind::Join(name.clone()));
                let exits = &mut exits[*source as usize];
                if draft.waits {
                    exits.waited.push((target, join));
                } else {
                    exits.joins.push(join);
                }
            }
            joins.push(JoinDef {
                name,
                sources: sources.into_iter().collect(),
                target,
            });
        }
        for exits in exits {
            exits.hold_back();
        }
        joins
    }

    /// The name of a join in checkpoints: made with characters that no name of a node has, so no two joins share one.
    fn join_name(&self, sources: &BTreeSet<NodeIx>, target: NodeIx, waits: bool) -> Arc<str> {
        let name = |ix: &NodeIx| &*self.names[*ix as usize];
        let sources: Vec<&str> = sources.iter().map(name).collect();
        let kind = if waits { "wait" } else { "join" };
        format!("{kind}:{}:{}", sources.join("|"), name(&target)).into()
    }

    fn add_branches(&mut self, exits: &mut [Exits], entry: &mut Exits) {
        for draft in std::mem::take(&mut self.draft.branches) {
            let place = format!("the branch after `{}`", draft.from);
            let source = self.source(&place, &draft.from);
            let mut labels = None;
            if let Some(pairs) = draft.labels {
                for (label, target) in &pairs {
                    let name = match target {
                        Target::Node(name) => name.clone(),
                        Target::Dispatch(dispatch) => dispatch.node.clone(),
                        Target::End => END.into(),
                    };
                    self.target(&place, &name);
                    self.draw(&draft.from, &name, EdgeKind::Branch(Some(label.clone())));
                }
                labels = Some(pairs.into_iter().collect());
            } else if let Some(targets) = &draft.to {
                for target in targets {
                    self.target(&place, target);
                    self.draw(&draft.from, target, EdgeKind::Branch(None));
                }
            } else {
                self.closed = false;
            }
            let Some(source) = source else { continue };
            let exits = source.map_or(&mut *entry, |ix| &mut exits[ix as usize]);
            let branches = if draft.default {
                &mut exits.default_branches
            } else {
                &mut exits.branches
            };
            branches.push(Branch {
                router: draft.router,
                labels,
            });
        }
    }

    fn channels(
        &mut self,
        table: &ChannelTable,
        place: &str,
        names: &[Arc<str>],
    ) -> Vec<ChannelIx> {
        let mut found = Vec::new();
        for name in names {
            match table.find(name) {
                Some(ix) => found.push(ix),
                None => self.problems.push(Problem::UnknownChannel {
                    place: place.into(),
                    channel: name.clone(),
                }),
            }
        }
        found
    }

    /// The place of a node that must be there.
    fn node(&mut self, place: &str, name: &Arc<str>) -> Option<NodeIx> {
        match self.names.binary_search(name) {
            Ok(ix) => Some(ix as NodeIx),
            Err(_) => {
                self.problems.push(Problem::UnknownNode {
                    place: place.into(),
                    node: name.clone(),
                });
                None
            }
        }
    }

    /// The source of a way: a node, or `Some(None)` for the start.
    fn source(&mut self, place: &str, name: &Arc<str>) -> Option<Option<NodeIx>> {
        match &**name {
            START => Some(None),
            END => {
                self.problems.push(Problem::EndAsSource {
                    place: place.into(),
                });
                None
            }
            _ => self.node(place, name).map(Some),
        }
    }

    /// The target of a way: a node, or `None` for the end and for what is not there.
    fn target(&mut self, place: &str, name: &Arc<str>) -> Option<NodeIx> {
        match &**name {
            END => None,
            START => {
                self.problems.push(Problem::StartAsTarget {
                    place: place.into(),
                });
                None
            }
            _ => self.node(place, name),
        }
    }

    fn draw(&mut self, from: &Arc<str>, to: &Arc<str>, kind: EdgeKind) {
        if let (Some(from), Some(to)) = (self.drawn.get(from), self.drawn.get(to)) {
            self.drawing.add_edge(*from, *to, kind);
        }
    }
}
