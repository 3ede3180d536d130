//! The kinds of nodes, a file each.

mod call;
mod interrupt;
mod model;
mod set;
mod tool;
mod tools;

use indexmap::IndexMap;
use serde_yaml::Value as Yaml;

use super::nodes::Nodes;
use crate::diag::{Diagnostic, G201, G205};
use crate::host::{Shape, ToolManifest};
use crate::syntax::At;
use crate::types::{Type, fits};
use crate::value::ValueExpr;

/// Channels a node writes, with the places that say so.
type Writes = Vec<(String, At)>;

impl Nodes<'_, '_> {
    pub(super) fn shape(&self, kind: Type) -> Shape {
        Shape {
            kind,
            types: std::sync::Arc::clone(self.types),
        }
    }

    pub(super) fn misfit(&mut self, at: &At, channel: &str, wanted: &Type, found: &Type) {
        let declared = self
            .compiler
            .report
            .key(&At::root().key("state").key(channel));
        let finding = Diagnostic::new(&G205, format!("{found} does not fit channel `{channel}`"))
            .at(self.compiler.report.value(at), format!("gets {found}"))
            .context(declared, format!("takes {wanted}"));
        self.compiler.report.push(finding);
    }

    /// Checks that a channel holds messages.
    pub(super) fn conversation(&mut self, at: &At, name: &str) {
        let Some(channel) = self.channels.get(name) else {
            let span = self.compiler.report.value(at);
            let span = if at.name() == Some("messages") || at.name() == Some("from") {
                span
            } else {
                self.compiler.report.key(at)
            };
            let state = &self.names.state;
            let finding = crate::expr::unknown_channel(self.compiler.report, state, name, span);
            self.compiler.report.push(finding);
            return;
        };
        self.compiler.reads.insert(name.to_owned());
        let messages = Type::list(Type::Named("message".into()));
        if !fits(self.types, &channel.kind, &messages) {
            let kind = channel.kind.clone();
            self.misfit(at, name, &kind, &messages);
        }
    }

    /// Notes the channels a tool writes, and checks that those it needs are declared.
    pub(super) fn tool_writes(
        &mut self,
        tool: &str,
        at: &At,
        manifest: &ToolManifest,
        writes: &mut Writes,
    ) {
        for channel in &manifest.may_write {
            if self.channels.contains_key(channel) {
                writes.push((channel.clone(), at.clone()));
            }
        }
        for channel in &manifest.writes {
            if self.channels.contains_key(channel) {
                writes.push((channel.clone(), at.clone()));
                continue;
            }
            let span = self.compiler.report.value(at);
            let title = format!("tool `{tool}` writes `{channel}`, which is not declared");
            let finding = Diagnostic::new(&G201, title)
                .at(span, format!("writes `{channel}`"))
                .help(format!("declare it under `state`, or leave `{tool}` out"));
            self.compiler.report.push(finding);
        }
    }

    /// Compiles a map of arguments.
    pub(super) fn arguments(
        &mut self,
        at: &At,
        entries: &IndexMap<String, Yaml>,
        wanted: &Type,
        place: &str,
    ) -> Option<ValueExpr> {
        let names = self.names.clone();
        let yaml = Yaml::Mapping(
            entries
                .iter()
                .map(|(key, value)| (key.as_str().into(), value.clone()))
                .collect(),
        );
        self.compiler.value(at, &yaml, wanted, &names, place)
    }
}
