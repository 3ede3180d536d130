//! What can only be tested from inside: a disk that fails, rows that were changed behind the store's back.

use super::*;
use rusqlite::Connection;
use tempfile::TempDir;
use tine_engine::checkpoint::{Advance, ChannelEffects, Record, RecordKind, RecordOp, Source};
use tine_engine::channel::Effect;
use tine_engine::Timestamp;

fn new() -> (TempDir, SqliteCheckpointer) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("threads.db");
    let store = SqliteCheckpointer::open(path, SqliteOptions::default()).unwrap();
    (folder, store)
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread();
    runtime.build_for_test().block_on(future)
}

trait BuildForTest {
    fn build_for_test(self) -> tokio::runtime::Runtime;
}

impl BuildForTest for tokio::runtime::Builder {
    fn build_for_test(mut self) -> tokio::runtime::Runtime {
        self.build().unwrap()
    }
}

fn append(id: u128, text: &str) -> Advance {
    Advance {
        id: Id(id),
        parent: (id > 1).then(|| Id(id - 1)),
        step: id as i64,
        source: Source::Loop,
        created: Timestamp(id as u64),
        run: Id(7),
        effects: vec![ChannelEffects {
            channel: "log".into(),
            effects: if id == 1 {
                vec![Effect::Set(tine_engine::Value::list())]
            } else {
                vec![Effect::Append(text.into())]
            },
        }],
        next: Vec::new(),
        joins: Default::default(),
        deferred: Vec::new(),
    }
}
