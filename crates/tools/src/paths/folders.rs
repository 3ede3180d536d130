use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use tine_engine::{ThreadKey, failpoint};

use super::{PathError, ResolvedPath, VIRTUAL_ROOT, folder_name};

/// The longest path and the longest single name that are passed on, in bytes.
const LONGEST_PATH: usize = 4096;
const LONGEST_NAME: usize = 255;

/// Folders beside a thread's own that tools may read but never write.
const READ_ONLY: [&str; 2] = ["/mnt/skills", "/mnt/acp-workspace"];

/// One of the three folders that every thread has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Folder {
    /// Where work in progress lies.
    Workspace,
    /// What the user handed in.
    Uploads,
    /// What may be presented to the user.
    Outputs,
}

impl Folder {
    /// All three, in the order in which they are listed.
    pub const ALL: [Self; 3] = [Self::Workspace, Self::Uploads, Self::Outputs];

    /// Gives the name of the folder below `/mnt/user-data`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Workspace => "workspace",
            Self::Uploads => "uploads",
            Self::Outputs => "outputs",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|folder| folder.name() == name)
    }
}

/// What a tool is about to do with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read it: it must exist.
    Read,
    /// Write it: it may be missing, but must not be read-only.
    Write,
}

/// The folder that holds the files of all threads (`.tine` by default).
#[derive(Debug)]
pub struct Home {
    dir: Dir,
    path: PathBuf,
    /// The locks of the threads that are open, by folder.
    writing: Mutex<BTreeMap<PathBuf, Weak<Mutex<()>>>>,
}

/// Says which folder of the host could not be opened or made.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the folder {}: {source}", path.display())]
pub struct HomeError {
    path: PathBuf,
    source: io::Error,
}

impl Home {
    /// Opens the folder, creating it when it is missing.
    ///
    /// # Errors
    /// When the folder can be neither opened nor made.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, HomeError> {
        let path = path.into();
        let open = || {
            if !path.is_dir() {
                failpoint::pass("before", "the home");
                Dir::create_ambient_dir_all(&path, ambient_authority())?;
                failpoint::pass("after", "the home");
            }
            Dir::open_ambient_dir(&path, ambient_authority())
        };
        match open() {
            Ok(dir) => Ok(Self {
                dir,
                path,
                writing: Mutex::default(),
            }),
            Err(source) => Err(HomeError { path, source }),
        }
    }

    /// Opens the folders of one thread, creating those that are missing.
    ///
    /// Tenant and thread may be any texts; see [`folder_name`].
    ///
    /// # Errors
    /// When a folder can be neither opened nor made.
    pub fn thread(&self, key: &ThreadKey) -> Result<ThreadFolders, HomeError> {
        let inside = thread_path(key).join("user-data");
        let host_root = self.path.join(&inside);
        let open = || {
            for folder in Folder::ALL {
                let path = inside.join(folder.name());
                if !self.dir.is_dir(&path) {
                    failpoint::pass("before", "a folder of a thread");
                    self.dir.create_dir_all(path)?;
                    failpoint::pass("after", "a folder of a thread");
                }
            }
            self.dir.open_dir(&inside)
        };
        match open() {
            Ok(dir) => Ok(ThreadFolders {
                root: Arc::new(dir),
                writing: self.lock_of(&inside),
                host_root,
            }),
            Err(source) => Err(HomeError {
                path: host_root,
                source,
            }),
        }
    }

    /// Gives the lock that all handles of one thread share: two appends
    /// through different handles must both stay, too.
    fn lock_of(&self, inside: &Path) -> Arc<Mutex<()>> {
        let mut locks = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = locks.get(inside).and_then(Weak::upgrade) {
            return lock;
        }
        locks.retain(|_, lock| lock.strong_count() > 0);
        let lock = Arc::default();
        locks.insert(inside.to_owned(), Arc::downgrade(&lock));
        lock
    }

    pub(super) fn dir(&self) -> &Dir {
        &self.dir
    }

    pub(super) fn error(&self, inside: PathBuf, source: io::Error) -> HomeError {
        HomeError {
            path: self.path.join(inside),
            source,
        }
    }

    /// Tells whether there are folders of this thread.
    #[must_use]
    pub fn has_thread(&self, key: &ThreadKey) -> bool {
        self.dir.symlink_metadata(thread_path(key)).is_ok()
    }

    /// Deletes the folders of one thread and all that is in them.
    ///
    /// A thread without folders is no error: the result is the same.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn remove_thread(&self, key: &ThreadKey) -> Result<(), HomeError> {
        let inside = thread_path(key);
        match self.dir.remove_dir_all(&inside) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(HomeError {
                path: self.path.join(inside),
                source,
            }),
            _ => Ok(()),
        }
    }
}

