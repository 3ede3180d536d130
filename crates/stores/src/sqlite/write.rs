//! The one writer of a thread.

use super::database::Database;
use super::fault::Fault;
use super::lease::Lease;
use super::read::{self, Place};
use super::track::Track;
use crate::json;
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension as _, params};
use serde::Serialize;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tine_engine::StoreError;
use tine_engine::channel::Effect;
use tine_engine::checkpoint::{Advance, ChannelEffects, RecordOp, ThreadKey, ThreadWriter};
use tine_engine::value::Map;
use tine_engine::world::Id;

/// Holds a thread's lease.
#[derive(Debug)]
pub(super) struct Writer {
    database: Arc<Database>,
    key: ThreadKey,
    thread: i64,
    token: i64,
    graphs: Mutex<BTreeMap<Arc<str>, Graph>>,
    _lease: Lease,
}

/// What the writer knows of a graph without asking. Left out after a failed write, and then asked for again.
#[derive(Debug)]
struct Graph {
    number: i64,
    channels: BTreeMap<Arc<str>, i64>,
    head: Option<Head>,
}

/// The checkpoint that was stored last: the newest of its graph and of its branch.
#[derive(Debug)]
struct Head {
    id: Id,
    place: Place,
    /// The channels that changed piece by piece.
    tracks: BTreeMap<Arc<str>, Track>,
}

impl Writer {
    /// Takes a thread.
    pub(super) fn open(database: Arc<Database>, key: &ThreadKey) -> Result<Self, StoreError> {
        let lease = Lease::take(database.locks(), key)?;
        let (thread, token) = database.write("a thread's row", key, |connection| {
            Ok(connection.query_row(
                "INSERT INTO thread (tenant, id, token, meta) VALUES (?1, ?2, 1, '{}')
                 ON CONFLICT (tenant, id) DO UPDATE SET token = token + 1 RETURNING number, token",
                params![key.tenant, key.thread],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )?)
        })?;
        Ok(Self {
            database,
            key: key.clone(),
            thread,
            token,
            graphs: Mutex::default(),
            _lease: lease,
        })
    }

    /// Runs `work` in a write transaction, if the thread is still this writer's.
    fn write<T>(
        &self,
        what: &str,
        work: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        self.database.write(what, &self.key, |connection| {
            let mut statement =
                connection.prepare_cached("SELECT token FROM thread WHERE number = ?1")?;
            let token: Option<i64> = statement
                .query_row([self.thread], |row| row.get(0))
                .optional()?;
            if token != Some(self.token) {
                return Err(StoreError::Fenced {
                    thread: self.key.to_string().into(),
                }
                .into());
            }
            work(connection)
        })
    }

