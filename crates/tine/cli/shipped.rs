//! What the program brings with it: graphs, the scripts they play, a configuration, and articles to search.
//!
//! The files are read from memory. Those that other parts open by their paths, such as the articles, are unpacked below
//! the home, in a folder of their own for every edition of them: threads note these paths, and go on with the files
//! they began with after the program was replaced by another.

use super::Cx;
use super::env::Env;
use super::failure::{Failure, print_note};
use include_dir::{Dir, DirEntry, include_dir};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

static GRAPHS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/graphs");
static CONFIGURATION: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/config");

/// The folder of the home that they are unpacked in.
const FOLDER: &str = "shipped";
/// The configuration among them.
const CONFIG: &str = "config/config.yaml";

/// All files, by their paths below the folder.
static FILES: LazyLock<BTreeMap<PathBuf, &'static [u8]>> = LazyLock::new(|| {
    let mut files = BTreeMap::new();
    collect("graphs", &GRAPHS, &mut files);
    collect("config", &CONFIGURATION, &mut files);
    files
});

/// What tells this edition of the files from others.
static EDITION: LazyLock<String> = LazyLock::new(|| {
    let mut hasher = blake3::Hasher::new();
    for (path, bytes) in FILES.iter() {
        let path = path.to_string_lossy();
        for part in [path.as_bytes(), bytes] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    }
    hasher.finalize().to_hex()[..16].to_owned()
});

fn collect(
    root: &str,
    folder: &'static Dir<'static>,
    files: &mut BTreeMap<PathBuf, &'static [u8]>,
) {
    for entry in folder.entries() {
        match entry {
            DirEntry::Dir(folder) => collect(root, folder, files),
            DirEntry::File(file) => {
                files.insert(Path::new(root).join(file.path()), file.contents());
            }
        }
    }
}

/// The names of the graphs.
pub(crate) fn graphs() -> Vec<&'static str> {
    let names = GRAPHS.files().filter_map(|file| {
        let name = file.path().to_str()?.strip_suffix(".yaml")?;
        (!name.ends_with(".script")).then_some(name)
    });
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names
}

/// Where the graph of this name is, or would be once it is unpacked.
pub(crate) fn graph(env: &Env, name: &str) -> Option<PathBuf> {
    let known = graphs().contains(&name);
    known.then(|| folder(env).join("graphs").join(format!("{name}.yaml")))
}

/// Where the configuration is, or would be once it is unpacked.
pub(crate) fn config(env: &Env) -> PathBuf {
    folder(env).join(CONFIG)
}

/// Tells whether a path is that of a file of this program's edition.
pub(crate) fn is_ours(path: &Path) -> bool {
    Unpacked::of(path).is_some_and(|unpacked| unpacked.bytes().is_some())
}

/// Tells whether a path is that of a file that another edition unpacked.
pub(crate) fn is_of_another_edition(path: &Path) -> bool {
    Unpacked::of(path).is_some_and(|unpacked| unpacked.edition != *EDITION)
}

/// Reads a file: one that ships from memory, any other from the disk.
pub(crate) fn read_to_string(path: &Path) -> io::Result<String> {
    match Unpacked::of(path).and_then(|unpacked| unpacked.bytes()) {
        Some(bytes) => {
            let text = String::from_utf8(bytes.to_vec());
            text.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
        }
        None => std::fs::read_to_string(path),
    }
}

/// Where a file is now that was noted with its path: the home may have been moved since.
pub(crate) fn found_again(env: &Env, path: PathBuf) -> PathBuf {
    let Some(unpacked) = Unpacked::of(&path) else {
        return path;
    };
    let here = env.absolute(&env.home).join(FOLDER).join(&unpacked.edition);
    let here = here.join(&unpacked.inside);
    match unpacked.bytes().is_some() || (!path.exists() && here.exists()) {
        true => here,
        false => path,
    }
}

