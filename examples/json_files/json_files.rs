//! Threads in a folder: one file of JSON lines each, to which every commit adds one line.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tine_engine::checkpoint::{
    Advance, Checkpoint, RecordKind, RecordOp, Scope, ThreadInfo, ThreadWriter,
};
use tine_engine::value::Map;
use tine_engine::world::Id;
use tine_engine::{Checkpointer, StoreError, ThreadKey};

/// A checkpointer that people can read with `less`.
///
/// # What it keeps
/// - A commit is one line, written and flushed to the disk before the call returns. A line without its end, left by a
///   crash or a full disk, was not committed: readers leave it out and the next commit cuts it off. Nothing before it
///   is ever changed.
/// - A thread has one writer among all processes: each holds a lock file, which the system frees when the process dies.
/// - Thread ids are only names: a file is called by a hash.
///
/// # What it does not
/// - Every load reads the whole file, so it gets slower as the thread grows. Files are never made smaller.
/// - A lock file that was deleted by hand lets a second writer in, and nothing stops the first
///   ([`StoreError::Fenced`]). Network file systems may have no locks at all.
/// - Reading and writing blocks the thread that the run is on.
#[derive(Clone, Debug)]
pub(crate) struct JsonFiles {
    folder: PathBuf,
    /// The threads that have a writer in this process.
    held: Arc<Mutex<BTreeSet<ThreadKey>>>,
}

/// One commit.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// Whose file this is; the first line.
    Thread(ThreadKey),
    Advance {
        namespace: Arc<str>,
        advance: Box<Advance>,
    },
    Record {
        namespace: Arc<str>,
        checkpoint: Id,
        ops: Vec<RecordOp>,
    },
    Note(Map),
}

/// What the lines of a file add up to.
#[derive(Default)]
struct Content {
    key: Option<ThreadKey>,
    meta: Map,
    /// The checkpoints of each namespace, oldest first.
    graphs: BTreeMap<Arc<str>, Vec<Checkpoint>>,
    /// What each of them changed.
    advances: BTreeMap<Arc<str>, Vec<Advance>>,
    /// Where the last whole line ends.
    end: u64,
}

impl Content {
    fn read(path: &Path) -> Result<Self, StoreError> {
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(unavailable(path, &error)),
        };
        let mut content = Self::default();
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            if !line.ends_with(b"\n") {
                break;
            }
            let damaged = |message| StoreError::Damaged {
                place: path.display().to_string(),
                message,
            };
            let line_of =
                serde_json::from_slice(line).map_err(|error| damaged(error.to_string()))?;
            content.apply(line_of).map_err(damaged)?;
            content.end += line.len() as u64;
        }
        Ok(content)
    }

    fn apply(&mut self, line: Line) -> Result<(), String> {
        match line {
            Line::Thread(key) => self.key = Some(key),
            Line::Note(entries) => self.meta.extend(entries),
            Line::Advance { namespace, advance } => {
                let advances = self.advances.entry(namespace.clone()).or_default();
                advances.push((*advance).clone());
                let branch = self.graphs.entry(namespace).or_default();
                let mut values = Map::new();
                if let Some(parent) = advance.parent {
                    let parent = find(branch, parent)?;
                    // The child has what was done in its values.
                    let is_done = |kind: &_| matches!(kind, RecordKind::Done { .. });
                    parent.records.retain(|record| !is_done(&record.kind));
                    values = parent.values.clone();
                }
                let checkpoint = Checkpoint::advanced(values, *advance);
                branch.push(checkpoint.map_err(|error| error.to_string())?);
            }
            Line::Record {
                namespace,
                checkpoint,
                ops,
            } => {
                let branch = self.graphs.entry(namespace).or_default();
                RecordOp::apply_all(ops, &mut find(branch, checkpoint)?.records);
            }
        }
        Ok(())
    }

    fn branch(&self, namespace: &str) -> &[Checkpoint] {
        self.graphs.get(namespace).map_or(&[], Vec::as_slice)
    }

    fn info(&self) -> Option<ThreadInfo> {
        let branch = self.branch("");
        Some(ThreadInfo {
            key: self.key.clone()?,
            created: branch.first()?.created,
            updated: branch.last()?.created,
            checkpoints: branch.len() as u64,
            meta: self.meta.clone(),
        })
    }
}

fn find(branch: &mut [Checkpoint], id: Id) -> Result<&mut Checkpoint, String> {
    let found = branch.iter_mut().rfind(|checkpoint| checkpoint.id == id);
    found.ok_or_else(|| format!("a line names checkpoint `{id}`, which is not there"))
}

impl JsonFiles {
    /// Keeps threads in this folder, and makes it if need be.
    pub(crate) fn new(folder: impl Into<PathBuf>) -> io::Result<Self> {
        let folder = folder.into();
        fs::create_dir_all(&folder)?;
        Ok(Self {
            folder,
            held: Arc::default(),
        })
    }

