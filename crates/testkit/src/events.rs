//! The events of a case, out of those of the engine.

use crate::case::{Case, Observe};
use crate::neutral::{neutral, neutral_name, neutral_path, neutral_write};
use crate::probe::Heard;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tine_engine::checkpoint::Source;
use tine_engine::event::ChannelWrite;
use tine_engine::value::{List, Map};
use tine_engine::world::Id;
use tine_engine::{Event, EventKind, Interrupt, Value};

/// A kind of list of events; in the order in which they are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mode {
    Values,
    Updates,
    Tasks,
    Checkpoints,
    Custom,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Self::Values => "values",
            Self::Updates => "updates",
            Self::Tasks => "tasks",
            Self::Checkpoints => "checkpoints",
            Self::Custom => "custom",
        }
    }

    fn observed_as(self) -> Observe {
        match self {
            Self::Values => Observe::Values,
            Self::Updates => Observe::Updates,
            Self::Tasks => Observe::Tasks,
            Self::Checkpoints => Observe::Checkpoints,
            Self::Custom => Observe::Custom,
        }
    }
}

type Place = (Mode, String);

/// Lists of events by kind and namespace.
#[derive(Debug, Default)]
pub(crate) struct Events {
    plain: BTreeMap<Place, Vec<Value>>,
    /// Lists with one group a superstep.
    grouped: BTreeMap<Place, Vec<Vec<Value>>>,
    /// Grouped lists whose superstep has begun and not been heard of yet.
    fresh: BTreeSet<Place>,
    /// The output channels of the root graph and of each child that ran.
    outputs: BTreeMap<String, Vec<Arc<str>>>,
    /// The values at stored checkpoints of the root graph.
    stored: BTreeMap<Id, Value>,
}

impl Events {
    pub(crate) fn collect(
        heard: &[Heard],
        outputs: BTreeMap<String, Vec<Arc<str>>>,
        stored: BTreeMap<Id, Value>,
    ) -> Self {
        let mut events = Self {
            outputs,
            stored,
            ..Self::default()
        };
        for heard in heard {
            match heard {
                Heard::Event(event) => events.hear(event),
                Heard::Started {
                    namespace,
                    node,
                    input,
                } => events.group(
                    Mode::Tasks,
                    namespace,
                    Value::from_pairs([("start", named(node)), ("in", input.clone())]),
                ),
            }
        }
        events
    }

    fn hear(&mut self, event: &Event) {
        let namespace = neutral_path(&event.namespace);
        match &event.kind {
            EventKind::Step { .. } => self.new_step(&namespace),
            EventKind::TaskFinished {
                node,
                writes,
                cached,
                ..
            } => self.finished(&namespace, node, writes, *cached),
            EventKind::TaskInterrupted {
                node, interrupts, ..
            } => {
                let payloads = payloads(interrupts);
                self.group(Mode::Updates, &namespace, interrupt(payloads.clone()));
                let end = [("end", named(node)), ("interrupts", payloads)];
                self.group(Mode::Tasks, &namespace, Value::from_pairs(end));
            }
            EventKind::TaskFailed {
                node,
                retried: false,
                ..
            } => {
                let end = [("end", named(node)), ("error", true.into())];
                self.group(Mode::Tasks, &namespace, Value::from_pairs(end));
            }
            EventKind::Values { values } => {
                let values = neutral(&Value::from(values.clone()));
                self.push(Mode::Values, &namespace, values);
            }
            EventKind::Breakpoint { .. } => {
                self.new_step(&namespace);
                self.group(Mode::Updates, &namespace, interrupt(Value::list()));
                self.new_step(&namespace);
            }
            EventKind::Custom { data, .. } => self.push(Mode::Custom, &namespace, neutral(data)),
            EventKind::Checkpoint { id, source, next } => {
                let mut next: Vec<&str> = next.iter().map(|node| neutral_name(node)).collect();
                next.sort_unstable();
                let values = self.stored.get(id).cloned().unwrap_or_default();
                let row = [
                    ("step", event.step.into()),
                    ("source", source_name(*source).into()),
                    ("next", next.into()),
                    ("values", values),
                ];
                self.push(Mode::Checkpoints, &namespace, Value::from_pairs(row));
            }
            _ => {}
        }
    }

    fn finished(&mut self, namespace: &str, node: &str, writes: &[ChannelWrite], cached: bool) {
        let outputs = self.outputs.get(namespace);
        let shown: Vec<(Arc<str>, Value)> = writes
            .iter()
            .filter(|write| outputs.is_none_or(|outputs| outputs.contains(&write.channel)))
            .map(|write| (write.channel.clone(), neutral_write(&write.write)))
            .collect();
        let name = neutral_path(node);
        let key = if cached {
            format!("{name}!cached")
        } else {
            name
        };
        self.group(
            Mode::Updates,
            namespace,
            Value::from_pairs([(key, update_entry(&shown))]),
        );
        if !cached {
            let end = [("end", named(node)), ("result", task_result(shown))];
            self.group(Mode::Tasks, namespace, Value::from_pairs(end));
        }
    }

