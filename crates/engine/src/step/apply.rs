//! What becomes of the results of a step.

use super::fold::{Written, count_visits, fold_all, fold_alone};
use super::plan::{Task, Triggers, plan_next};
use super::{Planned, ThreadState};
use crate::command::Write;
use crate::error::RunError;
use crate::graph::{Graph, JoinIx, NodeIx};
use crate::state::ChannelIx;
use crate::value::Value;
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The result of a finished task: what it writes and where it goes, edges and routers included.
#[derive(Clone, Debug, Default)]
pub(crate) struct Done {
    pub(crate) writes: SmallVec<[(ChannelIx, Write); 1]>,
    pub(crate) nodes: SmallVec<[NodeIx; 2]>,
    /// In a box, for most tasks do neither, and results are moved about.
    more: Option<Box<More>>,
}

/// The rarer ways on from a task.
#[derive(Clone, Debug, Default)]
struct More {
    dispatches: Vec<(NodeIx, Value)>,
    joins: Vec<JoinIx>,
}

impl Done {
    /// The nodes dispatched to, with their inputs.
    pub(crate) fn dispatches(&self) -> &[(NodeIx, Value)] {
        self.more.as_ref().map_or(&[], |more| &more.dispatches)
    }

    /// The joins that the task feeds.
    pub(crate) fn joins(&self) -> &[JoinIx] {
        self.more.as_ref().map_or(&[], |more| &more.joins)
    }

    /// Adds a dispatch.
    pub(crate) fn dispatch(&mut self, node: NodeIx, input: Value) {
        let more = self.more.get_or_insert_default();
        more.dispatches.push((node, input));
    }

    /// Feeds a join, once a task however many ways lead there: a second time would count for its next round.
    pub(crate) fn feed(&mut self, join: JoinIx) {
        let joins = &mut self.more.get_or_insert_default().joins;
        if !joins.contains(&join) {
            joins.push(join);
        }
    }
}

/// The results of the tasks of a step; most steps have one.
pub(crate) type Results = SmallVec<[Done; 1]>;

/// Folds the results of all tasks of a step, in task order, and plans the next step. Gives the channels written.
///
/// # Errors
/// If two tasks write a channel that takes one write, or a reducer refuses one. The thread is then of no use any more;
/// what was stored of it before is.
pub(crate) fn apply(
    graph: &Graph,
    thread: &mut ThreadState,
    tasks: &[Task],
    results: Results,
) -> Result<Written, RunError> {
    let written = fold_results(graph, thread, tasks, &results)?;
    follow(graph, thread, tasks, results);
    Ok(written)
}

/// As [`apply`], for a step of one task.
///
/// # Errors
/// As [`apply`].
pub(crate) fn apply_one(
    graph: &Graph,
    thread: &mut ThreadState,
    task: &Task,
    done: Done,
) -> Result<Written, RunError> {
    let tasks = std::slice::from_ref(task);
    let written = fold_results(graph, thread, tasks, std::slice::from_ref(&done))?;
    if let ([node], None) = (&done.nodes[..], &done.more)
        && thread.joins.is_empty()
        && !graph.node(*node).defer
    {
        // It goes to one node: most steps.
        thread.step += 1;
        thread.next.clear();
        thread.next.push(Planned::Node(*node));
    } else {
        follow(graph, thread, tasks, [done].into_iter().collect());
    }
    Ok(written)
}

/// Folds what the tasks of a step wrote. Gives the channels written.
fn fold_results(
    graph: &Graph,
    thread: &mut ThreadState,
    tasks: &[Task],
    results: &[Done],
) -> Result<Written, RunError> {
    let ThreadState { state, effects, .. } = thread;
    // In place, unless somebody kept a view of the step.
    let state = Arc::make_mut(state);
    let effects = effects.as_mut();
    let written = match (tasks, results) {
        ([task], [Done { writes, .. }]) if writes.len() == 1 => {
            let (channel, write) = &writes[0];
            fold_alone(graph, state, effects, (&task.path, *channel, write))?
        }
        _ => {
            let writes = tasks.iter().zip(results).flat_map(|(task, done)| {
                let writes = done.writes.iter();
                writes.map(|(channel, write)| (&task.path, *channel, write))
            });
            fold_all(graph, state, effects, writes, true)?
        }
    };
    if graph.0.visits.is_some() {
        count_visits(graph, state, thread.effects.as_mut(), tasks);
    }
    Ok(written)
}

/// Plans what the tasks of a step go on to.
fn follow(graph: &Graph, thread: &mut ThreadState, tasks: &[Task], results: Results) {
    thread.step += 1;
    let mut triggers = Triggers::default();
    for (task, done) in tasks.iter().zip(results) {
        triggers.nodes.extend(done.nodes);
        let Some(more) = done.more else { continue };
        triggers.dispatches.extend(more.dispatches);
        for join in more.joins {
            let Some(source) = task.node() else { continue };
            thread.joins.entry(join).or_default().insert(source);
        }
    }
    if thread.joins.is_empty() {
        plan_next(graph, triggers, &mut thread.deferred, &mut thread.next);
        return;
    }
    // Only now: all that a step brings counts for the same round of a join, also a source that ran several times.
    let full = thread
        .joins
        .iter()
        .filter(|(join, seen)| is_full(graph, **join, seen));
    let targets = full.map(|(join, _)| graph.0.joins[*join as usize].target);
    triggers.nodes.extend(targets);
    plan_next(graph, triggers, &mut thread.deferred, &mut thread.next);
    empty_joins(graph, thread);
}

fn is_full(graph: &Graph, join: JoinIx, seen: &BTreeSet<NodeIx>) -> bool {
    seen.len() == graph.0.joins[join as usize].sources.len()
}

/// Begins the next round of the joins whose target is planned. While a deferred target waits, its joins stay full: what
/// feeds them until it runs brings nothing new.
fn empty_joins(graph: &Graph, thread: &mut ThreadState) {
    let deferred = &thread.deferred;
    thread.joins.retain(|join, seen| {
        let target = graph.0.joins[*join as usize].target;
        !is_full(graph, *join, seen) || deferred.contains(&target)
    });
}

/// Folds writes that come from outside into the thread: the open tasks stay, and more may be planned beside them.
///
/// # Errors
/// As [`apply`].
pub(crate) fn fold_update(
    graph: &Graph,
    thread: &mut ThreadState,
    done: Done,
) -> Result<Written, RunError> {
    let outside: Arc<str> = "".into();
    let writes = done
        .writes
        .iter()
        .map(|(channel, write)| (&outside, *channel, write));
    let state = Arc::make_mut(&mut thread.state);
    let written = fold_all(graph, state, thread.effects.as_mut(), writes, false)?;
    // What is planned stays, also a deferred node in the middle of its work; only what is new goes by the rule.
    let planned = std::mem::take(&mut thread.next);
    let is_planned = |node: &NodeIx| {
        planned
            .iter()
            .any(|planned| matches!(planned, Planned::Node(known) if known == node))
    };
    let mut triggers = Triggers::default();
    triggers
        .nodes
        .extend(done.nodes.into_iter().filter(|node| !is_planned(node)));
    let dispatches = done.more.map(|more| more.dispatches);
    triggers.dispatches.extend(dispatches.into_iter().flatten());
    let mut more = Vec::new();
    if !triggers.nodes.is_empty() || !triggers.dispatches.is_empty() {
        plan_next(graph, triggers, &mut thread.deferred, &mut more);
        empty_joins(graph, thread);
    }
    thread.next = planned;
    thread.next.append(&mut more);
    thread.next.sort_by_key(Planned::order);
    Ok(written)
}
