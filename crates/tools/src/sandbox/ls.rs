use std::io;

use async_trait::async_trait;
use cap_std::fs::Dir;
use serde::Deserialize;

use super::cut;
use crate::cx::ToolCx;
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::paths::{Access, Folder, PathError, ThreadFolders};
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
        let lines = cx.blocking(move || list(&folders, &wanted.path)).await??;
        if lines.is_empty() {
            return Ok(ToolOutput::text("(empty)"));
        }
        let hint = "Use a more specific path to see fewer results";
        Ok(ToolOutput::text(cut(
            lines.join("\n"),
            self.most_chars,
            hint,
        )))
    }
}

fn list(folders: &ThreadFolders, asked: &str) -> Result<Vec<String>, PathError> {
    let path = folders.resolve(asked, Access::Read)?;
    let dir = path.open_folder()?;
    let failed = |source| PathError::Io {
        path: asked.to_owned(),
        source,
    };
    let mut lines = Vec::new();
    match path.folder() {
        Some(_) => walk(folders, &dir, &path.virtual_path(), 1, &mut lines).map_err(failed)?,
        // The root itself: only the three folders are the thread's.
        None => {
            for folder in Folder::ALL {
                let child = format!("{}/{}", path.virtual_path(), folder.name());
                lines.push(format!("{child}/"));
                let dir = dir.open_dir(folder.name()).map_err(failed)?;
                walk(folders, &dir, &child, 2, &mut lines).map_err(failed)?;
            }
        }
    }
    lines.sort();
    Ok(lines)
}

fn walk(
    folders: &ThreadFolders,
    dir: &Dir,
    path: &str,
    level: usize,
    lines: &mut Vec<String>,
) -> io::Result<()> {
    for entry in dir.entries()? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if IGNORED.iter().any(|pattern| fits(pattern, &name)) {
            continue;
        }
        let child = format!("{path}/{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() {
            lines.push(format!("{child}/"));
            if level < LEVELS {
                walk(folders, &entry.open_dir()?, &child, level + 1, lines)?;
            }
        } else if !kind.is_symlink() {
            lines.push(child);
        } else if let Ok(target) = folders.resolve(&child, Access::Read) {
            // A link that leads out is as good as not there.
            let end = if target.open_folder().is_ok() {
                "/"
            } else {
                ""
            };
            lines.push(format!("{child}{end}"));
        }
    }
    Ok(())
}

fn fits(pattern: &str, name: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(end), _) => name.ends_with(end),
        (None, Some(start)) => name.starts_with(start),
        (None, None) => name == pattern,
    }
}
