//! Checks of the whole graph: what can be reached, what can run together, what can end.

mod active;
mod cycles;
mod usage;

use std::collections::BTreeMap;

use indexmap::IndexMap;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::Dfs;

use crate::diag::{Diagnostic, G101, G301, G306};
use crate::graph::To;
use crate::load::{ChannelPlan, NodePlan, ThenPlan};
use crate::report::{Report, nearest, one_of};
use crate::spec::{Goto, Kind};
use crate::syntax::At;

pub(crate) use usage::check_usage;

/// The nodes of a file with their ways on as numbers.
pub(crate) struct Flow<'p> {
    pub(crate) nodes: &'p [NodePlan],
    pub(crate) channels: &'p IndexMap<String, ChannelPlan>,
    /// The ways out of each node: one of them is taken, all its targets run.
    ways: Vec<Vec<Way>>,
    start: Vec<Way>,
    /// The nodes each node waits for.
    waits: Vec<Vec<usize>>,
    graph: DiGraph<usize, ()>,
}

/// Targets that run together; `end` is none.
#[derive(Clone, Debug)]
struct Way {
    targets: Vec<usize>,
    /// The places that name the targets.
    at: Vec<At>,
}

/// Up to this many routes of a node are combined in every way; beyond, one by one and all at once.
const COMBINED_ROUTES: usize = 4;

impl<'p> Flow<'p> {
    pub(crate) fn new(
        nodes: &'p [NodePlan],
        channels: &'p IndexMap<String, ChannelPlan>,
        start: &ThenPlan,
    ) -> Self {
        let numbers: BTreeMap<&str, usize> = nodes
            .iter()
            .enumerate()
            .map(|(number, node)| (node.id.as_str(), number))
            .collect();
        let way = |gotos: &[&Goto]| {
            let mut way = Way {
                targets: Vec::new(),
                at: Vec::new(),
            };
            for goto in gotos {
                way.at.push(goto.at.clone());
                for (to, _) in &goto.targets {
                    let To::Node(name) = to else { continue };
                    if let Some(number) = numbers.get(name.as_str())
                        && !way.targets.contains(number)
                    {
                        way.targets.push(*number);
                    }
                }
            }
            way
        };
        let ways: Vec<Vec<Way>> = nodes
            .iter()
            .map(|node| {
                let mut ways: Vec<Way> = node
                    .then
                    .gotos()
                    .into_iter()
                    .map(|goto| way(&[goto]))
                    .collect();
                let routes: Vec<&Goto> = node.routes.values().collect();
                // Parallel calls of a tools node may raise several labels at once.
                let several = node.kind == Some(Kind::Tools) && routes.len() > 1;
                if several && routes.len() <= COMBINED_ROUTES {
                    for chosen in 1..(1_usize << routes.len()) {
                        let some: Vec<&Goto> = routes
                            .iter()
                            .enumerate()
                            .filter(|(index, _)| chosen & (1 << index) != 0)
                            .map(|(_, goto)| *goto)
                            .collect();
                        ways.push(way(&some));
                    }
                } else {
                    ways.extend(routes.iter().map(|goto| way(&[goto])));
                    if several {
                        ways.push(way(&routes));
                    }
                }
                ways
            })
            .collect();
        let waits = nodes
            .iter()
            .map(|node| {
                node.wait_for
                    .iter()
                    .filter_map(|name| numbers.get(name.as_str()).copied())
                    .collect()
            })
            .collect();
        let start: Vec<Way> = start.gotos().into_iter().map(|goto| way(&[goto])).collect();
        let mut graph = DiGraph::new();
        let places: Vec<NodeIndex> = (0..nodes.len())
            .map(|number| graph.add_node(number))
            .collect();
        for (from, ways) in ways.iter().enumerate() {
            for to in ways.iter().flat_map(|way| &way.targets) {
                graph.update_edge(places[from], places[*to], ());
            }
        }
        Self {
            nodes,
            channels,
            ways,
            start,
            waits,
            graph,
        }
    }

    /// Runs all checks; returns the greatest number of nodes active at once, if it is known.
    pub(crate) fn check(
        &self,
        report: &mut Report<'_>,
        max_visits: &IndexMap<String, u32>,
    ) -> Option<usize> {
        let reached = self.check_reached(report);
        self.check_waits(report, &reached);
        self.check_cycles(report, max_visits, &reached);
        self.check_active(report, &reached)
    }

