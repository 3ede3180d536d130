//! From a configuration to the tools of one agent.

mod builtins;
mod host_bash;
mod known;
mod registry;
mod report;
mod toolbox;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::config::{Config, ConfigError, EnvSource, Place, ToolEntry, did_you_mean};
use crate::tool::Tool;
use registry::Implementation;
pub use registry::{BuildCx, Registry};
pub use report::{AssemblyReport, Decision, Step, Verdict};
use tine_engine::text::nearest;
pub use toolbox::{BoundTool, PreparedCall, ToolId, Toolbox};

/// What the host adds to a configuration.
#[derive(Clone)]
pub struct Extensions {
    /// What `use:` may name.
    pub registry: Registry,
    /// Where `$NAME` is looked up.
    pub env: Arc<dyn EnvSource>,
    /// The tools of MCP servers.
    pub mcp: Vec<Arc<dyn Tool>>,
    /// The tools that stand for ACP agents.
    pub acp: Vec<Arc<dyn Tool>>,
}

impl Extensions {
    /// The tools that ship, and the host's environment.
    pub fn new(env: Arc<dyn EnvSource>) -> Self {
        Self {
            registry: Registry::standard(),
            env,
            mcp: Vec::new(),
            acp: Vec::new(),
        }
    }
}

impl Default for Extensions {
    fn default() -> Self {
        Self::new(Arc::new(BTreeMap::new()))
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extensions")
            .field("mcp", &self.mcp.len())
            .field("acp", &self.acp.len())
            .finish_non_exhaustive()
    }
}

/// What the tools are for; the default asks for all there are.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    /// Groups to take from the configuration; `None` for all. Built-in, MCP
    /// and ACP tools have no groups and always stay.
    pub groups: Option<Vec<String>>,
    /// The model that will call the tools; `None` for the first one.
    pub model: Option<String>,
    /// Whether the agent may start others.
    pub subagents: bool,
    /// Whether nobody is there to be asked.
    pub non_interactive: bool,
    /// Names to keep of what was assembled; `None` for all.
    pub allow: Option<Vec<String>>,
    /// Names to leave out of what was assembled.
    pub deny: Vec<String>,
}

/// Says why no toolbox can be made of a configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AssemblyError {
    /// A tool names an implementation that does not exist.
    #[error("{place}: the tool `{tool}` uses `{path}`, which is not known{}", did_you_mean(nearest.as_deref()))]
    UnknownUse {
        /// Where it stands.
        place: Place,
        /// The tool.
        tool: String,
        /// The name it gives.
        path: String,
        /// The known name that it resembles.
        nearest: Option<String>,
    },
    /// The sandbox names a provider that does not exist.
    #[error("{place}: the sandbox uses `{path}`, which is not known{}", did_you_mean(nearest.as_deref()))]
    UnknownSandbox {
        /// Where it stands.
        place: Place,
        /// The name it gives.
        path: String,
        /// The known name that it resembles.
        nearest: Option<String>,
    },
    /// A name that models cannot call.
    #[error(
        "{place}: `{name}` cannot be the name of a tool: use 1 to 64 of the characters A-Z a-z 0-9 _ -"
    )]
    BadName {
        /// Where it stands.
        place: Place,
        /// The name.
        name: String,
    },
    /// A setting of a tool is missing or wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// Makes the toolbox of one scene, and the report of how.
///
/// In this order: 1. the configuration's tools, filtered by groups; 2. their
/// implementations; 3. shells on an unprotected host are dropped; 4. built-in
/// tools join, by condition; 5. MCP and ACP tools join; 6. of each name the
/// first stays: configuration before built-in before MCP before ACP. Then the
/// scene's lists filter what is there.
///
/// # Errors
/// When the configuration names what does not exist, or a tool cannot be
/// built from its settings.
pub fn assemble(
    config: &Config,
    extensions: &Extensions,
    scene: &Scene,
) -> Result<(Toolbox, AssemblyReport), AssemblyError> {
    let mut report = AssemblyReport {
        config: config.file().to_owned(),
        notes: config.notes().to_vec(),
        ..AssemblyReport::default()
    };
    let entries = by_group(config, scene, &mut report)?;
    let found = resolve(&entries, extensions, &mut report)?;
    let found = host_bash::judge(config, found, &mut report)?;
    let mut candidates = build(config, extensions, found, &mut report)?;
    builtins::join(config, scene, &mut candidates, &mut report);
    external(extensions, &mut candidates, &mut report);
    let unique = by_name(candidates, &mut report);
    let toolbox = Toolbox::from_bound(lists(unique, scene, &mut report));
    report.tools = toolbox.names().map(str::to_owned).collect();
    Ok((toolbox, report))
}

/// A tool on its way into the toolbox, and where it comes from.
struct Candidate {
    tool: BoundTool,
    origin: String,
}

fn by_group<'a>(
    config: &'a Config,
    scene: &Scene,
    report: &mut AssemblyReport,
) -> Result<Vec<&'a ToolEntry>, AssemblyError> {
    let mut kept = Vec::new();
    for entry in config.tools() {
        let (name, group) = (&entry.name, &entry.group);
        match &scene.groups {
            Some(groups) if !groups.contains(group) => {
                let asked = match groups.as_slice() {
                    [] => "no group".to_owned(),
                    groups => groups.join(", "),
                };
                let reason = format!("group {group}, but the scene asks for {asked}");
                report.add(Step::Config, Verdict::Dropped, name, reason);
            }
            _ => {
                if !is_callable_name(name) {
                    return Err(AssemblyError::BadName {
                        place: entry.settings.place().clone(),
                        name: name.clone(),
                    });
                }
                let reason = format!("group {group}, {}", entry.settings.place());
                report.add(Step::Config, Verdict::Kept, name, reason);
                kept.push(entry);
            }
        }
    }
    if config.tools().is_empty() {
        report.note(Step::Config, "the configuration lists no tools");
    }
    Ok(kept)
}