/// Unpacks the files, if one of these paths is among them and they are not there as they should be.
pub(crate) fn restore<'a>(
    cx: &mut Cx,
    needed: impl IntoIterator<Item = &'a PathBuf>,
) -> Result<(), Failure> {
    let folder = folder(&cx.env);
    if !needed
        .into_iter()
        .any(|path| is_ours(path) && path.starts_with(&folder))
        || is_whole(&folder)
    {
        return Ok(());
    }
    let aside = unpack(&folder).map_err(|error| {
        let shown = cx.env.shown(&folder);
        Failure::home(format!(
            "the files that ship with tine can not be unpacked to {shown}: {error}"
        ))
    })?;
    if let Some(aside) = aside {
        let (folder, aside) = (cx.env.shown(&folder), cx.env.shown(&aside));
        print_note(
            &mut cx.stderr,
            &format!(
                "{folder} is not as tine unpacked it and was unpacked anew; what stood there is {aside}"
            ),
        );
    }
    Ok(())
}

/// The folder of this edition.
fn folder(env: &Env) -> PathBuf {
    env.absolute(&env.home).join(FOLDER).join(&*EDITION)
}

/// The path of an unpacked file, taken apart.
struct Unpacked {
    edition: String,
    inside: PathBuf,
}

impl Unpacked {
    fn of(path: &Path) -> Option<Self> {
        let parts: Vec<Component<'_>> = path.components().collect();
        let at = parts.iter().rposition(|part| part.as_os_str() == FOLDER)?;
        let edition = parts.get(at + 1)?.as_os_str().to_str()?;
        let is_edition = edition.len() == 16 && edition.bytes().all(|b| b.is_ascii_hexdigit());
        let mut inside = PathBuf::new();
        for part in parts.get(at + 2..)? {
            match part {
                // A configuration names what lies beside its folder.
                Component::ParentDir if inside.pop() => {}
                Component::Normal(name) => inside.push(name),
                _ => return None,
            }
        }
        is_edition.then(|| Self {
            edition: edition.to_owned(),
            inside,
        })
    }

    /// The file, if it is of this edition.
    fn bytes(&self) -> Option<&'static [u8]> {
        let ours = self.edition == *EDITION;
        ours.then(|| FILES.get(&self.inside).copied()).flatten()
    }
}

/// Tells whether all files are there, unchanged, and nothing else.
fn is_whole(folder: &Path) -> bool {
    let mut found = 0;
    let mut open = vec![folder.to_owned()];
    while let Some(inner) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&inner) else {
            return false;
        };
        for entry in entries {
            let Ok(path) = entry.map(|entry| entry.path()) else {
                return false;
            };
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let expected = path
                .strip_prefix(folder)
                .ok()
                .and_then(|inside| FILES.get(inside));
            let there = std::fs::read(&path).ok();
            if expected.is_none() || there.as_deref() != expected.copied() {
                return false;
            }
            found += 1;
        }
    }
    found == FILES.len()
}

/// Writes the files beside the folder and puts them in its place in one move, so that nobody ever sees a half of them.
/// Gives where the folder went that stood there before.
fn unpack(folder: &Path) -> io::Result<Option<PathBuf>> {
    let beside = |end: &str| {
        let mut name = folder.file_name().unwrap_or_default().to_owned();
        name.push(end);
        folder.with_file_name(name)
    };
    let mut end = String::from(".unpacking");
    let _ = write!(end, "-{}", std::process::id());
    let new = beside(&end);
    // What a process of the same number left when it was killed.
    if new.exists() {
        std::fs::remove_dir_all(&new)?;
    }
    for (path, bytes) in FILES.iter() {
        let path = new.join(path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, bytes)?;
    }
    if std::fs::rename(&new, folder).is_ok() {
        return Ok(None);
    }
    // Somebody else was quicker.
    if is_whole(folder) {
        std::fs::remove_dir_all(&new)?;
        return Ok(None);
    }
    let aside = (1..)
        .map(|number| beside(&format!(".changed-{number}")))
        .find(|aside| !aside.exists())
        .unwrap_or_else(|| beside(".changed"));
    std::fs::rename(folder, &aside)?;
    std::fs::rename(&new, folder)?;
    Ok(Some(aside))
}
