//! Taking a thread in: all of it, or nothing.

use super::{ArchiveError, Entry, FileEntry};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use tine_engine::StoreError;
use tine_engine::checkpoint::{Checkpointer, Scope, ThreadKey, ThreadWriter};

/// How many checkpoints are looked at at once: each has a whole state.
const PIECE: usize = 4;

/// A thread that is complete and not to be seen yet.
#[must_use = "it is kept or discarded"]
pub struct Restored<'a> {
    store: &'a dyn Checkpointer,
    thread: ThreadKey,
    /// Held, so that nobody else makes one of the same name meanwhile.
    writer: Arc<dyn ThreadWriter>,
}

impl fmt::Debug for Restored<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Restored")
            .field("thread", &self.thread)
            .finish_non_exhaustive()
    }
}

impl Restored<'_> {
    /// Gives the thread its name, in one commit.
    ///
    /// # Errors
    /// [`StoreError::Exists`] if there is such a thread by now, [`StoreError::Held`] if somebody makes one; then nothing
    /// is left of this one.
    pub async fn keep(self) -> Result<(), ArchiveError> {
        let staged = staged_as(&self.thread);
        // Renaming takes it for itself.
        drop(self.writer);
        let error = match self.store.rename(&staged, &self.thread).await {
            Ok(true) => return Ok(()),
            // Somebody else who makes one of this name cleared it away just now.
            Ok(false) => StoreError::Held {
                thread: self.thread.to_string().into(),
                holder: "another process".to_owned(),
            },
            Err(error) => error,
        };
        // The first error is the one to be told.
        drop(self.store.delete(&staged).await);
        Err(error.into())
    }

    /// Leaves nothing of it.
    ///
    /// # Errors
    /// If the store can not delete it.
    pub async fn discard(self) -> Result<(), ArchiveError> {
        drop(self.writer);
        self.store.delete(&staged_as(&self.thread)).await?;
        Ok(())
    }
}

/// The name under which a thread is made before it is one: of a tenant that nobody lists. One that was killed in the
/// middle is left under it; the next of the same name clears it away.
#[must_use]
pub fn staged_as(thread: &ThreadKey) -> ThreadKey {
    ThreadKey {
        tenant: format!("{}/restoring", thread.tenant).into(),
        thread: thread.thread.clone(),
    }
}

/// Makes a thread of the entries that `next` gives until it gives `None`, such as those of an
/// [`ArchiveReader`](super::ArchiveReader). What belongs to its folder is handed to `files` as it comes.
///
/// The thread is made under the name [`staged_as`] says, and every checkpoint is loaded once. Nobody sees it until it is
/// [kept](Restored::keep), so it is there whole or not at all, also if the process is killed.
///
/// # Errors
/// [`StoreError::Exists`] if there is such a thread; whatever `next` and `files` say; and if an entry does not fit those
/// before it. Then nothing is left in the store.
pub async fn restore<'a>(
    store: &'a dyn Checkpointer,
    thread: &ThreadKey,
    mut next: impl FnMut() -> Result<Option<Entry>, ArchiveError>,
    mut files: impl FnMut(FileEntry) -> Result<(), ArchiveError>,
) -> Result<Restored<'a>, ArchiveError> {
    if store.thread(thread).await?.is_some() {
        let thread = thread.to_string().into();
        return Err(StoreError::Exists { thread }.into());
    }
    let staged = staged_as(thread);
    store.delete(&staged).await?;
    let writer = store.open(&staged).await?;
    let made = fill(&*writer, &mut next, &mut files).await;
    let restored = Restored {
        store,
        thread: thread.clone(),
        writer,
    };
    let checked = match made {
        Ok(graphs) => check(store, &staged, graphs).await,
        Err(error) => Err(error),
    };
    match checked {
        Ok(()) => Ok(restored),
        Err(error) => {
            restored.discard().await?;
            Err(error)
        }
    }
}

/// Writes the entries. Gives the graphs that have checkpoints.
async fn fill(
    writer: &dyn ThreadWriter,
    next: &mut impl FnMut() -> Result<Option<Entry>, ArchiveError>,
    files: &mut impl FnMut(FileEntry) -> Result<(), ArchiveError>,
) -> Result<BTreeSet<Arc<str>>, ArchiveError> {
    let mut graphs = BTreeSet::new();
    while let Some(entry) = next()? {
        match entry {
            Entry::Notes(notes) => writer.note(notes).await?,
            Entry::Checkpoint { graph, advance } => {
                writer.advance(&graph, *advance).await?;
                graphs.insert(graph);
            }
            Entry::File(file) => files(file)?,
        }
    }
    match graphs.contains("") {
        true => Ok(graphs),
        false => Err(ArchiveError::Empty),
    }
}

/// Loads every checkpoint, for some stores notice only then that a change does not fit.
async fn check(
    store: &dyn Checkpointer,
    thread: &ThreadKey,
    graphs: BTreeSet<Arc<str>>,
) -> Result<(), ArchiveError> {
    for namespace in graphs {
        let scope = Scope {
            thread: thread.clone(),
            namespace,
        };
        let mut before = None;
        loop {
            let piece = store.history(&scope, before, Some(PIECE)).await?;
            before = piece.last().map(|checkpoint| checkpoint.id);
            if piece.len() < PIECE {
                break;
            }
        }
    }
    Ok(())
}
