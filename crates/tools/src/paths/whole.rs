//! All that lies in the folders of a thread, to be copied as a whole.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, File, OpenOptions};
use tine_engine::{ThreadKey, failpoint};

use super::folders::{inside_of, thread_path};
use super::{Access, Folder, Home, HomeError, VIRTUAL_ROOT};

/// Something in the folders of a thread.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    /// Its path, which begins with the name of one of the three folders; `/` stands between the parts.
    pub path: String,
    /// What it is.
    pub kind: FoundKind,
}

/// What lies at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FoundKind {
    /// A folder with nothing in it.
    Folder,
    /// A file.
    File {
        /// Whether it may be run as a program.
        executable: bool,
    },
    /// Something that can not be copied, with the reason.
    Other(&'static str),
}

impl Home {
    /// Lists what lies in the folders of a thread, in the order of the paths. Links are not followed.
    ///
    /// A thread without folders has nothing.
    ///
    /// # Errors
    /// When a folder can not be read.
    pub fn content(&self, key: &ThreadKey) -> Result<Vec<Found>, HomeError> {
        let inside = thread_path(key).join("user-data");
        let list = || {
            let root = match self.dir().open_dir(&inside) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
                root => root?,
            };
            let mut found = Vec::new();
            let mut waiting: Vec<String> = Vec::new();
            for folder in Folder::ALL {
                let there = root.symlink_metadata(folder.name());
                if there.is_ok_and(|there| there.is_dir()) {
                    waiting.push(folder.name().to_owned());
                }
            }
            while let Some(folder) = waiting.pop() {
                let before = found.len() + waiting.len();
                for entry in root.read_dir(&folder)? {
                    let entry = entry?;
                    let name = entry.file_name();
                    let path = format!("{folder}/{}", name.to_string_lossy());
                    let kind = entry.file_type()?;
                    let kind = if name.to_str().is_none() || checked(&path).is_err() {
                        FoundKind::Other("its name can not be written down safely")
                    } else if kind.is_dir() {
                        waiting.push(path);
                        continue;
                    } else if kind.is_file() {
                        let executable = is_executable(&entry.metadata()?);
                        FoundKind::File { executable }
                    } else if kind.is_symlink() {
                        FoundKind::Other("it is a link")
                    } else {
                        FoundKind::Other("it is no file")
                    };
                    found.push(Found { path, kind });
                }
                if found.len() + waiting.len() == before && folder.contains('/') {
                    let (path, kind) = (folder, FoundKind::Folder);
                    found.push(Found { path, kind });
                }
            }
            found.sort();
            Ok(found)
        };
        list().map_err(|source| self.error(inside.clone(), source))
    }

    /// Opens a file that [`content`](Self::content) listed.
    ///
    /// # Errors
    /// When it is not there any more, or the system refuses.
    pub fn open_content(&self, key: &ThreadKey, path: &str) -> Result<File, HomeError> {
        let inside = thread_path(key).join("user-data");
        let open = || {
            let path = checked(path)?;
            let root = self.dir().open_dir(&inside)?;
            // Looked at first: opening a pipe waits for a writer, and a link is not to be followed.
            match root.symlink_metadata(&path)?.is_file() {
                true => root.open(&path),
                false => Err(io::Error::other("it is no file")),
            }
        };
        open().map_err(|source| self.error(inside.join(path), source))
    }

    /// Begins to fill the folders of a thread anew: whatever they held is removed.
    ///
    /// # Errors
    /// When they can not be made.
    pub fn refill(&self, key: &ThreadKey) -> Result<Refill, HomeError> {
        self.remove_thread(key)?;
        self.thread(key)?;
        let inside = thread_path(key).join("user-data");
        let root = self.dir().open_dir(&inside);
        Ok(Refill {
            root: root.map_err(|source| self.error(inside, source))?,
            file: None,
            made: BTreeSet::new(),
        })
    }

    /// Gives the folders of a thread to another name. Folders without a file may be in the way, and go.
    ///
    /// # Errors
    /// When that name has files, or the system refuses.
    pub fn rename_thread(&self, key: &ThreadKey, to: &ThreadKey) -> Result<(), HomeError> {
        let (from, target) = (thread_path(key), thread_path(to));
        if self.has_thread(to) {
            if !self.content(to)?.is_empty() {
                let source = io::Error::new(
                    io::ErrorKind::AlreadyExists,
                    "there are files of a thread of that name",
                );
                return Err(self.error(target, source));
            }
            self.remove_thread(to)?;
        }
        let rename = || {
            if let Some(above) = target.parent() {
                self.dir().create_dir_all(above)?;
            }
            failpoint::pass("before", "the name of a thread's folders");
            self.dir().rename(&from, self.dir(), &target)?;
            failpoint::pass("after", "the name of a thread's folders");
            Ok(())
        };
        rename().map_err(|source| self.error(target.clone(), source))
    }
}

