//! Taking results of nodes from the cache, and keeping them there.

use super::ends::done_record;
use super::stored::add_ways;
use crate::cache::{CacheKey, CachePolicy, CachedResult};
use crate::checkpoint::RecordKind;
use crate::command::{Output, Update, Write};
use crate::cx::NodeCx;
use crate::error::{NodeError, NodeErrorKind, RunError};
use crate::event::ChannelWrite;
use crate::step::{Done, resolve_update};
use crate::world::Timestamp;
use std::sync::Arc;

/// What the cache says of a task.
#[derive(Debug)]
pub(super) enum Lookup {
    /// The task is not to be cached.
    Off,
    /// Nothing is known; its result is to be kept under this name.
    Unknown(CacheKey),
    /// Its result.
    Known(Done),
}

/// Looks for the result of a task. What was answered is neither looked for nor kept: its result depends on the answers.
///
/// # Errors
/// If the cache can not be read.
pub(super) async fn look_up(cx: &NodeCx, policy: &CachePolicy) -> Result<Lookup, NodeError> {
    let run = cx.run_cx();
    let Some(cache) = run.cache.as_ref().filter(|_| !cx.task.was_answered()) else {
        return Ok(Lookup::Off);
    };
    let key = key_of(cx, policy);
    let found = cache.get(&key, run.world.now()).await.map_err(stored)?;
    let Some(result) = found else {
        return Ok(Lookup::Unknown(key));
    };
    Ok(match known(cx, &result) {
        Some(done) => Lookup::Known(done),
        // The graph has changed since.
        None => Lookup::Unknown(key),
    })
}

fn key_of(cx: &NodeCx, policy: &CachePolicy) -> CacheKey {
    let run = cx.run_cx();
    let input = cx.input();
    let input = match &policy.key {
        Some(key) => key(&input),
        None => input,
    };
    // A node can tell a dispatch from an edge.
    let way = match cx.dispatched() {
        Some(_) => "dispatch",
        None => "edge",
    };
    let text = format!("{way} {}", input.to_canonical());
    CacheKey {
        tenant: run.thread.tenant.clone(),
        graph: run.graph.name().clone(),
        node: cx.node().clone(),
        input: xxhash_rust::xxh3::xxh3_128(text.as_bytes()),
    }
}

/// A kept result in the places of the graph; `None` if it does not fit any more.
fn known(cx: &NodeCx, result: &CachedResult) -> Option<Done> {
    let graph = &cx.run_cx().graph;
    let mut done = Done::default();
    let update = result.writes.iter().fold(Update::new(), |update, write| {
        update.with(write.channel.clone(), write.write.clone())
    });
    // As if the node had returned it now: messages without an id get new ones.
    resolve_update(graph, update, &mut cx.message_ids(), &mut done.writes).ok()?;
    add_ways(graph, &result.targets, &result.joins, &mut done).ok()?;
    Some(done)
}

/// What an output writes, before anything is made of it.
pub(super) fn writes_of(output: &Output) -> Vec<ChannelWrite> {
    let commands = output.commands.iter().map(|command| &command.update);
    let updates = std::iter::once(&output.update).chain(commands);
    let writes = updates.flat_map(|update| &update.writes);
    writes
        .map(|(channel, write)| ChannelWrite {
            channel: channel.name.clone(),
            write: Write::clone(write),
        })
        .collect()
}

/// Keeps the result of a task that has finished. What writes channels that are never stored is not kept.
///
/// # Errors
/// If the cache can not keep it.
pub(super) async fn keep(
    cx: &NodeCx,
    policy: &CachePolicy,
    key: &CacheKey,
    writes: Vec<ChannelWrite>,
    done: &Done,
) -> Result<(), NodeError> {
    let run = cx.run_cx();
    let Some(cache) = &run.cache else {
        return Ok(());
    };
    let all = writes.len();
    let writes = run.graph.0.channels.stored(writes);
    let RecordKind::Done { targets, joins, .. } = done_record(run, done) else {
        return Ok(());
    };
    if writes.len() < all {
        return Ok(());
    }
    let expires = policy.ttl.map(|ttl| {
        let ttl = super::bound::millis(ttl);
        Timestamp(run.world.now().0.saturating_add(ttl))
    });
    let result = CachedResult {
        writes,
        targets,
        joins,
    };
    cache
        .put(key.clone(), result, expires)
        .await
        .map_err(stored)
}

fn stored(error: crate::error::StoreError) -> NodeError {
    NodeError::from_kind(NodeErrorKind::Run(Box::new(RunError::Store(error))))
}

impl NodeCx {
    /// Makes the ids of messages that have none: the same whenever the task runs again.
    pub(super) fn message_ids(&self) -> impl FnMut() -> Arc<str> {
        let mut ordinal = 0_u32;
        move || {
            ordinal += 1;
            format!(
                "{:032x}",
                self.task.hash(&["message", &ordinal.to_string()])
            )
            .into()
        }
    }
}
