//! What runs next.

use super::{Planned, ThreadState};
use crate::command::{START, Target};
use crate::error::{Location, RunError};
use crate::event::ChannelWrite;
use crate::graph::{Graph, NodeIx};
use crate::value::Value;
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::sync::Arc;

/// One task of a step.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) kind: TaskKind,
    /// The name of the node; with `#` and a number for dispatches.
    pub(crate) path: Arc<str>,
    /// How often its node runs in this run, this time included; 0 if nobody counts.
    pub(crate) visits: u64,
}

#[derive(Clone, Debug)]
pub(crate) enum TaskKind {
    Start {
        writes: Vec<ChannelWrite>,
        goto: Vec<Target>,
    },
    Node {
        node: NodeIx,
        input: Option<Value>,
    },
}

impl Task {
    pub(crate) fn node(&self) -> Option<NodeIx> {
        match &self.kind {
            TaskKind::Start { .. } => None,
            TaskKind::Node { node, .. } => Some(*node),
        }
    }

    /// The name of its node.
    pub(crate) fn name<'a>(&'a self, graph: &'a Graph) -> &'a Arc<str> {
        match &self.kind {
            TaskKind::Start { .. } => &self.path,
            TaskKind::Node { node, .. } => &graph.node(*node).name,
        }
    }
}

/// The tasks of a step; most steps have one.
pub(crate) type Tasks = SmallVec<[Task; 1]>;

/// Turns what is planned into tasks, in run order, in place of the tasks that are there.
///
/// # Errors
/// [`RunError::VisitLimit`] if a node would run more often than it may.
pub(crate) fn plan(graph: &Graph, thread: &ThreadState, tasks: &mut Tasks) -> Result<(), RunError> {
    tasks.clear();
    plan_into(graph, thread, tasks);
    if graph.0.visits.is_some() {
        for task in tasks.iter() {
            let Some(node) = task.node() else { continue };
            let def = graph.node(node);
            if let Some(limit) = def.max_visits.filter(|limit| task.visits > *limit) {
                return Err(RunError::VisitLimit {
                    location: Location {
                        graph: graph.name().clone(),
                        node: def.name.clone(),
                    },
                    limit,
                });
            }
        }
    }
    Ok(())
}

/// As [`plan`], for tasks that need not run: no limit stops them.
pub(crate) fn plan_unlimited(graph: &Graph, thread: &ThreadState) -> Tasks {
    let mut tasks = Tasks::new();
    plan_into(graph, thread, &mut tasks);
    tasks
}

fn plan_into(graph: &Graph, thread: &ThreadState, tasks: &mut Tasks) {
    if let ([Planned::Node(node)], None) = (&thread.next[..], graph.0.visits) {
        // Most steps.
        tasks.push(Task {
            kind: TaskKind::Node {
                node: *node,
                input: None,
            },
            path: graph.node(*node).name.clone(),
            visits: 0,
        });
        return;
    }
    let mut visits = Visits::of(graph, thread);
    let (mut dispatched, mut room) = (0_usize, String::new());
    tasks.reserve(thread.next.len());
    for planned in &thread.next {
        tasks.push(match planned {
            Planned::Node(node) => Task {
                kind: TaskKind::Node {
                    node: *node,
                    input: None,
                },
                path: graph.node(*node).name.clone(),
                visits: visits.count(*node),
            },
            Planned::Dispatch(node, input) => {
                let path = dispatch_path(&mut room, &graph.node(*node).name, dispatched);
                dispatched += 1;
                Task {
                    kind: TaskKind::Node {
                        node: *node,
                        input: Some(input.clone()),
                    },
                    path,
                    visits: visits.count(*node),
                }
            }
            Planned::Start { writes, goto } => Task {
                kind: TaskKind::Start {
                    writes: writes.clone(),
                    goto: goto.clone(),
                },
                path: START.into(),
                visits: 0,
            },
        });
    }
}

/// The path of a dispatch: the name of its node, `#` and its number; made in `room`.
fn dispatch_path(room: &mut String, node: &str, number: usize) -> Arc<str> {
    room.clear();
    room.push_str(node);
    room.push('#');
    let mut unit = 1;
    while number / unit >= 10 {
        unit *= 10;
    }
    while unit > 0 {
        let digit = (number / unit % 10) as u8;
        room.push(char::from(b'0' + digit));
        unit /= 10;
    }
    room.as_str().into()
}

/// How often nodes run in a run, if the graph counts that.
struct Visits<'a> {
    graph: &'a Graph,
    before: Option<Option<&'a Value>>,
    /// Those of the nodes planned so far.
    counts: Vec<(NodeIx, u64)>,
}

impl<'a> Visits<'a> {
    fn of(graph: &'a Graph, thread: &'a ThreadState) -> Self {
        Self {
            graph,
            before: graph.0.visits.map(|ix| thread.state.value(ix)),
            counts: Vec::new(),
        }
    }

    /// One more; gives how many there are then, 0 if nobody counts.
    fn count(&mut self, node: NodeIx) -> u64 {
        let Some(before) = self.before else { return 0 };
        let place = self.counts.iter().position(|(known, _)| *known == node);
        let place = place.unwrap_or_else(|| {
            let name = &self.graph.node(node).name;
            let before = before.and_then(|before| before.get(name)?.as_i64());
            let before = u64::try_from(before.unwrap_or(0)).unwrap_or(0);
            self.counts.push((node, before));
            self.counts.len() - 1
        });
        self.counts[place].1 += 1;
        self.counts[place].1
    }
}

/// Everything that the tasks of a step triggered.
#[derive(Debug, Default)]
pub(super) struct Triggers {
    pub(super) nodes: SmallVec<[NodeIx; 4]>,
    pub(super) dispatches: Vec<(NodeIx, Value)>,
}

/// Plans the next step from what was triggered: each node once, in the order of names, then dispatches as they came.
///
/// A deferred node waits until no other node was triggered; dispatches do not hold it back.
pub(super) fn plan_next(
    graph: &Graph,
    triggers: Triggers,
    deferred: &mut BTreeSet<NodeIx>,
    next: &mut Vec<Planned>,
) {
    let Triggers {
        mut nodes,
        dispatches,
    } = triggers;
    nodes.sort_unstable();
    nodes.dedup();
    nodes.retain(|node| {
        let defer = graph.node(*node).defer;
        if defer {
            deferred.insert(*node);
        }
        !defer
    });
    if nodes.is_empty() && !deferred.is_empty() {
        nodes.extend(std::mem::take(deferred));
    }
    next.clear();
    next.extend(nodes.into_iter().map(Planned::Node));
    next.extend(
        dispatches
            .into_iter()
            .map(|(node, input)| Planned::Dispatch(node, input)),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dispatches_are_named_by_their_numbers() {
        let mut room = String::new();
        for number in [0, 1, 9, 10, 99, 100, 101, 12_345, 1_000_000, usize::MAX] {
            let path = dispatch_path(&mut room, "café", number);
            assert_eq!(*path, format!("café#{number}"));
        }
    }
}
