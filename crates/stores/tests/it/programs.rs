//! Random programs of effects, forks, records and reopenings: SQLite must give what memory gives.

use crate::kit::{advance, done, open, wait};
use tine_engine::MemoryCheckpointer;
use tine_engine::Value;
use tine_engine::channel::Effect;
use tine_engine::checkpoint::{
    CallRecord, CallState, Checkpoint, Checkpointer, Record, RecordKind, RecordOp, Scope, ThreadKey,
};
use tine_engine::value::Map;
use tine_engine::world::Id;

const PROGRAMS: u64 = 500;
const CHANNELS: [&str; 5] = ["list", "more", "map", "any", "rare"];

/// splitmix64
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn text(&mut self) -> Value {
        let letters = ["\0", "\u{1F98C}", "\"", "\\", "文", "a", "\u{e000}", "\n"];
        let length = if self.one_in(10) { 400 } else { self.below(12) };
        let text: String = (0..length)
            .map(|_| letters[self.below(letters.len())])
            .collect();
        text.into()
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 6 } else { 8 }) {
            0 => Value::Null,
            1 => self.one_in(2).into(),
            2 => (self.next() as i64).into(),
            3 => self.next().into(),
            4 => {
                let float = f64::from_bits(self.next());
                let json = serde_json::Number::from_f64(float);
                json.map_or(Value::Null, |number| Value::from_json(number.into()))
            }
            5 => self.text(),
            6 => (0..self.below(4))
                .map(|_| self.value(depth - 1))
                .collect::<Vec<_>>()
                .into(),
            _ => Value::from_pairs(
                (0..self.below(4)).map(|key| (key.to_string(), self.value(depth - 1))),
            ),
        }
    }

    /// Effects that fit the value, and change it.
    fn effects(&mut self, value: &mut Option<Value>) -> Vec<Effect> {
        let mut effects = Vec::new();
        for _ in 0..=self.below(4) {
            let effect = self.effect(value.as_ref());
            effect.clone().apply(value).unwrap();
            effects.push(effect);
        }
        effects
    }

    fn effect(&mut self, value: Option<&Value>) -> Effect {
        if self.one_in(25) {
            return Effect::Unset;
        }
        match value {
            Some(Value::List(items)) if !self.one_in(40) => match self.below(6) {
                0 if !items.is_empty() => Effect::Remove(self.below(items.len())),
                1 | 2 if !items.is_empty() => {
                    Effect::Replace(self.below(items.len()), self.value(2))
                }
                _ => Effect::Append(self.value(2)),
            },
            Some(Value::Map(_)) if !self.one_in(40) => {
                let key = self.below(9).to_string().into();
                match self.below(4) {
                    0 => Effect::RemoveKey(key),
                    _ => Effect::Put(key, self.value(2)),
                }
            }
            _ => match self.below(3) {
                0 => Effect::Set(Value::list()),
                1 => Effect::Set(Value::map()),
                _ => Effect::Set(self.value(3)),
            },
        }
    }

    fn record(&mut self) -> Record {
        let task = format!("task{}", self.below(3));
        if self.one_in(2) {
            return done(&task);
        }
        Record {
            task: task.into(),
            kind: RecordKind::Call(CallRecord {
                key: self.below(4).to_string().into(),
                input: self.next(),
                times: 1,
                carried: false,
                state: match self.one_in(2) {
                    true => CallState::Done(self.value(1)),
                    false => CallState::Started,
                },
            }),
        }
    }
}

/// Compares, and names the first checkpoint that differs: the whole would fill the screen many times.
fn same(seed: u64, found: &[Checkpoint], expected: &[Checkpoint]) {
    assert_eq!(found.len(), expected.len(), "seed {seed}");
    for (found, expected) in found.iter().zip(expected) {
        if found != expected {
            assert_eq!(found, expected, "seed {seed}");
        }
    }
}