    fn graphs(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Graph>> {
        self.graphs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unknown(&self, id: Id) -> Fault {
        Fault::Store(StoreError::UnknownCheckpoint {
            thread: self.key.to_string().into(),
            id: id.to_string(),
        })
    }

    fn find_graph(&self, connection: &Connection, namespace: &str) -> Result<Option<i64>, Fault> {
        let mut statement = connection
            .prepare_cached("SELECT number FROM graph WHERE thread = ?1 AND namespace = ?2")?;
        Ok(statement
            .query_row(params![self.thread, namespace], |row| row.get(0))
            .optional()?)
    }

    fn graph(&self, connection: &Connection, namespace: &str) -> Result<Graph, Fault> {
        let number = match self.find_graph(connection, namespace)? {
            Some(number) => number,
            None => {
                connection.execute(
                    "INSERT INTO graph (thread, namespace) VALUES (?1, ?2)",
                    params![self.thread, namespace],
                )?;
                connection.last_insert_rowid()
            }
        };
        Ok(Graph {
            number,
            channels: BTreeMap::new(),
            head: None,
        })
    }

    fn parent(
        &self,
        connection: &Connection,
        graph: i64,
        advance: &Advance,
    ) -> Result<Option<Place>, Fault> {
        let Some(id) = advance.parent else {
            return Ok(None);
        };
        let place = read::place(connection, graph, id)?;
        place.map(Some).ok_or_else(|| self.unknown(id))
    }

    /// Stores a checkpoint, which becomes the head of its graph.
    fn store(
        &self,
        connection: &Connection,
        graph: &mut Graph,
        advance: &Advance,
    ) -> Result<(), Fault> {
        let head = graph.head.take();
        let (parent, newest, tracks) = match head.filter(|head| advance.parent == Some(head.id)) {
            Some(head) => (Some(head.place), Some(head.place), head.tracks),
            None => (
                self.parent(connection, graph.number, advance)?,
                read::newest(connection, graph.number)?,
                BTreeMap::new(),
            ),
        };
        let (number, first_effect) = next_numbers(connection)?;
        let branch = match parent {
            Some(parent) if is_tip(connection, graph.number, parent, newest)? => parent.branch,
            _ => number,
        };
        let place = Place {
            number,
            sequence: newest.map_or(0, |newest| newest.sequence + 1),
            branch,
        };
        insert_checkpoint(
            connection,
            graph.number,
            place,
            parent,
            first_effect,
            advance,
        )?;
        let mut head = Head {
            id: advance.id,
            place,
            tracks,
        };
        for (number, changed) in (first_effect..).zip(changed(advance)) {
            store_effects(connection, graph, &mut head, number, changed)?;
        }
        graph.head = Some(head);
        for record in &advance.records {
            store_record(connection, number, &RecordOp::Put(record.clone()))?;
        }
        if let Some(parent) = parent {
            connection
                .prepare_cached("DELETE FROM record WHERE checkpoint = ?1 AND name = 'done'")?
                .execute([parent.number])?;
        }
        Ok(())
    }
}

/// The numbers of the next checkpoint and of its first effect.
fn next_numbers(connection: &Connection) -> Result<(i64, i64), Fault> {
    let mut statement = connection.prepare_cached(
        "SELECT (SELECT coalesce(max(number), 0) + 1 FROM checkpoint),
                (SELECT coalesce(max(number), 0) + 1 FROM effect)",
    )?;
    Ok(statement.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?)
}

/// The channels that have changed.
fn changed(advance: &Advance) -> impl Iterator<Item = &ChannelEffects> {
    let all = advance.effects.iter();
    all.filter(|channel| !channel.effects.is_empty())
}

/// Whether a checkpoint is the newest of its branch.
fn is_tip(
    connection: &Connection,
    graph: i64,
    place: Place,
    newest: Option<Place>,
) -> Result<bool, Fault> {
    if newest.is_some_and(|newest| newest.number == place.number) {
        return Ok(true);
    }
    let later: bool = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM checkpoint
             WHERE graph = ?1 AND sequence > ?2 AND branch = ?3)",
        )?
        .query_row(params![graph, place.sequence, place.branch], |row| {
            row.get(0)
        })?;
    Ok(!later)
}

fn insert_checkpoint(
    connection: &Connection,
    graph: i64,
    place: Place,
    parent: Option<Place>,
    first_effect: i64,
    advance: &Advance,
) -> Result<(), Fault> {
    connection
        .prepare_cached(
            "INSERT INTO checkpoint (number, graph, sequence, branch, parent, id, step, source,
                 created, run, first_effect, effects, next, joins, deferred, ran,
                 invocation)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
        )?
        .execute(params![
            place.number,
            graph,
            place.sequence,
            place.branch,
            parent.map(|parent| parent.number),
            advance.id.0.to_be_bytes(),
            advance.step,
            read::source_name(advance.source),
            advance.created.0.cast_signed(),
            advance.run.0.to_be_bytes(),
            first_effect,
            changed(advance).count() as i64,
            unless_empty("what runs next", advance.next.is_empty(), &advance.next)?,
            unless_empty("the open joins", advance.joins.is_empty(), &advance.joins)?,
            unless_empty(
                "what is deferred",
                advance.deferred.is_empty(),
                &advance.deferred
            )?,
            unless_empty("who ran last", advance.ran.is_empty(), &advance.ran)?,
            advance.invocation.map(|id| id.0.to_be_bytes()),
        ])?;
    Ok(())
}

/// Stores what a step did to one channel, and the whole value beside it if that is due.
fn store_effects(
    connection: &Connection,
    graph: &mut Graph,
    head: &mut Head,
    number: i64,
    changed: &ChannelEffects,
) -> Result<(), Fault> {
    let name = &changed.channel;
    let what = || format!("channel `{name}`");
    let channel = match graph.channels.get(name) {
        Some(channel) => *channel,
        None => channel_number(connection, graph.number, name)?,
    };
    graph.channels.insert(name.clone(), channel);
    // What comes before the last whole value is of no effect.
    let set = changed
        .effects
        .iter()
        .rposition(|effect| matches!(effect, Effect::Set(_) | Effect::Unset));
    let effects = &changed.effects[set.unwrap_or(0)..];
    let snapshot = if set.is_some() {
        // Many channels are only ever set whole; nothing is known of the others until they change otherwise.
        head.tracks.remove(name);
        None
    } else {
        let track = match head.tracks.entry(name.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(vacant) => {
                let line = read::line(connection, head.place)?;
                vacant.insert(read::channel(connection, &line, channel, name)?)
            }
        };
        track
            .apply(effects)
            .map_err(|error| Fault::misfit(name, &error))?;
        let value = track.snapshot().map(json::encode);
        value
            .transpose()
            .map_err(|error| Fault::refused(what(), &error))?
    };
    connection
        .prepare_cached(
            "INSERT INTO effect (number, branch, channel, checkpoint, whole, effects, snapshot)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            number,
            head.place.branch,
            channel,
            head.place.number,
            set.is_some(),
            json::encode(effects).map_err(|error| Fault::refused(what(), &error))?,
            snapshot,
        ])?;
    Ok(())
}