/// Folders that are being filled.
#[derive(Debug)]
pub struct Refill {
    root: Dir,
    /// The file that was begun last, and how much of it there is.
    file: Option<(PathBuf, File, u64)>,
    made: BTreeSet<PathBuf>,
}

impl Refill {
    /// Makes a folder.
    ///
    /// # Errors
    /// When the path is none below the three folders, or the system refuses.
    pub fn folder(&mut self, path: &str) -> io::Result<()> {
        self.root.create_dir_all(checked(path)?)
    }

    /// Adds to a file: from 0 on begins it, anything else goes on with the one that was begun last.
    ///
    /// # Errors
    /// When the path is none below the three folders or was taken before, the part does not fit, or the system refuses.
    pub fn part(&mut self, path: &str, at: u64, executable: bool, bytes: &[u8]) -> io::Result<()> {
        let path = checked(path)?;
        if at == 0 {
            self.finish()?;
            if !self.made.insert(path.clone()) {
                return Err(io::Error::other("it is there twice"));
            }
            if let Some(above) = path.parent() {
                self.root.create_dir_all(above)?;
            }
            let mut options = OpenOptions::new();
            options.write(true).create_new(true);
            make_executable(&mut options, executable);
            let file = self.root.open_with(&path, &options)?;
            self.file = Some((path.clone(), file, 0));
        }
        match &mut self.file {
            Some((open, file, size)) if *open == path && *size == at => {
                file.write_all(bytes)?;
                *size += bytes.len() as u64;
                Ok(())
            }
            _ => Err(io::Error::other("a part of it is missing")),
        }
    }

    /// Makes what was written durable.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn finish(&mut self) -> io::Result<()> {
        match self.file.take() {
            Some((_, file, _)) => file.sync_all(),
            None => Ok(()),
        }
    }
}

/// A path below the three folders, in its only form; never one that leads out.
fn checked(path: &str) -> io::Result<PathBuf> {
    let refused = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
    let inside = inside_of(&format!("{VIRTUAL_ROOT}/{path}"), Access::Write)
        .map_err(|error| refused(error.to_string()))?;
    // Something in a folder, and said in no other way than this.
    let parts = path.split('/').count();
    if parts < 2 || parts != inside.components().count() || Path::new(path) != inside {
        return Err(refused(
            "it is no path in a folder of the thread".to_owned(),
        ));
    }
    Ok(inside)
}

#[cfg(unix)]
fn is_executable(found: &cap_std::fs::Metadata) -> bool {
    use cap_std::fs::PermissionsExt as _;
    found.permissions().mode() & 0o100 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &cap_std::fs::Metadata) -> bool {
    false
}

#[cfg(unix)]
fn make_executable(options: &mut OpenOptions, executable: bool) {
    use cap_std::fs::OpenOptionsExt as _;
    options.mode(if executable { 0o777 } else { 0o666 });
}

#[cfg(not(unix))]
fn make_executable(_: &mut OpenOptions, _: bool) {}

#[cfg(test)]
mod tests {
    use super::*;

    fn home() -> (tempfile::TempDir, Home) {
        let disk = tempfile::tempdir().unwrap();
        let home = Home::open(disk.path().join("home")).unwrap();
        (disk, home)
    }