/// Tells the names that every provider accepts.
fn is_callable_name(name: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    (1..=64).contains(&name.len()) && name.bytes().all(fits)
}

type Resolved<'a> = (&'a ToolEntry, &'a Implementation);

fn resolve<'a>(
    entries: &[&'a ToolEntry],
    extensions: &'a Extensions,
    report: &mut AssemblyReport,
) -> Result<Vec<Resolved<'a>>, AssemblyError> {
    let mut found = Vec::new();
    for entry in entries {
        let path = &entry.use_path;
        let Some(implementation) = extensions.registry.get(path) else {
            return Err(AssemblyError::UnknownUse {
                place: entry.use_place.clone(),
                tool: entry.name.clone(),
                path: path.clone(),
                nearest: extensions.registry.nearest(path).map(str::to_owned),
            });
        };
        match implementation {
            Implementation::Ready { .. } => {
                report.add(Step::Resolve, Verdict::Kept, &entry.name, path.clone());
            }
            Implementation::Unavailable { instead } => {
                let way_out = instead.map_or_else(String::new, |name| format!("; {name} works"));
                let reason = format!("{path} is known, but tine has no such tool yet{way_out}");
                report.add(Step::Resolve, Verdict::Dropped, &entry.name, reason);
            }
        }
        found.push((*entry, implementation));
    }
    Ok(found)
}

fn build(
    config: &Config,
    extensions: &Extensions,
    found: Vec<Resolved<'_>>,
    report: &mut AssemblyReport,
) -> Result<Vec<Candidate>, AssemblyError> {
    let mut built = Vec::new();
    for (entry, implementation) in found {
        let Implementation::Ready { build, settings } = implementation else {
            continue;
        };
        for key in entry.settings.keys() {
            let Some(known) = settings else { break };
            if !known.contains(&key) {
                let near = did_you_mean(nearest(key, known.iter().copied()));
                let reason = format!("the setting `{key}` has no effect here{near}");
                report.add(Step::Resolve, Verdict::Noted, &entry.name, reason);
            }
        }
        let tool = build(BuildCx {
            config,
            entry,
            env: &*extensions.env,
        })?;
        built.push(Candidate {
            tool: BoundTool::new(tool).alias(&entry.name, &entry.group),
            origin: format!("config, {}", entry.settings.place()),
        });
    }
    Ok(built)
}

fn external(extensions: &Extensions, candidates: &mut Vec<Candidate>, report: &mut AssemblyReport) {
    for (tools, kind) in [(&extensions.mcp, "MCP"), (&extensions.acp, "ACP")] {
        if tools.is_empty() {
            report.note(Step::External, format!("no {kind} tools are set up"));
        }
        for tool in tools {
            let tool = BoundTool::new(Arc::clone(tool));
            let name = tool.name().to_owned();
            if is_callable_name(&name) {
                report.add(Step::External, Verdict::Kept, &name, kind.to_owned());
                let origin = kind.to_owned();
                candidates.push(Candidate { tool, origin });
            } else {
                let reason = format!("{kind}: models cannot call a tool of this name");
                report.add(Step::External, Verdict::Dropped, &name, reason);
            }
        }
    }
}

fn by_name(candidates: Vec<Candidate>, report: &mut AssemblyReport) -> Vec<BoundTool> {
    let mut first: BTreeMap<String, String> = BTreeMap::new();
    let mut unique = Vec::new();
    for Candidate { tool, origin } in candidates {
        match first.get(tool.name()) {
            Some(winner) => {
                let reason =
                    format!("{origin}: shadowed by the one of the same name from {winner}");
                report.add(Step::Names, Verdict::Dropped, tool.name(), reason);
            }
            None => {
                first.insert(tool.name().to_owned(), origin);
                unique.push(tool);
            }
        }
    }
    unique
}

fn lists(tools: Vec<BoundTool>, scene: &Scene, report: &mut AssemblyReport) -> Vec<BoundTool> {
    for name in scene.allow.iter().flatten() {
        if !tools.iter().any(|tool| tool.name() == name) {
            let near = did_you_mean(nearest(name, tools.iter().map(BoundTool::name)));
            let reason = format!("allowed, but there is no such tool{near}");
            report.add(Step::Lists, Verdict::Noted, name, reason);
        }
    }
    let mut kept = Vec::new();
    for tool in tools {
        let name = tool.name();
        let reason = if scene.deny.iter().any(|denied| denied == name) {
            Some("on the scene's deny-list")
        } else if scene
            .allow
            .as_ref()
            .is_some_and(|allow| !allow.iter().any(|a| a == name))
        {
            Some("not on the scene's allow-list")
        } else {
            None
        };
        match reason {
            Some(reason) => {
                report.add(Step::Lists, Verdict::Dropped, name, reason.to_owned());
            }
            None => kept.push(tool),
        }
    }
    kept
}
