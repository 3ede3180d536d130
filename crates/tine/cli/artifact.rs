//! What agents hand over.

use super::output::{Stream, Tone};
use super::terminal::line::clean_name;
use serde::Serialize;
use tine::engine::value::Map;
use tine::engine::{ThreadKey, Value};
use tine::tools::paths::{Access, Home};

/// A file: as agents know it, and where it is.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Artifact {
    path: String,
    /// `None` if it is not there any more.
    host_path: Option<String>,
}

/// The artifacts among the values of a thread.
pub(crate) fn of(home: &Home, thread: &ThreadKey, values: &Map) -> Vec<Artifact> {
    let listed = values.get("artifacts").and_then(Value::as_list);
    let Some(listed) = listed.filter(|listed| !listed.is_empty()) else {
        return Vec::new();
    };
    let folders = home.thread(thread).ok();
    let place = |path: &str| {
        let resolved = folders.as_ref()?.resolve(path, Access::Read).ok()?;
        Some(resolved.host_path().display().to_string())
    };
    let paths = listed.iter().filter_map(Value::as_str);
    let artifacts = paths.map(|path| Artifact {
        path: path.to_owned(),
        host_path: place(path),
    });
    artifacts.collect()
}

/// Prints artifacts under a title; nothing if there are none.
pub(crate) fn print(out: &mut Stream, artifacts: &[Artifact]) {
    if artifacts.is_empty() {
        return;
    }
    let title = out.paint(Tone::Strong, "artifacts");
    out.line(&format!("\n{title}"));
    for artifact in artifacts {
        out.line(&format!("  {}", clean_name(&artifact.path)));
        let place = artifact.host_path.as_deref();
        let place = clean_name(place.unwrap_or("(is not there any more)"));
        let place = out.paint(Tone::Faint, &place);
        out.line(&format!("    {place}"));
    }
}
