use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use tine_engine::{Update, Value};

use crate::cx::ToolCx;
use crate::error::ToolError;
use crate::output::{ToolCommand, ToolOutput};
use crate::paths::{Access, Folder, ThreadFolders};
use crate::schema::{ArgSchema, Args};
use crate::spec::{Effect, Source, ToolSpec};
use crate::tool::Tool;

const ARGS: &str = r#"{
  "type": "object",
  "properties": {
    "filepaths": {
      "type": "array",
      "items": {"type": "string"},
      "minItems": 1,
      "description": "Full paths of the files to present, all below /mnt/user-data/outputs."
    }
  },
  "required": ["filepaths"],
  "additionalProperties": false
}"#;

/// Shows finished files to the user.
///
/// The paths become artifacts of the thread, so a front end never has to find
/// paths in what a model says: each is a file below outputs that exists.
pub(crate) struct PresentFiles {
    spec: ToolSpec,
}

#[derive(Deserialize)]
struct Wanted {
    filepaths: Vec<String>,
}

impl PresentFiles {
    pub(crate) fn new() -> Self {
        let spec = ToolSpec::new(
            Source::Builtin,
            "present_files",
            "Presents finished files to the user. Only files that exist below /mnt/user-data/outputs can be presented; write or copy them there first.",
            ArgSchema::literal(ARGS),
        );
        Self {
            spec: spec.effect(Effect::Idempotent).writes("artifacts"),
        }
    }
}

#[async_trait]
impl Tool for PresentFiles {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, cx: &ToolCx, args: Args) -> Result<ToolOutput, ToolError> {
        let wanted: Wanted = crate::schema::typed(args)?;
        let mut presented = Vec::new();
        let mut refused = Vec::new();
        for path in &wanted.filepaths {
            match presentable(cx.folders(), path) {
                Ok(path) if presented.contains(&path) => {}
                Ok(path) => presented.push(path),
                Err(error) => refused.push(error.to_string()),
            }
        }
        if !refused.is_empty() {
            return Err(ToolError::failed(format!(
                "nothing was presented:\n- {}",
                refused.join("\n- ")
            )));
        }
        let paths: Vec<Value> = presented
            .iter()
            .map(|path| Value::Text(Arc::from(path.as_str())))
            .collect();
        Ok(ToolOutput::Command(ToolCommand {
            update: Update::new().set("artifacts", paths),
            route: None,
            reply: Some(format!("Presented to the user: {}", presented.join(", ")).into()),
        }))
    }
}

