//! What the tests are written with.

use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;
use tine_engine::channel::Effect;
use tine_engine::checkpoint::{
    Advance, ChannelEffects, Checkpointer, Record, RecordKind, Scope, Source, ThreadKey,
};
use tine_engine::world::Id;
use tine_engine::{Timestamp, Value};
use tine_stores::{SqliteCheckpointer, SqliteOptions};

/// Runs a future to its end, on a runtime of its own.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(future)
}

/// A store in a folder of its own.
pub(crate) fn sqlite() -> (TempDir, SqliteCheckpointer) {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("threads.db"));
    (folder, store)
}

pub(crate) fn open(path: &Path) -> SqliteCheckpointer {
    SqliteCheckpointer::open(path, SqliteOptions::default()).unwrap()
}

/// The root graph of a thread of the default tenant.
pub(crate) fn root(thread: &str) -> Scope {
    Scope::root(ThreadKey::local(thread))
}

pub(crate) fn namespace(name: &str) -> Arc<str> {
    name.into()
}

/// A checkpoint of a loop that changes these channels.
pub(crate) fn advance(id: u128, parent: Option<u128>, effects: &[(&str, Vec<Effect>)]) -> Advance {
    Advance {
        id: Id(id),
        parent: parent.map(Id),
        step: id as i64 - 2,
        source: if parent.is_none() {
            Source::Input
        } else {
            Source::Loop
        },
        created: Timestamp(1_000 + id as u64),
        run: Id(7),
        invocation: None,
        effects: effects
            .iter()
            .map(|(channel, effects)| ChannelEffects {
                channel: (*channel).into(),
                effects: effects.clone(),
            })
            .collect(),
        next: Vec::new(),
        joins: Default::default(),
        deferred: Vec::new(),
        ran: Vec::new(),
        records: Vec::new(),
    }
}

pub(crate) fn set(value: impl Into<Value>) -> Vec<Effect> {
    vec![Effect::Set(value.into())]
}

pub(crate) fn append(value: impl Into<Value>) -> Vec<Effect> {
    vec![Effect::Append(value.into())]
}

/// A record that a task finished.
pub(crate) fn done(task: &str) -> Record {
    Record {
        task: task.into(),
        kind: RecordKind::Done {
            writes: Vec::new(),
            targets: Vec::new(),
            joins: Vec::new(),
        },
    }
}

/// A value of the newest checkpoint, as JSON.
pub(crate) async fn newest(
    store: &dyn Checkpointer,
    scope: &Scope,
    channel: &str,
) -> Option<String> {
    let checkpoint = store.load(scope, None).await.unwrap()?;
    checkpoint.values.get(channel).map(ToString::to_string)
}