pub(super) fn thread_path(key: &ThreadKey) -> PathBuf {
    Path::new("threads")
        .join(folder_name(&key.tenant))
        .join(folder_name(&key.thread))
}

/// The folders of one thread: the only files its tools can reach.
#[derive(Clone)]
pub struct ThreadFolders {
    root: Arc<Dir>,
    host_root: PathBuf,
    /// Held while a file is replaced: two appends at once must both stay.
    writing: Arc<Mutex<()>>,
}

impl ThreadFolders {
    /// Says where the thread's folders lie on the host, to be shown to people.
    #[must_use]
    pub fn host_root(&self) -> &Path {
        &self.host_root
    }

    /// Resolves a virtual path.
    ///
    /// Links are followed as long as they stay inside the three folders of
    /// the thread.
    ///
    /// # Errors
    /// When the path is malformed, leads out of the folders, is read-only and
    /// to be written, or is missing and to be read.
    pub fn resolve(&self, path: &str, access: Access) -> Result<ResolvedPath, PathError> {
        let inside = inside_of(path, access)?;
        let (inside, exists) = self.follow(path, &inside)?;
        if !exists && access == Access::Read {
            return Err(PathError::NotFound {
                path: path.to_owned(),
            });
        }
        let mut parts = inside.components();
        let folder = match parts.next().map(|part| part.as_os_str().to_string_lossy()) {
            None => None,
            Some(first) => match Folder::from_name(&first) {
                Some(folder) => Some(folder),
                // A link led to a file beside the three folders.
                None => {
                    return Err(PathError::LinkOut {
                        path: path.to_owned(),
                    });
                }
            },
        };
        if access == Access::Write && parts.next().is_none() {
            return Err(PathError::IsFolder {
                path: path.to_owned(),
            });
        }
        Ok(ResolvedPath {
            root: Arc::clone(&self.root),
            writing: Arc::clone(&self.writing),
            host_root: self.host_root.clone(),
            inside,
            folder,
            exists,
            asked: path.to_owned(),
        })
    }

    /// Gives the path without links of what is there now.
    ///
    /// Linux tells the path of an open file, and of one that was replaced
    /// since it was opened it tells `name (deleted)`: then it is asked again.
    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        loop {
            let real = self.root.canonicalize(path)?;
            let name = real.file_name().unwrap_or_default().as_encoded_bytes();
            if !name.ends_with(b" (deleted)") || self.root.symlink_metadata(&real).is_ok() {
                return Ok(real);
            }
        }
    }

    /// Follows links below the root: gives the true path, and whether
    /// something is there.
    fn follow(&self, asked: &str, inside: &Path) -> Result<(PathBuf, bool), PathError> {
        const LOOKS: usize = 16;
        if inside.as_os_str().is_empty() {
            return Ok((PathBuf::new(), true));
        }
        for _ in 0..LOOKS {
            if let Some(found) = self.look(asked, inside)? {
                return Ok(found);
            }
        }
        Err(PathError::DeadLink {
            path: asked.to_owned(),
        })
    }

    /// As [`follow`](Self::follow); `None` if something was made there
    /// meanwhile, by another call of the same message.
    fn look(&self, asked: &str, inside: &Path) -> Result<Option<(PathBuf, bool)>, PathError> {
        // The longest part that exists is resolved; the rest is to be made.
        for base in inside.ancestors() {
            if base.as_os_str().is_empty() {
                break;
            }
            match self.canonical(base) {
                Ok(real) => {
                    let rest = inside.strip_prefix(base).unwrap_or(Path::new(""));
                    let missing = !rest.as_os_str().is_empty();
                    if missing && !self.root.is_dir(&real) {
                        return Err(PathError::NotFolder {
                            path: asked.to_owned(),
                        });
                    }
                    let real = if missing { real.join(rest) } else { real };
                    return Ok(Some((real, !missing)));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    match self.root.symlink_metadata(base) {
                        Ok(found) if found.is_symlink() => {
                            return Err(PathError::DeadLink {
                                path: asked.to_owned(),
                            });
                        }
                        Ok(_) => return Ok(None),
                        Err(_) => {}
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                    return Err(PathError::NotFolder {
                        path: asked.to_owned(),
                    });
                }
                Err(error) => return Err(PathError::from_io(asked, error)),
            }
        }
        Ok(Some((inside.to_owned(), false)))
    }
}