    fn check_reached(&self, report: &mut Report<'_>) -> Vec<bool> {
        let mut reached = vec![false; self.nodes.len()];
        for start in self.start.iter().flat_map(|way| &way.targets) {
            let mut walk = Dfs::new(&self.graph, NodeIndex::new(*start));
            while let Some(place) = walk.next(&self.graph) {
                reached[self.graph[place]] = true;
            }
        }
        for (node, reached) in self.nodes.iter().zip(&reached) {
            if !reached {
                let finding = Diagnostic::new(&G301, format!("no edge leads to `{}`", node.id))
                    .at(report.key(&node.at), "never runs")
                    .help("name it in a `then` or `routes`, or remove it");
                report.push(finding);
            }
        }
        reached
    }

    /// A node can only be waited for by one it goes to.
    fn check_waits(&self, report: &mut Report<'_>, reached: &[bool]) {
        for (number, node) in self.nodes.iter().enumerate() {
            if !reached[number] {
                continue;
            }
            for source in &self.waits[number] {
                if self.ways[*source]
                    .iter()
                    .any(|way| way.targets.contains(&number))
                {
                    continue;
                }
                let other = &self.nodes[*source].id;
                let at = node.at.key("wait_for");
                let finding = Diagnostic::new(
                    &G306,
                    format!("`{}` waits for `{other}`, which never goes there", node.id),
                )
                .at(report.value(&at), "can never be complete")
                .context(
                    report.key(&self.nodes[*source].at),
                    format!("no way leads to `{}`", node.id),
                )
                .help(format!(
                    "let `{other}` go to `{}`, or do not wait for it",
                    node.id
                ));
                report.push(finding);
            }
        }
    }
}

/// Reports targets that are no nodes; `true` if there are none of these.
pub(crate) fn check_targets(report: &mut Report<'_>, nodes: &[NodePlan], start: &ThenPlan) -> bool {
    let before = report.errors();
    let known: Vec<&str> = nodes.iter().map(|node| node.id.as_str()).collect();
    let starts = start.gotos().into_iter().flat_map(|goto| &goto.targets);
    let targets = nodes.iter().flat_map(NodePlan::targets);
    for (to, at) in starts.chain(targets) {
        if let To::Node(name) = to {
            check_target(report, &known, name, at, true);
        }
    }
    for node in nodes {
        for (index, name) in node.wait_for.iter().enumerate() {
            let at = node.at.key("wait_for").item(index);
            check_target(report, &known, name, &at, false);
        }
    }
    report.errors() == before
}

fn check_target(report: &mut Report<'_>, known: &[&str], name: &str, at: &At, may_end: bool) {
    if known.contains(&name) {
        return;
    }
    let mut candidates = known.to_vec();
    if may_end {
        candidates.push("end");
    }
    let finding = Diagnostic::new(&G101, format!("no node named `{name}`"))
        .at(report.value(at), "not declared under `nodes`");
    let finding = match nearest(name, candidates.iter().copied()) {
        Some(near) => {
            let declared = report.key(&At::root().key("nodes").key(near));
            let finding = finding.help(format!("did you mean `{near}`?"));
            match near {
                "end" => finding,
                _ => finding.context(declared, "a node with a similar name"),
            }
        }
        None => finding.help(format!("the nodes are {}", one_of(known))),
    };
    report.push(finding);
}

/// Reports limits on nodes that do not exist.
pub(crate) fn check_visits(
    report: &mut Report<'_>,
    nodes: &[NodePlan],
    max_visits: &IndexMap<String, u32>,
) {
    let known: Vec<&str> = nodes.iter().map(|node| node.id.as_str()).collect();
    let at = At::root().key("limits").key("max_visits");
    for name in max_visits
        .keys()
        .filter(|name| !known.contains(&name.as_str()))
    {
        let finding = Diagnostic::new(&G101, format!("no node named `{name}`"))
            .at(report.key(&at.key(name)), "not declared under `nodes`")
            .help_if(
                nearest(name, known.iter().copied()).map(|near| format!("did you mean `{near}`?")),
            );
        report.push(finding);
    }
}
