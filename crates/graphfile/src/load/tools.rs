//! Tools by name: toolsets, lists, and what the registry knows of them.

use indexmap::IndexMap;
use serde_yaml::Value as Yaml;

use crate::diag::{Diagnostic, G004, G104, Level, Span};
use crate::host::{Registry, ToolManifest};
use crate::report::{Report, nearest, one_of};
use crate::syntax::At;

/// A tool a node names, and where its name stands.
#[derive(Clone, Debug)]
pub(super) struct NamedTool {
    pub(super) name: String,
    pub(super) at: At,
}

/// Resolves tool names.
pub(super) struct ToolNames<'r> {
    pub(super) registry: &'r Registry,
    pub(super) toolsets: &'r IndexMap<String, Vec<String>>,
}

impl<'r> ToolNames<'r> {
    /// Checks every name in the toolsets, used or not.
    pub(super) fn check_toolsets(&self, report: &mut Report<'_>) {
        let at = At::root().key("toolsets");
        for (set, tools) in self.toolsets {
            for (index, tool) in tools.iter().enumerate() {
                let span = report.value(&at.key(set).item(index));
                self.check(report, tool, span);
            }
        }
    }

    /// Resolves the name of a toolset, or a list of tools.
    pub(super) fn list(&self, report: &mut Report<'_>, at: &At, yaml: &Yaml) -> Vec<NamedTool> {
        match yaml {
            Yaml::String(set) => match self.toolsets.get(set) {
                Some(tools) => {
                    let place = At::root().key("toolsets").key(set);
                    let named = tools.iter().enumerate();
                    named
                        .map(|(index, name)| NamedTool {
                            name: name.clone(),
                            at: place.item(index),
                        })
                        .collect()
                }
                None => {
                    let known: Vec<&str> = self.toolsets.keys().map(String::as_str).collect();
                    let help = match nearest(set, known.iter().copied()) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None if self.registry.tools.contains_key(set) => {
                            format!("a single tool is a list too: `[{set}]`")
                        }
                        None => format!("the toolsets are {}", one_of(&known)),
                    };
                    let finding = Diagnostic::new(&G104, format!("no toolset named `{set}`"))
                        .at(report.value(at), "not declared under `toolsets`")
                        .help(help);
                    report.push(finding);
                    Vec::new()
                }
            },
            Yaml::Sequence(items) => {
                let mut tools = Vec::new();
                for (index, item) in items.iter().enumerate() {
                    let place = at.item(index);
                    match item.as_str() {
                        Some(name) => {
                            let span = report.value(&place);
                            self.check(report, name, span);
                            tools.push(NamedTool {
                                name: name.to_owned(),
                                at: place,
                            });
                        }
                        None => {
                            let finding = Diagnostic::new(&G004, "expected the name of a tool")
                                .at(report.brief(&place), "");
                            report.push(finding);
                        }
                    }
                }
                tools
            }
            _ => {
                let finding = Diagnostic::new(&G004, "expected tools").at(
                    report.brief(at),
                    "the name of a toolset, or a list of tools",
                );
                report.push(finding);
                Vec::new()
            }
        }
    }

    /// Looks a tool up, reporting one that does not exist.
    pub(super) fn check(
        &self,
        report: &mut Report<'_>,
        name: &str,
        span: Span,
    ) -> Option<&'r ToolManifest> {
        let known = self.registry.tools.get(name);
        if known.is_none() {
            unknown(
                report,
                self.registry,
                "tool",
                name,
                self.registry.tools.keys(),
                span,
            );
        }
        known
    }
}

/// Reports a name the registry does not have.
pub(super) fn unknown<'n>(
    report: &mut Report<'_>,
    registry: &Registry,
    what: &str,
    name: &str,
    known: impl Iterator<Item = &'n String>,
    span: Span,
) {
    let known: Vec<&str> = known.map(String::as_str).collect();
    let level = if registry.offline {
        Level::Warning
    } else {
        Level::Error
    };
    let finding = Diagnostic::new(&G104, format!("no {what} named `{name}`"))
        .level(level)
        .at(span, format!("the host has no such {what}"))
        .help_if(match nearest(name, known.iter().copied()) {
            Some(near) => Some(format!("did you mean `{near}`?")),
            None if known.is_empty() => None,
            None => Some(format!("there are {}", one_of(&known))),
        });
    report.push(finding);
}
