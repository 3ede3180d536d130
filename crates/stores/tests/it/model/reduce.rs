//! Reducers written down as naively as they read, over `serde_json` values: no deltas, no index, no sharing.

use serde_json::{Value as J, json};
use std::collections::BTreeMap;

/// The values of channels; one without a value is not there.
pub(super) type State = BTreeMap<String, J>;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Last,
    Newest,
    Same,
    Append,
    Dedupe,
    DedupeById,
    Upsert {
        move_to_end: bool,
        max: Option<usize>,
        finals: bool,
    },
    Merge,
    Add,
    Max,
    Min,
    Messages,
    Promoted,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kept {
    Thread,
    Run,
    Step,
}

#[derive(Clone, Debug)]
pub(super) struct Chan {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) kept: Kept,
    pub(super) default: Option<J>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum W {
    Value(J),
    Overwrite(J),
    Ops(Vec<O>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum O {
    Add(J),
    Remove(String),
    Clear,
}

/// Why writes do not fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Refused {
    /// Too many writers.
    Conflict,
    /// A write that the reducer does not take.
    Reducer,
    /// There is nothing to copy.
    Nothing,
}

impl Chan {
    fn empty(&self) -> Option<J> {
        match self.kind {
            Kind::Last | Kind::Newest | Kind::Same | Kind::Max | Kind::Min => None,
            Kind::Append
            | Kind::Dedupe
            | Kind::DedupeById
            | Kind::Upsert { .. }
            | Kind::Messages => Some(json!([])),
            Kind::Merge => Some(json!({})),
            Kind::Add => Some(json!(0)),
            Kind::Promoted => Some(J::Null),
        }
    }

    pub(super) fn initial(&self) -> Option<J> {
        self.default.clone().or_else(|| self.empty())
    }

    /// One write folded into a value.
    pub(super) fn fold(&self, value: Option<J>, write: &W) -> Result<Option<J>, Refused> {
        match write {
            W::Value(more) => self.add(value, more),
            W::Overwrite(new) => Ok(self.add(self.empty(), new)?.or_else(|| self.initial())),
            W::Ops(ops) if self.kind == Kind::Messages => messages(value, ops),
            W::Ops(ops) => ops
                .iter()
                .try_fold(value, |value, op| match (op, &self.kind) {
                    (O::Add(more), _) => self.add(value, more),
                    (
                        O::Clear,
                        Kind::Append | Kind::Dedupe | Kind::DedupeById | Kind::Upsert { .. },
                    ) => Ok(Some(json!([]))),
                    (O::Clear, Kind::Merge) => Ok(Some(json!({}))),
                    (O::Remove(id), Kind::Upsert { .. }) => {
                        let mut items = list(value);
                        let at = place(&items, &json!(id)).ok_or(Refused::Reducer)?;
                        items.remove(at);
                        Ok(Some(J::Array(items)))
                    }
                    (O::Remove(key), Kind::Merge) => {
                        let mut map = value
                            .and_then(|value| value.as_object().cloned())
                            .unwrap_or_default();
                        map.remove(key).ok_or(Refused::Reducer)?;
                        Ok(Some(J::Object(map)))
                    }
                    _ => Err(Refused::Reducer),
                }),
        }
    }

    fn add(&self, value: Option<J>, more: &J) -> Result<Option<J>, Refused> {
        let refused = Err(Refused::Reducer);
        match &self.kind {
            Kind::Last => Ok(Some(more.clone())),
            Kind::Newest if more.is_null() => Ok(value),
            Kind::Newest => Ok(Some(more.clone())),
            Kind::Same if more.is_null() => Ok(value),
            Kind::Same => match value {
                None => Ok(Some(more.clone())),
                Some(value) if value == *more => Ok(Some(value)),
                Some(_) => refused,
            },
            Kind::Add => match (value, more.as_i64()) {
                (None, Some(more)) => Ok(Some(json!(more))),
                (Some(value), Some(more)) => match value.as_i64() {
                    Some(value) => Ok(Some(json!(value + more))),
                    None => refused,
                },
                _ => refused,
            },
            Kind::Max | Kind::Min => {
                let greatest = self.kind == Kind::Max;
                let better = match (&value, more) {
                    (None, J::Number(_) | J::String(_)) => true,
                    (Some(J::Number(a)), J::Number(b)) => {
                        let (a, b) = (a.as_i64(), b.as_i64());
                        if greatest { b > a } else { b < a }
                    }
                    (Some(J::String(a)), J::String(b)) => {
                        if greatest {
                            b > a
                        } else {
                            b < a
                        }
                    }
                    _ => return refused,
                };
                Ok(if better { Some(more.clone()) } else { value })
            }
            Kind::Merge => {
                let J::Object(more) = more else {
                    return refused;
                };
                let mut map = value
                    .and_then(|value| value.as_object().cloned())
                    .unwrap_or_default();
                map.extend(more.clone());
                Ok(Some(J::Object(map)))
            }
            Kind::Promoted => promoted(value, more),
            Kind::Messages => {
                let items = match more {
                    J::Array(items) => items.clone(),
                    one => vec![one.clone()],
                };
                messages(value, &items.into_iter().map(O::Add).collect::<Vec<_>>())
            }
            Kind::Append | Kind::Dedupe | Kind::DedupeById | Kind::Upsert { .. } => {
                let more = match more {
                    J::Array(items) => items.clone(),
                    J::Null => return refused,
                    one => vec![one.clone()],
                };
                let mut items = list(value);
                for item in more {
                    self.add_item(&mut items, item)?;
                }
                Ok(Some(J::Array(items)))
            }
        }
    }

    fn add_item(&self, items: &mut Vec<J>, item: J) -> Result<(), Refused> {
        match &self.kind {
            Kind::Dedupe if items.contains(&item) => {}
            Kind::DedupeById | Kind::Upsert { .. } if item["id"].is_null() => {
                return Err(Refused::Reducer);
            }
            Kind::DedupeById if place(items, &item["id"]).is_some() => {}
            Kind::Upsert {
                move_to_end,
                max,
                finals,
            } => {
                let is_final = |item: &J| *finals && item["v"] == 0;
                match place(items, &item["id"]) {
                    None => items.push(item),
                    Some(at) if is_final(&items[at]) && !is_final(&item) => {}
                    Some(at) if *move_to_end => {
                        items.remove(at);
                        items.push(item);
                    }
                    Some(at) => items[at] = item,
                }
                while max.is_some_and(|max| items.len() > max) {
                    items.remove(0);
                }
            }
            _ => items.push(item),
        }
        Ok(())
    }
}

fn list(value: Option<J>) -> Vec<J> {
    match value {
        Some(J::Array(items)) => items,
        _ => Vec::new(),
    }
}

fn place(items: &[J], id: &J) -> Option<usize> {
    items.iter().position(|item| item["id"] == *id)
}

fn promoted(value: Option<J>, more: &J) -> Result<Option<J>, Refused> {
    let names = more["names"].as_array().ok_or(Refused::Reducer)?;
    let hash = more["catalog_hash"].as_str().ok_or(Refused::Reducer)?;
    let known = value.filter(|value| value["catalog_hash"] == hash);
    let mut all: Vec<String> = known
        .iter()
        .flat_map(|known| known["names"].as_array().unwrap())
        .chain(names)
        .map(|name| name.as_str().unwrap().to_owned())
        .collect();
    all.sort();
    all.dedup();
    Ok(Some(json!({"catalog_hash": hash, "names": all})))
}

fn messages(value: Option<J>, ops: &[O]) -> Result<Option<J>, Refused> {
    let mut items = list(value);
    let mut ops = ops;
    if let Some(at) = ops.iter().rposition(|op| *op == O::Clear) {
        items.clear();
        ops = &ops[at + 1..];
    }
    let mut removed: Vec<J> = Vec::new();
    for op in ops {
        match op {
            O::Add(message) => {
                removed.retain(|id| *id != message["id"]);
                match place(&items, &message["id"]) {
                    Some(at) => items[at] = message.clone(),
                    None => items.push(message.clone()),
                }
            }
            O::Remove(id) => {
                place(&items, &json!(id)).ok_or(Refused::Reducer)?;
                removed.push(json!(id));
            }
            O::Clear => {}
        }
    }
    items.retain(|item| !removed.contains(&item["id"]));
    Ok(Some(J::Array(items)))
}

/// The values at thread start.
pub(super) fn initial(channels: &[Chan]) -> State {
    channels
        .iter()
        .filter_map(|chan| Some((chan.name.clone(), chan.initial()?)))
        .collect()
}

/// Takes the channels kept this long back to what they are at thread start.
pub(super) fn reset(channels: &[Chan], state: &mut State, kept: Kept) {
    for chan in channels.iter().filter(|chan| chan.kept == kept) {
        state.remove(&chan.name);
        state.extend(chan.initial().map(|value| (chan.name.clone(), value)));
    }
}

/// All writes of a step, in task order.
pub(super) fn fold_step(
    channels: &[Chan],
    state: &mut State,
    writes: &[(String, W)],
    clears: bool,
) -> Result<(), Refused> {
    if clears {
        reset(channels, state, Kept::Step);
    }
    for chan in channels {
        let writes: Vec<&W> = writes
            .iter()
            .filter(|(name, _)| *name == chan.name)
            .map(|(_, write)| write)
            .collect();
        let overwrites: Vec<&W> = writes
            .iter()
            .copied()
            .filter(|write| matches!(write, W::Overwrite(_)))
            .collect();
        if overwrites.len() > 1
            || (overwrites.is_empty() && writes.len() > 1 && chan.kind == Kind::Last)
        {
            return Err(Refused::Conflict);
        }
        let counts = if overwrites.is_empty() {
            writes
        } else {
            overwrites
        };
        fold_one(chan, state, &counts)?;
    }
    Ok(())
}

fn fold_one(chan: &Chan, state: &mut State, writes: &[&W]) -> Result<(), Refused> {
    if writes.is_empty() {
        return Ok(());
    }
    let mut value = state.remove(&chan.name);
    for write in writes {
        value = chan.fold(value, write)?;
    }
    state.extend(value.map(|value| (chan.name.clone(), value)));
    Ok(())
}

/// What the routers of a task see: its own writes on top of the state.
pub(super) fn overlay(
    channels: &[Chan],
    state: &State,
    writes: &[(String, W)],
) -> Result<State, Refused> {
    let mut seen = state.clone();
    for chan in channels {
        let own: Vec<&W> = writes
            .iter()
            .filter(|(name, _)| *name == chan.name)
            .map(|(_, write)| write)
            .collect();
        if own.is_empty() {
            continue;
        }
        if chan.kept == Kept::Step {
            // The step clears it before it folds.
            reset(std::slice::from_ref(chan), &mut seen, Kept::Step);
        }
        let overwrite = own.iter().find(|write| matches!(write, W::Overwrite(_)));
        match overwrite {
            Some(overwrite) => fold_one(chan, &mut seen, &[overwrite])?,
            None => fold_one(chan, &mut seen, &own)?,
        }
    }
    Ok(seen)
}

/// The text of a state: the same for the same values, however they are kept.
pub(super) fn canon(value: &J, out: &mut String) {
    match value {
        J::Array(items) => {
            out.push('[');
            for item in items {
                canon(item, out);
                out.push(',');
            }
            out.push(']');
        }
        J::Object(entries) => {
            let sorted: BTreeMap<&String, &J> = entries.iter().collect();
            out.push('{');
            for (key, value) in sorted {
                out.push_str(&format!("{key:?}:"));
                canon(value, out);
                out.push(',');
            }
            out.push('}');
        }
        plain => out.push_str(&plain.to_string()),
    }
}
