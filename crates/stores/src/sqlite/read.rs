//! Loading: replays effects, and runs no other code.

use super::fault::Fault;
use super::track::Track;
use crate::json;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use tine_engine::channel::Effect;
use tine_engine::checkpoint::{
    Advance, ChannelEffects, Checkpoint, Record, Scope, Source, ThreadInfo, ThreadKey,
};
use tine_engine::value::Map;
use tine_engine::world::{Id, Timestamp};

/// A stored checkpoint, by its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) number: i64,
    pub(super) sequence: i64,
    pub(super) branch: i64,
}

/// Part of a line of ancestors: the checkpoints of one branch, up to one of them.
#[derive(Debug)]
pub(super) struct Stretch {
    branch: i64,
    upto: i64,
}

/// A row of the table `checkpoint`.
struct Stored {
    place: Place,
    parent: Option<i64>,
    first_effect: i64,
    effects: i64,
    /// All but the effects.
    advance: Advance,
}

/// The number of a graph; `None` if nothing of it is stored.
fn graph(connection: &Connection, scope: &Scope) -> Result<Option<i64>, Fault> {
    let mut statement = connection.prepare_cached(
        "SELECT graph.number FROM thread JOIN graph ON graph.thread = thread.number
         WHERE thread.tenant = ?1 AND thread.id = ?2 AND graph.namespace = ?3",
    )?;
    let key = &scope.thread;
    let number = statement
        .query_row(params![key.tenant, key.thread, scope.namespace], |row| {
            row.get(0)
        })
        .optional()?;
    Ok(number)
}

/// Where a checkpoint is: of several with this id, the newest.
pub(super) fn place(connection: &Connection, graph: i64, id: Id) -> Result<Option<Place>, Fault> {
    let mut statement = connection.prepare_cached(
        "SELECT number, sequence, branch FROM checkpoint
         WHERE graph = ?1 AND id = ?2 ORDER BY number DESC LIMIT 1",
    )?;
    Ok(statement
        .query_row(params![graph, id.0.to_be_bytes()], to_place)
        .optional()?)
}

/// Where the newest checkpoint is.
pub(super) fn newest(connection: &Connection, graph: i64) -> Result<Option<Place>, Fault> {
    let mut statement = connection.prepare_cached(
        "SELECT number, sequence, branch FROM checkpoint
         WHERE graph = ?1 ORDER BY sequence DESC LIMIT 1",
    )?;
    Ok(statement.query_row([graph], to_place).optional()?)
}

fn to_place(row: &Row<'_>) -> rusqlite::Result<Place> {
    Ok(Place {
        number: row.get(0)?,
        sequence: row.get(1)?,
        branch: row.get(2)?,
    })
}

/// The line of ancestors of a checkpoint, itself included, from the newest stretch to the oldest.
pub(super) fn line(connection: &Connection, end: Place) -> Result<Vec<Stretch>, Fault> {
    let mut line = vec![Stretch {
        branch: end.branch,
        upto: end.number,
    }];
    let mut parent_of =
        connection.prepare_cached("SELECT parent FROM checkpoint WHERE number = ?1")?;
    let mut branch_of =
        connection.prepare_cached("SELECT branch FROM checkpoint WHERE number = ?1")?;
    let mut branch = end.branch;
    while let Some(parent) = parent_of.query_row([branch], |row| row.get::<_, Option<i64>>(0))? {
        // A parent is stored before its children, so the numbers fall and this ends.
        if parent >= branch {
            return Err(Fault::damaged(
                format!("checkpoint number {branch}"),
                &format_args!("its parent is number {parent}, which is newer"),
            ));
        }
        branch = branch_of.query_row([parent], |row| row.get(0))?;
        line.push(Stretch {
            branch,
            upto: parent,
        });
    }
    Ok(line)
}