    /// The file of a thread.
    pub(crate) fn file(&self, thread: &ThreadKey) -> PathBuf {
        let name = format!("{}\0{}", thread.tenant.len(), thread.tenant) + &thread.thread;
        self.folder
            .join(format!("{}.jsonl", blake3::hash(name.as_bytes())))
    }

    fn content(&self, thread: &ThreadKey) -> Result<Content, StoreError> {
        Content::read(&self.file(thread))
    }

    /// Takes a thread: first from the others in this process, then from other processes.
    fn lease(&self, thread: &ThreadKey) -> Result<Lease, StoreError> {
        let held = |holder: &str| StoreError::Held {
            thread: thread.to_string().into(),
            holder: holder.to_owned(),
        };
        if !lock(&self.held).insert(thread.clone()) {
            return Err(held("another run of this process"));
        }
        let mut lease = Lease {
            key: thread.clone(),
            held: self.held.clone(),
            file: None,
        };
        let path = self.file(thread).with_extension("lock");
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path);
        let file = file.map_err(|error| unavailable(&path, &error))?;
        match file.try_lock() {
            Ok(()) => lease.file = Some(file),
            Err(TryLockError::WouldBlock) => return Err(held("another process")),
            Err(TryLockError::Error(error)) => return Err(unavailable(&path, &error)),
        }
        Ok(lease)
    }
}

#[async_trait]
impl Checkpointer for JsonFiles {
    async fn open(&self, thread: &ThreadKey) -> Result<Arc<dyn ThreadWriter>, StoreError> {
        let lease = self.lease(thread)?;
        let content = self.content(thread)?;
        let ids = |(namespace, branch): (&Arc<str>, &Vec<Checkpoint>)| {
            let namespace = namespace.clone();
            let ids = branch.iter().map(|checkpoint| checkpoint.id);
            ids.map(|id| (namespace.clone(), id)).collect::<Vec<_>>()
        };
        Ok(Arc::new(Writer {
            path: self.file(thread),
            known: Mutex::new(content.graphs.iter().flat_map(ids).collect()),
            end: Mutex::new(content.end),
            lease,
        }))
    }

    async fn load(&self, scope: &Scope, id: Option<Id>) -> Result<Option<Checkpoint>, StoreError> {
        let content = self.content(&scope.thread)?;
        let branch = content.branch(&scope.namespace);
        let wanted = |checkpoint: &&Checkpoint| id.is_none_or(|id| checkpoint.id == id);
        Ok(branch.iter().rfind(wanted).cloned())
    }

    async fn history(
        &self,
        scope: &Scope,
        before: Option<Id>,
        limit: Option<usize>,
    ) -> Result<Vec<Checkpoint>, StoreError> {
        let content = self.content(&scope.thread)?;
        let branch = content.branch(&scope.namespace);
        let place = |id| branch.iter().rposition(|checkpoint| checkpoint.id == id);
        let end = before.map_or(branch.len(), |id| place(id).unwrap_or(0));
        let newest_first = branch[..end].iter().rev();
        Ok(newest_first
            .take(limit.unwrap_or(usize::MAX))
            .cloned()
            .collect())
    }

    async fn thread(&self, thread: &ThreadKey) -> Result<Option<ThreadInfo>, StoreError> {
        Ok(self.content(thread)?.info())
    }

    async fn threads(&self, tenant: &str) -> Result<Vec<ThreadInfo>, StoreError> {
        let failed = |error: io::Error| unavailable(&self.folder, &error);
        let mut infos = Vec::new();
        for file in fs::read_dir(&self.folder).map_err(failed)? {
            let path = file.map_err(failed)?.path();
            if path.extension().is_some_and(|end| end == "jsonl") {
                infos.extend(Content::read(&path)?.info());
            }
        }
        infos.retain(|info| &*info.key.tenant == tenant);
        infos.sort_by(|a, b| b.updated.cmp(&a.updated).then_with(|| a.key.cmp(&b.key)));
        Ok(infos)
    }

    async fn delete(&self, thread: &ThreadKey) -> Result<bool, StoreError> {
        let path = self.file(thread);
        let _lease = self.lease(thread)?;
        if self.content(thread)?.end == 0 {
            return Ok(false);
        }
        // The lock file stays: were it deleted, two could hold locks on two files of one name.
        let removed = fs::remove_file(&path).and_then(|()| sync_folder(&path));
        removed.map_err(|error| unavailable(&path, &error))?;
        Ok(true)
    }

    async fn namespaces(&self, thread: &ThreadKey) -> Result<Vec<Arc<str>>, StoreError> {
        Ok(self.content(thread)?.graphs.into_keys().collect())
    }

