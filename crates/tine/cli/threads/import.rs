//! `tine threads import`

use super::trust::{Dropped, trusted};
use crate::cli::Cx;
use crate::cli::failure::{Failure, print_note};
use crate::cli::setup::without_unsaid;
use crate::cli::status::Status;
use crate::cli::store::Store;
use crate::cli::terminal::line::{clean, resume_command, thread_command};
use clap::Args;
use serde_json::json;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use tine::engine::{StoreError, ThreadKey};
use tine::stores::archive::{ArchiveError, ArchiveReader, Entry, FileEntry, restore, staged_as};
use tine::tools::paths::{Home, Refill};

/// Takes in a thread that was exported
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ImportArgs {
    /// The file; `-` reads standard input
    file: PathBuf,
    /// The name of the new thread, in place of the one that it had
    #[arg(long = "as", value_name = "NAME")]
    name: Option<String>,
    /// Prints the outcome as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
EXAMPLES
  tine threads import heron.jsonl
  tine threads import heron.jsonl --as heron-2
  tine threads export amber-heron-3f9c | ssh host tine threads import -

All of it is checked before the thread is there; of a file that is damaged nothing is kept.

Anybody may have written the file, so what it says of how the thread is run is not trusted: settings
(--set) are left out, and can be given again with `tine resume THREAD --set`; a configuration is taken
from the path that the thread was run with if one is there and no thread has made it, else it is the one
that is found here. The graph and the conversation are those of the file: look at them before `tine resume`.";

pub(crate) async fn import(cx: &mut Cx, args: &ImportArgs) -> Result<Status, Failure> {
    let shown = match args.file.to_str() {
        Some("-") => "standard input".to_owned(),
        _ => clean(&args.file.display().to_string()),
    };
    let input: Box<dyn BufRead> = match args.file.to_str() {
        Some("-") => Box::new(BufReader::new(io::stdin())),
        _ => {
            let file = File::open(&args.file).map_err(|error| {
                Failure::usage(format!("{shown} can not be read: {error}"))
                    .hint("`tine threads export THREAD -o FILE` writes one")
            })?;
            Box::new(BufReader::new(file))
        }
    };
    let told = |error: ArchiveError| Failure::from(error).of_place(&shown);
    let mut archive = ArchiveReader::open(input).map_err(told)?;
    let key = match args.name.as_deref() {
        Some("") => return Err(Failure::usage("a thread needs a name, and `--as` has none")),
        Some(name) => ThreadKey::local(name),
        None => ThreadKey::local(archive.thread().thread.clone()),
    };
    let store = Store::open(cx)?;
    let home = Home::open(&cx.env.home)?;
    let elsewhere = |failure: Failure| failure.hint("`--as NAME` gives it another name");
    check_free(&store, &home, &key).await.map_err(elsewhere)?;
    let mut dropped = Dropped::default();
    let next = || {
        let entry = archive.next()?;
        Ok(entry.map(|entry| match entry {
            Entry::Notes(notes) => Entry::Notes(trusted(cx, notes, &mut dropped)),
            entry => entry,
        }))
    };
    take_in(&store, &home, &key, next)
        .await
        .map_err(|error| match error {
            ArchiveError::Store(StoreError::Exists { .. }) => elsewhere(error.into()),
            error => told(error),
        })?;
    if let Some(told) = dropped.told(&resume_command(&key.thread, "--set NAME=VALUE", "")) {
        print_note(&mut cx.stderr, &told);
    }
    let checkpoints = store.0.thread(&key).await?.map(|info| info.checkpoints);
    if args.json {
        let line = json!({"thread": key.thread, "checkpoints": checkpoints});
        cx.stdout.line(&line.to_string());
        return Ok(Status::Done);
    }
    let (name, checkpoints) = (clean(&key.thread), checkpoints.unwrap_or_default());
    let checkpoints = match checkpoints {
        1 => "1 checkpoint".to_owned(),
        some => format!("{some} checkpoints"),
    };
    cx.stdout.line(&format!(
        "imported thread {name} with {checkpoints}; look at it with\n  {}",
        thread_command("show", &key.thread)
    ));
    Ok(Status::Done)
}

/// Makes a thread with its files: all of it, or nothing.
pub(super) async fn take_in(
    store: &Store,
    home: &Home,
    key: &ThreadKey,
    mut next: impl FnMut() -> Result<Option<Entry>, ArchiveError>,
) -> Result<(), ArchiveError> {
    let next = || {
        let entry = next()?;
        Ok(entry.map(|entry| match entry {
            Entry::Notes(notes) => Entry::Notes(without_unsaid(notes)),
            entry => entry,
        }))
    };
    let staged = staged_as(key);
    let mut refill: Option<Refill> = None;
    let made = restore(&*store.0, key, next, |file| {
        // Only now is it known that nobody else makes this thread.
        let refill = match &mut refill {
            Some(refill) => refill,
            None => refill.insert(home.refill(&staged).map_err(io::Error::other)?),
        };
        let (path, done) = match &file {
            FileEntry::Folder { path } => (path, refill.folder(path)),
            FileEntry::Part {
                path,
                at,
                executable,
                bytes,
            } => (path, refill.part(path, *at, *executable, bytes)),
        };
        done.map_err(|error| ArchiveError::File {
            path: path.clone(),
            message: error.to_string(),
        })
    })
    .await;
    let made = match made {
        Ok(made) => made,
        Err(error) => {
            // What was not filled here may be somebody else's who makes a thread of this name just now.
            if refill.is_some() {
                clear(store, home, &staged).await;
            }
            return Err(error);
        }
    };
    let Some(mut refill) = refill else {
        return made.keep().await;
    };
    let moved = match refill.finish() {
        Ok(()) => give_name(store, home, key, &staged).await,
        Err(error) => Err(error.into()),
    };
    if let Err(error) = moved {
        made.discard().await?;
        clear(store, home, &staged).await;
        return Err(error);
    }
    if let Err(error) = made.keep().await {
        take_back(store, home, key, &staged).await;
        return Err(error);
    }
    Ok(())
}

/// Refuses a name that is taken, if only by files: those that were left by somebody who was killed.
pub(super) async fn check_free(store: &Store, home: &Home, key: &ThreadKey) -> Result<(), Failure> {
    if store.0.thread(key).await?.is_some() {
        let thread = key.to_string().into();
        return Err(StoreError::Exists { thread }.into());
    }
    if home.content(key)?.is_empty() {
        return Ok(());
    }
    let name = clean(&key.thread);
    Err(Failure::usage(format!(
        "there are files of a thread `{name}`, and no such thread"
    ))
    .hint(format!(
        "`{}` deletes them, if nobody needs them",
        thread_command("delete", &key.thread)
    )))
}

/// Puts the staged files in their place. They go first: a thread that is there has all of them.
async fn give_name(
    store: &Store,
    home: &Home,
    key: &ThreadKey,
    staged: &ThreadKey,
) -> Result<(), ArchiveError> {
    // Held, so that nobody begins a thread in these folders meanwhile.
    let _held = store.0.open(key).await?;
    if store.0.thread(key).await?.is_some() {
        let thread = key.to_string().into();
        return Err(StoreError::Exists { thread }.into());
    }
    let moved = home.rename_thread(staged, key);
    Ok(moved.map_err(io::Error::other)?)
}

/// Takes files back that were put in the place of a thread that is not to be; unless it is somebody else's by now.
async fn take_back(store: &Store, home: &Home, key: &ThreadKey, staged: &ThreadKey) {
    {
        let Ok(_held) = store.0.open(key).await else {
            return;
        };
        if !matches!(store.0.thread(key).await, Ok(None))
            || home.rename_thread(key, staged).is_err()
        {
            return;
        }
    }
    clear(store, home, staged).await;
}

/// Removes what was staged, unless somebody else stages by now. What stays would only be untidy.
async fn clear(store: &Store, home: &Home, staged: &ThreadKey) {
    if let Ok(held) = store.0.open(staged).await {
        drop(home.remove_thread(staged));
        drop(held);
        drop(store.0.delete(staged).await);
    }
}