async fn run(seed: u64, path: &std::path::Path) {
    let mut dice = Dice(seed);
    let key = ThreadKey::local(format!("program {seed}"));
    let scope = Scope::root(key.clone());
    let memory = MemoryCheckpointer::new();
    let mut sqlite = open(path);
    let expected = memory.open(&key).await.unwrap();
    let mut writer = sqlite.open(&key).await.unwrap();
    // The values of every checkpoint; the ids are the places, from 1.
    let mut values: Vec<Map> = Vec::new();
    for _ in 0..8 + dice.below(26) {
        if dice.one_in(12) {
            drop(writer);
            if dice.one_in(2) {
                sqlite = open(path);
            }
            writer = sqlite.open(&key).await.unwrap();
        }
        let parent = match values.len() {
            0 => None,
            _ if dice.one_in(60) => None,
            some if dice.one_in(12) => Some(1 + dice.below(some)),
            newest => Some(newest),
        };
        let mut now = parent.map_or_else(Map::new, |parent| values[parent - 1].clone());
        let mut changes = Vec::new();
        for channel in CHANNELS {
            if dice.one_in(if channel == "rare" { 20 } else { 2 }) {
                let mut value = now.remove(channel);
                changes.push((channel, dice.effects(&mut value)));
                now.extend(value.map(|value| (channel.into(), value)));
            }
        }
        values.push(now);
        let stored = advance(values.len() as u128, parent.map(|id| id as u128), &changes);
        expected
            .advance(&scope.namespace, stored.clone())
            .await
            .unwrap();
        writer.advance(&scope.namespace, stored).await.unwrap();
        for _ in 0..dice.below(3) {
            let at = if dice.one_in(5) {
                1 + dice.below(values.len())
            } else {
                values.len()
            };
            let ops: Vec<RecordOp> = (0..dice.below(4))
                .map(|_| match dice.record() {
                    gone if dice.one_in(4) => RecordOp::Remove(gone.key()),
                    record => RecordOp::Put(record),
                })
                .collect();
            let id = Id(at as u128);
            expected
                .record(&scope.namespace, id, ops.clone())
                .await
                .unwrap();
            writer.record(&scope.namespace, id, ops).await.unwrap();
        }
    }
    let history = memory.history(&scope, None, None).await.unwrap();
    same(
        seed,
        &sqlite.history(&scope, None, None).await.unwrap(),
        &history,
    );
    let before = Some(Id(1 + dice.below(values.len()) as u128));
    let limit = Some(dice.below(values.len()));
    same(
        seed,
        &sqlite.history(&scope, before, limit).await.unwrap(),
        &memory.history(&scope, before, limit).await.unwrap(),
    );
    for checkpoint in history {
        let loaded = sqlite.load(&scope, Some(checkpoint.id)).await.unwrap();
        same(seed, loaded.as_slice(), std::slice::from_ref(&checkpoint));
        let place = checkpoint.id.0 as usize - 1;
        assert!(
            checkpoint.values == values[place],
            "seed {seed}, {}",
            checkpoint.id
        );
    }
    assert_eq!(
        sqlite.thread(&key).await.unwrap(),
        memory.thread(&key).await.unwrap(),
        "seed {seed}"
    );
}

#[test]
fn sqlite_gives_what_memory_gives() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("threads.db");
    // The last to close the file empties its log into it and waits for the disk; with this one, that is not each program.
    let _open = open(&path);
    wait(async {
        for seed in 0..PROGRAMS {
            run(seed, &path).await;
        }
    });
    let database = rusqlite::Connection::open(&path).unwrap();
    let count = |sql: &str| {
        database
            .query_row(sql, [], |row| row.get::<_, i64>(0))
            .unwrap()
    };
    // The programs reach what they are to test.
    assert!(count("SELECT count(*) FROM effect WHERE snapshot IS NOT NULL") > 500);
    assert!(count("SELECT count(*) FROM checkpoint WHERE branch = number") > 1_000);
    assert_eq!(
        database
            .pragma_query_value(None, "integrity_check", |row| row.get::<_, String>(0))
            .unwrap(),
        "ok"
    );
}
