//! What a step did to the channels, for the checkpoint that stores it.

use crate::channel::Effect;
use crate::checkpoint::ChannelEffects;
use crate::graph::Graph;
use crate::state::ChannelIx;
use smallvec::SmallVec;

/// Changes by channel, in the order of the channels.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    /// The channels, beside their effects.
    channels: SmallVec<[ChannelIx; 4]>,
    effects: Vec<ChannelEffects>,
}

impl Changes {
    /// Changes of the channels given, which must be in order.
    pub(super) fn of(graph: &Graph, changes: impl Iterator<Item = (ChannelIx, Effect)>) -> Self {
        let mut all = Self::default();
        for (ix, effect) in changes {
            all.channel(graph, ix).push(effect);
        }
        all
    }

    /// The effects on a channel.
    pub(super) fn channel(&mut self, graph: &Graph, ix: ChannelIx) -> &mut Vec<Effect> {
        let place = match self.channels.last() {
            // Most come in order.
            None => Err(0),
            Some(last) if *last < ix => Err(self.channels.len()),
            Some(_) => self.channels.binary_search(&ix),
        };
        let place = place.unwrap_or_else(|place| {
            self.channels.insert(place, ix);
            let channel = ChannelEffects {
                channel: graph.0.channels.name(ix).clone(),
                // Most channels change once in a step.
                effects: Vec::with_capacity(1),
            };
            if self.effects.capacity() == 0 {
                self.effects.reserve_exact(1);
            }
            self.effects.insert(place, channel);
            place
        });
        &mut self.effects[place].effects
    }

    /// Takes all changes out.
    pub(super) fn take(&mut self) -> Vec<ChannelEffects> {
        self.channels.clear();
        std::mem::take(&mut self.effects)
    }
}
