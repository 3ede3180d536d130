//! Freezing a graph: names turned into places, and what is wrong found on the way.

use super::builder::GraphBuilder;
use super::check::{BuildError, Finding, Problem, unreachable};
use super::options::NodeDraft;
use super::{
    Branch, Breakpoints, Drawing, EdgeKind, Exits, Frozen, Graph, HandlerDef, JoinDef, JoinIx,
    NodeDef, NodeIx,
};
use crate::channel::{ChannelSpec, Keep, Last, Merge};
use crate::command::{END, START, Target};
use crate::state::{ChannelIx, ChannelTable};
use crate::text::nearest;
use petgraph::graph::NodeIndex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The channel that counts visits; no declared channel can have its name.
const VISITS: &str = "__visits";
/// The channel that keeps what a run has spent. It has no value, and is in no checkpoint, before something is.
pub(crate) const ACCOUNT: &str = "__account";

/// Turns names into places, and collects what is wrong on the way.
pub(super) struct Freezer {
    draft: GraphBuilder,
    names: Vec<Arc<str>>,
    problems: Vec<Problem>,
    drawing: Drawing,
    drawn: BTreeMap<Arc<str>, NodeIndex>,
    /// Whether every way out of every node is known.
    closed: bool,
}

impl Freezer {
    pub(super) fn new(mut draft: GraphBuilder) -> Self {
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

    pub(super) fn freeze(mut self) -> Result<Graph, BuildError> {
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
        let account = channels.len() as ChannelIx;
        channels.push((
            ACCOUNT.into(),
            ChannelSpec {
                keep: Keep::Run,
                ..ChannelSpec::new(Last)
            },
        ));
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
            account,
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

    fn node_def(&mut self, table: &ChannelTable, mut draft: NodeDraft, exits: Exits) -> NodeDef {
        self.draft.defaults.complete(&mut draft);
        for limit in draft.of_no_time() {
            self.problems.push(Problem::NoTime {
                node: draft.name.clone(),
                limit,
            });
        }
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
            patience: draft.patience,
            handler: draft.handler.map(|handler| HandlerDef {
                handler,
                // What waits for the node waits for its handler too; no other way of the node is taken.
                exits: Exits {
                    waited: exits.waited.clone(),
                    ..Exits::default()
                },
            }),
            cache: draft.cache,
            max_visits: draft.max_visits,
            answers: draft.answers,
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
                None => {
                    let known = table.declared().map(|known| &**known);
                    self.problems.push(Problem::UnknownChannel {
                        place: place.into(),
                        channel: name.clone(),
                        nearest: nearest(name, known).map(Into::into),
                    });
                }
            }
        }
        found
    }

    /// The place of a node that must be there.
    fn node(&mut self, place: &str, name: &Arc<str>) -> Option<NodeIx> {
        match self.names.binary_search(name) {
            Ok(ix) => Some(ix as NodeIx),
            Err(_) => {
                let known = self.names.iter().map(|known| &**known);
                self.problems.push(Problem::UnknownNode {
                    place: place.into(),
                    node: name.clone(),
                    nearest: nearest(name, known).map(Into::into),
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
