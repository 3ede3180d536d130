use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use cap_std::time::SystemTime;

use super::document::{Document, Kind};
use super::index::{Hit, Index};
use super::segment::LONGEST_QUERY;

/// A larger file is no article.
const LARGEST_FILE: u64 = 2 * 1024 * 1024;
/// How much text is kept in memory.
const LARGEST_TOTAL: u64 = 64 * 1024 * 1024;
const MOST_FILES: usize = 10_000;
/// How many names are looked at, should the folder be a whole disk.
const MOST_NAMES: usize = 100_000;
const DEEPEST: usize = 16;
/// How many notes one search gives; the others are only counted.
const MOST_NOTES: usize = 5;

/// Ranked full-text search over a folder of Markdown, text and HTML files.
///
/// The index lives in memory and is built anew when a file's path, size or
/// time of change differs from the last time.
pub struct FolderSearch {
    folder: PathBuf,
    built: Mutex<Option<Arc<Built>>>,
}

/// What a query found, and what could not be searched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Best first.
    pub hits: Vec<Hit>,
    /// What was left out, each with the reason: at most five, and then how
    /// many more there are.
    pub notes: Vec<String>,
}

/// Says why a folder cannot be searched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// The folder is not there, or cannot be listed.
    #[error("the folder {} cannot be searched: {source}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The full-text engine failed.
    #[error("the full-text index failed: {0}")]
    Index(#[from] rusqlite::Error),
}

struct Built {
    scan: Scan,
    notes: Vec<String>,
    index: Mutex<Index>,
}

/// What tells whether a file changed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    path: String,
    kind: Kind,
    size: u64,
    changed: Option<SystemTime>,
}

impl FolderSearch {
    /// Prepares the search of a folder; nothing is read yet.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            built: Mutex::new(None),
        }
    }

    /// Names the folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Finds the `most` best documents for a query.
    ///
    /// Not indexed are hidden files, files whose names begin with `README`,
    /// and kinds other than `.md`, `.markdown`, `.txt`, `.html`, `.htm`.
    /// Blocks while it reads.
    ///
    /// # Errors
    /// When the folder cannot be listed.
    pub fn search(&self, query: &str, most: usize) -> Result<Found, SearchError> {
        let built = self.built()?;
        let index = built.index.lock().unwrap_or_else(PoisonError::into_inner);
        let mut notes: Vec<String> = built.notes.iter().take(MOST_NOTES).cloned().collect();
        let more = built.notes.len() - notes.len();
        if more > 0 {
            let in_what = self.folder.display();
            notes.push(format!("{more} more such notes on files in {in_what}"));
        }
        if query.chars().nth(LONGEST_QUERY).is_some() {
            notes.push(format!(
                "the query is longer than {LONGEST_QUERY} characters: the rest is left out"
            ));
        }
        Ok(Found {
            hits: index.search(query, most)?,
            notes,
        })
    }

    fn built(&self) -> Result<Arc<Built>, SearchError> {
        let failed = |source| SearchError::Folder {
            folder: self.folder.clone(),
            source,
        };
        let root = Dir::open_ambient_dir(&self.folder, ambient_authority()).map_err(failed)?;
        let mut scan = Scan::default();
        scan.folder(&root, "", 0).map_err(failed)?;
        scan.finish();

        // Held while building, so that parallel searches build only once.
        let mut slot = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        match &*slot {
            Some(built) if built.scan == scan => Ok(Arc::clone(built)),
            _ => {
                let built = Arc::new(read_all(&root, scan)?);
                *slot = Some(Arc::clone(&built));
                Ok(built)
            }
        }
    }
}

impl fmt::Debug for FolderSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FolderSearch")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

/// What is in the folder, before anything is read.
#[derive(Debug, Default, PartialEq, Eq)]
struct Scan {
    files: Vec<Entry>,
    notes: Vec<String>,
    names: usize,
}

