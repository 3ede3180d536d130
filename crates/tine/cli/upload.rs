//! Files that a user hands in with a message.

use super::Cx;
use super::failure::Failure;
use super::host::Host;
use super::terminal::line::{clean_name, size_of};
use serde_json::json;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use tine::engine::message::ORIGINAL_CONTENT;
use tine::engine::{Message, ThreadKey, Value};
use tine::tools::config::Uploads as Limits;
use tine::tools::paths::{Access, PathError, ResolvedPath, ThreadFolders, misleads};

/// The channel in which a graph finds what was handed in, if it takes one.
pub(crate) const CHANNEL: &str = "uploaded_files";

/// How long the name of a file may become, in bytes; a number can still be added.
const LONGEST_NAME: usize = 240;

/// How many names are tried for a file before it is given up.
const MOST_NAMES: usize = 1000;

/// Files of the host that can be handed in.
#[derive(Debug)]
pub(crate) struct Sources {
    files: Vec<Source>,
    limits: Limits,
}

#[derive(Debug)]
struct Source {
    shown: String,
    /// The name it gets.
    name: String,
    file: File,
}

impl Sources {
    /// Opens all files, so that none is copied if one can not be.
    pub(crate) fn open(cx: &Cx, host: &Host, paths: &[PathBuf]) -> Result<Self, Failure> {
        let limits = host.uploads();
        if paths.len() > limits.max_files {
            return Err(Failure::usage(format!(
                "{} files are too many for one message; it takes {}",
                paths.len(),
                limits.max_files
            ))
            .hint("`uploads.max_files` in the configuration, or `--set uploads.max_files=N`, allows more"));
        }
        let mut files = Vec::new();
        let mut total = 0;
        for path in paths {
            let shown = clean_name(&path.display().to_string());
            let (source, size) = open(&cx.env.directory.join(path), shown, limits)?;
            total += size;
            files.push(source);
        }
        if total > limits.max_total_size as u64 {
            return Err(Failure::usage(format!(
                "the files are {} together, and one message takes {}",
                size_of(total),
                size_of(limits.max_total_size as u64)
            ))
            .hint("`uploads.max_total_size` in the configuration, in bytes, allows more"));
        }
        Ok(Self { files, limits })
    }

    /// Copies the files into the folder of a thread. What was copied is taken away again if one can not be.
    pub(crate) fn bring(self, host: &Host, thread: &ThreadKey) -> Result<Uploads, Failure> {
        let mut uploads = Uploads::default();
        if self.files.is_empty() {
            return Ok(uploads);
        }
        let folders = host.home().thread(thread)?;
        for source in self.files {
            let brought = bring(&folders, source, self.limits);
            match brought {
                Ok((place, is_new, size)) => uploads.add(place, is_new, size),
                Err(failure) => {
                    uploads.take_back();
                    return Err(failure);
                }
            }
        }
        Ok(uploads)
    }
}

fn open(path: &Path, shown: String, limits: Limits) -> Result<(Source, u64), Failure> {
    let refused = |error: std::io::Error| {
        Failure::usage(format!("{shown} can not be read: {error}"))
            .hint("`--upload` takes the path of a file")
    };
    // Looked at before it is opened: opening a pipe waits for a writer.
    let found = std::fs::metadata(path).map_err(refused)?;
    if found.is_dir() {
        return Err(
            Failure::usage(format!("{shown} is a folder, and `--upload` takes files"))
                .hint("give `--upload` once for each file, or pack the folder into one"),
        );
    }
    if !found.is_file() {
        return Err(Failure::usage(format!(
            "{shown} is no plain file, and `--upload` takes nothing else"
        ))
        .hint("save what it gives to a file first"));
    }
    let file = File::open(path).map_err(refused)?;
    let size = file.metadata().map_err(refused)?.len();
    if size > limits.max_file_size as u64 {
        return Err(too_large(&shown, size, limits));
    }
    let name = path.file_name().map(|name| name.to_string_lossy());
    let name = plain_name(&name.unwrap_or_default()).ok_or_else(|| {
        Failure::usage(format!("{shown} has no name that a file can get"))
            .hint("rename the file first")
    })?;
    Ok((Source { shown, name, file }, size))
}

fn too_large(shown: &str, size: u64, limits: Limits) -> Failure {
    Failure::usage(format!(
        "{shown} is too large: {}, and a file may have {}",
        size_of(size),
        size_of(limits.max_file_size as u64)
    ))
    .hint("`uploads.max_file_size` in the configuration, in bytes, allows more")
}

/// A name that looks like what it is: no folder in front, no character that hides another.
fn plain_name(name: &str) -> Option<String> {
    let bad = |c: char| misleads(c) || matches!(c, '/' | '\\' | '<' | '>' | '\u{fffd}');
    let name: String = name.chars().map(|c| if bad(c) { '_' } else { c }).collect();
    let name = name.trim();
    if matches!(name, "" | "." | "..") {
        return None;
    }
    let (stem, end) = parts(name);
    let room = LONGEST_NAME.saturating_sub(end.len());
    let mut cut = stem.len().min(room);
    while !stem.is_char_boundary(cut) {
        cut -= 1;
    }
    Some(format!("{}{end}", &stem[..cut]))
}

