use std::io;

use async_trait::async_trait;
use cap_std::fs::Dir;
use serde::Deserialize;

use super::cut;
use crate::cx::ToolCx;
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::paths::{Access, Folder, PathError, ThreadFolders, misleads};
use crate::schema::{ArgSchema, Args};
use crate::spec::{Effect, Source, ToolSpec};
use crate::tool::Tool;

const ARGS: &str = r#"{
  "type": "object",
  "properties": {
    "description": {"type": "string", "description": "Why the folder is listed, in a few words."},
    "path": {"type": "string", "description": "Full path of the folder, at or below /mnt/user-data."}
  },
  "required": ["path"],
  "additionalProperties": false
}"#;

/// How many levels of folders are shown.
const LEVELS: usize = 2;

/// Names that are of no interest: version control, caches, build results,
/// leftovers. A `*` stands for anything, at one end only.
const IGNORED: &[&str] = &[
    ".git",
    ".svn",
    ".hg",
    ".bzr",
    "node_modules",
    "__pycache__",
    ".venv",
    "venv",
    ".env",
    "env",
    ".tox",
    ".nox",
    ".eggs",
    "*.egg-info",
    "site-packages",
    "dist",
    "build",
    ".next",
    ".nuxt",
    ".output",
    ".turbo",
    "target",
    "out",
    ".idea",
    ".vscode",
    "*.swp",
    "*.swo",
    "*~",
    ".project",
    ".classpath",
    ".settings",
    ".DS_Store",
    "Thumbs.db",
    "desktop.ini",
    "*.lnk",
    "*.log",
    "*.tmp",
    "*.temp",
    "*.bak",
    "*.cache",
    ".cache",
    "logs",
    ".coverage",
    "coverage",
    ".nyc_output",
    "htmlcov",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".upload-*",
];

/// Lists a folder, two levels deep.
pub(crate) struct Ls {
    spec: ToolSpec,
    most_chars: usize,
}

#[derive(Deserialize)]
struct Wanted {
    path: String,
}

impl Ls {
    pub(crate) fn new(most_chars: usize) -> Self {
        let spec = ToolSpec::new(
            Source::Config,
            "ls",
            "Lists a folder of this thread, two levels deep, one full path a line; folders end in /. Caches, build results and version control are left out.",
            ArgSchema::literal(ARGS),
        );
        Self {
            spec: spec.effect(Effect::ReadOnly),
            most_chars,
        }
    }
}

#[async_trait]
impl Tool for Ls {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, cx: &ToolCx, args: Args) -> Result<ToolOutput, ToolError> {
        let wanted: Wanted = crate::schema::typed(args)?;
        let folders = cx.folders().clone();
        let Listing { lines, ignored } =
            cx.blocking(move || list(&folders, &wanted.path)).await??;
        if lines.is_empty() {
            return Ok(ToolOutput::text(match ignored.first() {
                None => "(empty)".to_owned(),
                Some(name) => format!(
                    "(nothing to show: {} left out, such as {name})",
                    match ignored.len() {
                        1 => "one name is".to_owned(),
                        many => format!("{many} names are"),
                    }
                ),
            }));
        }
        let hint = "Use a more specific path to see fewer results";
        Ok(ToolOutput::text(cut(
            lines.join("\n"),
            self.most_chars,
            hint,
        )))
    }
}

/// What a folder holds, sorted.
#[derive(Default)]
struct Listing {
    lines: Vec<String>,
    ignored: Vec<String>,
}

fn list(folders: &ThreadFolders, asked: &str) -> Result<Listing, PathError> {
    let path = folders.resolve(asked, Access::Read)?;
    let dir = path.open_folder()?;
    let failed = |source| PathError::Io {
        path: asked.to_owned(),
        source,
    };
    let mut found = Listing::default();
    match path.folder() {
        Some(_) => walk(folders, &dir, &path.virtual_path(), 1, &mut found).map_err(failed)?,
        // The root itself: only the three folders are the thread's.
        None => {
            for folder in Folder::ALL {
                let child = format!("{}/{}", path.virtual_path(), folder.name());
                found.lines.push(format!("{child}/"));
                let dir = dir.open_dir(folder.name()).map_err(failed)?;
                walk(folders, &dir, &child, 2, &mut found).map_err(failed)?;
            }
        }
    }
    found.lines.sort();
    found.ignored.sort();
    Ok(found)
}

fn walk(
    folders: &ThreadFolders,
    dir: &Dir,
    path: &str,
    level: usize,
    found: &mut Listing,
) -> io::Result<()> {
    for entry in dir.entries()? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if IGNORED.iter().any(|pattern| fits(pattern, &name)) {
            found.ignored.push(shown(&name));
            continue;
        }
        let child = format!("{path}/{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() {
            found.lines.push(shown(&child) + "/");
            if level < LEVELS {
                walk(folders, &entry.open_dir()?, &child, level + 1, found)?;
            }
        } else if !kind.is_symlink() {
            found.lines.push(shown(&child));
        } else if let Ok(target) = folders.resolve(&child, Access::Read) {
            // A link that leads out is as good as not there.
            let end = if target.open_folder().is_ok() {
                "/"
            } else {
                ""
            };
            found.lines.push(shown(&child) + end);
        }
    }
    Ok(())
}

/// Writes a name so that it cannot pass for another, or for two lines.
fn shown(name: &str) -> String {
    let mut shown = String::with_capacity(name.len());
    for c in name.chars() {
        match misleads(c) {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    shown
}

fn fits(pattern: &str, name: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(end), _) => name.ends_with(end),
        (None, Some(start)) => name.starts_with(start),
        (None, None) => name == pattern,
    }
}
