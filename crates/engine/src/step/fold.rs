//! Folding the writes of a step into the state.

use super::ThreadState;
use super::changes::Changes;
use super::plan::Task;
use crate::channel::{Fold, Keep};
use crate::command::Write;
use crate::error::{Location, RunError, panic_text};
use crate::graph::Graph;
use crate::state::{ChannelIx, State, fold_write};
use crate::value::Value;
use smallvec::SmallVec;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

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
    let effects = effects.map(|changes| changes.channel(graph, ix));
    Fold::new(&mut state.slots[ix as usize], effects).set(value);
}

/// The channels that a step wrote.
pub(crate) type Written = SmallVec<[ChannelIx; 4]>;

/// What the writes of a step mean for one channel.
struct Touched {
    channel: ChannelIx,
    /// How many writes go through the reducer.
    plain: u32,
    /// Which of all writes overwrites, if one does.
    overwrite: Option<usize>,
}

type AllTouched = SmallVec<[Touched; 4]>;

impl Touched {
    fn by(channel: ChannelIx) -> Self {
        Self {
            channel,
            plain: 0,
            overwrite: None,
        }
    }
}

/// As [`fold_all`] for a step that writes once: nothing is in the way then.
pub(super) fn fold_alone(
    graph: &Graph,
    state: &mut State,
    mut effects: Option<&mut Changes>,
    write: (&Arc<str>, ChannelIx, &Write),
) -> Result<Written, RunError> {
    let channel = write.1;
    for ix in &graph.0.ephemeral {
        clear(graph, state, effects.as_deref_mut(), *ix);
    }
    fold_one(graph, state, effects, write)?;
    let mut written = Written::new();
    written.push(channel);
    Ok(written)
}

/// Folds writes in the order given, each with the path of the task that made it. Gives the channels written.
///
/// # Errors
/// If a channel that takes one write gets several, or a reducer refuses one, or panics.
pub(super) fn fold_all<'a>(
    graph: &Graph,
    state: &mut State,
    mut effects: Option<&mut Changes>,
    writes: impl Iterator<Item = (&'a Arc<str>, ChannelIx, &'a Write)> + Clone,
    clears: bool,
) -> Result<Written, RunError> {
    let touched = touched(graph, writes.clone())?;
    if clears {
        for ix in &graph.0.ephemeral {
            clear(graph, state, effects.as_deref_mut(), *ix);
        }
    }
    let overwrites = touched.iter().any(|known| known.overwrite.is_some());
    for (at, (task, channel, write)) in writes.enumerate() {
        if overwrites && !counts(&touched, channel, at) {
            continue;
        }
        fold_one(graph, state, effects.as_deref_mut(), (task, channel, write))?;
    }
    Ok(touched.into_iter().map(|known| known.channel).collect())
}

/// The channels that are written, in order, and how.
///
/// # Errors
/// If a channel that takes one write gets several.
fn touched<'a>(
    graph: &Graph,
    writes: impl Iterator<Item = (&'a Arc<str>, ChannelIx, &'a Write)> + Clone,
) -> Result<AllTouched, RunError> {
    let table = &graph.0.channels;
    let mut touched = AllTouched::new();
    for (at, (_, channel, write)) in writes.clone().enumerate() {
        let place = touched.binary_search_by_key(&channel, |known| known.channel);
        let place = place.unwrap_or_else(|place| {
            touched.insert(place, Touched::by(channel));
            place
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
    match conflicting {
        Some(known) => Err(conflict(graph, known.channel, writes, |_| true)),
        None => Ok(touched),
    }
}

/// Whether this of all writes counts: an overwrite hides every other write of its channel.
fn counts(touched: &[Touched], channel: ChannelIx, at: usize) -> bool {
    let place = touched.binary_search_by_key(&channel, |known| known.channel);
    let overwrite = place.ok().and_then(|place| touched[place].overwrite);
    overwrite.is_none_or(|overwrite| overwrite == at)
}

fn fold_one(
    graph: &Graph,
    state: &mut State,
    effects: Option<&mut Changes>,
    (task, channel, write): (&Arc<str>, ChannelIx, &Write),
) -> Result<(), RunError> {
    let table = &graph.0.channels;
    let spec = table.spec(channel);
    let record = match effects {
        Some(changes) if spec.keep != Keep::Untracked => Some(changes.channel(graph, channel)),
        _ => None,
    };
    let slot = &mut state.slots[channel as usize];
    let fold = AssertUnwindSafe(|| fold_write(spec, slot, record, write));
    let message = match catch_unwind(fold) {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) => error.to_string(),
        Err(payload) => format!("its reducer {}", panic_text(&*payload)),
    };
    Err(RunError::Reducer {
        location: Location {
            graph: graph.name().clone(),
            node: task.clone(),
        },
        channel: table.name(channel).clone(),
        message,
    })
}

/// Sets a channel to its value at thread start, unless it has it.
fn clear(graph: &Graph, state: &mut State, effects: Option<&mut Changes>, ix: ChannelIx) {
    let initial = graph.0.channels.spec(ix).initial();
    let slot = &mut state.slots[ix as usize];
    if slot.value == initial {
        return;
    }
    let effects = effects.map(|changes| changes.channel(graph, ix));
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
    effects: Option<&mut Changes>,
    tasks: &[Task],
) {
    let Some(ix) = graph.0.visits else { return };
    let effects = effects.map(|changes| changes.channel(graph, ix));
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