/// A channel at the end of a line of ancestors: reads its rows backwards, down to the last whole value.
pub(super) fn channel(
    connection: &Connection,
    line: &[Stretch],
    number: i64,
    name: &str,
) -> Result<Track, Fault> {
    let mut statement = connection.prepare_cached(
        "SELECT whole, effects, snapshot FROM effect
         WHERE branch = ?1 AND channel = ?2 AND checkpoint <= ?3
         ORDER BY checkpoint DESC, number DESC",
    )?;
    let what = || format!("channel `{name}`");
    let mut changes: Vec<Vec<Effect>> = Vec::new();
    let mut track = Track::default();
    'line: for stretch in line {
        let mut rows = statement.query(params![stretch.branch, number, stretch.upto])?;
        while let Some(row) = rows.next()? {
            if let Some(snapshot) = text(row, 2)? {
                track = Track::of_snapshot(Some(parse(snapshot, what)?));
                break 'line;
            }
            let whole: bool = row.get(0)?;
            changes.push(parse(string(row, 1)?, what)?);
            if whole {
                break 'line;
            }
        }
    }
    for effects in changes.iter().rev() {
        track
            .apply(effects)
            .map_err(|error| Fault::misfit(name, &error))?;
    }
    Ok(track)
}

/// The numbers and names of a graph's channels.
fn channels(connection: &Connection, graph: i64) -> Result<Vec<(i64, Arc<str>)>, Fault> {
    let mut statement =
        connection.prepare_cached("SELECT number, name FROM channel WHERE graph = ?1")?;
    let rows = statement.query_map([graph], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The values of all channels at a checkpoint.
fn values(connection: &Connection, graph: i64, at: Place) -> Result<Map, Fault> {
    let line = line(connection, at)?;
    let mut values = Map::new();
    for (number, name) in channels(connection, graph)? {
        if let Some(value) = channel(connection, &line, number, &name)?.into_value() {
            values.insert(name, value);
        }
    }
    Ok(values)
}

/// Loads one checkpoint: the newest, or the one with this id.
pub(super) fn load(
    connection: &Connection,
    scope: &Scope,
    id: Option<Id>,
) -> Result<Option<Checkpoint>, Fault> {
    let Some(graph) = graph(connection, scope)? else {
        return Ok(None);
    };
    let place = match id {
        Some(id) => place(connection, graph, id)?,
        None => newest(connection, graph)?,
    };
    let Some(place) = place else {
        return Ok(None);
    };
    let stored = stored(connection, graph, 0..place.sequence + 1, 1)?
        .pop()
        .ok_or_else(|| Fault::damaged("a checkpoint", &"its row is gone"))?;
    let mut checkpoint = advanced(values(connection, graph, place)?, stored.advance)?;
    checkpoint.records = records(connection, place.number)?;
    Ok(Some(checkpoint))
}

/// Loads checkpoints, newest first: replays the line once, however many there are.
pub(super) fn history(
    connection: &Connection,
    scope: &Scope,
    before: Option<Id>,
    limit: Option<usize>,
) -> Result<Vec<Checkpoint>, Fault> {
    let Some(graph) = graph(connection, scope)? else {
        return Ok(Vec::new());
    };
    let end = match before {
        None => i64::MAX,
        Some(id) => match place(connection, graph, id)? {
            Some(place) => place.sequence,
            None => return Ok(Vec::new()),
        },
    };
    let names: BTreeMap<i64, Arc<str>> = channels(connection, graph)?.into_iter().collect();
    let limit = limit.map_or(i64::MAX, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
    let mut checkpoints: Vec<Checkpoint> = Vec::new();
    // Where in `checkpoints` each number is, and the values of parents that are older than all of them.
    let mut known: BTreeMap<i64, usize> = BTreeMap::new();
    let mut older: BTreeMap<i64, Map> = BTreeMap::new();
    for mut stored in stored(connection, graph, 0..end, limit)? {
        let values = match stored.parent {
            None => Map::new(),
            Some(parent) => match known.get(&parent) {
                Some(at) => checkpoints[*at].values.clone(),
                None => match older.get(&parent) {
                    Some(values) => values.clone(),
                    None => {
                        let at = place_of(connection, parent)?;
                        let values = values(connection, graph, at)?;
                        older.insert(parent, values.clone());
                        values
                    }
                },
            },
        };
        stored.advance.effects = effects(connection, &stored, &names)?;
        known.insert(stored.place.number, checkpoints.len());
        let mut checkpoint = advanced(values, stored.advance)?;
        checkpoint.records = records(connection, stored.place.number)?;
        checkpoints.push(checkpoint);
    }
    checkpoints.reverse();
    Ok(checkpoints)
}

fn place_of(connection: &Connection, number: i64) -> Result<Place, Fault> {
    let mut statement = connection
        .prepare_cached("SELECT number, sequence, branch FROM checkpoint WHERE number = ?1")?;
    Ok(statement.query_row([number], to_place)?)
}

fn advanced(values: Map, advance: Advance) -> Result<Checkpoint, Fault> {
    let id = advance.id;
    Checkpoint::advanced(values, advance)
        .map_err(|error| Fault::damaged(format!("checkpoint `{id}`"), &error))
}

/// Reads checkpoints as they were stored, from the one of number `from` on, oldest first.
pub(super) fn advances(
    connection: &Connection,
    scope: &Scope,
    from: u64,
    limit: Option<usize>,
) -> Result<Vec<Advance>, Fault> {
    let Some(graph) = graph(connection, scope)? else {
        return Ok(Vec::new());
    };
    let whole = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let from = i64::try_from(from).unwrap_or(i64::MAX);
    let end = limit.map_or(i64::MAX, |limit| from.saturating_add(whole(limit)));
    let names: BTreeMap<i64, Arc<str>> = channels(connection, graph)?.into_iter().collect();
    let mut advances = Vec::new();
    for mut stored in stored(connection, graph, from..end, i64::MAX)? {
        stored.advance.effects = effects(connection, &stored, &names)?;
        stored.advance.records = records(connection, stored.place.number)?;
        advances.push(stored.advance);
    }
    Ok(advances)
}

/// The namespaces of a thread's graphs.
pub(super) fn namespaces(
    connection: &Connection,
    thread: &ThreadKey,
) -> Result<Vec<Arc<str>>, Fault> {
    let mut statement = connection.prepare_cached(
        "SELECT graph.namespace FROM thread JOIN graph ON graph.thread = thread.number
         WHERE thread.tenant = ?1 AND thread.id = ?2 ORDER BY graph.namespace",
    )?;
    let rows = statement.query_map(params![thread.tenant, thread.thread], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// At most `limit` rows of the checkpoints of these numbers, the last ones, oldest first.
fn stored(
    connection: &Connection,
    graph: i64,
    numbers: Range<i64>,
    limit: i64,
) -> Result<Vec<Stored>, Fault> {
    let mut statement = connection.prepare_cached(
        "SELECT it.number, it.sequence, it.branch, it.parent, it.first_effect, it.effects,
                it.id, parent.id, it.step, it.source, it.created, it.run, it.next, it.joins, it.deferred,
                it.ran, it.invocation
         FROM checkpoint AS it LEFT JOIN checkpoint AS parent ON parent.number = it.parent
         WHERE it.graph = ?1 AND it.sequence >= ?2 AND it.sequence < ?3
         ORDER BY it.sequence DESC LIMIT ?4",
    )?;
    let mut rows = statement.query(params![graph, numbers.start, numbers.end, limit])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let id = Id(u128::from_be_bytes(row.get(6)?));
        let what = || format!("checkpoint `{id}`");
        let source: String = row.get(9)?;
        let parent: Option<i64> = row.get(3)?;
        let parent_id = row.get::<_, Option<[u8; 16]>>(7)?;
        if parent.is_some() && parent_id.is_none() {
            return Err(Fault::damaged(what(), &"its parent is missing"));
        }
        found.push(Stored {
            place: to_place(row)?,
            parent,
            first_effect: row.get(4)?,
            effects: row.get(5)?,
            advance: Advance {
                id,
                parent: parent_id.map(|id| Id(u128::from_be_bytes(id))),
                step: row.get(8)?,
                source: source_named(&source).ok_or_else(|| {
                    Fault::damaged(what(), &format_args!("it is of source `{source}`"))
                })?,
                created: Timestamp(row.get::<_, i64>(10)?.cast_unsigned()),
                run: Id(u128::from_be_bytes(row.get(11)?)),
                effects: Vec::new(),
                next: parse_or_default(row, 12, what)?,
                joins: parse_or_default(row, 13, what)?,
                deferred: parse_or_default(row, 14, what)?,
                ran: parse_or_default(row, 15, what)?,
                invocation: row
                    .get::<_, Option<[u8; 16]>>(16)?
                    .map(|id| Id(u128::from_be_bytes(id))),
                records: Vec::new(),
            },
        });
    }
    found.reverse();
    Ok(found)
}

/// What a checkpoint changed.
fn effects(
    connection: &Connection,
    stored: &Stored,
    names: &BTreeMap<i64, Arc<str>>,
) -> Result<Vec<ChannelEffects>, Fault> {
    let mut statement = connection.prepare_cached(
        "SELECT channel, effects FROM effect WHERE number >= ?1 AND number < ?1 + ?2 ORDER BY number",
    )?;
    let mut rows = statement.query([stored.first_effect, stored.effects])?;
    let mut found = Vec::new();
    let what = || format!("checkpoint `{}`", stored.advance.id);
    while let Some(row) = rows.next()? {
        let channel = names
            .get(&row.get(0)?)
            .ok_or_else(|| Fault::damaged(what(), &"it changes a channel that is missing"))?;
        let effects = parse(string(row, 1)?, what)?;
        found.push(ChannelEffects {
            channel: channel.clone(),
            effects,
        });
    }
    if found.len() as i64 != stored.effects {
        return Err(Fault::damaged(what(), &"some of its changes are missing"));
    }
    Ok(found)
}

fn records(connection: &Connection, checkpoint: i64) -> Result<Vec<Record>, Fault> {
    let mut statement = connection
        .prepare_cached("SELECT task, kind FROM record WHERE checkpoint = ?1 ORDER BY number")?;
    let mut rows = statement.query([checkpoint])?;
    let mut records = Vec::new();
    while let Some(row) = rows.next()? {
        let task: Arc<str> = row.get(0)?;
        let kind = parse(string(row, 1)?, || format!("a record of task `{task}`"))?;
        records.push(Record { task, kind });
    }
    Ok(records)
}

/// What is known of threads: of one, or of all of a tenant.
pub(super) fn infos(
    connection: &Connection,
    tenant: &str,
    thread: Option<&str>,
) -> Result<Vec<ThreadInfo>, Fault> {
    let all = "SELECT thread.tenant, thread.id, thread.meta, first.created, last.created, last.sequence + 1
         FROM thread
         JOIN graph ON graph.thread = thread.number AND graph.namespace = ''
         JOIN checkpoint AS first ON first.graph = graph.number AND first.sequence = 0
         JOIN checkpoint AS last ON last.graph = graph.number AND last.sequence =
              (SELECT max(sequence) FROM checkpoint WHERE graph = graph.number)
         WHERE thread.tenant = ?1";
    let mut statement = match thread {
        Some(_) => connection.prepare_cached(&format!("{all} AND thread.id = ?2"))?,
        None => connection.prepare_cached(all)?,
    };
    let mut rows = match thread {
        Some(thread) => statement.query([tenant, thread])?,
        None => statement.query([tenant])?,
    };
    let mut infos = Vec::new();
    while let Some(row) = rows.next()? {
        let key = ThreadKey {
            tenant: row.get(0)?,
            thread: row.get(1)?,
        };
        let meta = string(row, 2)?;
        infos.push(ThreadInfo {
            meta: parse(meta, || format!("the notes of thread `{key}`"))?,
            key,
            created: Timestamp(row.get::<_, i64>(3)?.cast_unsigned()),
            updated: Timestamp(row.get::<_, i64>(4)?.cast_unsigned()),
            checkpoints: row.get::<_, i64>(5)?.cast_unsigned(),
        });
    }
    infos.sort_by(|a, b| b.updated.cmp(&a.updated).then_with(|| a.key.cmp(&b.key)));
    Ok(infos)
}

/// The stored name of a source.
pub(super) fn source_name(source: Source) -> &'static str {
    match source {
        Source::Input => "input",
        Source::Loop => "loop",
        Source::Update => "update",
        Source::Fork => "fork",
    }
}

fn source_named(name: &str) -> Option<Source> {
    let sources = [Source::Input, Source::Loop, Source::Update, Source::Fork];
    sources
        .into_iter()
        .find(|source| source_name(*source) == name)
}

fn string<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a str, Fault> {
    Ok(row
        .get_ref(column)?
        .as_str()
        .map_err(rusqlite::Error::from)?)
}

fn text<'a>(row: &'a Row<'_>, column: usize) -> Result<Option<&'a str>, Fault> {
    let text = row.get_ref(column)?.as_str_or_null();
    Ok(text.map_err(rusqlite::Error::from)?)
}

fn parse<T: DeserializeOwned>(json: &str, what: impl Fn() -> String) -> Result<T, Fault> {
    json::decode(json).map_err(|error| Fault::damaged(what(), &error))
}

fn parse_or_default<T: DeserializeOwned + Default>(
    row: &Row<'_>,
    column: usize,
    what: impl Fn() -> String,
) -> Result<T, Fault> {
    text(row, column)?.map_or_else(|| Ok(T::default()), |json| parse(json, what))
}