impl Scan {
    fn folder(&mut self, dir: &Dir, path: &str, depth: usize) -> io::Result<()> {
        if depth > DEEPEST {
            self.notes
                .push(format!("{path}: nested too deep, left out"));
            return Ok(());
        }
        for entry in dir.entries()? {
            let entry = entry?;
            self.names += 1;
            if self.names > MOST_NAMES {
                return Ok(());
            }
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                let shown = name.to_string_lossy();
                self.notes
                    .push(format!("{path}{shown}: the name is not UTF-8, left out"));
                continue;
            };
            if name.starts_with('.') || name.to_ascii_uppercase().starts_with("README") {
                continue;
            }
            let child = format!("{path}{name}");
            if let Err(error) = self.entry(dir, &entry, name, &child, depth) {
                self.notes.push(format!("{child}: {error}, left out"));
            }
        }
        Ok(())
    }

    /// Puts all in an order that does not depend on the file system.
    fn finish(&mut self) {
        if self.names > MOST_NAMES {
            self.notes.push(format!(
                "more than {MOST_NAMES} names in the folder: the rest is left out"
            ));
        }
        self.files.sort_by(|a, b| a.path.cmp(&b.path));
        self.notes.sort();
    }

    fn entry(
        &mut self,
        dir: &Dir,
        entry: &cap_std::fs::DirEntry,
        name: &str,
        child: &str,
        depth: usize,
    ) -> io::Result<()> {
        let kind = entry.file_type()?;
        if kind.is_dir() {
            return self.folder(&dir.open_dir(name)?, &format!("{child}/"), depth + 1);
        }
        let format = Kind::of(name);
        // What a link leads to may be a whole folder of articles.
        let of_interest = format.is_some()
            || kind.is_symlink() && !dir.metadata(name).is_ok_and(|found| found.is_file());
        if !kind.is_file() && of_interest {
            self.notes
                .push(format!("{child}: a link or a special file, left out"));
        }
        let Some(format) = format.filter(|_| kind.is_file()) else {
            return Ok(());
        };
        let found = entry.metadata()?;
        if found.len() > LARGEST_FILE {
            let limit = LARGEST_FILE / 1024 / 1024;
            self.notes
                .push(format!("{child}: larger than {limit} MiB, left out"));
        } else {
            self.files.push(Entry {
                path: child.to_owned(),
                kind: format,
                size: found.len(),
                changed: found.modified().ok(),
            });
        }
        Ok(())
    }
}

fn read_all(root: &Dir, scan: Scan) -> Result<Built, SearchError> {
    let mut notes = scan.notes.clone();
    let mut documents = Vec::new();
    let mut total = 0;
    let mut over = 0;
    for file in &scan.files {
        if documents.len() >= MOST_FILES || total + file.size > LARGEST_TOTAL {
            over += 1;
            continue;
        }
        match read_text(root, &file.path) {
            Ok(text) => {
                total += text.len() as u64;
                let (document, left_out) = Document::read(file.kind, &file.path, &text);
                documents.push(document);
                notes.extend(left_out.iter().map(|note| format!("{}: {note}", file.path)));
            }
            Err(reason) => notes.push(format!("{}: {reason}, left out", file.path)),
        }
    }
    if over > 0 {
        notes.push(format!(
            "{over} files left out: the folder holds more than {MOST_FILES} files or {} MiB",
            LARGEST_TOTAL / 1024 / 1024
        ));
    }
    notes.sort();
    Ok(Built {
        scan,
        notes,
        index: Mutex::new(Index::build(documents)?),
    })
}

