//! The state of a thread: one slot a channel, and frozen views of it.

use crate::channel::{Channel, ChannelSpec, Effect, Fold, Keep, ReduceError, Slot};
use crate::command::{ChannelRef, Write};
use crate::event::ChannelWrite;
use crate::value::{Map, Value, ValueError, from_value};
use serde::de::DeserializeOwned;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The place of a channel in the state.
pub(crate) type ChannelIx = u32;

/// The channels of a graph, by place and by name.
#[derive(Debug)]
pub(crate) struct ChannelTable {
    pub(crate) names: Vec<Arc<str>>,
    pub(crate) specs: Vec<ChannelSpec>,
    by_name: BTreeMap<Arc<str>, ChannelIx>,
    /// How many are declared; the engine's own come after them, and no node sees those.
    declared: usize,
}

impl ChannelTable {
    pub(crate) fn new(channels: Vec<(Arc<str>, ChannelSpec)>, declared: usize) -> Self {
        let by_name = channels
            .iter()
            .zip(0..)
            .map(|((name, _), ix)| (name.clone(), ix))
            .collect();
        let (names, specs) = channels.into_iter().unzip();
        Self {
            names,
            specs,
            by_name,
            declared,
        }
    }

    pub(crate) fn find(&self, name: &str) -> Option<ChannelIx> {
        self.by_name.get(name).copied()
    }

    pub(crate) fn is_declared(&self, ix: ChannelIx) -> bool {
        (ix as usize) < self.declared
    }

    /// The names of the declared channels, in their order.
    pub(crate) fn declared(&self) -> impl Iterator<Item = &Arc<str>> {
        self.names.iter().take(self.declared)
    }

    /// The place of a channel; quick if the reference was made by the graph's own builder.
    pub(crate) fn resolve(&self, channel: &ChannelRef) -> Option<ChannelIx> {
        match self.names.get(channel.hint as usize) {
            Some(name) if Arc::ptr_eq(name, &channel.name) => Some(channel.hint),
            _ => self.find(&channel.name),
        }
    }

    pub(crate) fn spec(&self, ix: ChannelIx) -> &ChannelSpec {
        &self.specs[ix as usize]
    }

    pub(crate) fn name(&self, ix: ChannelIx) -> &Arc<str> {
        &self.names[ix as usize]
    }

    /// The writes that may be stored: those of channels that are kept for longer than one invocation.
    pub(crate) fn stored(
        &self,
        writes: impl IntoIterator<Item = ChannelWrite>,
    ) -> Vec<ChannelWrite> {
        let kept = |write: &ChannelWrite| {
            self.find(&write.channel)
                .is_none_or(|ix| self.spec(ix).keep != Keep::Untracked)
        };
        writes.into_iter().filter(kept).collect()
    }

    /// Every channel as it is before the first write.
    pub(crate) fn initial(&self) -> State {
        State {
            slots: self
                .specs
                .iter()
                .map(|spec| Slot::new(spec.initial()))
                .collect(),
        }
    }
}

/// The values of all channels.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) slots: Vec<Slot>,
}

impl State {
    pub(crate) fn value(&self, ix: ChannelIx) -> Option<&Value> {
        self.slots[ix as usize].value.as_ref()
    }
}

/// Folds one write into a slot.
pub(crate) fn fold_write(
    spec: &ChannelSpec,
    slot: &mut Slot,
    effects: Option<&mut Vec<Effect>>,
    write: &Write,
) -> Result<(), ReduceError> {
    if let Some(check) = &spec.check {
        let checked = match write {
            Write::Value(value) | Write::Overwrite(value) => check.check(value),
            Write::Ops(ops) => ops.iter().try_for_each(|op| match op {
                crate::command::Op::Add(value) => check.check(value),
                _ => Ok(()),
            }),
        };
        checked.map_err(ReduceError::new)?;
    }
    match write {
        Write::Value(value) => spec.reducer.fold(&mut Fold::new(slot, effects), value),
        Write::Ops(ops) => spec.reducer.fold_ops(&mut Fold::new(slot, effects), ops),
        Write::Overwrite(value) => {
            // Folded into nothing, so that the reducer still brings the value into its own form.
            let mut fresh = Slot::new(spec.reducer.empty());
            spec.reducer.fold(&mut Fold::new(&mut fresh, None), value)?;
            let mut fold = Fold::new(slot, effects);
            // A channel without a value loads as at thread start, so that is what it must be.
            match fresh.value.or_else(|| spec.initial()) {
                Some(value) => fold.set(value),
                None => fold.unset(),
            }
            Ok(())
        }
    }
}

/// The writes of a task laid over the state, for its routers: folded only where a router looks.
pub(crate) struct Overlay {
    writes: SmallVec<[(ChannelIx, Write); 1]>,
    folded: Vec<OnceLock<Slot>>,
    error: Mutex<Option<(ChannelIx, ReduceError)>>,
}

impl Overlay {
    pub(crate) fn new(channels: usize, writes: SmallVec<[(ChannelIx, Write); 1]>) -> Self {
        Self {
            writes,
            folded: vec![OnceLock::new(); channels],
            error: Mutex::new(None),
        }
    }

