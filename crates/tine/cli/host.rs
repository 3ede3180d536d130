//! Wiring: a configuration becomes models, tools and folders; with them a graph file becomes a graph.

use super::Cx;
use super::failure::{Failure, print_note};
use super::prices::Prices;
use super::setup::{Notes, Setup};
use super::shipped;
use serde_json::Map;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tine::agent::Agent;
use tine::engine::text::nearest;
use tine::engine::{ErrorClass, NodeError, ThreadKey};
use tine::graphfile::{Diagnostics, Level, LoadedGraph, Outline, Registry, Sources};
use tine::models::registry::Folder;
use tine::models::{Model, ModelEntry, Models, ModelsError};
use tine::tools::Blocking;
use tine::tools::assemble::{AssemblyReport, Extensions, Scene, Toolbox, assemble};
use tine::tools::config::{Config, ConfigError, Uploads};
use tine::tools::paths::Home;

/// What graphs are run with.
pub(crate) struct Host {
    agent: Agent,
    home: Arc<Home>,
    config: PathBuf,
    unusable: Reasons,
    /// What is to be known of the configuration before anything runs.
    warning: Option<String>,
    uploads: Uploads,
}

impl Host {
    /// Reads the configuration and makes everything that it names.
    pub(crate) fn open(cx: &Cx, setup: &Setup) -> Result<Self, Failure> {
        let config = Path::new(&cx.env.shown(&setup.config)).to_owned();
        let config = configure(&config, &setup.set, &setup.directory)?;
        let (toolbox, models, unusable) = assembled(cx, &config)?;
        let home = Arc::new(Home::open(&cx.env.home)?);
        let options = setup.options.iter().map(|option| option.name().to_owned());
        let options: Map<String, serde_json::Value> =
            options.map(|name| (name, true.into())).collect();
        let folders = home.clone();
        let Prices { known, warning } = Prices::read(&cx.env, &config)?;
        let agent = Agent::new(toolbox, move |thread: &ThreadKey| {
            folders.thread(thread).map_err(NodeError::from)
        })
        .with_models(models)
        .with_pricing(known)
        .with_options(options)
        .with_blocking(Blocking::Threads);
        Ok(Self {
            agent,
            home,
            config: setup.config.clone(),
            unusable,
            warning,
            uploads: config.uploads(&cx.env)?,
        })
    }

    /// What a user may hand in with one message.
    pub(crate) fn uploads(&self) -> Uploads {
        self.uploads
    }

    /// The names that a graph file may use.
    fn registry(&self) -> Registry {
        Registry {
            unusable: self.unusable.clone(),
            ..self.agent.registry(true)
        }
    }

    /// The folders of all threads.
    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    /// The same, for those that stay when the host is gone.
    pub(crate) fn shared_home(&self) -> Arc<Home> {
        self.home.clone()
    }

    fn warn(&self, cx: &mut Cx) {
        if let Some(warning) = &self.warning {
            print_note(&mut cx.stderr, warning);
        }
    }

    /// Loads a graph file; what is wrong with it goes to standard error.
    pub(crate) fn load(&self, cx: &mut Cx, path: &Path) -> Result<LoadedGraph, Failure> {
        self.warn(cx);
        shipped::restore(cx, [&path.to_owned(), &self.config])?;
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

    /// Loads the definition that a thread was last run with.
    pub(crate) fn load_kept(&self, cx: &mut Cx, notes: &Notes) -> Result<LoadedGraph, Failure> {
        self.warn(cx);
        shipped::restore(cx, [&self.config])?;
        let shown = format!("the kept definition of `{}`", notes.name);
        let (graph, diagnostics) = tine::graphfile::load_definition(
            &shown,
            &notes.definition,
            &self.agent,
            &self.registry(),
        );
        graph.ok_or_else(|| {
            let problems = render(cx, &diagnostics);
            cx.stderr.write(&problems);
            cx.stderr.write("\n");
            let failure = Failure::usage(format!("{shown} can not be run"));
            failure.hint("it needs the tools and models that the configuration had; `--config FILE` names another one")
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

/// The names that a graph file may use. Makes nothing.
pub(crate) fn names(cx: &Cx, config: &Config) -> Result<Registry, Failure> {
    let (toolbox, models, unusable) = assembled(cx, config)?;
    let nowhere = |_: &ThreadKey| {
        let message = "graphs are checked without the folders of a thread";
        Err(NodeError::new(ErrorClass::Internal, message))
    };
    let agent = Agent::new(toolbox, nowhere).with_models(models);
    Ok(Registry {
        unusable,
        ..agent.registry(true)
    })
}

/// The tools and models of a configuration.
fn assembled(cx: &Cx, config: &Config) -> Result<(Toolbox, Vec<Named>, Reasons), Failure> {
    let (toolbox, _) = assemble(config, &extensions(cx), &Scene::default())?;
    let (models, unusable) = models(cx, config)?;
    Ok((toolbox, models, unusable))
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
    match shipped::read_to_string(path) {
        Ok(text) => Ok((text, shown)),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            Err(Failure::usage(format!("{shown} is not UTF-8 text"))
                .hint("graph files are YAML; graphs/README.md explains them"))
        }
        Err(error) => {
            let failure =
                Failure::usage(format!("the graph file {shown} can not be read: {error}"));
            let hint = match shipped::is_of_another_edition(path) {
                true => {
                    "another version of tine unpacked it, and it is gone; `tine run GRAPH TEXT --thread THREAD` takes \
                     the one of this version"
                        .to_owned()
                }
                false => unknown_graph(path),
            };
            Err(failure.hint(hint))
        }
    }
}

/// What may have been meant by a graph that is not there.
fn unknown_graph(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let names = shipped::graphs();
    match nearest(&stem, names.iter().copied()) {
        Some(name) => format!("did you mean `{name}`, which ships with tine?"),
        None => format!("{} ship with tine and need no file", names.join(" and ")),
    }
}

/// Reads a configuration, with settings on top; relative paths in these are taken from `directory`.
pub(crate) fn configure(path: &Path, set: &[String], directory: &Path) -> Result<Config, Failure> {
    let mut config = match shipped::is_ours(path) {
        true => match shipped::read_to_string(path) {
            Ok(text) => Config::parse(&text, path)?,
            Err(_) => Config::load(path)?,
        },
        false => Config::load(path)?,
    };
    for given in set {
        let Some((key, value)) = given.split_once('=') else {
            return Err(Failure::usage(format!("`--set {given}` has no value"))
                .hint("write it as `--set section.name.key=value`"));
        };
        config.set_from(key, value, directory)?;
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
    let path = cx.env.shown(config);
    let config = configure(Path::new(&path), set, Path::new(""))?;
    let (_, report) = assemble(&config, &extensions(cx), scene)?;
    Ok(report)
}

pub(crate) type Named = (String, Arc<dyn Model>);

/// Models that the configuration has and that can not be used, with the reason.
type Reasons = BTreeMap<String, String>;

/// Makes the models of a configuration. One that can not be used, or has no key, is no error as long as no graph asks
/// for it.
pub(crate) fn models(cx: &Cx, config: &Config) -> Result<(Vec<Named>, Reasons), Failure> {
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
        match Models::from_entries([entry], script)?.get(&name) {
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

/// Reads the file of a script.
fn script(path: &str) -> std::io::Result<String> {
    shipped::read_to_string(Path::new(path))
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
        shipped::read_to_string(&self.0.join(path)).map_err(|error| error.to_string())
    }
}