fn read_text(root: &Dir, path: &str) -> Result<String, String> {
    let file = root.open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    // The file may have grown since it was listed.
    file.take(LARGEST_FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if bytes.contains(&0) {
        return Err("a binary file".to_owned());
    }
    String::from_utf8(bytes).map_err(|_| "not UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn folder() -> tempfile::TempDir {
        let disk = tempfile::tempdir().unwrap();
        std::fs::create_dir(disk.path().join("deep")).unwrap();
        let put = |path: &str, text: &[u8]| std::fs::write(disk.path().join(path), text).unwrap();
        put("a.md", "# 电池\n\n固态电池量产。".as_bytes());
        put("deep/b.html", b"<title>Tea</title><p>Green tea.");
        put("c.txt", b"Trains\nNight trains return.");
        put("README.md", "电池 tea trains".as_bytes());
        put(".hidden.md", "电池".as_bytes());
        put("image.png", b"\x89PNG");
        put("binary.txt", b"tea\0tea");
        put("latin.md", b"caf\xe9 tea");
        put("huge.md", &vec![b'x'; LARGEST_FILE as usize + 1]);
        disk
    }

    fn titles(search: &FolderSearch, query: &str) -> Vec<String> {
        let found = search.search(query, 5).unwrap();
        found.hits.into_iter().map(|hit| hit.title).collect()
    }

    #[test]
    fn files_of_all_kinds_are_found_and_others_are_noted() {
        let disk = folder();
        let search = FolderSearch::new(disk.path());
        assert_eq!(titles(&search, "固态电池"), ["电池"]);
        assert_eq!(titles(&search, "tea"), ["Tea"]);
        assert_eq!(titles(&search, "train"), ["Trains"]);
        insta::assert_snapshot!(search.search("x", 5).unwrap().notes.join("\n"), @"
        binary.txt: a binary file, left out
        huge.md: larger than 2 MiB, left out
        latin.md: not UTF-8, left out
        ");
    }

    #[test]
    fn the_index_follows_the_folder() {
        let disk = folder();
        let search = FolderSearch::new(disk.path());
        assert_eq!(titles(&search, "zeppelin"), Vec::<String>::new());
        let built = search.built().unwrap();
        assert!(Arc::ptr_eq(&built, &search.built().unwrap()));
        std::fs::write(disk.path().join("z.md"), "# Zeppelin\n").unwrap();
        assert_eq!(titles(&search, "zeppelin"), ["Zeppelin"]);
        std::fs::write(disk.path().join("z.md"), "# Balloon\n").unwrap();
        assert_eq!(titles(&search, "balloon"), ["Balloon"]);
        std::fs::write(
            disk.path().join("y.md"),
            vec![b'x'; LARGEST_FILE as usize + 1],
        )
        .unwrap();
        let notes = search.search("balloon", 5).unwrap().notes;
        assert!(
            notes.iter().any(|note| note.starts_with("y.md: larger")),
            "{notes:?}"
        );
        std::fs::remove_file(disk.path().join("z.md")).unwrap();
        assert_eq!(titles(&search, "balloon"), Vec::<String>::new());
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_followed() {
        let disk = folder();
        let link = |to: &str, name: &str| {
            std::os::unix::fs::symlink(to, disk.path().join(name)).unwrap();
        };
        link("a.md", "link.md");
        link("deep", "folder");
        link("/usr", "outside");
        link("image.png", "picture");
        for name in ["binary.txt", "huge.md", "latin.md"] {
            std::fs::remove_file(disk.path().join(name)).unwrap();
        }
        let found = FolderSearch::new(disk.path()).search("电池", 5).unwrap();
        assert_eq!(found.hits.len(), 1);
        insta::assert_snapshot!(found.notes.join("\n"), @"
        folder: a link or a special file, left out
        link.md: a link or a special file, left out
        outside: a link or a special file, left out
        ");
    }

    #[test]
    fn many_notes_are_counted_instead_of_told() {
        let disk = tempfile::tempdir().unwrap();
        for n in 0..8 {
            std::fs::write(disk.path().join(format!("{n}.txt")), b"\xff").unwrap();
        }
        let search = FolderSearch::new(disk.path());
        let notes = search.search(&"茶".repeat(501), 5).unwrap().notes;
        let notes = notes
            .join("\n")
            .replace(disk.path().to_str().unwrap(), "DIR");
        insta::assert_snapshot!(notes, @"
        0.txt: not UTF-8, left out
        1.txt: not UTF-8, left out
        2.txt: not UTF-8, left out
        3.txt: not UTF-8, left out
        4.txt: not UTF-8, left out
        3 more such notes on files in DIR
        the query is longer than 500 characters: the rest is left out
        ");
    }

    #[test]
    fn a_missing_folder_is_an_error_that_names_it() {
        let error = FolderSearch::new("no/such/folder")
            .search("x", 1)
            .unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("the folder no/such/folder cannot be searched:")
        );
    }
}
