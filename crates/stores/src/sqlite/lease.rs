//! The right to write a thread: a lock file that the kernel frees when its holder dies.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
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
        let mut probes = 0;
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
                Err(TryLockError::WouldBlock) if probes < PROBES && is_probed(&file) => {
                    probes += 1;
                    std::thread::yield_now();
                    continue;
                }
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
            // What was asked of the last holder is no matter of this one.
            drop(fs::remove_file(wish(&path)));
            file.set_len(0)
                .and_then(|()| file.write_all(own_mark().as_bytes()))
                .map_err(failed)?;
            return Ok(Self { _file: file, path });
        }
    }
}

/// How often a thread is tried to be taken while others look whether it is held.
const PROBES: usize = 10_000;

/// Whether a lock that could not be taken is only shared: by somebody who looks whether it is held, for an instant.
fn is_probed(file: &File) -> bool {
    match file.try_lock_shared() {
        Ok(()) => file.unlock().is_ok(),
        Err(_) => false,
    }
}

/// Asks who holds a thread to stop. Gives who that is; `None` if nobody holds it.
pub(super) fn ask_to_stop(folder: &Path, thread: &ThreadKey) -> io::Result<Option<String>> {
    let path = folder.join(file_name(thread));
    let Some(mark) = mark_of_holder(&path)? else {
        return Ok(None);
    };
    // It names who is meant, for who comes next is not.
    fs::write(wish(&path), &mark)?;
    Ok(Some(name_in(&mark)))
}

/// Asks again, if this is still who holds the thread. Tells whether it is.
pub(super) fn ask_again_to_stop(
    folder: &Path,
    thread: &ThreadKey,
    holder: &str,
) -> io::Result<bool> {
    let path = folder.join(file_name(thread));
    let mark = mark_of_holder(&path)?;
    let Some(mark) = mark.filter(|mark| name_in(mark) == holder) else {
        return Ok(false);
    };
    if !is_asked_to_stop(folder, thread)? {
        fs::write(wish(&path), &mark)?;
    }
    Ok(true)
}

/// What the holder of a lock file wrote into it; `None` if nobody holds it.
fn mark_of_holder(path: &Path) -> io::Result<Option<String>> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    match file.try_lock_shared() {
        // Left by a process that died.
        Ok(()) => return Ok(None),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => return Err(error),
    }
    Ok(Some(read_mark(&mut file).unwrap_or_default()))
}

/// Whether who holds a thread now is asked to stop.
pub(super) fn is_asked_to_stop(folder: &Path, thread: &ThreadKey) -> io::Result<bool> {
    let path = folder.join(file_name(thread));
    let read = |path: &Path| match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    };
    let Some(meant) = read(&wish(&path))? else {
        return Ok(false);
    };
    Ok(!meant.is_empty() && read(&path)? == Some(meant))
}

/// Where it is written that the holder of a lock file is asked to stop.
fn wish(lock: &Path) -> PathBuf {
    lock.with_extension("stop")
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Where the identity of a file can not be told, removing it would race with the next holder.
        if cfg!(unix) {
            // A file that stays is only untidy.
            drop(fs::remove_file(wish(&self.path)));
            drop(fs::remove_file(&self.path));
        }
    }
}

/// Who holds the locks of this folder that are held.
///
/// To find out, a lock that is free is shared for an instant; whoever wants to take it just then tries again.
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

/// What a holder writes into the lock file: its name, and below it what tells this time from others.
fn own_mark() -> String {
    static TAKEN: AtomicU64 = AtomicU64::new(0);
    let times = TAKEN.fetch_add(1, Ordering::Relaxed);
    format!("{}\n{times}\n", own_name())
}

/// Who wrote the lock file, as far as it says.
fn holder(file: &mut File) -> String {
    name_in(&read_mark(file).unwrap_or_default())
}

fn read_mark(file: &mut File) -> io::Result<String> {
    let mut mark = String::new();
    file.take(200).read_to_string(&mut mark)?;
    Ok(mark)
}

fn name_in(mark: &str) -> String {
    let name = mark.lines().next().unwrap_or_default();
    if name.is_empty() {
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
    use std::sync::atomic::AtomicUsize;

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
    fn a_wish_is_meant_for_who_holds_the_thread() {
        let folder = tempfile::tempdir().unwrap();
        let key = ThreadKey::local("t");
        let asked = || is_asked_to_stop(folder.path(), &key).unwrap();
        assert_eq!(ask_to_stop(folder.path(), &key).unwrap(), None);
        let lease = Lease::take(folder.path(), &key).unwrap();
        assert!(!asked());
        let holder = ask_to_stop(folder.path(), &key).unwrap();
        assert_eq!(holder.as_deref(), Some("another run of this process"));
        assert!(asked());
        let mark = fs::read(wish(&folder.path().join(file_name(&key)))).unwrap();
        drop(lease);
        assert!(!asked());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let _next = Lease::take(folder.path(), &key).unwrap();
        // One that came too late.
        fs::write(wish(&folder.path().join(file_name(&key))), mark).unwrap();
        assert!(!asked());
    }

    #[test]
    fn only_who_was_asked_is_asked_again() {
        let folder = tempfile::tempdir().unwrap();
        let key = ThreadKey::local("t");
        let asked = || is_asked_to_stop(folder.path(), &key).unwrap();
        let again = |holder: &str| ask_again_to_stop(folder.path(), &key, holder).unwrap();
        let own = "another run of this process";
        assert!(!again(own), "nobody holds it");
        let lease = Lease::take(folder.path(), &key).unwrap();
        assert!(!again("process 1 on elsewhere") && !asked());
        assert!(again(own) && asked());
        drop(lease);
        assert!(!again(own));
        let lease = Lease::take(folder.path(), &key).unwrap();
        assert!(!asked());
        assert!(again(own) && asked(), "it took the thread again");
        drop(lease);
        // As one leaves it that was killed.
        fs::write(folder.path().join(file_name(&key)), own_mark()).unwrap();
        assert!(!again(own));
    }

    #[test]
    fn who_looks_keeps_nobody_out() {
        let folder = tempfile::tempdir().unwrap();
        let key = ThreadKey::local("t");
        // One that a killed process left.
        fs::write(folder.path().join(file_name(&key)), "").unwrap();
        let ended = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !ended.load(Ordering::SeqCst) {
                        holders(folder.path());
                    }
                });
            }
            let taken: Vec<_> = (0..2000)
                .map(|_| {
                    let taken = Lease::take(folder.path(), &key).map(drop);
                    fs::write(folder.path().join(file_name(&key)), "").unwrap();
                    taken
                })
                .collect();
            ended.store(true, Ordering::SeqCst);
            let refused: Vec<_> = taken.into_iter().filter_map(Result::err).collect();
            assert!(refused.is_empty(), "{refused:?}");
        });
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
