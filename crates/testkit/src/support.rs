//! What cases may ask for and the engine does not have yet.

use crate::case::{
    Action, ActionKind, Case, GraphSpec, NodeSpec, Observe, Op, Persistence, PlainOp, UpdateSpec,
};
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
    if action.at.is_some() {
        missing.insert("at");
    }
    if action.child.is_some() {
        missing.insert("in");
    }
    if action.run_id.is_some() {
        missing.insert("run_id");
    }
    match action.durability.as_deref() {
        None | Some("sync") => {}
        Some("exit") => {
            missing.insert("durability: exit");
        }
        Some(_) => {
            missing.insert("durability: async");
        }
    }
    match &action.kind {
        ActionKind::Update(update) => missing.extend(of_update(update)),
        ActionKind::BulkUpdate { .. } => {
            missing.insert("bulk_update");
        }
        _ => {}
    }
    missing
}

fn of_update(update: &UpdateSpec) -> Option<&'static str> {
    match update.as_node.as_deref() {
        None => Some("an update that does not say as which node"),
        Some("END") => Some("as_node: END"),
        Some("INPUT") => Some("as_node: INPUT"),
        Some("COPY") => Some("as_node: COPY"),
        Some(_) => None,
    }
}