/// Gives the path under which a file is presented.
fn presentable(folders: &ThreadFolders, path: &str) -> Result<String, ToolError> {
    // Models leave the first slash out now and then; it can mean nothing else.
    let full = match path.starts_with("mnt/user-data/") {
        true => format!("/{path}"),
        false => path.to_owned(),
    };
    let found = folders.resolve(&full, Access::Read)?;
    if found.folder() != Some(Folder::Outputs) {
        return Err(ToolError::failed(format!(
            "`{path}` is not below /mnt/user-data/outputs: write or copy the file there first"
        )));
    }
    found.require_file()?;
    Ok(found.virtual_path())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;
    use crate::fixture::Fixture;

    async fn artifacts(f: &Fixture, paths: &[&str]) -> (Vec<String>, String) {
        let output = f
            .call(PresentFiles::new(), json!({"filepaths": paths}))
            .await
            .unwrap();
        let ToolOutput::Command(command) = output else {
            return Default::default();
        };
        let written: Vec<String> = command
            .update
            .iter()
            .map(|(channel, write)| format!("{channel}: {}", serde_json::to_string(write).unwrap()))
            .collect();
        (written, command.reply.unwrap_or_default().text())
    }

    #[tokio::test]
    async fn files_below_outputs_become_artifacts() {
        let f = Fixture::new();
        f.put("outputs/a.md", "a");
        f.put("outputs/sub/报告.md", "b");
        #[cfg(unix)]
        std::os::unix::fs::symlink("a.md", f.cx.folders().host_root().join("outputs/in.md"))
            .unwrap();
        let (written, reply) = artifacts(
            &f,
            &[
                "/mnt/user-data/outputs/a.md",
                "mnt/user-data/outputs//sub/报告.md",
                "/mnt/user-data/outputs/in.md",
            ],
        )
        .await;
        insta::assert_snapshot!(written.join("\n"), @r#"
        artifacts: {"value":["/mnt/user-data/outputs/a.md","/mnt/user-data/outputs/sub/报告.md"]}
        "#);
        insta::assert_snapshot!(reply, @"Presented to the user: /mnt/user-data/outputs/a.md, /mnt/user-data/outputs/sub/报告.md");
    }

    #[tokio::test]
    async fn what_cannot_be_presented_is_told_and_nothing_is() {
        let f = Fixture::new();
        f.put("outputs/a.md", "a");
        f.put("workspace/w.md", "w");
        #[cfg(unix)]
        {
            let outputs = f.cx.folders().host_root().join("outputs");
            std::os::unix::fs::symlink("../workspace/w.md", outputs.join("w.md")).unwrap();
            std::os::unix::fs::symlink("/etc/hostname", outputs.join("out.md")).unwrap();
        }
        let cases = [
            json!({"filepaths": ["/mnt/user-data/outputs/a.md", "/mnt/user-data/outputs/none.md", "/etc/passwd"]}),
            json!({"filepaths": ["/mnt/user-data/workspace/w.md"]}),
            json!({"filepaths": ["/mnt/user-data/outputs/w.md"]}),
            json!({"filepaths": ["/mnt/user-data/outputs/out.md"]}),
            json!({"filepaths": ["/mnt/user-data/outputs/../workspace/w.md"]}),
            json!({"filepaths": ["/mnt/user-data/outputs"]}),
            json!({"filepaths": ["a.md"]}),
            json!({"filepaths": [f.cx.folders().host_root().join("outputs/a.md")]}),
            json!({"filepaths": []}),
            json!({"filepaths": "/mnt/user-data/outputs/a.md"}),
            json!({"filepaths": [1]}),
            json!({"files": []}),
        ];
        let mut lines = Vec::new();
        for args in cases {
            lines.push(f.say(PresentFiles::new(), args).await);
        }
        let host = f.cx.folders().host_root().display().to_string();
        insta::assert_snapshot!(lines.join("\n").replace(&host, "HOST"), @r#"
        error: nothing was presented:
        - `/mnt/user-data/outputs/none.md` does not exist: list its folder with ls to see what is there
        - `/etc/passwd` is outside this thread's folders: use a path below /mnt/user-data/workspace, /mnt/user-data/uploads or /mnt/user-data/outputs
        error: nothing was presented:
        - `/mnt/user-data/workspace/w.md` is not below /mnt/user-data/outputs: write or copy the file there first
        error: nothing was presented:
        - `/mnt/user-data/outputs/w.md` is not below /mnt/user-data/outputs: write or copy the file there first
        error: nothing was presented:
        - `/mnt/user-data/outputs/out.md` follows a link that leads out of this thread's folders: use a file inside them
        error: nothing was presented:
        - `/mnt/user-data/outputs/../workspace/w.md` goes up with `..`: write the path without it
        error: nothing was presented:
        - `/mnt/user-data/outputs` is a folder, not a file
        error: nothing was presented:
        - `a.md` is a relative path: give the full one, such as /mnt/user-data/workspace/a.md
        error: nothing was presented:
        - `HOST/outputs/a.md` is outside this thread's folders: use a path below /mnt/user-data/workspace, /mnt/user-data/uploads or /mnt/user-data/outputs
        error: present_files was not run, because its arguments are wrong:
        - `filepaths`: must not be empty
        error: present_files was not run, because its arguments are wrong:
        - `filepaths`: expected a list, got the string "/mnt/user-data/outputs/a.md"
        error: present_files was not run, because its arguments are wrong:
        - `filepaths[0]`: expected a string, got the number 1
        error: present_files was not run, because its arguments are wrong:
        - `filepaths`: is missing and required: a list
        - `files`: is not an argument of this tool; it takes filepaths
        "#);
    }
}
