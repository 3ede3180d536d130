//! Wiring: a configuration becomes models, tools and folders; with them a graph file becomes a graph.

use super::Cx;
use super::failure::Failure;
use super::setup::Setup;
use serde_json::Map;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tine::agent::Agent;
use tine::engine::{NodeError, ThreadKey};
use tine::graphfile::{Diagnostics, Level, LoadedGraph, Outline, Registry, Sources};
use tine::models::registry::Folder;
use tine::models::{Model, ModelEntry, Models, ModelsError};
use tine::tools::Blocking;
use tine::tools::assemble::{AssemblyReport, Extensions, Scene, assemble};
use tine::tools::config::{Config, ConfigError};
use tine::tools::paths::Home;

/// What graphs are run with.
pub(crate) struct Host {
    agent: Agent,
    home: Arc<Home>,
    unusable: Reasons,
}

impl Host {
    /// Reads the configuration and makes everything that it names.
    pub(crate) fn open(cx: &Cx, setup: &Setup) -> Result<Self, Failure> {
        let config = configure(Path::new(&cx.env.shown(&setup.config)), &setup.set)?;
        let options = setup.options.iter().map(|option| option.name().to_owned());
        let options: Map<String, serde_json::Value> =
            options.map(|name| (name, true.into())).collect();
        let (toolbox, _) = assemble(&config, &extensions(cx), &Scene::default())?;
        let home = Arc::new(Home::open(&cx.env.home)?);
        let folders = home.clone();
        let (models, unusable) = models(cx, &config)?;
        let agent = Agent::new(toolbox, move |thread: &ThreadKey| {
            folders.thread(thread).map_err(NodeError::from)
        })
        .with_models(models)
        .with_options(options)
        .with_blocking(Blocking::Threads);
        Ok(Self {
            agent,
            home,
            unusable,
        })
    }

    /// The names that a graph file may use.
    pub(crate) fn registry(&self) -> Registry {
        Registry {
            unusable: self.unusable.clone(),
            ..self.agent.registry(true)
        }
    }

    /// The folders of all threads.
    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    /// Loads a graph file; what is wrong with it goes to standard error.
    pub(crate) fn load(&self, cx: &mut Cx, path: &Path) -> Result<LoadedGraph, Failure> {
        let (text, shown) = read(cx, path)?;
        let sources = Beside::new(path);
        let (graph, diagnostics) =
            tine::graphfile::load(&shown, &text, &sources, &self.agent, &self.registry());
        let problems = render(cx, &diagnostics);
        if !problems.is_empty() {
            cx.stderr.write(&problems);
            cx.stderr.write("\n");
        }
        graph.ok_or_else(|| {
            let failure = Failure::usage(format!("{shown} can not be run"));
            match diagnostics.iter().find(|found| found.level == Level::Error) {
                Some(first) => failure.hint(format!(
                    "`tine explain {}` says more about the first error",
                    first.check.code
                )),
                None => failure,
            }
        })
    }

    /// Checks a graph file.
    pub(crate) fn check(
        name: &str,
        text: &str,
        path: &Path,
        registry: &Registry,
    ) -> (Option<Outline>, Diagnostics) {
        tine::graphfile::check(name, text, &Beside::new(path), registry)
    }
}

/// Findings, coloured where standard error is.
fn render(cx: &Cx, diagnostics: &Diagnostics) -> String {
    if cx.stderr.device().colour {
        diagnostics.render_coloured()
    } else {
        diagnostics.render()
    }
}

/// Reads a graph file; gives its text and the name to show.
pub(crate) fn read(cx: &Cx, path: &Path) -> Result<(String, String), Failure> {
    let shown = cx.env.shown(path);
    match std::fs::read_to_string(path) {
        Ok(text) => Ok((text, shown)),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            Err(Failure::usage(format!("{shown} is not UTF-8 text"))
                .hint("graph files are YAML; graphs/README.md explains them"))
        }
        Err(error) => Err(Failure::usage(format!(
            "the graph file {shown} can not be read: {error}"
        ))
        .hint("graphs/news_report.yaml is one that ships")),
    }
}

