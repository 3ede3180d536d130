use std::fmt;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cap_std::fs::{Dir, File, Metadata, OpenOptions};

use tine_engine::failpoint;

use super::{Folder, PathError, VIRTUAL_ROOT};

/// A path that was resolved below one thread's folders.
///
/// Only [`ThreadFolders::resolve`](super::ThreadFolders::resolve) makes one,
/// and every operation runs below the handle of the thread's folder, so a link
/// put in place after resolving cannot lead out either.
#[derive(Clone)]
pub struct ResolvedPath {
    pub(super) root: Arc<Dir>,
    pub(super) host_root: PathBuf,
    pub(super) writing: Arc<Mutex<()>>,
    /// Relative to `root`; without links at the time of resolving.
    pub(super) inside: PathBuf,
    pub(super) folder: Option<Folder>,
    pub(super) exists: bool,
    /// The path as the caller wrote it, for messages.
    pub(super) asked: String,
}

impl ResolvedPath {
    /// Names the folder of the thread that the path is in; `None` for
    /// `/mnt/user-data` itself.
    #[must_use]
    pub fn folder(&self) -> Option<Folder> {
        self.folder
    }

    /// Tells whether something was there when the path was resolved.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.exists
    }

    /// Writes the path as the model knows it, with links resolved.
    #[must_use]
    pub fn virtual_path(&self) -> String {
        let mut text = VIRTUAL_ROOT.to_owned();
        for part in self.inside.components() {
            text.push('/');
            text.push_str(&part.as_os_str().to_string_lossy());
        }
        text
    }

    /// Says where the file lies on the host, to be shown to people only.
    #[must_use]
    pub fn host_path(&self) -> PathBuf {
        self.host_root.join(&self.inside)
    }

    /// Opens the file for reading.
    ///
    /// # Errors
    /// When nothing is there, or a folder, or the system refuses.
    pub fn open(&self) -> Result<File, PathError> {
        // Looked at before it is opened: opening a pipe waits for a writer.
        self.require_file()?;
        self.root.open(&self.inside).map_err(|e| self.error(e))
    }

    /// Checks that a plain file is there.
    ///
    /// # Errors
    /// When nothing is there, or something else than a file.
    pub fn require_file(&self) -> Result<(), PathError> {
        let found = self
            .root
            .metadata(self.below_root())
            .map_err(|e| self.error(e))?;
        self.require_regular(&found)
    }

    fn require_regular(&self, found: &Metadata) -> Result<(), PathError> {
        let path = self.asked.clone();
        if found.is_dir() {
            return Err(PathError::IsFolder { path });
        }
        if !found.is_file() {
            return Err(PathError::NotRegular { path });
        }
        Ok(())
    }

    /// Opens the folder.
    ///
    /// # Errors
    /// When nothing is there, or a file, or the system refuses.
    pub fn open_folder(&self) -> Result<Dir, PathError> {
        self.root
            .open_dir(self.below_root())
            .map_err(|e| self.error(e))
    }

    /// Puts `content` in the file's place, whole or not at all.
    ///
    /// Missing folders on the way are created. A reader sees the old file or
    /// the new one; after an error the old one is unchanged.
    ///
    /// # Errors
    /// When a folder stands there, the disk is full, or the system refuses.
    pub fn write(&self, content: &[u8]) -> Result<(), PathError> {
        self.replace(|file, _| file.write_all(content))
    }

    /// Adds `content` at the end of the file, whole or not at all; creates
    /// the file when there is none.
    ///
    /// The old content is copied to make that so: the cost grows with the
    /// file.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn append(&self, content: &[u8]) -> Result<(), PathError> {
        self.replace(|file, old| {
            if let Some(old) = old {
                io::copy(old, file)?;
            }
            file.write_all(content)
        })
    }

    /// Removes the file; that it is gone already is no error.
    ///
    /// # Errors
    /// When a folder stands there, or the system refuses.
    pub fn remove(&self) -> Result<(), PathError> {
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        match self.root.remove_file(self.below_root()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.error(error)),
            _ => Ok(()),
        }
    }

    pub(super) fn replace(
        &self,
        fill: impl FnOnce(&mut File, Option<&mut dyn Read>) -> io::Result<()>,
    ) -> Result<(), PathError> {
        let (Some(parent), Some(name)) = (self.inside.parent(), self.inside.file_name()) else {
            return Err(PathError::IsFolder {
                path: self.asked.clone(),
            });
        };
        let name = Path::new(name);
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.root.is_dir(parent) {
            failpoint::pass("before", "a folder");
            self.root
                .create_dir_all(parent)
                .map_err(|e| self.error(e))?;
            failpoint::pass("after", "a folder");
        }
        let dir = self.root.open_dir(parent).map_err(|e| self.error(e))?;
        let (mut old, permissions) = match dir.metadata(name) {
            Ok(found) => {
                self.require_regular(&found)?;
                let old = dir.open(name).map_err(|e| self.error(e))?;
                (Some(old), Some(found.permissions()))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => (None, None),
            Err(error) => return Err(self.error(error)),
        };

        failpoint::pass("before", "a file");
        let (temporary, mut file) = create_temporary(&dir).map_err(|e| self.error(e))?;
        let done = fill(&mut file, old.as_mut().map(|f| f as &mut dyn Read))
            .and_then(|()| permissions.map_or(Ok(()), |p| file.set_permissions(p)))
            .and_then(|()| file.sync_all())
            .and_then(|()| {
                failpoint::pass("amid", "a file");
                dir.rename(&temporary, &dir, name)
            })
            .and_then(|()| sync_folder(&dir));
        failpoint::pass("after", "a file");
        done.map_err(|error| {
            // After a rename the temporary name is gone, and that is fine:
            // only the first error is worth telling.
            dir.remove_file(&temporary).ok();
            self.error(error)
        })
    }

    /// The root's own path below itself is empty, which names nothing.
    fn below_root(&self) -> &Path {
        match self.inside.as_os_str().is_empty() {
            true => Path::new("."),
            false => &self.inside,
        }
    }

    pub(super) fn error(&self, source: io::Error) -> PathError {
        PathError::from_io(&self.asked, source)
    }
}

impl fmt::Debug for ResolvedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResolvedPath")
            .field("path", &self.virtual_path())
            .field("exists", &self.exists)
            .finish_non_exhaustive()
    }
}

/// Creates a file beside the target under a name nobody else holds.
///
/// The name ends in `.tmp`, which listings leave out, and is short whatever
/// the target's name is.
fn create_temporary(dir: &Dir) -> io::Result<(String, File)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!(".tine-{}-{number}.tmp", std::process::id());
        match dir.open_with(&name, &options) {
            Ok(file) => return Ok((name, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Makes the new name durable; Unix alone can sync a folder.
fn sync_folder(dir: &Dir) -> io::Result<()> {
    if cfg!(unix) {
        // The handle itself may be one that only names the folder (O_PATH).
        dir.open(".")?.sync_all()?;
    }
    Ok(())
}
