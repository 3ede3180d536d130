use async_trait::async_trait;
use serde::Deserialize;

use crate::cx::ToolCx;
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::paths::Access;
use crate::schema::{ArgSchema, Args};
use crate::spec::{Effect, Source, ToolSpec};
use crate::tool::Tool;

/// How much one call writes, unless the configuration says otherwise: models
/// lose the end of longer arguments.
pub(crate) const DEFAULT_MOST_BYTES: usize = 80 * 1024;

const ARGS: &str = r#"{
  "type": "object",
  "properties": {
    "description": {"type": "string", "description": "Why the file is written, in a few words."},
    "path": {"type": "string", "description": "Full path of the file, below /mnt/user-data/workspace or /mnt/user-data/outputs."},
    "content": {"type": "string", "description": "The text to write."},
    "append": {"type": "boolean", "default": false, "description": "Add the text at the end instead of replacing the file."}
  },
  "required": ["path", "content"],
  "additionalProperties": false
}"#;

/// Writes a text file, or adds to one.
pub(crate) struct WriteFile {
    spec: ToolSpec,
    most_bytes: usize,
}

#[derive(Deserialize)]
struct Wanted {
    path: String,
    content: String,
    #[serde(default)]
    append: bool,
}

impl WriteFile {
    /// Makes the tool; `most_bytes` bounds what one call writes, 0 for no
    /// bound.
    pub(crate) fn new(most_bytes: usize) -> Self {
        let spec = ToolSpec::new(
            Source::Config,
            "write_file",
            "Writes a text file of this thread, creating missing folders. An existing file is replaced, unless append is true.",
            ArgSchema::literal(ARGS),
        );
        Self {
            spec: spec.effect(Effect::Idempotent),
            most_bytes,
        }
    }
}

#[async_trait]
impl Tool for WriteFile {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effect(&self, args: &Args) -> Effect {
        match args.get("append").and_then(serde_json::Value::as_bool) {
            Some(true) => Effect::Effectful,
            _ => Effect::Idempotent,
        }
    }

    async fn call(&self, cx: &ToolCx, args: Args) -> Result<ToolOutput, ToolError> {
        let wanted: Wanted = crate::schema::typed(args)?;
        let bytes = wanted.content.len();
        if !wanted.append && self.most_bytes > 0 && bytes > self.most_bytes {
            return Err(ToolError::failed(format!(
                "content has {bytes} bytes, more than the {} that one call may write: write the first part, then add the others with append",
                self.most_bytes
            )));
        }
        let path = cx.folders().resolve(&wanted.path, Access::Write)?;
        cx.blocking(move || match wanted.append {
            true => path.append(wanted.content.as_bytes()),
            false => path.write(wanted.content.as_bytes()),
        })
        .await??;
        Ok(ToolOutput::text("OK"))
    }
}
