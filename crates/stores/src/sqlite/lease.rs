//! The right to write a thread: a lock file that the kernel frees when its holder dies.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use tine_engine::StoreError;
use tine_engine::checkpoint::ThreadKey;

/// A lock file, held until dropped.
///
/// The file says who holds it. It is removed when it is let go; after a crash it stays, unlocked, and the next holder
/// takes it over.
#[derive(Debug)]
pub(super) struct Lease {
    // Closing the file lets the lock go, so this field must outlive the removal in `drop`.
    _file: File,
    path: PathBuf,
}

impl Lease {
    /// Takes the thread, whose lock file stands in `folder`.
    pub(super) fn take(folder: &Path, thread: &ThreadKey) -> Result<Self, StoreError> {
        let path = folder.join(file_name(thread));
        let failed = |error: io::Error| StoreError::Unavailable {
            place: path.display().to_string(),
            message: format!("the lock of thread `{thread}` can not be taken: {error}"),
        };
        loop {
            fs::create_dir_all(folder).map_err(failed)?;
            let mut file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)
                .map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(StoreError::Held {
                        thread: thread.to_string().into(),
                        holder: holder(&mut file),
                    });
                }
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
            // The last holder may have removed the file after it was opened here; then the lock is on a file that
            // nobody else will find.
            if !is_at(&file, &path).map_err(failed)? {
                continue;
            }
            file.set_len(0)
                .and_then(|()| file.write_all(own_name().as_bytes()))
                .map_err(failed)?;
            return Ok(Self { _file: file, path });
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Where the identity of a file can not be told, removing it would race with the next holder.
        if cfg!(unix) {
            // A file that stays is only untidy.
            drop(fs::remove_file(&self.path));
        }
    }
}

/// Who holds the locks of this folder that are held.
///
/// To find out, a lock that is free is shared for an instant; whoever wants to take it just then is refused.
pub(super) fn holders(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let held = paths.into_iter().filter_map(|path| {
        let mut file = File::open(&path).ok()?;
        let is_held = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
        let of_thread = path.file_name().is_some_and(|name| name != OPENING);
        (is_held && of_thread).then(|| holder(&mut file))
    });
    held.collect()
}

/// The lock that everyone takes while opening the database.
pub(super) const OPENING: &str = "open.lock";

/// Waits for a lock that everyone takes while opening the database.
pub(super) fn wait_for(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    file.lock()?;
    Ok(file)
}

/// The name of a thread's lock file: bounded, without separators, different for different threads also where file
/// names ignore case.
fn file_name(thread: &ThreadKey) -> String {
    const READABLE: usize = 40;
    let readable: String = thread
        .thread
        .chars()
        .take(READABLE)
        .map(|letter| match letter {
            'a'..='z' | '0'..='9' | '-' => letter,
            'A'..='Z' => letter.to_ascii_lowercase(),
            _ => '_',
        })
        .collect();
    let mut hasher = blake3::Hasher::new();
    // The length keeps (`a`, `bc`) and (`ab`, `c`) apart.
    hasher.update(&(thread.tenant.len() as u64).to_le_bytes());
    hasher.update(thread.tenant.as_bytes());
    hasher.update(thread.thread.as_bytes());
    let hash = hasher.finalize().to_hex();
    format!("{readable}-{}.lock", &hash[..32])
}

fn own_name() -> String {
    let pid = std::process::id();
    #[cfg(unix)]
    let name = format!(
        "process {pid} on {}",
        rustix::system::uname().nodename().to_string_lossy()
    );
    #[cfg(not(unix))]
    let name = format!("process {pid}");
    name
}

/// Who wrote the lock file, as far as it says.
fn holder(file: &mut File) -> String {
    let mut name = String::new();
    let read = file.take(200).read_to_string(&mut name);
    if read.is_err() || name.is_empty() {
        "another process".to_owned()
    } else if name == own_name() {
        "another run of this process".to_owned()
    } else {
        name.replace(char::is_control, " ")
    }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let held = file.metadata()?;
    match fs::metadata(path) {
        Ok(found) => Ok((held.dev(), held.ino()) == (found.dev(), found.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn any_id_is_only_a_name() {
        let long = "文".repeat(10_000);
        let ids = [
            "",
            ".",
            "..",
            "../../x",
            "/etc/passwd",
            "a\0b",
            "CON",
            "\u{1F98C}",
            "a",
            "A",
            "a ",
            &long,
        ];
        let mut names: Vec<String> = ids
            .iter()
            .map(|id| file_name(&ThreadKey::local(*id)))
            .collect();
        for name in &names {
            assert!(name.len() < 100 && name.is_ascii(), "{name}");
            assert!(
                !name.contains(['/', '\\', '\0']) && !name.starts_with('.'),
                "{name}"
            );
        }
        names.sort();
        names.dedup_by_key(|name| name.to_lowercase());
        assert_eq!(names.len(), ids.len());
    }

    #[test]
    fn tenants_do_not_share_locks() {
        let key = |tenant: &str, thread: &str| ThreadKey {
            tenant: tenant.into(),
            thread: thread.into(),
        };
        assert_ne!(file_name(&key("a", "bc")), file_name(&key("ab", "c")));
    }

    #[test]
    fn of_many_takers_one_holds() {
        let folder = tempfile::tempdir().unwrap();
        let key = ThreadKey::local("t");
        let inside = AtomicUsize::new(0);
        let taken = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        if let Ok(lease) = Lease::take(folder.path(), &key) {
                            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                            taken.fetch_add(1, Ordering::SeqCst);
                            inside.fetch_sub(1, Ordering::SeqCst);
                            drop(lease);
                        }
                    }
                });
            }
        });
        assert!(taken.into_inner() > 0);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
