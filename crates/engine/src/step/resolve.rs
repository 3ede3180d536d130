//! Names of what a node returned, turned into places of the graph.

use super::Done;
use crate::command::{ChannelRef, Command, GraphScope, Output, Target, Update, Write};
use crate::error::{NodeError, NodeErrorKind, list};
use crate::graph::{Exits, Graph, NodeIx};
use crate::state::ChannelIx;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The writes of an update, checked against the channels of the graph.
///
/// # Errors
/// If a channel is not declared, or a typed value could not be encoded.
pub(crate) fn resolve_update(
    graph: &Graph,
    update: Update,
    new_id: &mut dyn FnMut() -> Arc<str>,
    writes: &mut SmallVec<[(ChannelIx, Write); 1]>,
) -> Result<(), NodeError> {
    if let Some(failed) = update.error {
        let (channel, error) = *failed;
        return Err(invalid(format!(
            "the value for channel `{channel}` can not be stored: {error}"
        )));
    }
    let mut all = update.writes;
    if all.len() == 1
        && let Some((channel, write)) = all.pop()
    {
        // Most updates write once.
        return resolve_write(graph, &channel, write, new_id, writes);
    }
    for (channel, write) in all {
        resolve_write(graph, &channel, write, new_id, writes)?;
    }
    Ok(())
}

fn resolve_write(
    graph: &Graph,
    channel: &ChannelRef,
    write: Write,
    new_id: &mut dyn FnMut() -> Arc<str>,
    writes: &mut SmallVec<[(ChannelIx, Write); 1]>,
) -> Result<(), NodeError> {
    let table = &graph.0.channels;
    let ix = table.resolve(channel).filter(|ix| table.is_declared(*ix));
    let Some(ix) = ix else {
        let known: Vec<Arc<str>> = graph.channels().map(|(name, _)| name.clone()).collect();
        return Err(invalid(format!(
            "writes to `{}`, and graph `{}` declares no such channel; it has {}",
            channel.name,
            graph.name(),
            list(&known)
        )));
    };
    let write = table.spec(ix).reducer.prepare(write, new_id);
    writes.push((ix, write));
    Ok(())
}

fn invalid(message: String) -> NodeError {
    NodeError::from_kind(NodeErrorKind::InvalidUpdate { message })
}

/// Adds a target to where a task goes.
///
/// # Errors
/// If there is no such node.
pub(crate) fn resolve_target(
    graph: &Graph,
    exits: &Exits,
    target: Target,
    done: &mut Done,
) -> Result<(), NodeError> {
    let unknown = |target: Arc<str>| NodeError::from_kind(NodeErrorKind::UnknownNode { target });
    match target {
        Target::End => {}
        Target::Node(name) => {
            let node = graph.find(&name).ok_or_else(|| unknown(name))?;
            go_to(exits, node, done);
        }
        Target::Dispatch(dispatch) if &*dispatch.node == crate::command::END => {
            return Err(invalid(
                "dispatches to END, which takes no input".to_owned(),
            ));
        }
        Target::Dispatch(dispatch) => {
            let node = graph
                .find(&dispatch.node)
                .ok_or_else(|| unknown(dispatch.node))?;
            done.dispatch(node, dispatch.input);
        }
    }
    Ok(())
}

/// Triggers a node, or feeds the joins for which it waits.
fn go_to(exits: &Exits, node: NodeIx, done: &mut Done) {
    let mut waits = exits.waits_of(node).peekable();
    if waits.peek().is_none() {
        done.nodes.push(node);
    }
    for join in waits {
        done.feed(join);
    }
}

/// What a node returned that wrote nothing but one channel, and from which only edges lead on: most tasks.
///
/// # Errors
/// As [`resolve_output`].
pub(crate) fn resolve_one_write(
    graph: &Graph,
    exits: &Exits,
    (channel, write): (ChannelRef, Write),
    new_id: &mut dyn FnMut() -> Arc<str>,
) -> Result<Done, NodeError> {
    let mut done = Done::default();
    resolve_write(graph, &channel, write, new_id, &mut done.writes)?;
    // Pushed, for most have one edge, and copying a slice in costs more than that.
    for node in exits.edges.iter().chain(&exits.default_edges) {
        done.nodes.push(*node);
    }
    Ok(done)
}

/// Adds what a node returned, with its static ways, to its result. Gives whether a command named a target.
///
/// # Errors
/// If a channel or a target does not exist. A command for the parent graph comes as an error too, for nothing else of
/// the task counts then.
pub(crate) fn resolve_output(
    graph: &Graph,
    exits: &Exits,
    output: Output,
    new_id: &mut dyn FnMut() -> Arc<str>,
    done: &mut Done,
) -> Result<bool, NodeError> {
    resolve_update(graph, output.update, new_id, &mut done.writes)?;
    let mut routed = false;
    for command in output.commands {
        if command.scope == GraphScope::Parent {
            let command = Box::new(command);
            return Err(NodeError::from_kind(NodeErrorKind::ToParent(command)));
        }
        let Command { update, goto, .. } = command;
        resolve_update(graph, update, new_id, &mut done.writes)?;
        for target in goto {
            routed = true;
            resolve_target(graph, exits, target, done)?;
        }
    }
    done.nodes.extend_from_slice(&exits.edges);
    for join in &exits.joins {
        done.feed(*join);
    }
    if !routed {
        for node in &exits.default_edges {
            go_to(exits, *node, done);
        }
    }
    Ok(routed)
}

/// What an answer of a router stands for.
///
/// # Errors
/// If the router's answers are mapped and this one is not.
pub(crate) fn resolve_label(
    labels: Option<&BTreeMap<Arc<str>, Target>>,
    target: Target,
) -> Result<Target, NodeError> {
    match (labels, target) {
        (Some(labels), Target::Node(label)) => labels
            .get(&label)
            .cloned()
            .ok_or_else(|| NodeError::unmapped_route(label)),
        (_, target) => Ok(target),
    }
}