/// Reads a configuration, with settings on top.
pub(crate) fn configure(path: &Path, set: &[String]) -> Result<Config, Failure> {
    let mut config = Config::load(path)?;
    for given in set {
        let Some((key, value)) = given.split_once('=') else {
            return Err(Failure::usage(format!("`--set {given}` has no value"))
                .hint("write it as `--set section.name.key=value`"));
        };
        config.set(key, value)?;
    }
    Ok(config)
}

/// What tools are assembled with, beside the configuration.
pub(crate) fn extensions(cx: &Cx) -> Extensions {
    Extensions::new(Arc::new(cx.env.clone()))
}

/// Reads a configuration and says which tools come of it.
pub(crate) fn report(
    cx: &Cx,
    config: &Path,
    set: &[String],
    scene: &Scene,
) -> Result<AssemblyReport, Failure> {
    let config = configure(config, set)?;
    let (_, report) = assemble(&config, &extensions(cx), scene)?;
    Ok(report)
}

type Named = (String, Arc<dyn Model>);

/// Models that the configuration has and that can not be used, with the reason.
type Reasons = BTreeMap<String, String>;

/// Makes the models of a configuration. One that can not be used, or has no key, is no error as long as no graph asks
/// for it.
fn models(cx: &Cx, config: &Config) -> Result<(Vec<Named>, Reasons), Failure> {
    let mut made: Vec<Named> = Vec::new();
    let mut unusable = Reasons::new();
    let mut first = None;
    for entry in config.models() {
        if made.iter().any(|(name, _)| *name == entry.name) || unusable.contains_key(&entry.name) {
            let model = entry.name.clone();
            return Err(ModelsError::Duplicate { model }.into());
        }
        first.get_or_insert_with(|| entry.name.clone());
        let settings = entry.settings.with(&cx.env);
        let given = match settings.all() {
            Ok(given) => given,
            Err(error @ ConfigError::Variable { .. }) => {
                // A key would not help a provider that is not there.
                let planned = planned(&entry.name, &entry.use_path);
                let reason = planned.unwrap_or_else(|| format!("model `{}`: {error}", entry.name));
                unusable.insert(entry.name.clone(), reason);
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let mut entry = ModelEntry {
            name: entry.name.clone(),
            use_path: entry.use_path.clone(),
            settings: given,
        };
        // The configuration knows which folder a relative path is meant from.
        if entry
            .settings
            .get("script")
            .is_some_and(|path| path.is_string())
            && let Some(path) = settings.path("script")?
        {
            let path = path.display().to_string();
            entry.settings.insert("script".to_owned(), path.into());
        }
        let name = entry.name.clone();
        match Models::from_entries([entry], Folder(PathBuf::new()))?.get(&name) {
            Ok(model) => made.push((name, model)),
            Err(
                error @ (ModelsError::Planned { .. }
                | ModelsError::Unsupported { .. }
                | ModelsError::NoKey { .. }),
            ) => {
                unusable.insert(name, error.to_string());
            }
            Err(error) => return Err(error.into()),
        }
    }
    // Graphs say `default` for whichever comes first, even if that can not be used: another one is not what was meant.
    let has_default = made.iter().any(|(name, _)| name == "default");
    if let Some(first) = first.filter(|_| !has_default && !unusable.contains_key("default")) {
        if let Some((_, model)) = made.iter().find(|(name, _)| *name == first) {
            let model = model.clone();
            made.push(("default".to_owned(), model));
        } else if let Some(reason) = unusable.get(&first) {
            let reason = reason.clone();
            unusable.insert("default".to_owned(), reason);
        }
    }
    Ok((made, unusable))
}

/// Says so if a model's `use:` is known and nothing stands behind it yet.
fn planned(name: &str, use_path: &str) -> Option<String> {
    let bare = ModelEntry {
        name: name.to_owned(),
        use_path: use_path.to_owned(),
        settings: Map::new(),
    };
    let models = Models::from_entries([bare], Folder(PathBuf::new())).ok()?;
    match models.get(name) {
        Err(error @ ModelsError::Planned { .. }) => Some(error.to_string()),
        _ => None,
    }
}

/// The files beside a graph file.
struct Beside(PathBuf);

impl Beside {
    fn new(file: &Path) -> Self {
        Self(file.parent().map(Path::to_owned).unwrap_or_default())
    }
}

impl Sources for Beside {
    fn read(&self, path: &str) -> Result<String, String> {
        std::fs::read_to_string(self.0.join(path)).map_err(|error| error.to_string())
    }
}
