use std::io::{self, BufRead, BufReader, Read};

use async_trait::async_trait;
use serde::Deserialize;

use super::cut;
use crate::cx::ToolCx;
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::paths::{Access, PathError, ResolvedPath};
use crate::schema::{ArgSchema, Args};
use crate::spec::{Effect, Source, ToolSpec};
use crate::tool::Tool;

/// More text is not read into memory, whatever is shown of it.
const LARGEST: u64 = 16 * 1024 * 1024;

const ARGS: &str = r#"{
  "type": "object",
  "properties": {
    "description": {"type": "string", "description": "Why the file is read, in a few words."},
    "path": {"type": "string", "description": "Full path of the file, below /mnt/user-data."},
    "start_line": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": null, "description": "First line to read, counted from 1."},
    "end_line": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": null, "description": "Last line to read, included."}
  },
  "required": ["path"],
  "additionalProperties": false
}"#;

/// Reads a text file, whole or a range of lines.
pub(crate) struct ReadFile {
    spec: ToolSpec,
    most_chars: usize,
}

#[derive(Deserialize)]
struct Wanted {
    path: String,
    start_line: Option<i64>,
    end_line: Option<i64>,
}

impl ReadFile {
    pub(crate) fn new(most_chars: usize) -> Self {
        let spec = ToolSpec::new(
            Source::Config,
            "read_file",
            "Reads a UTF-8 text file of this thread: all of it, or the lines from start_line to end_line.",
            ArgSchema::literal(ARGS),
        );
        Self {
            spec: spec.effect(Effect::ReadOnly),
            most_chars,
        }
    }
}

#[async_trait]
impl Tool for ReadFile {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, cx: &ToolCx, args: Args) -> Result<ToolOutput, ToolError> {
        let wanted: Wanted = crate::schema::typed(args)?;
        let first = line("start_line", wanted.start_line)?;
        let last = line("end_line", wanted.end_line)?;
        if let (Some(first), Some(last)) = (first, last)
            && first > last
        {
            return Err(ToolError::failed(format!(
                "start_line {first} is after end_line {last}: there are no lines between them"
            )));
        }
        let path = cx.folders().resolve(&wanted.path, Access::Read)?;
        let read = move || match (first, last) {
            (None, None) => whole(&path, &wanted.path).map(Lines::Text),
            _ => lines(&path, &wanted.path, first.unwrap_or(1), last),
        };
        let text = match cx.blocking(read).await?? {
            Lines::Text(text) => text,
            Lines::Beyond { total } => {
                return Ok(ToolOutput::text(format!(
                    "(start_line exceeds file length: the file has {total} lines)"
                )));
            }
        };
        if text.is_empty() {
            return Ok(ToolOutput::text("(empty)"));
        }
        let hint = "Use start_line/end_line to read a specific range";
        Ok(ToolOutput::text(cut(text, self.most_chars, hint)))
    }
}

fn line(name: &str, number: Option<i64>) -> Result<Option<usize>, ToolError> {
    match number.map(usize::try_from) {
        None => Ok(None),
        Some(Ok(number)) if number >= 1 => Ok(Some(number)),
        Some(_) => Err(ToolError::failed(format!(
            "{name} must be 1 or more: lines are counted from 1"
        ))),
    }
}

/// What stands at the lines that were asked for.
enum Lines {
    Text(String),
    /// The file ends before them.
    Beyond {
        total: usize,
    },
}

fn whole(path: &ResolvedPath, asked: &str) -> Result<String, ToolError> {
    let mut bytes = Vec::new();
    path.open()?
        .take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| failed(asked, source))?;
    if bytes.len() as u64 > LARGEST {
        return Err(ToolError::failed(format!(
            "`{asked}` is larger than {} MiB: read it in parts, with start_line and end_line",
            LARGEST / 1024 / 1024
        )));
    }
    text(bytes, asked)
}

/// Reads lines without keeping those before them: the file may be of any size.
fn lines(
    path: &ResolvedPath,
    asked: &str,
    first: usize,
    last: Option<usize>,
) -> Result<Lines, ToolError> {
    let failed = |source| failed(asked, source);
    let mut file = BufReader::new(path.open()?);
    for before in 0..first - 1 {
        if file.skip_until(b'\n').map_err(failed)? == 0 {
            return Ok(Lines::Beyond { total: before });
        }
    }
    let mut bytes = Vec::new();
    for line in first..=last.unwrap_or(usize::MAX) {
        let room = (LARGEST + 1).saturating_sub(bytes.len() as u64);
        let read = file.by_ref().take(room).read_until(b'\n', &mut bytes);
        if read.map_err(failed)? == 0 {
            if line == first && first > 1 {
                return Ok(Lines::Beyond { total: first - 1 });
            }
            break;
        }
        if bytes.len() as u64 > LARGEST {
            return Err(ToolError::failed(format!(
                "these lines of `{asked}` are larger than {} MiB: read fewer at once",
                LARGEST / 1024 / 1024
            )));
        }
    }
    let lines: Vec<String> = text(bytes, asked)?.lines().map(str::to_owned).collect();
    Ok(Lines::Text(lines.join("\n")))
}

fn text(bytes: Vec<u8>, asked: &str) -> Result<String, ToolError> {
    let binary = bytes.contains(&0);
    match String::from_utf8(bytes) {
        Ok(text) if !binary => Ok(text),
        _ => Err(ToolError::failed(format!(
            "`{asked}` is not UTF-8 text: it may be an image, a spreadsheet or another binary file, which read_file cannot show"
        ))),
    }
}

fn failed(asked: &str, source: io::Error) -> PathError {
    PathError::Io {
        path: asked.to_owned(),
        source,
    }
}
