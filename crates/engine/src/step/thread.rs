//! The state of a thread between two steps.

use super::changes::Changes;
use crate::channel::{Effect, Keep};
use crate::checkpoint::{Advance, Checkpoint, PlannedTask, Record, Source};
use crate::command::{Dispatch, Target};
use crate::event::ChannelWrite;
use crate::graph::{Graph, JoinIx, NodeIx};
use crate::state::{ChannelIx, State};
use crate::value::{Map, Value};
use crate::world::{Id, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What runs next.
#[derive(Clone, Debug)]
pub(crate) enum Planned {
    Start {
        writes: Vec<ChannelWrite>,
        goto: Vec<Target>,
    },
    Node(NodeIx),
    Dispatch(NodeIx, Value),
}

/// Everything a step needs to know of a thread, with names turned into places.
#[derive(Clone, Debug)]
pub(crate) struct ThreadState {
    pub(crate) state: Arc<State>,
    /// The number of the newest checkpoint; -2 before the first.
    pub(crate) step: i64,
    /// In run order: nodes by name, then dispatches.
    pub(crate) next: Vec<Planned>,
    /// Joins that some of their sources fed, or all while a deferred target waits.
    pub(crate) joins: BTreeMap<JoinIx, BTreeSet<NodeIx>>,
    /// Deferred nodes that were triggered and wait until nothing else runs.
    pub(crate) deferred: BTreeSet<NodeIx>,
    /// Changes made since the newest checkpoint, for the next one; kept only if something stores them.
    pub(crate) effects: Option<Changes>,
}

impl ThreadState {
    /// A thread before its first checkpoint.
    pub(crate) fn new(graph: &Graph, record: bool) -> Self {
        let state = graph.0.channels.initial();
        Self {
            effects: record.then(|| unstored(graph, &state, &Map::new())),
            state: Arc::new(state),
            step: -2,
            next: Vec::new(),
            joins: BTreeMap::new(),
            deferred: BTreeSet::new(),
        }
    }

    /// A stored thread. A channel that the checkpoint has not is as at thread start: it never had a value, or the graph
    /// has it only since.
    ///
    /// # Errors
    /// What in the checkpoint has no home in the graph.
    pub(crate) fn load(graph: &Graph, checkpoint: &Checkpoint) -> Result<Self, Vec<String>> {
        let mut homeless = Vec::new();
        if !(-2..i64::MAX / 2).contains(&checkpoint.step) {
            homeless.push(format!(
                "its number is {}, which can not be",
                checkpoint.step
            ));
        }
        let table = &graph.0.channels;
        let mut state = table.initial();
        for (name, value) in &checkpoint.values {
            match table.find(name) {
                Some(ix) => {
                    state.slots[ix as usize] = crate::channel::Slot::new(Some(value.clone()));
                }
                None => homeless.push(format!(
                    "it has a value in the channel `{name}`, which the graph does not have"
                )),
            }
        }
        let mut node = |name: &Arc<str>, what: &str| {
            let found = graph.find(name);
            if found.is_none() {
                homeless.push(format!("{what} `{name}`, which the graph does not have"));
            }
            found
        };
        let mut next = Vec::new();
        for task in &checkpoint.next {
            match task {
                PlannedTask::Start { writes, goto } => {
                    next.push(Planned::Start {
                        writes: writes.clone(),
                        goto: goto.clone(),
                    });
                }
                PlannedTask::Node(name) => {
                    next.extend(node(name, "it waits to run the node").map(Planned::Node));
                }
                PlannedTask::Dispatch(Dispatch { node: name, input }) => {
                    next.extend(
                        node(name, "it waits to run the node")
                            .map(|ix| Planned::Dispatch(ix, input.clone())),
                    );
                }
            }
        }
        let deferred = checkpoint
            .deferred
            .iter()
            .filter_map(|name| node(name, "it defers the node"))
            .collect();
        let mut joins = BTreeMap::new();
        for (name, seen) in &checkpoint.joins {
            // A join that is no more waits for nobody; its sources that are no more will not come again either.
            let Some(ix) = graph.0.joins.iter().position(|join| join.name == *name) else {
                continue;
            };
            joins.insert(
                ix as JoinIx,
                seen.iter()
                    .filter_map(|source| graph.find(source))
                    .collect(),
            );
        }
        if homeless.is_empty() {
            Ok(Self {
                effects: Some(unstored(graph, &state, &checkpoint.values)),
                state: Arc::new(state),
                step: checkpoint.step,
                next,
                joins,
                deferred,
            })
        } else {
            Err(homeless)
        }
    }

    /// The checkpoint that stores what happened since the last one.
    pub(crate) fn advance(
        &mut self,
        graph: &Graph,
        head: AdvanceHead,
        records: Vec<Record>,
    ) -> Advance {
        let mut next = Vec::with_capacity(self.next.len());
        next.extend(self.next.iter().map(|planned| planned.named(graph)));
        Advance {
            id: head.id,
            parent: head.parent,
            step: self.step,
            source: head.source,
            created: head.created,
            run: head.run,
            invocation: head.invocation,
            effects: self.effects.as_mut().map(Changes::take).unwrap_or_default(),
            next,
            joins: self.named_joins(graph),
            deferred: named(graph, &self.deferred),
            ran: Vec::new(),
            records,
        }
    }

    fn named_joins(&self, graph: &Graph) -> BTreeMap<Arc<str>, Vec<Arc<str>>> {
        if self.joins.is_empty() {
            return BTreeMap::new();
        }
        let joins = self.joins.iter().map(|(ix, seen)| {
            let name = graph.0.joins[*ix as usize].name.clone();
            (name, named(graph, seen))
        });
        joins.collect()
    }

    /// Takes as changed since the last checkpoint what differs from `values`, and nothing else.
    pub(crate) fn record_against(&mut self, graph: &Graph, values: &Map) {
        let table = &graph.0.channels;
        let changed = (0..).zip(&self.state.slots).filter_map(|(ix, slot)| {
            let before = values.get(table.name(ix));
            if table.spec(ix).keep == Keep::Untracked || slot.value.as_ref() == before {
                return None;
            }
            let effect = slot.value.clone().map_or(Effect::Unset, Effect::Set);
            Some((ix, effect))
        });
        self.effects = Some(Changes::of(graph, changed));
    }

    /// The values of channels, those without one left out.
    pub(crate) fn values(&self, graph: &Graph, channels: &[ChannelIx]) -> Map {
        let table = &graph.0.channels;
        channels
            .iter()
            .filter_map(|ix| Some((table.name(*ix).clone(), self.state.value(*ix)?.clone())))
            .collect()
    }
}

fn named(graph: &Graph, nodes: &BTreeSet<NodeIx>) -> Vec<Arc<str>> {
    if nodes.is_empty() {
        return Vec::new();
    }
    nodes
        .iter()
        .map(|ix| graph.node(*ix).name.clone())
        .collect()
}

/// The values that channels have from the start and that no checkpoint has yet. Later effects change these values, and
/// loading, which knows no reducer, must find them.
fn unstored(graph: &Graph, state: &State, stored: &Map) -> Changes {
    let table = &graph.0.channels;
    let unstored = (0..)
        .zip(&state.slots)
        .filter(|(ix, _)| {
            table.spec(*ix).keep != Keep::Untracked && !stored.contains_key(table.name(*ix))
        })
        .filter_map(|(ix, slot)| Some((ix, Effect::Set(slot.value.clone()?))));
    Changes::of(graph, unstored)
}

/// What a checkpoint carries beside the state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdvanceHead {
    pub(crate) id: Id,
    pub(crate) parent: Option<Id>,
    pub(crate) source: Source,
    pub(crate) created: Timestamp,
    pub(crate) run: Id,
    pub(crate) invocation: Option<Id>,
}

impl Planned {
    /// Where it stands in run order: the start, nodes by name, dispatches as they came.
    pub(super) fn order(&self) -> (u8, NodeIx) {
        match self {
            Self::Start { .. } => (0, 0),
            Self::Node(node) => (1, *node),
            Self::Dispatch(..) => (2, 0),
        }
    }

    /// The task as a checkpoint stores it.
    pub(crate) fn named(&self, graph: &Graph) -> PlannedTask {
        match self {
            Self::Start { writes, goto } => PlannedTask::Start {
                writes: graph.0.channels.stored(writes.iter().cloned()),
                goto: goto.clone(),
            },
            Self::Node(ix) => PlannedTask::Node(graph.node(*ix).name.clone()),
            Self::Dispatch(ix, input) => PlannedTask::Dispatch(Dispatch {
                node: graph.node(*ix).name.clone(),
                input: input.clone(),
            }),
        }
    }
}