fn channel_number(connection: &Connection, graph: i64, name: &str) -> Result<i64, Fault> {
    let known = connection
        .prepare_cached("SELECT number FROM channel WHERE graph = ?1 AND name = ?2")?
        .query_row(params![graph, name], |row| row.get(0))
        .optional()?;
    if let Some(number) = known {
        return Ok(number);
    }
    connection
        .prepare_cached("INSERT INTO channel (graph, name) VALUES (?1, ?2)")?
        .execute(params![graph, name])?;
    Ok(connection.last_insert_rowid())
}

fn unless_empty<T: Serialize + ?Sized>(
    what: &str,
    empty: bool,
    data: &T,
) -> Result<Option<String>, Fault> {
    let text = (!empty).then(|| json::encode(data));
    text.transpose()
        .map_err(|error| Fault::refused(what, &error))
}

fn store_record(connection: &Connection, checkpoint: i64, op: &RecordOp) -> Result<(), Fault> {
    match op {
        RecordOp::Put(record) => {
            let key = record.key();
            let kind = json::encode(&record.kind).map_err(|error| {
                Fault::refused(
                    format!("record `{}` of task `{}`", key.name, key.task),
                    &error,
                )
            })?;
            connection
                .prepare_cached(
                    "INSERT INTO record (checkpoint, task, name, kind) VALUES (?1, ?2, ?3, ?4)
                     ON CONFLICT (checkpoint, task, name) DO UPDATE SET kind = excluded.kind",
                )?
                .execute(params![checkpoint, key.task, key.name, kind])?;
        }
        RecordOp::Remove(key) => {
            connection
                .prepare_cached(
                    "DELETE FROM record WHERE checkpoint = ?1 AND task = ?2 AND name = ?3",
                )?
                .execute(params![checkpoint, key.task, key.name])?;
        }
    }
    Ok(())
}

// No method awaits: a run that is dropped has written all of a step or nothing of it, and no lock is held meanwhile.
#[async_trait]
impl ThreadWriter for Writer {
    async fn advance(&self, namespace: &Arc<str>, advance: Advance) -> Result<(), StoreError> {
        let mut graphs = self.graphs();
        let known = graphs.remove(namespace);
        let graph = self.write("a checkpoint", |connection| {
            let mut graph = match known {
                Some(graph) => graph,
                None => self.graph(connection, namespace)?,
            };
            self.store(connection, &mut graph, &advance)?;
            Ok(graph)
        })?;
        graphs.insert(namespace.clone(), graph);
        Ok(())
    }

    async fn record(
        &self,
        namespace: &Arc<str>,
        checkpoint: Id,
        ops: Vec<RecordOp>,
    ) -> Result<(), StoreError> {
        let head = self.graphs().get(namespace).and_then(|graph| {
            let head = graph.head.as_ref()?;
            (head.id == checkpoint).then_some(head.place.number)
        });
        self.write("records", |connection| {
            let number = match head {
                Some(number) => number,
                None => {
                    let graph = self.find_graph(connection, namespace)?;
                    let place = match graph {
                        Some(graph) => read::place(connection, graph, checkpoint)?,
                        None => None,
                    };
                    place.ok_or_else(|| self.unknown(checkpoint))?.number
                }
            };
            ops.iter()
                .try_for_each(|op| store_record(connection, number, op))
        })
    }

    async fn note(&self, entries: Map) -> Result<(), StoreError> {
        self.write("notes", |connection| {
            let what = "the notes";
            let known: String = connection.query_row(
                "SELECT meta FROM thread WHERE number = ?1",
                [self.thread],
                |row| row.get(0),
            )?;
            let mut meta: Map =
                json::decode(&known).map_err(|error| Fault::damaged(what, &error))?;
            meta.extend(entries);
            let meta = json::encode(&meta).map_err(|error| Fault::refused(what, &error))?;
            connection.execute(
                "UPDATE thread SET meta = ?2 WHERE number = ?1",
                params![self.thread, meta],
            )?;
            Ok(())
        })
    }
}
