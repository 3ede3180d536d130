//! `tine threads export`

use crate::cli::Cx;
use crate::cli::failure::{Failure, print_note};
use crate::cli::status::Status;
use crate::cli::store::Store;
use crate::cli::terminal::line::{clean, clean_name};
use clap::{ArgAction, Args};
use serde_json::json;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use tine::engine::ThreadKey;
use tine::stores::archive::ArchiveWriter;
use tine::tools::paths::{FoundKind, Home};

/// Writes a whole thread to one file, for keeping it or for another machine
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExportArgs {
    /// The thread
    thread: String,
    /// The file; standard output if not given
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Whether the thread's uploads, outputs and workspace go with it
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    files: bool,
    /// Prints the outcome as JSON; takes `--output`
    #[arg(long, requires = "output")]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
EXAMPLES
  tine threads export amber-heron-3f9c -o heron.jsonl
  tine threads export amber-heron-3f9c --files false | jq -c .checkpoint.step
  tine threads import heron.jsonl

The file holds all checkpoints of all branches, what was asked and answered, and the files, as JSON lines
with a hash at the end. It is not encrypted. Links in the thread's folders are left out, and told.";

pub(crate) async fn export(cx: &mut Cx, args: &ExportArgs) -> Result<Status, Failure> {
    let (store, info, _) = Store::find(cx, &args.thread).await?;
    // Held all the while, so that nothing changes in the middle.
    let _writer = store.0.open(&info.key).await?;
    let home = Home::open(&cx.env.home)?;
    let files = args.files.then_some(&home);
    let Some(path) = &args.output else {
        let stdout = io::stdout();
        if stdout.is_terminal() {
            return Err(Failure::usage(
                "an export is not for the eye, and standard output is a terminal",
            )
            .hint("name a file with `-o FILE`, or pipe it into `jq`"));
        }
        let written = write(cx, &store, &info.key, files, BufWriter::new(stdout.lock())).await;
        return match written {
            Ok(_) => Ok(Status::Done),
            // A reader that has seen enough.
            Err(Written::Gone) => Ok(Status::Done),
            Err(Written::Failed(failure)) => Err(*failure),
        };
    };
    let shown = clean(&path.display().to_string());
    let failed = |error: io::Error| {
        Failure::usage(format!("{shown} can not be written: {error}"))
            .hint("name another file with `-o FILE`")
    };
    let target = Target::open(path).map_err(failed)?;
    let written = write(cx, &store, &info.key, files, BufWriter::new(target)).await;
    match written {
        Ok(file) => {
            let target = file.into_inner().map_err(io::IntoInnerError::into_error);
            target.and_then(Target::keep).map_err(failed)?;
        }
        Err(Written::Gone) => return Err(failed(io::ErrorKind::BrokenPipe.into())),
        Err(Written::Failed(failure)) => return Err(*failure),
    }
    if args.json {
        let line = json!({
            "thread": info.key.thread,
            "file": path.display().to_string(),
            "checkpoints": info.checkpoints,
        });
        cx.stdout.line(&line.to_string());
        return Ok(Status::Done);
    }
    let name = clean(&info.key.thread);
    cx.stdout
        .line(&format!("exported thread {name} to {shown}"));
    Ok(Status::Done)
}

/// What an export is written to.
enum Target {
    /// Another file beside it until it is whole: nothing is overwritten by half of it. Dropped, it is gone.
    Whole(NamedTempFile, PathBuf),
    /// A pipe or a device, which is written to as it is.
    Straight(File),
}

impl Target {
    fn open(path: &Path) -> io::Result<Self> {
        let found = match std::fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            found => Some(found?),
        };
        if found.as_ref().is_some_and(|found| found.is_dir()) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if found.as_ref().is_some_and(|found| !found.is_file()) {
            let file = OpenOptions::new().write(true).open(path)?;
            return Ok(Self::Straight(file));
        }
        // A link stays one.
        let path = match &found {
            Some(_) => std::fs::canonicalize(path)?,
            None => path.to_owned(),
        };
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        let mut builder = tempfile::Builder::new();
        builder.prefix(".tine-export-");
        let mode = found.map(|found| found.permissions()).or_else(usual);
        if let Some(mode) = mode {
            builder.permissions(mode);
        }
        let file = builder.tempfile_in(folder.unwrap_or(Path::new(".")))?;
        Ok(Self::Whole(file, path))
    }

    fn keep(self) -> io::Result<()> {
        match self {
            Self::Whole(file, path) => {
                file.as_file().sync_all()?;
                file.persist(path).map_err(|error| error.error)?;
                Ok(())
            }
            Self::Straight(_) => Ok(()),
        }
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Whole(file, _) => file.write(bytes),
            Self::Straight(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Whole(file, _) => file.flush(),
            Self::Straight(file) => file.flush(),
        }
    }
}

/// The permissions that a new file has, less what the umask takes.
#[cfg(unix)]
fn usual() -> Option<Permissions> {
    use std::os::unix::fs::PermissionsExt as _;
    Some(Permissions::from_mode(0o666))
}

#[cfg(not(unix))]
fn usual() -> Option<Permissions> {
    None
}

/// Why an export was not written.
enum Written {
    /// Nobody reads it.
    Gone,
    Failed(Box<Failure>),
}

impl<E: Into<Failure> + std::error::Error + 'static> From<E> for Written {
    fn from(error: E) -> Self {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
        while let Some(one) = cause {
            let io = one.downcast_ref::<io::Error>();
            if io.is_some_and(|io| io.kind() == io::ErrorKind::BrokenPipe) {
                return Self::Gone;
            }
            cause = one.source();
        }
        Self::Failed(Box::new(error.into()))
    }
}

/// Writes the archive, with the files below `home` if they go with it.
async fn write<W: Write>(
    cx: &mut Cx,
    store: &Store,
    key: &ThreadKey,
    home: Option<&Home>,
    out: W,
) -> Result<W, Written> {
    let mut archive = ArchiveWriter::new(out, key)?;
    archive.thread(&*store.0, key).await?;
    if let Some(home) = home {
        for found in home.content(key)? {
            match found.kind {
                FoundKind::Folder => archive.folder(&found.path)?,
                FoundKind::File { executable } => {
                    let mut file = home.open_content(key, &found.path)?;
                    archive.file(&found.path, executable, &mut file)?;
                }
                FoundKind::Other(reason) => {
                    let path = clean_name(&found.path);
                    print_note(&mut cx.stderr, &format!("{path} is left out: {reason}"));
                }
            }
        }
    }
    Ok(archive.finish()?)
}
