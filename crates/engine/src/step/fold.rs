//! Folding the writes of a step into the state.

use super::ThreadState;
use super::plan::Task;
use crate::channel::{Effect, Fold, Keep};
use crate::command::Write;
use crate::error::{Location, RunError, panic_text};
use crate::graph::Graph;
use crate::state::{ChannelIx, State, fold_write};
use crate::value::Value;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Changes by channel, for the next checkpoint.
type Effects = BTreeMap<ChannelIx, Vec<Effect>>;

/// Takes a channel back to what it is at thread start.
pub(crate) fn reset(graph: &Graph, thread: &mut ThreadState, ix: ChannelIx) {
    let state = Arc::make_mut(&mut thread.state);
    clear(graph, state, thread.effects.as_mut(), ix);
}

/// Sets a channel of the engine's own.
pub(crate) fn set(graph: &Graph, thread: &mut ThreadState, ix: ChannelIx, value: Value) {
    debug_assert!(!graph.0.channels.is_declared(ix));
    let state = Arc::make_mut(&mut thread.state);
    let effects = thread.effects.as_mut();
    let effects = effects.map(|effects| effects.entry(ix).or_default());
    Fold::new(&mut state.slots[ix as usize], effects).set(value);
}

/// What the writes of a step mean for one channel.
struct Touched {
    channel: ChannelIx,
    /// How many writes go through the reducer.
    plain: u32,
    /// Which of all writes overwrites, if one does.
    overwrite: Option<usize>,
}

/// Folds writes in the order given, each with the path of the task that made it. Gives the channels written.
///
/// # Errors
/// If a channel that takes one write gets several, or a reducer refuses one, or panics.
pub(super) fn fold_all<'a>(
    graph: &Graph,
    state: &mut State,
    effects: Option<&mut Effects>,
    writes: impl Iterator<Item = (&'a Arc<str>, ChannelIx, &'a Write)> + Clone,
    clears: bool,
) -> Result<Vec<ChannelIx>, RunError> {
    let fold = AssertUnwindSafe(|| fold_each(graph, state, effects, writes, clears));
    catch_unwind(fold).unwrap_or_else(|payload| {
        Err(RunError::InvalidUpdate {
            location: Location {
                graph: graph.name().clone(),
                node: "".into(),
            },
            message: format!("a reducer {}", panic_text(&*payload)),
        })
    })
}

fn fold_each<'a>(
    graph: &Graph,
    state: &mut State,
    mut effects: Option<&mut Effects>,
    writes: impl Iterator<Item = (&'a Arc<str>, ChannelIx, &'a Write)> + Clone,
    clears: bool,
) -> Result<Vec<ChannelIx>, RunError> {
    let table = &graph.0.channels;
    let mut touched: Vec<Touched> = Vec::new();
    for (at, (_, channel, write)) in writes.clone().enumerate() {
        let place = touched
            .iter()
            .position(|known| known.channel == channel)
            .unwrap_or_else(|| {
                touched.push(Touched {
                    channel,
                    plain: 0,
                    overwrite: None,
                });
                touched.len() - 1
            });
        let known = &mut touched[place];
        if !matches!(write, Write::Overwrite(_)) {
            known.plain += 1;
        } else if known.overwrite.replace(at).is_some() {
            return Err(conflict(graph, channel, writes, |write| {
                matches!(write, Write::Overwrite(_))
            }));
        }
    }
    let conflicting = touched.iter().find(|known| {
        known.plain > 1
            && known.overwrite.is_none()
            && table.spec(known.channel).reducer.single_write()
    });
    if let Some(known) = conflicting {
        return Err(conflict(graph, known.channel, writes, |_| true));
    }
    if clears {
        for ix in &graph.0.ephemeral {
            clear(graph, state, effects.as_deref_mut(), *ix);
        }
    }
    for (at, (task, channel, write)) in writes.enumerate() {
        let known = touched.iter().find(|known| known.channel == channel);
        let overwrite = known.and_then(|known| known.overwrite);
        if overwrite.is_some_and(|overwrite| overwrite != at) {
            continue;
        }
        let spec = table.spec(channel);
        let record = match &mut effects {
            Some(effects) if spec.keep != Keep::Untracked => {
                Some(effects.entry(channel).or_default())
            }
            _ => None,
        };
        let slot = &mut state.slots[channel as usize];
        fold_write(spec, slot, record, write).map_err(|error| RunError::Reducer {
            location: Location {
                graph: graph.name().clone(),
                node: task.clone(),
            },
            channel: table.name(channel).clone(),
            message: error.to_string(),
        })?;
    }
    Ok(touched.into_iter().map(|known| known.channel).collect())
}

/// Sets a channel to its value at thread start, unless it has it.
fn clear(graph: &Graph, state: &mut State, effects: Option<&mut Effects>, ix: ChannelIx) {
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

/// Counts the tasks of a step, if the graph counts visits.
pub(super) fn count_visits(
    graph: &Graph,
    state: &mut State,
    effects: Option<&mut Effects>,
    tasks: &[Task],
) {
    let Some(ix) = graph.0.visits else { return };
    let effects = effects.map(|effects| effects.entry(ix).or_default());
    let mut fold = Fold::new(&mut state.slots[ix as usize], effects);
    for task in tasks {
        // An update counts as its node's, and is no visit.
        if let Some(node) = task.node().filter(|_| task.visits > 0) {
            fold.put(graph.node(node).name.clone(), task.visits.into());
        }
    }
}

/// The error that names everyone whose writes to `channel` are in each other's way.
fn conflict<'a>(
    graph: &Graph,
    channel: ChannelIx,
    writes: impl Iterator<Item = (&'a Arc<str>, ChannelIx, &'a Write)>,
    counts: impl Fn(&Write) -> bool,
) -> RunError {
    let table = &graph.0.channels;
    RunError::ConcurrentUpdate {
        location: Location {
            graph: graph.name().clone(),
            node: "".into(),
        },
        channel: table.name(channel).clone(),
        reducer: table.spec(channel).reducer.name().into(),
        writers: writes
            .filter(|(_, known, write)| *known == channel && counts(write))
            .map(|(task, _, _)| task.clone())
            .collect(),
    }
}
