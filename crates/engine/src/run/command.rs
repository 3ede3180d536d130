//! What clients send, brought into the places of the graph.

use super::options::InputPolicy;
use crate::checkpoint::RecordKind;
use crate::command::{ClientCommand, Target, Update};
use crate::error::{Location, NodeError, NodeErrorKind, RunError};
use crate::event::ChannelWrite;
use crate::graph::Graph;
use crate::step::{Done, ThreadState, fold_update, resolve_target, resolve_update};
use crate::world::Id;
use std::sync::Arc;

/// Folds a client command into the thread that it came to.
///
/// # Errors
/// If it writes or goes where the graph has nothing.
pub(super) fn fold_command(
    graph: &Graph,
    thread: &mut ThreadState,
    head: Id,
    command: &RecordKind,
) -> Result<(), RunError> {
    let RecordKind::Command {
        id,
        writes,
        targets,
    } = command
    else {
        return Ok(());
    };
    let mut ordinal = 0_u128;
    let mut new_id = || {
        ordinal += 1;
        let bytes = [head.0, id.0, ordinal].map(u128::to_be_bytes).concat();
        format!("{:032x}", xxhash_rust::xxh3::xxh3_128(&bytes)).into()
    };
    let update = writes.iter().cloned().fold(Update::new(), |update, write| {
        update.with(write.channel, write.write)
    });
    let done = resolve(graph, update, targets, &mut new_id)?;
    fold_update(graph, thread, done).map(|_| ())
}

/// Refuses a command that could not be carried out, before anything is stored.
pub(super) fn check_command(graph: &Graph, command: &ClientCommand) -> Result<(), RunError> {
    let update = command.update.clone();
    resolve(graph, update, &command.goto, &mut || "".into()).map(|_| ())
}

/// Refuses an input that its channels do not take, before anything is stored.
pub(super) fn check_input(
    graph: &Graph,
    thread: &ThreadState,
    writes: &[ChannelWrite],
) -> Result<(), RunError> {
    let update = writes.iter().cloned().fold(Update::new(), |update, write| {
        update.with(write.channel, write.write)
    });
    // Ids as good as any: what is folded here is dropped again.
    let mut ordinal = 0_u32;
    let mut new_id = || {
        ordinal += 1;
        format!("{ordinal}").into()
    };
    let done = resolve(graph, update, &[], &mut new_id)?;
    fold_update(graph, &mut thread.clone(), done).map(|_| ())
}

fn resolve(
    graph: &Graph,
    update: Update,
    targets: &[Target],
    new_id: &mut dyn FnMut() -> Arc<str>,
) -> Result<Done, RunError> {
    let mut done = Done::default();
    let refused = |error: NodeError| refused(graph, &error);
    resolve_update(graph, update, new_id, &mut done.writes).map_err(refused)?;
    for target in targets {
        resolve_target(graph, &graph.0.entry, target.clone(), &mut done).map_err(refused)?;
    }
    Ok(done)
}

fn refused(graph: &Graph, error: &NodeError) -> RunError {
    match error.kind() {
        NodeErrorKind::UnknownNode { target } => RunError::UnknownNode {
            location: nowhere(graph),
            target: target.clone(),
        },
        _ => RunError::InvalidUpdate {
            location: nowhere(graph),
            message: format!("command: {error}"),
        },
    }
}

/// The place of what no node is to blame for.
pub(super) fn nowhere(graph: &Graph) -> Location {
    Location {
        graph: graph.name().clone(),
        node: "".into(),
    }
}

/// The writes of an update, by channel name.
pub(super) fn writes_of(update: Update) -> Vec<ChannelWrite> {
    let writes = update.writes.into_iter();
    writes
        .map(|(channel, write)| ChannelWrite {
            channel: channel.name,
            write,
        })
        .collect()
}

/// The writes of an input, if its keys are input channels.
pub(super) fn input_writes(
    graph: &Graph,
    update: Update,
    policy: InputPolicy,
) -> Result<Vec<ChannelWrite>, RunError> {
    if let Some((channel, error)) = update.error.as_deref() {
        return Err(RunError::InvalidUpdate {
            location: nowhere(graph),
            message: format!("the input `{channel}` can not be stored: {error}"),
        });
    }
    let mut writes = writes_of(update);
    let known = |write: &ChannelWrite| graph.input().any(|name| *name == write.channel);
    match policy {
        InputPolicy::Ignore => writes.retain(known),
        InputPolicy::Reject => {
            if let Some(write) = writes.iter().find(|write| !known(write)) {
                return Err(RunError::UnknownInput {
                    location: nowhere(graph),
                    key: write.channel.clone(),
                    known: graph.input().cloned().collect(),
                });
            }
        }
    }
    Ok(writes)
}
