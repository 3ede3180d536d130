//! The records at one checkpoint, found by their keys.

use super::{Record, RecordKey, RecordOp};
use std::collections::BTreeMap;

/// Records in the order in which they were first put.
#[derive(Debug, Default)]
pub(super) struct Records {
    by_place: BTreeMap<u64, Record>,
    places: BTreeMap<RecordKey, u64>,
    /// The place of the next new record; never given twice, so the order of places is that of time.
    next: u64,
}

impl Records {
    pub(super) fn apply(&mut self, ops: impl IntoIterator<Item = RecordOp>) {
        for op in ops {
            match op {
                RecordOp::Put(record) => self.put(record),
                RecordOp::Remove(key) => {
                    if let Some(place) = self.places.remove(&key) {
                        self.by_place.remove(&place);
                    }
                }
            }
        }
    }

    fn put(&mut self, record: Record) {
        let place = *self.places.entry(record.key()).or_insert(self.next);
        self.next = self.next.max(place + 1);
        self.by_place.insert(place, record);
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&Record) -> bool) {
        self.by_place.retain(|_, record| keep(record));
        let by_place = &self.by_place;
        self.places.retain(|_, place| by_place.contains_key(place));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Record> {
        self.by_place.values()
    }
}

impl FromIterator<Record> for Records {
    fn from_iter<I: IntoIterator<Item = Record>>(records: I) -> Self {
        let mut all = Self::default();
        records.into_iter().for_each(|record| all.put(record));
        all
    }
}

impl IntoIterator for Records {
    type Item = Record;
    type IntoIter = std::collections::btree_map::IntoValues<u64, Record>;

    fn into_iter(self) -> Self::IntoIter {
        self.by_place.into_values()
    }
}

/// The records at a checkpoint by their tasks, for steps of many tasks.
pub(crate) struct ByTask<'a>(BTreeMap<&'a str, Vec<&'a Record>>);

impl<'a> ByTask<'a> {
    pub(crate) fn of(records: &'a [Record]) -> Self {
        let mut all: BTreeMap<&str, Vec<&Record>> = BTreeMap::new();
        for record in records {
            all.entry(&record.task).or_default().push(record);
        }
        Self(all)
    }

    /// Those of the task at this path, in the order in which they were put.
    pub(crate) fn task(&self, path: &str) -> &[&'a Record] {
        self.0.get(path).map_or(&[], Vec::as_slice)
    }

    /// Whether there is none at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::{CallRecord, CallState, RecordKind};

    fn call(key: &str, input: u64) -> Record {
        Record {
            task: "t".into(),
            kind: RecordKind::Call(CallRecord {
                key: key.into(),
                input,
                times: 1,
                carried: false,
                state: CallState::Started,
            }),
        }
    }

    /// The keys and inputs that are left of `known` after `ops`.
    fn check(known: &[Record], ops: Vec<RecordOp>, expected: &[Record]) {
        let mut records = known.to_vec();
        RecordOp::apply_all(ops, &mut records);
        assert_eq!(records, expected);
    }

    #[test]
    fn a_replaced_record_keeps_its_place_and_a_removed_one_loses_it() {
        let known = [call("a", 1), call("b", 1), call("c", 1)];
        let put = |key, input| RecordOp::Put(call(key, input));
        let remove = |key| RecordOp::Remove(call(key, 0).key());
        check(&known, vec![], &known);
        check(
            &known,
            vec![put("b", 2), put("d", 1), put("d", 2)],
            &[call("a", 1), call("b", 2), call("c", 1), call("d", 2)],
        );
        check(
            &known,
            vec![remove("a"), remove("x"), put("a", 2), remove("c")],
            &[call("b", 1), call("a", 2)],
        );
    }

    #[test]
    fn what_is_not_kept_can_be_put_anew() {
        let mut records: Records = [call("a", 1), call("b", 1)].into_iter().collect();
        records.retain(|record| *record != call("a", 1));
        records.apply([RecordOp::Put(call("a", 2))]);
        let left: Vec<Record> = records.into_iter().collect();
        assert_eq!(left, [call("b", 1), call("a", 2)]);
    }
}
