//! Cycles: each needs a way out, and something that bounds it.

use indexmap::IndexMap;
use petgraph::algo::tarjan_scc;
use petgraph::graph::NodeIndex;
use petgraph::visit::EdgeFiltered;

use super::Flow;
use crate::diag::{Diagnostic, G303, Level};
use crate::graph::To;
use crate::load::ThenPlan;
use crate::report::Report;
use crate::spec::Kind;

/// Tells whether a condition counts how often the node has run.
fn asks_for_visits(then: &ThenPlan) -> bool {
    match then {
        ThenPlan::Branches { branches, .. } => branches
            .iter()
            .any(|(when, _, _)| when.contains("run.visits")),
        ThenPlan::Go(_) | ThenPlan::None => false,
    }
}

impl Flow<'_> {
    pub(super) fn check_cycles(
        &self,
        report: &mut Report<'_>,
        max_visits: &IndexMap<String, u32>,
        reached: &[bool],
    ) {
        let mut endless = Vec::new();
        for cycle in tarjan_scc(&self.graph) {
            let numbers = self.members(&cycle);
            if numbers.is_empty() || !reached[numbers[0]] {
                continue;
            }
            let leaves = numbers.iter().any(|number| {
                let node = &self.nodes[*number];
                let ends = node.targets().any(|(to, _)| *to == To::End);
                let silent = self.ways[*number].is_empty();
                let out = |to: &usize| !numbers.contains(to);
                ends || silent
                    || self.ways[*number]
                        .iter()
                        .any(|way| way.targets.iter().any(out))
            });
            if !leaves {
                let finding =
                    Diagnostic::new(&G303, format!("no way out of {}", self.names(&numbers)))
                        .at(
                            report.key(&self.nodes[numbers[0]].at),
                            "goes round for ever",
                        )
                        .help("let one of them go to `end` or to a node outside");
                report.push(finding);
                endless.extend(numbers);
            }
        }
        // Without the nodes that bound a cycle no cycle should be left.
        let bounded = |number: usize| {
            let node = &self.nodes[number];
            node.kind == Some(Kind::Interrupt)
                || node.pause.is_some()
                || asks_for_visits(&node.then)
                || max_visits.contains_key(&node.id)
        };
        let free = EdgeFiltered::from_fn(&self.graph, |edge| {
            use petgraph::visit::EdgeRef;
            !bounded(self.graph[edge.source()]) && !bounded(self.graph[edge.target()])
        });
        for cycle in tarjan_scc(&free) {
            let numbers = self.members(&cycle);
            let looped =
                numbers.len() > 1 || numbers.first().is_some_and(|number| !bounded(*number));
            let Some(first) = numbers.first() else {
                continue;
            };
            if !looped || !reached[*first] || endless.contains(first) {
                continue;
            }
            let id = &self.nodes[*first].id;
            let finding =
                Diagnostic::new(&G303, format!("nothing bounds {}", self.names(&numbers)))
                    .level(Level::Warning)
                    .at(
                        report.key(&self.nodes[*first].at),
                        "goes round until `max_steps`",
                    )
                    .help(format!("set `limits: {{ max_visits: {{ {id}: 25 }} }}`"));
            report.push(finding);
        }
    }

    /// Returns the nodes of a component in file order; none if it is no cycle.
    fn members(&self, component: &[NodeIndex]) -> Vec<usize> {
        let looped = match component {
            [one] => self.graph.contains_edge(*one, *one),
            _ => true,
        };
        if !looped {
            return Vec::new();
        }
        let mut numbers: Vec<usize> = component.iter().map(|place| self.graph[*place]).collect();
        numbers.sort_unstable();
        numbers
    }

    fn names(&self, numbers: &[usize]) -> String {
        let names: Vec<String> = numbers
            .iter()
            .map(|number| format!("`{}`", self.nodes[*number].id))
            .collect();
        match names.as_slice() {
            [one] => format!("the loop of {one}"),
            names => format!("the cycle of {}", names.join(", ")),
        }
    }
}