/// A name without its ending, and the ending with its dot.
fn parts(name: &str) -> (&str, &str) {
    const LONGEST_END: usize = 24;
    match name.rfind('.') {
        Some(at) if at > 0 && name.len() - at <= LONGEST_END => name.split_at(at),
        _ => (name, ""),
    }
}

/// Copies one file. Gives where it is, whether it is new there, and its size.
fn bring(
    folders: &ThreadFolders,
    mut source: Source,
    limits: Limits,
) -> Result<(ResolvedPath, bool, u64), Failure> {
    let shown = source.shown;
    let mut content = Vec::new();
    (&mut source.file)
        .take((limits.max_file_size as u64).saturating_add(1))
        .read_to_end(&mut content)
        .map_err(|error| {
            Failure::usage(format!("{shown} can not be read: {error}"))
                .hint("nothing was run, and nothing was handed in")
        })?;
    let size = content.len() as u64;
    if size > limits.max_file_size as u64 {
        return Err(too_large(&shown, size, limits));
    }
    let refused = |error: PathError| {
        Failure::usage(format!("{shown} can not be handed in: {error}"))
            .hint("nothing was run, and nothing was handed in")
    };
    let (stem, end) = parts(&source.name);
    let mut problem = None;
    for number in 0..MOST_NAMES {
        let name = match number {
            0 => source.name.clone(),
            number => format!("{stem}_{number}{end}"),
        };
        let path = format!("/mnt/user-data/uploads/{name}");
        let place = match folders.resolve(&path, Access::Write) {
            Ok(place) => place,
            // Something else than a file of the thread stands there.
            Err(error) => {
                problem = Some(error);
                continue;
            }
        };
        if !place.exists() {
            place.write(&content).map_err(refused)?;
            return Ok((place, true, size));
        }
        if holds(&place, &content) {
            return Ok((place, false, size));
        }
    }
    Err(match problem {
        Some(error) => refused(error),
        None => Failure::usage(format!(
            "{shown} can not be handed in: the thread has {MOST_NAMES} files of this name"
        ))
        .hint("rename the file first"),
    })
}

/// Whether this is what the file holds.
fn holds(place: &ResolvedPath, content: &[u8]) -> bool {
    let Ok(file) = place.open() else {
        return false;
    };
    let mut found = Vec::new();
    let most = (content.len() as u64).saturating_add(1);
    file.take(most).read_to_end(&mut found).is_ok() && found == content
}

/// Files that a thread has got.
#[derive(Debug, Default)]
pub(crate) struct Uploads {
    files: Vec<Upload>,
}

#[derive(Debug)]
struct Upload {
    place: ResolvedPath,
    is_new: bool,
    path: String,
    size: u64,
}

impl Uploads {
    fn add(&mut self, place: ResolvedPath, is_new: bool, size: u64) {
        let path = place.virtual_path();
        // One file that was named twice.
        if self.files.iter().all(|file| file.path != path) {
            self.files.push(Upload {
                place,
                is_new,
                path,
                size,
            });
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Takes away again what was copied: the message that it belongs to was refused.
    pub(crate) fn take_back(&self) {
        for file in self.files.iter().filter(|file| file.is_new) {
            // The refusal is told; that a copy is left behind as well changes nothing about it.
            file.place.remove().ok();
        }
    }

    /// A message with the text, that tells of the files first.
    pub(crate) fn message(&self, text: &str) -> Message {
        let mut content =
            "<current_uploads>\nThe user handed these files in with this message:\n\n".to_owned();
        for file in &self.files {
            // Writing to a text does not fail.
            writeln!(
                content,
                "- {} ({})\n  Path: {}",
                file.name(),
                size_of(file.size),
                file.path
            )
            .ok();
        }
        content.push_str(
            "\nTheir contents are not part of the message: read what you need with `read_file`.\n</current_uploads>",
        );
        if !text.trim().is_empty() {
            content.push_str("\n\n");
            content.push_str(text);
        }
        let mut message = Message::human(content);
        message.additional_kwargs = Some(Value::from_json(json!({
            "files": self.files.iter().map(|file| {
                let mut entry = file.entry();
                entry["status"] = "uploaded".into();
                entry
            }).collect::<Vec<_>>(),
            ORIGINAL_CONTENT: text,
        })));
        message
    }

    /// What the channel of uploads gets.
    pub(crate) fn value(&self) -> Value {
        let entries = self.files.iter().map(|file| {
            let mut entry = file.entry();
            entry["extension"] = parts(file.name()).1.into();
            entry
        });
        Value::from_json(entries.collect())
    }
}

impl Upload {
    fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    fn entry(&self) -> serde_json::Value {
        json!({"filename": self.name(), "size": self.size, "path": self.path})
    }
}