    async fn advances(
        &self,
        scope: &Scope,
        from: u64,
        limit: Option<usize>,
    ) -> Result<Vec<Advance>, StoreError> {
        let mut content = self.content(&scope.thread)?;
        let advances = content.advances.remove(&scope.namespace);
        let branch = content.graphs.remove(&scope.namespace);
        let both = advances
            .into_iter()
            .flatten()
            .zip(branch.into_iter().flatten());
        let now = both.map(|(advance, checkpoint)| Advance {
            records: checkpoint.records,
            ..advance
        });
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        Ok(now.skip(from).take(limit.unwrap_or(usize::MAX)).collect())
    }

    async fn rename(&self, thread: &ThreadKey, to: &ThreadKey) -> Result<bool, StoreError> {
        let (_from, _to) = (self.lease(thread)?, self.lease(to)?);
        let (old, new) = (self.file(thread), self.file(to));
        if self.content(to)?.end > 0 {
            let thread = to.to_string().into();
            return Err(StoreError::Exists { thread });
        }
        let end = self.content(thread)?.end;
        if end == 0 {
            return Ok(false);
        }
        // A whole file takes the place of none; a crash before the old one is removed leaves both threads.
        let copy = || -> io::Result<()> {
            let text = fs::read(&old)?;
            let whole = usize::try_from(end).unwrap_or(text.len());
            let first = text
                .iter()
                .position(|byte| *byte == b'\n')
                .map_or(0, |at| at + 1);
            let part = new.with_extension("part");
            let mut file = File::create(&part)?;
            serde_json::to_writer(&mut file, &Line::Thread(to.clone()))?;
            file.write_all(b"\n")?;
            file.write_all(&text[first..whole])?;
            file.sync_all()?;
            fs::rename(&part, &new)?;
            fs::remove_file(&old)?;
            sync_folder(&new)
        };
        copy().map_err(|error| unavailable(&new, &error))?;
        Ok(true)
    }
}

/// The right to write to a thread, until it is dropped.
struct Lease {
    key: ThreadKey,
    held: Arc<Mutex<BTreeSet<ThreadKey>>>,
    /// The lock file; closing it frees the lock.
    file: Option<File>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        drop(self.file.take());
        lock(&self.held).remove(&self.key);
    }
}

struct Writer {
    path: PathBuf,
    /// The checkpoints that are there, by namespace and id.
    known: Mutex<BTreeSet<(Arc<str>, Id)>>,
    /// Where the next line goes.
    end: Mutex<u64>,
    lease: Lease,
}

impl Writer {
    fn expect(&self, namespace: &Arc<str>, id: Id) -> Result<(), StoreError> {
        match lock(&self.known).contains(&(namespace.clone(), id)) {
            true => Ok(()),
            false => Err(StoreError::UnknownCheckpoint {
                thread: self.lease.key.to_string().into(),
                id: id.to_string(),
            }),
        }
    }

    fn commit(&self, line: &Line) -> Result<(), StoreError> {
        let mut end = lock(&self.end);
        let append = |end: u64| -> io::Result<u64> {
            let mut text = Vec::new();
            if end == 0 {
                serde_json::to_writer(&mut text, &Line::Thread(self.lease.key.clone()))?;
                text.push(b'\n');
            }
            serde_json::to_writer(&mut text, line)?;
            text.push(b'\n');
            let mut file = File::options()
                .create(true)
                .truncate(false)
                .write(true)
                .open(&self.path)?;
            file.set_len(end)?;
            file.seek(SeekFrom::Start(end))?;
            if let Err(error) = file.write_all(&text).and_then(|()| file.sync_all()) {
                // What may be there whole must not count either.
                file.set_len(end)?;
                return Err(error);
            }
            if end == 0 {
                sync_folder(&self.path)?;
            }
            Ok(end + text.len() as u64)
        };
        *end = append(*end).map_err(|error| unavailable(&self.path, &error))?;
        Ok(())
    }
}

#[async_trait]
impl ThreadWriter for Writer {
    async fn advance(&self, namespace: &Arc<str>, advance: Advance) -> Result<(), StoreError> {
        if let Some(parent) = advance.parent {
            self.expect(namespace, parent)?;
        }
        let id = advance.id;
        self.commit(&Line::Advance {
            namespace: namespace.clone(),
            advance: Box::new(advance),
        })?;
        lock(&self.known).insert((namespace.clone(), id));
        Ok(())
    }

    async fn record(
        &self,
        namespace: &Arc<str>,
        checkpoint: Id,
        ops: Vec<RecordOp>,
    ) -> Result<(), StoreError> {
        self.expect(namespace, checkpoint)?;
        self.commit(&Line::Record {
            namespace: namespace.clone(),
            checkpoint,
            ops,
        })
    }

    async fn note(&self, entries: Map) -> Result<(), StoreError> {
        self.commit(&Line::Note(entries))
    }
}

/// Makes names that came to a folder, or went, durable.
fn sync_folder(file: &Path) -> io::Result<()> {
    match file.parent() {
        Some(folder) if cfg!(unix) => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unavailable(path: &Path, error: &io::Error) -> StoreError {
    StoreError::Unavailable {
        place: path.display().to_string(),
        message: error.to_string(),
    }
}
