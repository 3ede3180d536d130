//! What can only be tested from inside: a disk that fails, rows that were changed behind the store's back.

use super::*;
use tempfile::TempDir;
use tine_engine::channel::Effect;
use tine_engine::checkpoint::{
    Advance, CallRecord, CallState, ChannelEffects, Record, RecordKind, RecordOp, Source,
};
use tine_engine::{Timestamp, Value};

fn new() -> (TempDir, SqliteCheckpointer) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("threads.db");
    let store = SqliteCheckpointer::open(path, SqliteOptions::default()).unwrap();
    (folder, store)
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(future)
}

/// The next checkpoint of a thread with one growing list.
fn append(id: u128, text: &str) -> Advance {
    Advance {
        id: Id(id),
        parent: (id > 1).then(|| Id(id - 1)),
        step: id as i64,
        source: Source::Loop,
        created: Timestamp(id as u64),
        run: Id(7),
        invocation: None,
        effects: vec![ChannelEffects {
            channel: "log".into(),
            effects: if id == 1 {
                vec![Effect::Set(Value::list())]
            } else {
                vec![Effect::Append(text.into())]
            },
        }],
        next: Vec::new(),
        joins: Default::default(),
        deferred: Vec::new(),
        ran: Vec::new(),
        records: Vec::new(),
    }
}

async fn items(store: &SqliteCheckpointer) -> usize {
    let scope = Scope::root(ThreadKey::local("t"));
    let newest = store.load(&scope, None).await.unwrap().unwrap();
    newest.values["log"].as_list().unwrap().len()
}

/// Appends until the store refuses, and gives the id that was refused with the reason.
async fn append_until_refused(writer: &dyn ThreadWriter, from: u128) -> (u128, StoreError) {
    let mut id = from;
    loop {
        let stored = append(id, &"x".repeat(10_000));
        if let Err(error) = writer.advance(&"".into(), stored).await {
            return (id, error);
        }
        id += 1;
    }
}

#[test]
fn a_full_disk_refuses_the_write_and_loses_nothing() {
    let (_folder, store) = new();
    wait(async {
        let key = ThreadKey::local("t");
        let writer = Checkpointer::open(&store, &key).await.unwrap();
        let limit = |pages: i64| {
            store.database.with_writer(|connection| {
                connection
                    .pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
                    .unwrap();
            });
        };
        limit(100);
        let (id, error) = append_until_refused(&*writer, 1).await;
        assert!(id > 10, "{id}");
        assert!(matches!(&error, StoreError::Unavailable { .. }), "{error}");
        assert!(
            error.to_string().contains("threads.db: the disk is full;"),
            "{error}"
        );
        let big = Record {
            task: "a".into(),
            kind: RecordKind::Call(CallRecord {
                key: "k".into(),
                input: 0,
                times: 1,
                carried: false,
                state: CallState::Done("x".repeat(100_000).into()),
            }),
        };
        let ops = vec![RecordOp::Put(big)];
        let error = writer.record(&"".into(), Id(id - 1), ops.clone()).await;
        assert!(matches!(error, Err(StoreError::Unavailable { .. })));
        assert_eq!(items(&store).await as u128, id - 2);
        // With room again, the same write goes on where it stopped.
        limit(200);
        writer.record(&"".into(), Id(id - 1), ops).await.unwrap();
        let (next, _) = append_until_refused(&*writer, id).await;
        assert!(next > id);
        assert_eq!(items(&store).await as u128, next - 2);
    });
}

#[test]
fn a_disk_that_became_read_only_refuses_the_write() {
    let (_folder, store) = new();
    wait(async {
        let key = ThreadKey::local("t");
        let writer = Checkpointer::open(&store, &key).await.unwrap();
        writer.advance(&"".into(), append(1, "")).await.unwrap();
        let only_read = |on: bool| {
            let set = |connection: &rusqlite::Connection| {
                connection.pragma_update(None, "query_only", on)
            };
            store.database.with_writer(set).unwrap();
        };
        only_read(true);
        let error = writer
            .advance(&"".into(), append(2, "a"))
            .await
            .unwrap_err();
        assert!(
            error.to_string().ends_with("can not be written to"),
            "{error}"
        );
        assert_eq!(items(&store).await, 0);
        only_read(false);
        writer.advance(&"".into(), append(2, "a")).await.unwrap();
        assert_eq!(items(&store).await, 1);
    });
}

#[test]
fn nothing_needs_a_runtime() {
    let (_folder, store) = new();
    let key = ThreadKey::local("t");
    let scope = Scope::root(key.clone());
    // Every future is ready at once.
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    macro_rules! now {
        ($future:expr) => {
            match Box::pin($future).as_mut().poll(&mut cx) {
                std::task::Poll::Ready(result) => result.unwrap(),
                std::task::Poll::Pending => panic!("it waits"),
            }
        };
    }
    let writer = now!(Checkpointer::open(&store, &key));
    now!(writer.advance(&"".into(), append(1, "")));
    drop(writer);
    assert!(now!(store.load(&scope, None)).is_some());
    assert_eq!(now!(store.history(&scope, None, None)).len(), 1);
    assert_eq!(now!(store.threads("local")).len(), 1);
    assert!(now!(store.thread(&key)).is_some());
    assert!(now!(store.delete(&key)));
}

#[test]
fn health_tells_who_writes_and_what_is_wrong() {
    let (folder, store) = new();
    let sound = wait(store.health()).unwrap();
    assert!(sound.schema > 0);
    assert!(sound.problems.is_empty() && sound.holders.is_empty());
    let writer = wait(store.open(&ThreadKey::local("t"))).unwrap();
    let held = wait(store.health()).unwrap();
    assert_eq!(held.holders, ["another run of this process"]);
    drop(writer);
    assert!(wait(store.health()).unwrap().holders.is_empty());
    drop(store);

    // A page of an index that is overwritten: what SQLite finds is told, and is no panic.
    let path = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|end| end == "db"))
        .unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    assert!(bytes.len() > 8192, "{}", bytes.len());
    let last = bytes.len() - 4096;
    bytes[last..].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();
    let found = SqliteCheckpointer::open(&path, SqliteOptions::default())
        .and_then(|store| wait(store.health()));
    assert!(
        found
            .as_ref()
            .map_or(true, |health| !health.problems.is_empty()),
        "{found:?}"
    );
}
