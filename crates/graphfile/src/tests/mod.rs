//! Whole files: what is said about wrong ones, and how right ones run.

use std::path::{Path, PathBuf};

use crate::*;

mod files;
mod outline;
mod run;

/// The registry of a host like ours.
pub(crate) fn registry() -> Registry {
    let mut registry = Registry {
        checkpointer: true,
        ..Registry::default()
    };
    let mut tool = |name: &str, args: &str, writes: &[&str], routes: &[(&str, bool)]| {
        let manifest = ToolManifest {
            args: serde_json::from_str(args).unwrap(),
            writes: writes.iter().map(|name| (*name).to_owned()).collect(),
            routes: routes
                .iter()
                .map(|(label, optional)| RouteLabel {
                    label: (*label).to_owned(),
                    optional: *optional,
                })
                .collect(),
            shell: name == "bash",
            ..ToolManifest::default()
        };
        registry.tools.insert(name.to_owned(), manifest);
    };
    let path = r#"{"type": "object", "required": ["path"], "properties": {"path": {"type": "string"}, "content": {"type": "string"}}, "additionalProperties": false}"#;
    tool(
        "web_search",
        r#"{"type": "object", "required": ["query"], "properties": {"query": {"type": "string"}}}"#,
        &[],
        &[],
    );
    tool("read_file", path, &[], &[]);
    tool("write_file", path, &[], &[]);
    tool(
        "bash",
        r#"{"type": "object", "required": ["command"], "properties": {"command": {"type": "string"}}}"#,
        &[],
        &[],
    );
    tool(
        "present_files",
        r#"{"type": "object", "required": ["filepaths"], "properties": {"filepaths": {"type": "array", "items": {"type": "string"}}}}"#,
        &["artifacts"],
        &[],
    );
    tool("ask_clarification", "{}", &[], &[("clarify", true)]);
    tool("tool_search", "{}", &["promoted"], &[]);
    tool("hand_off", "{}", &[], &[("hand_off", false)]);
    if let Some(asks) = registry.tools.get_mut("ask_clarification") {
        asks.may_write.push("clarification".to_owned());
    }
    for model in ["default", "planner", "writer"] {
        registry.models.insert(model.to_owned());
    }
    let manifest = FunctionManifest {
        input: serde_json::json!({"type": "object", "properties": {"text": {"type": "string"}}}),
        routes: Vec::new(),
    };
    registry.functions.insert("word_count".to_owned(), manifest);
    registry
}

/// Prompt files beside a fixture.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Sources for Folder {
    fn read(&self, path: &str) -> Result<String, String> {
        std::fs::read_to_string(self.0.join(path)).map_err(|error| error.kind().to_string())
    }
}

/// Checks a fixture under the name it has in the repository.
pub(crate) fn check_file(path: &Path) -> (Option<Outline>, Diagnostics) {
    let text = std::fs::read_to_string(path).unwrap();
    let name = path.file_name().unwrap().to_string_lossy();
    let folder = Folder(path.parent().unwrap().to_owned());
    let mut registry = registry();
    registry.checkpointer = !name.starts_with("G307");
    check(&name, &text, &folder, &registry)
}