impl fmt::Debug for ThreadFolders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadFolders")
            .field("host_root", &self.host_root)
            .finish_non_exhaustive()
    }
}

/// Checks the text of a virtual path and gives its part below the root.
pub(super) fn inside_of(path: &str, access: Access) -> Result<PathBuf, PathError> {
    let asked = || path.to_owned();
    if path.is_empty() {
        return Err(PathError::Empty);
    }
    if path.contains('\0') {
        return Err(PathError::Nul { path: asked() });
    }
    if let Some(character) = path.chars().find(|c| misleads(*c)) {
        return Err(PathError::Character {
            path: asked(),
            character,
        });
    }
    if path.len() > LONGEST_PATH {
        return Err(too_long(path, LONGEST_PATH));
    }
    // A backslash separates on Windows hosts, so it must not hide a `..`.
    if path.split(['/', '\\']).any(|part| part == "..") {
        return Err(PathError::Upwards { path: asked() });
    }
    if !path.starts_with('/') {
        let full = match path.starts_with("mnt/") {
            true => format!("/{path}"),
            false => format!("{VIRTUAL_ROOT}/workspace/{path}"),
        };
        return Err(PathError::Relative {
            path: asked(),
            full,
        });
    }
    let parts: Vec<&str> = path
        .split('/')
        .filter(|p| !p.is_empty() && *p != ".")
        .collect();
    if let Some(long) = parts.iter().find(|part| part.len() > LONGEST_NAME) {
        return Err(too_long(long, LONGEST_NAME));
    }
    for mount in READ_ONLY {
        let below = mount.split('/').skip(1).eq(parts.iter().copied().take(2));
        match (below, access) {
            (false, _) => {}
            (true, Access::Write) => {
                return Err(PathError::ReadOnly {
                    path: asked(),
                    mount,
                });
            }
            (true, Access::Read) => {
                return Err(PathError::NotMounted {
                    path: asked(),
                    mount,
                });
            }
        }
    }
    let root = VIRTUAL_ROOT.split('/').skip(1);
    let depth = root.clone().count();
    if !root.eq(parts.iter().copied().take(depth)) {
        return Err(PathError::Outside { path: asked() });
    }
    let folder_name = path.ends_with('/') || path.ends_with("/.");
    if folder_name && access == Access::Write {
        return Err(PathError::FolderName { path: asked() });
    }
    match parts.get(depth) {
        Some(first) if Folder::from_name(first).is_none() => {
            Err(PathError::Outside { path: asked() })
        }
        _ => Ok(parts.iter().skip(depth).collect()),
    }
}

/// Tells a character that makes a name look like another one, or like two: a
/// line break, another control character, or one that turns the direction of
/// the text.
#[must_use]
pub fn misleads(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61C}'
                | '\u{200B}'
                | '\u{200E}'
                | '\u{200F}'
                | '\u{2028}'..='\u{202E}'
                | '\u{2066}'..='\u{2069}'
                | '\u{FEFF}'
        )
}

fn too_long(text: &str, limit: usize) -> PathError {
    PathError::TooLong {
        shown: text.chars().take(40).collect(),
        bytes: text.len(),
        limit,
    }
}