    fn new_step(&mut self, namespace: &str) {
        for mode in [Mode::Updates, Mode::Tasks] {
            self.fresh.insert((mode, namespace.to_owned()));
        }
    }

    fn push(&mut self, mode: Mode, namespace: &str, value: Value) {
        let place = (mode, namespace.to_owned());
        self.plain.entry(place).or_default().push(value);
    }

    fn group(&mut self, mode: Mode, namespace: &str, row: Value) {
        let place = (mode, namespace.to_owned());
        let fresh = self.fresh.remove(&place);
        let groups = self.grouped.entry(place).or_default();
        match groups.last_mut() {
            Some(group) if !fresh => group.push(row),
            _ => groups.push(vec![row]),
        }
    }

    /// Drops the group of the superstep in which a task failed, in every graph that contains the task: how many
    /// siblings were announced before is a matter of timing.
    pub(crate) fn drop_failed_step(&mut self, node: &str) {
        let names: Vec<&str> = node.split('/').collect();
        for depth in 0..names.len() {
            let namespace = names[..depth].join("/");
            for mode in [Mode::Updates, Mode::Tasks] {
                let place = (mode, namespace.clone());
                if !self.fresh.contains(&place)
                    && let Some(groups) = self.grouped.get_mut(&place)
                {
                    groups.pop();
                }
            }
        }
    }

    /// The last values event of the root graph.
    pub(crate) fn result(&self) -> Value {
        self.plain
            .get(&(Mode::Values, String::new()))
            .and_then(|values| values.last())
            .cloned()
            .unwrap_or_default()
    }

    /// The lists that the case observes.
    pub(crate) fn shown(self, case: &Case) -> Map {
        let grouped = self.grouped.into_iter().map(|(place, groups)| {
            let groups = groups.into_iter().map(|rows| {
                let rows: List = rows.into_iter().collect();
                Value::from(rows)
            });
            (place, groups.collect::<List>())
        });
        let plain = self
            .plain
            .into_iter()
            .map(|(place, rows)| (place, rows.into_iter().collect::<List>()));
        grouped
            .chain(plain)
            .filter(|((mode, namespace), list)| {
                !list.is_empty()
                    && case.observes(mode.observed_as())
                    && (namespace.is_empty() || case.observes(Observe::Subgraphs))
            })
            .map(|((mode, namespace), list)| {
                let name = mode.name();
                let key = if namespace.is_empty() {
                    name.to_owned()
                } else {
                    format!("{name}@{namespace}")
                };
                (key.into(), list.into())
            })
            .collect()
    }
}

fn named(node: &str) -> Value {
    neutral_path(node).into()
}

fn interrupt(payloads: Value) -> Value {
    Value::from_pairs([("INTERRUPT", payloads)])
}

fn payloads(interrupts: &[Interrupt]) -> Value {
    let mut payloads: Vec<Value> = interrupts
        .iter()
        .map(|interrupt| neutral(&interrupt.payload))
        .collect();
    payloads.sort_by_cached_key(Value::to_canonical);
    payloads.into()
}

/// The name of what made a checkpoint.
pub(crate) fn source_name(source: Source) -> &'static str {
    match source {
        Source::Input => "input",
        Source::Loop => "loop",
        Source::Update => "update",
        Source::Fork => "fork",
    }
}

fn twice(writes: &[(Arc<str>, Value)]) -> bool {
    let channels: BTreeSet<&Arc<str>> = writes.iter().map(|(channel, _)| channel).collect();
    channels.len() < writes.len()
}

/// Null for no write, a map for one a channel, else a list of maps with one key.
fn update_entry(writes: &[(Arc<str>, Value)]) -> Value {
    let single = |(channel, value): &(Arc<str>, Value)| {
        Value::from_pairs([(channel.clone(), value.clone())])
    };
    if writes.is_empty() {
        Value::Null
    } else if twice(writes) {
        writes.iter().map(single).collect::<List>().into()
    } else {
        Value::from_pairs(writes.iter().cloned())
    }
}

/// A map of what was written, with `{$writes: [..]}` for a channel written more than once.
fn task_result(writes: Vec<(Arc<str>, Value)>) -> Value {
    let mut by_channel: BTreeMap<Arc<str>, Vec<Value>> = BTreeMap::new();
    for (channel, value) in writes {
        by_channel.entry(channel).or_default().push(value);
    }
    Value::from_pairs(by_channel.into_iter().map(|(channel, mut writes)| {
        let value = match writes.len() {
            1 => writes.remove(0),
            _ => Value::from_pairs([("$writes", Value::from(writes))]),
        };
        (channel, value)
    }))
}
