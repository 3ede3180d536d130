//! `tine threads import`

use super::trust::{Dropped, trusted};
use crate::cli::Cx;
use crate::cli::failure::{Failure, print_note};
use crate::cli::status::Status;
use crate::cli::store::Store;
use crate::cli::terminal::line::{clean, quoted, resume_command};
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
            ArchiveError::Store(StoreError::Exists { .. }) => {
                Failure::from(error).hint("`--as NAME` gives it another name")
            }
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
        "imported thread {name} with {checkpoints}; look at it with\n  tine threads show {}",
        quoted(&key.thread)
    ));
    Ok(Status::Done)
}

/// Makes a thread with its files: all of it, or nothing.
pub(super) async fn take_in(
    store: &Store,
    home: &Home,
    key: &ThreadKey,
    next: impl FnMut() -> Result<Option<Entry>, ArchiveError>,
) -> Result<(), ArchiveError> {
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
    let clear = |error: ArchiveError| {
        // What stays would only be untidy; the first error is the one to be told.
        drop(home.remove_thread(&staged));
        error
    };
    let made = made.map_err(clear)?;
    let Some(mut refill) = refill else {
        return made.keep().await;
    };
    // The files first: a thread that is there has all of them.
    let moved = refill.finish();
    let moved = moved.and_then(|()| home.rename_thread(&staged, key).map_err(io::Error::other));
    if let Err(error) = moved {
        made.discard().await?;
        return Err(clear(error.into()));
    }
    if let Err(error) = made.keep().await {
        drop(home.remove_thread(key));
        return Err(error);
    }
    Ok(())
}
