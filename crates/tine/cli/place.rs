//! Which graph and which configuration a command means.

use super::Cx;
use super::env::Env;
use super::failure::print_note;
use super::setup::{ConfigArgs, Setup};
use super::shipped;
use std::path::{Path, PathBuf};

/// The names that a configuration is looked for by, in every folder.
const CONFIGS: [&str; 2] = ["config/config.yaml", "config.yaml"];

/// Finds a graph: a file, or else one that ships, by its name.
pub(crate) fn graph(env: &Env, given: &Path) -> PathBuf {
    if !given.is_file()
        && let Some(shipped) = given.to_str().and_then(|name| shipped::graph(env, name))
    {
        return shipped;
    }
    env.absolute(given)
}

/// Finds the configuration: the one that is named; else that of the working directory; else the nearest one above the
/// graph, or above the working directory for what has no file; else the one that ships.
pub(crate) fn config(env: &Env, given: Option<&Path>, graph: Option<&Path>) -> PathBuf {
    if let Some(given) = given {
        return env.absolute(given);
    }
    let graph = graph.filter(|graph| !shipped::is_ours(graph));
    let folder = graph.and_then(Path::parent).unwrap_or(&env.directory);
    std::iter::once(&*env.directory)
        .chain(folder.ancestors())
        .find_map(config_in)
        .map_or_else(|| shipped::config(env), |found| env.absolute(&found))
}

fn config_in(folder: &Path) -> Option<PathBuf> {
    let paths = CONFIGS.iter().map(|name| folder.join(name));
    paths.into_iter().find(|path| path.is_file())
}

/// Says which files a run takes, where that does not go without saying.
pub(crate) fn tell(cx: &mut Cx, setup: &Setup, config: &ConfigArgs) {
    let graph = shipped::is_ours(&setup.graph);
    let chosen = config.config.is_none();
    let here = config_in(&cx.env.directory).map(|path| cx.env.absolute(&path));
    let other = chosen && here.as_ref() != Some(&setup.config);
    let ships = other && shipped::is_ours(&setup.config);
    let shown = cx.env.shown(&setup.config);
    let text = match (graph, ships, other) {
        (true, true, _) => "graph and configuration are the ones that ship with tine".to_owned(),
        (true, _, true) => {
            format!("the graph is the one that ships with tine; the configuration is {shown}")
        }
        (true, ..) => "the graph is the one that ships with tine".to_owned(),
        (_, true, _) => {
            "the configuration is the one that ships with tine; `tine init` writes one to change"
                .to_owned()
        }
        (_, _, true) => format!("the configuration is {shown}"),
        _ => return,
    };
    print_note(&mut cx.stderr, &text);
}
