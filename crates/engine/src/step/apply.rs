//! What becomes of the results of a step.

use super::plan::{Task, Triggers, plan_next};
use super::{Planned, ThreadState};
use crate::channel::{Effect, Fold};
use crate::command::Write;
use crate::error::{Location, RunError};
use crate::graph::{Graph, JoinIx, NodeIx};
use crate::state::{ChannelIx, State, fold_write};
use crate::value::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The result of a finished task: what it writes and where it goes, edges and routers included.
#[derive(Clone, Debug, Default)]
pub(crate) struct Done {
    pub(crate) writes: Vec<(ChannelIx, Write)>,
    pub(crate) nodes: Vec<NodeIx>,
    pub(crate) dispatches: Vec<(NodeIx, Value)>,
    pub(crate) joins: Vec<JoinIx>,
}

/// Folds the results of all tasks of a step, in task order, and plans the next step. Gives the channels written.
///
/// # Errors
/// If two tasks write a channel that takes one write, or a reducer refuses one. The thread is then of no use any more;
/// what was stored of it before is.
pub(crate) fn apply(
    graph: &Graph,
    thread: &mut ThreadState,
    tasks: &[Task],
    results: Vec<Done>,
) -> Result<Vec<ChannelIx>, RunError> {
    let writes: Vec<(&Task, ChannelIx, &Write)> = tasks
        .iter()
        .zip(&results)
        .flat_map(|(task, done)| {
            done.writes
                .iter()
                .map(move |(ix, write)| (task, *ix, write))
        })
        .collect();
    let ThreadState { state, effects, .. } = thread;
    // In place, unless somebody kept a view of the step.
    let state = Arc::make_mut(state);
    let written = fold_all(graph, state, effects.as_mut(), &writes, true)?;
    count_visits(graph, state, effects.as_mut(), tasks);

    let mut triggers = Triggers::default();
    for (task, done) in tasks.iter().zip(results) {
        triggers.nodes.extend(done.nodes);
        triggers.dispatches.extend(done.dispatches);
        for join in done.joins {
            let Some(source) = task.node() else { continue };
            let def = &graph.0.joins[join as usize];
            let seen = thread.joins.entry(join).or_default();
            seen.insert(source);
            if seen.len() == def.sources.len() {
                thread.joins.remove(&join);
                triggers.nodes.push(def.target);
            }
        }
    }
    thread.next = plan_next(graph, triggers, &mut thread.deferred);
    thread.step += 1;
    Ok(written)
}

/// Folds writes that come from outside into the thread: the open tasks stay, and more may be planned beside them.
///
/// # Errors
/// As [`apply`].
pub(crate) fn fold_update(
    graph: &Graph,
    thread: &mut ThreadState,
    done: Done,
) -> Result<Vec<ChannelIx>, RunError> {
    let task = Task {
        kind: super::TaskKind::Start {
            writes: Vec::new(),
            goto: Vec::new(),
        },
        path: "".into(),
        visits: 0,
    };
    let writes: Vec<_> = done
        .writes
        .iter()
        .map(|(ix, write)| (&task, *ix, write))
        .collect();
    let state = Arc::make_mut(&mut thread.state);
    let written = fold_all(graph, state, thread.effects.as_mut(), &writes, false)?;
    let mut triggers = Triggers::default();
    for planned in std::mem::take(&mut thread.next) {
        match planned {
            Planned::Node(node) => triggers.nodes.push(node),
            Planned::Dispatch(node, input) => triggers.dispatches.push((node, input)),
            start @ Planned::Start { .. } => {
                thread.next = vec![start];
                return Ok(written);
            }
        }
    }
    triggers.nodes.extend(done.nodes);
    triggers.dispatches.extend(done.dispatches);
    thread.next = plan_next(graph, triggers, &mut thread.deferred);
    Ok(written)
}

/// Takes a channel back to what it is at thread start.
pub(crate) fn reset(graph: &Graph, thread: &mut ThreadState, ix: ChannelIx) {
    clear(
        graph,
        Arc::make_mut(&mut thread.state),
        thread.effects.as_mut(),
        ix,
    );
}

