//! What a thread is run with, and what is noted of it so that `resume` needs no more than its name.

use super::Cx;
use super::failure::Failure;
use super::terminal::line::quoted;
use super::{place, shipped};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tine::engine::value::Map;
use tine::engine::{Value, from_value, to_value};
use tine::graphfile::Outline;
use tine::tools::config::Config;

/// The options that choose a configuration.
#[derive(Args, Debug)]
pub(crate) struct ConfigArgs {
    /// The configuration: models and tools [default: config/config.yaml or config.yaml here, or the
    /// nearest above the graph file, or the one that ships with tine]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Sets one value of the configuration, such as tools.web_search.path=DIR
    #[arg(long, value_name = "SECTION.NAME.KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

/// A switch of a run that tools look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub(crate) enum RunSwitch {
    /// The agent decides for itself instead of asking
    DisableClarification,
}

impl RunSwitch {
    /// The name that tools know.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::DisableClarification => "disable_clarification",
        }
    }
}

/// What a graph is run with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Setup {
    /// The graph file, absolute.
    pub(crate) graph: PathBuf,
    /// The configuration, absolute.
    pub(crate) config: PathBuf,
    /// Settings on top of it.
    pub(crate) set: Vec<String>,
    /// The directory from which relative paths in the settings are taken: where they were given.
    pub(crate) directory: PathBuf,
    /// Switches.
    pub(crate) options: Vec<RunSwitch>,
}

/// Refuses settings that would be kept with a thread, and exported with it, and spell a secret out.
pub(crate) fn without_secrets(set: &[String]) -> Result<(), Failure> {
    for given in set {
        if let Some((key, value)) = given.split_once('=')
            && Config::spells_secret(key, value)
        {
            return Err(Failure::usage(format!(
                "`--set {key}=...` spells a secret out, and settings are kept with the thread"
            ))
            .hint(format!(
                "export it as a variable and name that: `--set '{key}=$NAME'`"
            )));
        }
    }
    Ok(())
}

impl Setup {
    pub(crate) fn new(cx: &Cx, graph: &Path, config: &ConfigArgs, options: &[RunSwitch]) -> Self {
        let graph = place::graph(&cx.env, graph);
        Self {
            config: place::config(&cx.env, config.config.as_deref(), Some(&graph)),
            graph,
            set: config.set.clone(),
            directory: cx.env.directory.clone(),
            options: options.to_vec(),
        }
    }

    /// With files that ship with tine where they are today.
    pub(crate) fn found_again(self, cx: &Cx) -> Self {
        Self {
            graph: shipped::found_again(&cx.env, self.graph),
            config: shipped::found_again(&cx.env, self.config),
            ..self
        }
    }
}

/// What the store keeps beside a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Notes {
    /// What it was last run with.
    #[serde(flatten)]
    pub(crate) setup: Setup,
    /// The name of the graph.
    pub(crate) name: String,
    /// The hash of the graph's structure.
    pub(crate) structure: String,
    /// The definition of the graph.
    pub(crate) definition: Value,
    /// Words that answer questions, and that may be yet to be said in the conversation.
    #[serde(default)]
    pub(crate) unsaid: Option<Unsaid>,
}

/// Drops the words from notes of a thread that is to go on from elsewhere, or under another name.
pub(crate) fn without_unsaid(mut notes: Map) -> Map {
    if let Some(unsaid) = notes.get_mut("unsaid") {
        *unsaid = Value::Null;
    }
    notes
}

/// Words that answer questions and belong in the conversation too, behind what comes of the answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Unsaid {
    /// The nodes that asked.
    pub(crate) nodes: Vec<String>,
    /// The checkpoint at which they asked. What does not follow on it is another branch, where nobody said this.
    #[serde(default)]
    pub(crate) asked_at: Option<String>,
    /// The newest checkpoint at that time. If it is not the same, the answer began a branch of its own, without it.
    #[serde(default)]
    pub(crate) newest: Option<String>,
    /// The message. Its id tells whether it was said.
    pub(crate) message: Value,
    /// What was handed in with it, if the graph has a channel for that.
    #[serde(default)]
    pub(crate) uploaded: Option<Value>,
}

impl Notes {
    /// The same, with the files that ship with tine where they are now.
    pub(crate) fn found_again(self, cx: &Cx) -> Self {
        Self {
            setup: self.setup.found_again(cx),
            ..self
        }
    }

    pub(crate) fn new(setup: Setup, outline: &Outline) -> Self {
        Self {
            setup,
            name: outline.name.clone(),
            structure: outline.structure.clone(),
            definition: outline.definition.clone(),
            unsaid: None,
        }
    }

    /// The form that the store keeps.
    pub(crate) fn to_map(&self) -> Result<Map, Failure> {
        match to_value(self) {
            Ok(Value::Map(map)) => Ok((*map).clone()),
            Ok(_) => Ok(Map::new()),
            Err(error) => Err(Failure::usage(format!(
                "the thread's notes can not be kept: {error}"
            ))),
        }
    }

    /// Reads what the store kept.
    pub(crate) fn from_map(thread: &str, map: &Map) -> Result<Self, Failure> {
        from_value(&Value::from(map.clone())).map_err(|error| {
            Failure::usage(format!(
                "nothing says how thread `{thread}` is run: {error}"
            ))
            .hint(format!(
                "name the graph again: `tine run GRAPH TEXT --thread={}`",
                quoted(thread)
            ))
        })
    }

    /// Refuses a graph that the thread can not go on with: another one, or one from which a node or a channel that the
    /// thread may need is gone or of another kind.
    ///
    /// What was added, and prompts, conditions and edges that changed, are no hindrance: the thread's next steps are
    /// stored by the names of nodes and channels.
    pub(crate) fn check(&self, thread: &str, outline: &Outline) -> Result<(), Failure> {
        let refused = |message: String| {
            Err(Failure::usage(message)
                .hint("go on with the graph as it was, or start a new thread with it"))
        };
        if self.name != outline.name {
            return refused(format!(
                "thread `{thread}` belongs to the graph `{}`, and this is `{}`",
                self.name, outline.name
            ));
        }
        if self.structure == outline.structure {
            return Ok(());
        }
        let mut gone = Vec::new();
        for (section, what, tells) in [
            ("nodes", "node", &["type"][..]),
            ("state", "channel", &["type", "reduce"]),
        ] {
            let (old, new) = (
                self.definition.get(section),
                outline.definition.get(section),
            );
            for name in names(old) {
                let at = |whole: Option<&Value>, key: &str| whole?.get(&name)?.get(key).cloned();
                if !names(new).contains(&name) {
                    gone.push(format!("{what} `{name}` is gone"));
                } else if let Some(key) = tells.iter().find(|key| at(old, key) != at(new, key)) {
                    gone.push(format!("{what} `{name}` has another `{key}`"));
                }
            }
        }
        if gone.is_empty() {
            return Ok(());
        }
        refused(format!(
            "the graph `{}` has changed since thread `{thread}` was started: {}",
            self.name,
            gone.join(", ")
        ))
    }
}

fn names(section: Option<&Value>) -> BTreeSet<String> {
    match section {
        Some(Value::Map(map)) => map.keys().map(|name| name.to_string()).collect(),
        _ => BTreeSet::new(),
    }
}