    /// The first write that could not be folded, if a router looked at its channel.
    pub(crate) fn take_error(&self) -> Option<(ChannelIx, ReduceError)> {
        self.error
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    fn slot<'a>(&'a self, table: &ChannelTable, base: &'a Slot, ix: ChannelIx) -> &'a Slot {
        if !self.writes.iter().any(|(channel, _)| *channel == ix) {
            return base;
        }
        self.folded[ix as usize].get_or_init(|| {
            let mut slot = match table.spec(ix).keep {
                // The step clears it before it folds, so nobody else ever sees old and new together.
                Keep::Step => Slot::new(table.spec(ix).initial()),
                _ => base.clone(),
            };
            let writes = self.writes.iter().filter(|(channel, _)| *channel == ix);
            // An overwrite hides every other write of the channel.
            let overwrite = writes
                .clone()
                .find(|(_, write)| matches!(write, Write::Overwrite(_)));
            let folded = match overwrite {
                Some((_, write)) => fold_write(table.spec(ix), &mut slot, None, write),
                None => writes
                    .clone()
                    .try_for_each(|(_, write)| fold_write(table.spec(ix), &mut slot, None, write)),
            };
            if let Err(error) = folded {
                self.error
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .get_or_insert((ix, error));
            }
            slot
        })
    }
}

/// Why a channel could not be read as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// Nothing was written yet.
    #[error("channel `{0}` has no value yet")]
    Unset(Arc<str>),
    /// The graph has no such channel, or the node does not read it.
    #[error("there is no channel `{0}` here")]
    Unknown(Arc<str>),
    /// The value has another type.
    #[error("channel `{channel}` does not hold what was asked for: {error}")]
    Type {
        /// The channel.
        channel: Arc<str>,
        /// What does not fit.
        error: ValueError,
    },
}

/// The state as it was when the step began. Immutable, and cheap to clone.
#[derive(Clone)]
pub struct StateView {
    pub(crate) table: Arc<ChannelTable>,
    pub(crate) state: Arc<State>,
    pub(crate) overlay: Option<Arc<Overlay>>,
    /// The channels a node reads, if it does not read all.
    pub(crate) reads: Option<Arc<[ChannelIx]>>,
}

impl StateView {
    fn slot(&self, ix: ChannelIx) -> Option<&Slot> {
        let reads = self.reads.as_ref();
        if !self.table.is_declared(ix) || reads.is_some_and(|reads| !reads.contains(&ix)) {
            return None;
        }
        let base = &self.state.slots[ix as usize];
        Some(match &self.overlay {
            None => base,
            Some(overlay) => overlay.slot(&self.table, base, ix),
        })
    }

    /// The value of a channel; `None` if it is unset, unknown or not read by the node.
    #[must_use]
    pub fn value(&self, channel: &str) -> Option<&Value> {
        self.slot(self.table.find(channel)?)?.value.as_ref()
    }

    /// Whether the graph declares a channel of this name.
    #[must_use]
    pub fn declares(&self, channel: &str) -> bool {
        let ix = self.table.find(channel);
        ix.is_some_and(|ix| self.table.is_declared(ix))
    }

    /// The channels that have a value, in the order of their names.
    pub fn set_channels(&self) -> impl Iterator<Item = (&Arc<str>, &Value)> {
        self.table
            .by_name
            .iter()
            .filter_map(|(name, ix)| Some((name, self.slot(*ix)?.value.as_ref()?)))
    }

    /// All values as one map.
    #[must_use]
    pub fn to_map(&self) -> Map {
        self.set_channels()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    /// The decoded value of a channel; `None` if it is unset.
    ///
    /// # Errors
    /// If the channel is not of this graph, or holds another type.
    pub fn get<T: DeserializeOwned>(&self, channel: &Channel<T>) -> Result<Option<T>, ReadError> {
        let (name, slot) = self.typed_slot(channel)?;
        slot.value
            .as_ref()
            .map(from_value)
            .transpose()
            .map_err(|error| ReadError::Type {
                channel: name,
                error,
            })
    }

    /// The decoded value of a channel, decoded once a step however many tasks read it.
    ///
    /// # Errors
    /// If the channel is unset, is not of this graph, or holds another type.
    pub fn read<T: DeserializeOwned + Send + Sync + 'static>(
        &self,
        channel: &Channel<T>,
    ) -> Result<Arc<T>, ReadError> {
        let (name, slot) = self.typed_slot(channel)?;
        match slot.decoded(from_value) {
            None => Err(ReadError::Unset(name)),
            Some(decoded) => decoded.map_err(|error| ReadError::Type {
                channel: name,
                error,
            }),
        }
    }

    fn typed_slot<T>(&self, channel: &Channel<T>) -> Result<(Arc<str>, &Slot), ReadError> {
        let name = channel.name();
        let slot = self
            .table
            .resolve(channel.reference())
            .and_then(|ix| self.slot(ix));
        slot.map(|slot| (name.clone(), slot))
            .ok_or_else(|| ReadError::Unknown(name.clone()))
    }
}

impl fmt::Debug for StateView {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_map().entries(self.set_channels()).finish()
    }
}
