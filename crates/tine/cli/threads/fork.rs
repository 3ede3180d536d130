//! `tine threads fork`

use super::import::{check_free, take_in};
use super::reopened;
use super::tree::Tree;
use super::update::tell;
use crate::cli::Cx;
use crate::cli::failure::{Failure, print_note};
use crate::cli::setup::{Notes, without_unsaid};
use crate::cli::status::Status;
use crate::cli::store::Store;
use crate::cli::terminal::line::{clean, clean_name};
use clap::Args;
use std::collections::{BTreeSet, VecDeque};
use std::io::{self, Read};
use tine::engine::checkpoint::{Advance, RecordKind, Scope, Source, ThreadInfo};
use tine::engine::command::Output;
use tine::engine::run::{ThreadUpdate, UpdateAs};
use tine::engine::world::Id;
use tine::engine::{Runner, StoreError, ThreadKey, World as _};
use tine::stores::archive::{ArchiveError, Entry, FileEntry};
use tine::tools::paths::{Found, FoundKind, Home};

/// Goes back: makes a branch at an old checkpoint of a thread, or a thread of its own
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ForkArgs {
    /// The thread
    thread: String,
    /// The checkpoint: its id, the beginning of it, or `step:N`
    #[arg(long, value_name = "ID", required_unless_present = "to")]
    at: Option<String>,
    /// Copies the thread up to there, with its files, to a new one of this name
    #[arg(long, value_name = "NEW")]
    to: Option<String>,
    /// Takes the definition that the thread was last run with, even if the graph file has changed
    #[arg(long, conflicts_with = "to")]
    pin: bool,
    /// Prints the outcome as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
EXAMPLES
  tine threads fork amber-heron-3f9c --at step:3
  tine threads fork amber-heron-3f9c --to heron-2
  tine threads fork amber-heron-3f9c --at step:3 --to heron-2

Without --to the thread itself then stands where it stood at that checkpoint, and `tine resume` or new
input goes on from there; what it asked there it asks again. The branch that it was on stays as it is, and
can be gone back to. Files are not changed. `tine resume THREAD --at ID` does both at once.

With --to the thread is left alone. The copy has what led to the checkpoint and no other branches; without
--at it has everything, open questions included. It gets the files as they are now; links are left out.";

pub(crate) async fn fork(cx: &mut Cx, args: &ForkArgs) -> Result<Status, Failure> {
    let (store, info, _) = Store::find(cx, &args.thread).await?;
    let at = match &args.at {
        None => None,
        Some(said) => Some(Tree::load(&store, &info.key).await?.find(said)?),
    };
    if let Some(new) = &args.to {
        let new = ThreadKey::local(new.as_str());
        let id = copy(cx, &store, &info, at, &new).await?;
        let name = clean(&info.key.thread);
        let what = format!("copied thread {name} to a new one:");
        return tell(cx, &store, &new, id, args.json, &what).await;
    }
    let notes = Notes::from_map(&args.thread, &info.meta)?;
    let opened = reopened(cx, &args.thread, &notes, args.pin)?;
    let runner =
        Runner::new(opened.graph.graph, cx.world.clone()).with_checkpointer(store.0.clone());
    let copy = ThreadUpdate::new(UpdateAs::Copy, Output::default());
    let id = runner.bulk_update(&info.key, at, vec![vec![copy]]).await?;
    if notes.unsaid.is_some() {
        let writer = store.0.open(&info.key).await?;
        writer.note(without_unsaid(info.meta.clone())).await?;
    }
    tell(cx, &store, &info.key, id, args.json, "forked").await
}

/// Copies a thread, up to a checkpoint if one is given. Gives the newest checkpoint of the copy.
async fn copy(
    cx: &mut Cx,
    store: &Store,
    info: &ThreadInfo,
    at: Option<Id>,
    new: &ThreadKey,
) -> Result<Id, Failure> {
    if new.thread.is_empty() {
        return Err(Failure::usage("a thread needs a name, and `--to` has none"));
    }
    let home = Home::open(&cx.env.home)?;
    check_free(store, &home, new).await?;
    // Held all the while, so that nothing changes in the middle.
    let _writer = store.0.open(&info.key).await?;
    let mut checkpoints = all(store, &info.key).await?;
    if let Some(at) = at {
        cut(&mut checkpoints, at, cx.world.stamp());
    }
    let root = checkpoints.iter().rfind(|(graph, _)| graph.is_empty());
    let newest = root.map(|(_, advance)| advance.id).ok_or_else(|| {
        Failure::from(StoreError::Damaged {
            place: format!("thread `{}`", info.key),
            message: "it has no checkpoint".to_owned(),
        })
    })?;
    let mut files = Vec::new();
    for found in home.content(&info.key)? {
        match found.kind {
            FoundKind::Other(reason) => {
                let path = clean_name(&found.path);
                print_note(&mut cx.stderr, &format!("{path} is left out: {reason}"));
            }
            _ => files.push(found),
        }
    }
    let mut notes = Some(info.meta.clone());
    let mut checkpoints = checkpoints.into_iter();
    let mut files = Files {
        home: &home,
        key: &info.key,
        waiting: files.into(),
        open: None,
    };
    let next = || {
        if let Some(notes) = notes.take() {
            return Ok(Some(Entry::Notes(notes)));
        }
        if let Some((graph, advance)) = checkpoints.next() {
            let (graph, advance) = (graph.into(), Box::new(advance));
            return Ok(Some(Entry::Checkpoint { graph, advance }));
        }
        Ok(files.next()?.map(Entry::File))
    };
    take_in(store, &home, new, next).await?;
    Ok(newest)
}

type Named = (String, Advance);

/// All checkpoints of all graphs of a thread.
async fn all(store: &Store, key: &ThreadKey) -> Result<Vec<Named>, Failure> {
    let mut found = Vec::new();
    for namespace in store.0.namespaces(key).await? {
        let scope = Scope {
            thread: key.clone(),
            namespace,
        };
        let advances = store.0.advances(&scope, 0, None).await?;
        let named = advances.into_iter();
        found.extend(named.map(|advance| (scope.namespace.to_string(), advance)));
    }
    Ok(found)
}

/// Leaves what led to a checkpoint. If the thread has moved past it, a fork of it is the newest.
fn cut(checkpoints: &mut Vec<Named>, at: Id, stamp: (tine::engine::Timestamp, Id)) {
    let root: Vec<&Advance> = checkpoints
        .iter()
        .filter(|(graph, _)| graph.is_empty())
        .map(|(_, advance)| advance)
        .collect();
    let newest = root.last().map(|advance| advance.id);
    let mut kept = BTreeSet::new();
    let mut next = Some(at);
    while let Some(id) = next.filter(|id| !kept.contains(id)) {
        kept.insert(id);
        let found = root.iter().rfind(|advance| advance.id == id);
        next = found.and_then(|advance| advance.parent);
    }
    // The graphs that ran in tasks of other checkpoints.
    let dropped: Vec<String> = root
        .iter()
        .filter(|advance| !kept.contains(&advance.id))
        .map(|advance| format!("|{}", advance.id))
        .collect();
    let base = root.iter().rfind(|advance| advance.id == at);
    let Some(base) = base.map(|advance| (*advance).clone()) else {
        return;
    };
    checkpoints.retain(|(graph, advance)| match graph.is_empty() {
        true => kept.contains(&advance.id),
        false => advance.created <= base.created && !dropped.iter().any(|id| graph.contains(&**id)),
    });
    if newest == Some(at) {
        return;
    }
    let (created, id) = stamp;
    // What clients changed there holds on every branch; what tasks did there is done anew.
    let mut records = base.records;
    records.retain(|record| matches!(record.kind, RecordKind::Command { .. }));
    let fork = Advance {
        id,
        parent: Some(at),
        step: base.step + 1,
        source: Source::Fork,
        created,
        effects: Vec::new(),
        ran: Vec::new(),
        records,
        ..base
    };
    checkpoints.push((String::new(), fork));
}

/// The files of a thread, part by part.
struct Files<'a> {
    home: &'a Home,
    key: &'a ThreadKey,
    waiting: VecDeque<Found>,
    /// The file that is being read, and how much of it was.
    open: Option<(Found, Box<dyn Read + 'a>, u64)>,
}

impl Files<'_> {
    fn next(&mut self) -> Result<Option<FileEntry>, ArchiveError> {
        const PART: u64 = 1 << 20;
        loop {
            if let Some((found, file, at)) = &mut self.open {
                let (mut bytes, begins) = (Vec::new(), *at);
                Read::take(&mut *file, PART).read_to_end(&mut bytes)?;
                *at += bytes.len() as u64;
                if !bytes.is_empty() || begins == 0 {
                    let part = FileEntry::Part {
                        path: found.path.clone(),
                        at: begins,
                        executable: found.kind == FoundKind::File { executable: true },
                        bytes,
                    };
                    if *at == 0 {
                        // One without a byte.
                        self.open = None;
                    }
                    return Ok(Some(part));
                }
                self.open = None;
            }
            let Some(found) = self.waiting.pop_front() else {
                return Ok(None);
            };
            if found.kind == FoundKind::Folder {
                let path = found.path;
                return Ok(Some(FileEntry::Folder { path }));
            }
            let file = self.home.open_content(self.key, &found.path);
            let file = file.map_err(io::Error::other)?;
            self.open = Some((found, Box::new(file), 0));
        }
    }
}
