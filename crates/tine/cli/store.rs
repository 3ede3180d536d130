//! The threads of this home.

use super::Cx;
use super::failure::Failure;
use super::terminal::line::{clean, quoted};
use std::io::ErrorKind;
use std::sync::Arc;
use tine::engine::checkpoint::{Checkpointer, Scope, ThreadInfo};
use tine::engine::world::Id;
use tine::engine::{Checkpoint, StoreError, ThreadKey};
use tine::stores::{SqliteCheckpointer, SqliteOptions};

/// The store of threads, open.
pub(crate) struct Store(pub(crate) Arc<dyn Checkpointer>);

impl Store {
    /// Opens the store, and makes it if need be.
    pub(crate) fn open(cx: &Cx) -> Result<Self, Failure> {
        let store = SqliteCheckpointer::open(cx.env.database(), SqliteOptions::default())?;
        Ok(Self(Arc::new(store)))
    }

    /// Opens the store if there is one: looking makes nothing.
    pub(crate) fn open_existing(cx: &Cx) -> Result<Option<Self>, Failure> {
        let found = std::fs::metadata(cx.env.database());
        // A home that can not be used is another thing than one without threads.
        match found.is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            true => Ok(None),
            false => Self::open(cx).map(Some),
        }
    }

    /// Finds a thread with its newest checkpoint.
    ///
    /// # Errors
    /// If there is no such thread; the error names those of similar names.
    pub(crate) async fn find(
        cx: &Cx,
        name: &str,
    ) -> Result<(Self, ThreadInfo, Option<Checkpoint>), Failure> {
        let unknown = || {
            let place = cx.env.home.display();
            Failure::usage(format!("there is no thread `{}` in {place}", clean(name)))
        };
        let Some(store) = Self::open_existing(cx)? else {
            return Err(unknown().hint("no thread was started here yet; `tine run` starts one"));
        };
        let key = ThreadKey::local(name);
        let Some(info) = store.0.thread(&key).await? else {
            let threads = store.0.threads(ThreadKey::LOCAL).await?;
            let names = threads.iter().map(|thread| &*thread.key.thread);
            let hint = match similar(name, names).as_slice() {
                [] => "`tine threads` lists those that there are".to_owned(),
                near => format!("did you mean {}?", near.join(" or ")),
            };
            return Err(unknown().hint(hint));
        };
        let checkpoint = store.0.load(&Scope::root(key), None).await?;
        Ok((store, info, checkpoint))
    }

    /// A checkpoint that is known to be there.
    pub(crate) async fn checkpoint(
        &self,
        thread: &ThreadKey,
        id: Id,
    ) -> Result<Checkpoint, Failure> {
        let found = self.0.load(&Scope::root(thread.clone()), Some(id)).await?;
        found.ok_or_else(|| {
            StoreError::UnknownCheckpoint {
                thread: thread.to_string().into(),
                id: id.to_string(),
            }
            .into()
        })
    }
}

/// The names that a mistyped one may stand for, likeliest first, as they are written in a command.
pub(crate) fn similar<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
    const LEAST: f64 = 0.75;
    const MOST: usize = 3;
    let mut scored: Vec<(f64, &str)> = known
        .map(|known| (strsim::jaro_winkler(name, known), known))
        .filter(|(score, _)| *score >= LEAST)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    let names = scored.into_iter().take(MOST);
    names
        .map(|(_, name)| format!("`{}`", quoted(name)))
        .collect()
}