/// What a step does to one channel.
struct Touched<'a> {
    channel: ChannelIx,
    writers: Vec<&'a Task>,
    /// Which of all writes overwrites, if one does.
    overwrite: Option<usize>,
}

fn fold_all(
    graph: &Graph,
    state: &mut State,
    mut effects: Option<&mut BTreeMap<ChannelIx, Vec<Effect>>>,
    writes: &[(&Task, ChannelIx, &Write)],
    clears: bool,
) -> Result<Vec<ChannelIx>, RunError> {
    let table = &graph.0.channels;
    let mut touched: Vec<Touched<'_>> = Vec::new();
    for (at, (task, channel, write)) in writes.iter().enumerate() {
        let place = touched
            .iter()
            .position(|known| known.channel == *channel)
            .unwrap_or_else(|| {
                touched.push(Touched {
                    channel: *channel,
                    writers: Vec::new(),
                    overwrite: None,
                });
                touched.len() - 1
            });
        let known = &mut touched[place];
        if matches!(write, Write::Overwrite(_)) {
            if let Some(first) = known.overwrite.replace(at) {
                return Err(conflict(graph, *channel, &[writes[first].0, task]));
            }
        } else if table.spec(*channel).reducer.single_write() {
            known.writers.push(task);
        }
    }
    if let Some(known) = touched
        .iter()
        .find(|known| known.overwrite.is_none() && known.writers.len() > 1)
    {
        return Err(conflict(graph, known.channel, &known.writers));
    }
    if clears {
        for ix in &graph.0.ephemeral {
            clear(graph, state, effects.as_deref_mut(), *ix);
        }
    }
    for (at, (task, channel, write)) in writes.iter().enumerate() {
        let known = touched.iter().find(|known| known.channel == *channel);
        if known.is_some_and(|known| known.overwrite.is_some_and(|overwrite| overwrite != at)) {
            continue;
        }
        let spec = table.spec(*channel);
        let record = match &mut effects {
            Some(effects) if spec.keep != crate::channel::Keep::Untracked => {
                Some(effects.entry(*channel).or_default())
            }
            _ => None,
        };
        fold_write(spec, &mut state.slots[*channel as usize], record, write).map_err(|error| {
            RunError::Reducer {
                location: Location {
                    graph: graph.name().clone(),
                    node: task.path.clone(),
                },
                channel: table.name(*channel).clone(),
                message: error.to_string(),
            }
        })?;
    }
    Ok(touched.into_iter().map(|known| known.channel).collect())
}

fn clear(
    graph: &Graph,
    state: &mut State,
    effects: Option<&mut BTreeMap<ChannelIx, Vec<Effect>>>,
    ix: ChannelIx,
) {
    let initial = graph.0.channels.spec(ix).initial();
    let slot = &mut state.slots[ix as usize];
    if slot.value == initial {
        return;
    }
    let effects = effects.map(|effects| effects.entry(ix).or_default());
    let mut fold = Fold::new(slot, effects);
    match initial {
        Some(value) => fold.set(value),
        None => fold.unset(),
    }
}

fn count_visits(
    graph: &Graph,
    state: &mut State,
    effects: Option<&mut BTreeMap<ChannelIx, Vec<Effect>>>,
    tasks: &[Task],
) {
    let Some(ix) = graph.0.visits else { return };
    let effects = effects.map(|effects| effects.entry(ix).or_default());
    let mut fold = Fold::new(&mut state.slots[ix as usize], effects);
    for task in tasks {
        if let Some(node) = task.node() {
            fold.put(graph.node(node).name.clone(), task.visits.into());
        }
    }
}

fn conflict(graph: &Graph, channel: ChannelIx, writers: &[&Task]) -> RunError {
    let table = &graph.0.channels;
    RunError::ConcurrentUpdate {
        location: Location {
            graph: graph.name().clone(),
            node: "".into(),
        },
        channel: table.name(channel).clone(),
        reducer: table.spec(channel).reducer.name().into(),
        writers: writers.iter().map(|task| task.path.clone()).collect(),
    }
}
