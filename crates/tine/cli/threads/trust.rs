//! What is believed of the notes in an archive, which anybody may have written.

use crate::cli::Cx;
use crate::cli::terminal::line::one_line;
use crate::cli::{place, shipped};
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use tine::engine::Value;
use tine::engine::value::Map;

/// How many settings are named when they are left out.
const NAMED: usize = 6;

/// What was left out of notes.
#[derive(Debug, Default)]
pub(super) struct Dropped {
    /// The names of settings, without their values: these may be secret.
    settings: BTreeSet<String>,
    /// The configuration, if another stands in its place.
    config: Option<PathBuf>,
}

impl Dropped {
    /// Says so in one line, if there is something to say. `again` is the command that gives settings again.
    pub(super) fn told(&self, again: &str) -> Option<String> {
        let mut parts = Vec::new();
        if !self.settings.is_empty() {
            let named = self.settings.iter().take(NAMED);
            let mut named: Vec<String> = named.map(|name| one_line(name, 60)).collect();
            match self.settings.len() - named.len() {
                0 => {}
                more => named.push(format!("{more} more")),
            }
            parts.push(format!(
                "the settings that it was run with are not taken over ({}); `{again}` gives them again",
                named.join(", ")
            ));
        }
        if let Some(config) = &self.config {
            let shown = one_line(&config.display().to_string(), 200);
            parts.push(format!(
                "its configuration {shown} is not taken over, and the one that is found here is used"
            ));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// Leaves what can not harm. Settings and configurations can: with `$NAME` they send a variable of the environment to an
/// address that they name too.
pub(super) fn trusted(cx: &Cx, mut notes: Map, dropped: &mut Dropped) -> Map {
    if let Some(set) = notes.get("set") {
        let given = set.as_list();
        for setting in given.iter().flat_map(|given| given.iter()) {
            let setting = setting.as_str().unwrap_or("?");
            let name = setting.split_once('=').map_or(setting, |(name, _)| name);
            dropped.settings.insert(name.to_owned());
        }
        notes.insert("set".into(), Value::from_json(serde_json::json!([])));
    }
    let path = |key: &str| Some(PathBuf::from(notes.get(key)?.as_str()?));
    let (graph, config) = (path("graph"), path("config"));
    let mut replaced: Vec<(&str, PathBuf)> = Vec::new();
    // One that is not there is only told: the definition in the archive stands for it.
    if let Some(graph) = graph.filter(|graph| !may_be_named(cx, graph)) {
        let name = graph.file_name().unwrap_or_default();
        replaced.push(("graph", cx.env.directory.join(name)));
    }
    if let Some(config) = config {
        let found = shipped::found_again(&cx.env, config.clone());
        let may_be = may_be_named(cx, &found) && found.is_file();
        if !may_be && !shipped::is_ours(&found) {
            replaced.push(("config", place::config(&cx.env, None, None)));
            dropped.config = Some(config);
        }
    }
    for (key, path) in replaced {
        let path = path.to_string_lossy().into_owned();
        notes.insert(key.into(), path.into());
    }
    notes
}

/// Whether an archive may name this path: a whole one, that leads to no file that a thread has brought or written.
fn may_be_named(cx: &Cx, path: &Path) -> bool {
    let is_whole = path.is_absolute()
        && path
            .components()
            .all(|part| !matches!(part, Component::ParentDir | Component::CurDir));
    let threads = cx.env.absolute(&cx.env.home).join("threads");
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let is_of_thread = |path: &Path| {
        let names: Vec<_> = path.components().map(Component::as_os_str).collect();
        let mut windows = names.windows(4);
        // Threads of another home, too.
        path.starts_with(&threads)
            || windows.any(|names| names[0] == "threads" && names[3] == "user-data")
    };
    is_whole && !is_of_thread(path) && !is_of_thread(&real)
}
