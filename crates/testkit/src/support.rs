//! What cases may ask for and the engine does not have yet.

use crate::case::{Action, Case, GraphSpec, NodeSpec, Observe, Op, Persistence, PlainOp};
use std::collections::BTreeSet;

/// The features of a case that are not supported yet, sorted. A case that has one fails, and says so.
pub(crate) fn unsupported(case: &Case) -> BTreeSet<&'static str> {
    let mut missing = BTreeSet::new();
    for graph in case.all_graphs() {
        for node in graph.nodes.values() {
            missing.extend(of_node(node));
        }
    }
    for graph in case.graphs.values() {
        missing.extend(of_child(graph));
    }
    for action in &case.run {
        missing.extend(of_action(action));
    }
    if case.observes(Observe::Checkpoints) && case.observes(Observe::Subgraphs) {
        missing.insert("checkpoint events of child graphs");
    }
    missing
}

fn of_node(node: &NodeSpec) -> BTreeSet<&'static str> {
    let mut missing = BTreeSet::new();
    let calls =
        |op: &PlainOp| matches!(op, PlainOp::Call(call) if call.persistence == Persistence::None);
    if node.persistence == Persistence::None || any(node.body.as_deref().unwrap_or(&[]), &calls) {
        missing.insert("persistence: none");
    }
    missing
}

/// What a root graph may have and a child may not.
fn of_child(graph: &GraphSpec) -> BTreeSet<&'static str> {
    let mut missing = BTreeSet::new();
    if graph.interrupt_before.is_some() || graph.interrupt_after.is_some() {
        missing.insert("breakpoints of child graphs");
    }
    missing
}

fn any(ops: &[Op], matches: &dyn Fn(&PlainOp) -> bool) -> bool {
    ops.iter().any(|op| match op {
        Op::Plain(op) => matches(op),
        Op::If {
            then, otherwise, ..
        } => any(then, matches) || any(otherwise, matches),
    })
}

fn of_action(action: &Action) -> BTreeSet<&'static str> {
    let mut missing = BTreeSet::new();
    if action.child.is_some() {
        missing.insert("in");
    }
    missing
}