    #[test]
    fn hostile_paths_are_refused() {
        let (disk, home) = home();
        let mut refill = home.refill(&ThreadKey::local("t")).unwrap();
        for path in [
            "",
            ".",
            "..",
            "outputs",
            "outputs/",
            "/etc/passwd",
            "/outputs/a",
            "outputs/../../x",
            "outputs/../uploads/x",
            "outputs/./a",
            "outputs//a",
            "outputs\\..\\..\\x",
            "elsewhere/a",
            "a",
            "outputs/a\0b",
            "outputs/a\nb",
            "outputs/\u{202E}a",
        ] {
            assert!(refill.part(path, 0, false, b"x").is_err(), "{path:?}");
            assert!(refill.folder(path).is_err(), "{path:?}");
        }
        let long = format!("outputs/{}", "a".repeat(300));
        assert!(refill.part(&long, 0, false, b"x").is_err());
        assert_eq!(home.content(&ThreadKey::local("t")).unwrap(), []);
        assert_eq!(std::fs::read_dir(disk.path()).unwrap().count(), 1);
    }

    #[test]
    fn parts_must_follow_each_other() {
        let (_disk, home) = home();
        let key = ThreadKey::local("t");
        let mut refill = home.refill(&key).unwrap();
        refill.part("outputs/a", 0, false, b"ab").unwrap();
        assert!(refill.part("outputs/a", 3, false, b"d").is_err());
        assert!(refill.part("outputs/b", 2, false, b"c").is_err());
        refill.part("outputs/a", 2, false, b"c").unwrap();
        refill.part("outputs/b/c", 0, true, b"").unwrap();
        assert!(refill.part("outputs/a", 0, false, b"x").is_err());
        assert!(refill.part("outputs/a/b", 0, false, b"x").is_err());
        assert!(refill.part("outputs/b", 0, false, b"x").is_err());
        refill.folder("workspace/empty/er").unwrap();
        refill.finish().unwrap();
        let found = home.content(&key).unwrap();
        let found: Vec<_> = found.iter().map(|one| (&*one.path, one.kind)).collect();
        let executable = cfg!(unix);
        assert_eq!(
            found,
            [
                ("outputs/a", FoundKind::File { executable: false }),
                ("outputs/b/c", FoundKind::File { executable }),
                ("workspace/empty/er", FoundKind::Folder),
            ]
        );
        let mut text = String::new();
        let mut file = home.open_content(&key, "outputs/a").unwrap();
        io::Read::read_to_string(&mut file, &mut text).unwrap();
        assert_eq!(text, "abc");
    }

    #[cfg(unix)]
    #[test]
    fn links_are_told_and_not_followed() {
        let (disk, home) = home();
        let key = ThreadKey::local("t");
        let root = home.thread(&key).unwrap().host_root().to_owned();
        std::fs::write(disk.path().join("secret"), "s").unwrap();
        std::fs::create_dir(disk.path().join("folder")).unwrap();
        std::fs::write(root.join("outputs/a\u{202E}"), "a").unwrap();
        for (to, at) in [("secret", "outputs/link"), ("folder", "uploads/folder")] {
            std::os::unix::fs::symlink(disk.path().join(to), root.join(at)).unwrap();
        }
        let found = home.content(&key).unwrap();
        assert_eq!(found.len(), 3);
        for one in found {
            assert!(matches!(one.kind, FoundKind::Other(_)), "{one:?}");
            assert!(home.open_content(&key, &one.path).is_err(), "{one:?}");
        }
        std::fs::remove_dir_all(root.join("uploads")).unwrap();
        std::os::unix::fs::symlink(disk.path().join("folder"), root.join("uploads")).unwrap();
        assert_eq!(home.content(&key).unwrap().len(), 2);
    }

    #[test]
    fn folders_are_renamed_unless_files_are_in_the_way() {
        let (_disk, home) = home();
        let [a, b, none] = ["a", "b", "none"].map(ThreadKey::local);
        let mut refill = home.refill(&a).unwrap();
        refill.part("outputs/a", 0, false, b"a").unwrap();
        refill.finish().unwrap();
        // Folders without a file.
        home.thread(&b).unwrap();
        home.rename_thread(&a, &b).unwrap();
        assert!(!home.has_thread(&a));
        assert_eq!(home.content(&b).unwrap().len(), 1);
        home.refill(&a).unwrap();
        let error = home.rename_thread(&a, &b).unwrap_err().to_string();
        assert!(error.contains("there are files of a thread"), "{error}");
        assert!(home.rename_thread(&none, &ThreadKey::local("c")).is_err());
        assert_eq!(home.content(&none).unwrap(), []);
    }
}
