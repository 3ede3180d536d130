//! The `tool` node.

use super::Writes;
use crate::diag::{Diagnostic, G502};
use crate::host::{NodeInfo, ToolSpec};
use crate::load::compile::holds_code;
use crate::load::nodes::{LabelSource, Nodes};
use crate::load::plan::SpecPlan;
use crate::spec::{NodeDraft, ToolKeys};
use crate::types::{Type, fits, read_schema};

impl Nodes<'_, '_> {
    pub(in crate::load) fn tool(
        &mut self,
        draft: &NodeDraft,
        info: NodeInfo,
        keys: &ToolKeys,
        writes: &mut Writes,
    ) -> Option<SpecPlan> {
        let at = &draft.at;
        let span = self.compiler.report.value(&at.key("tool"));
        let manifest = self.tools.check(self.compiler.report, &keys.tool, span);
        let args_at = at.key("args");
        let wanted = manifest.map_or(Type::Any, |manifest| read_schema(&manifest.args));
        let place = format!("the arguments of `{}`", keys.tool);
        let args = self.arguments(&args_at, &keys.args, &wanted, &place);
        if let Some(manifest) = manifest {
            self.tool_writes(&keys.tool, &at.key("tool"), manifest, writes);
            self.check_labels(
                draft,
                &[LabelSource {
                    what: "tool",
                    name: &keys.tool,
                    at: at.key("tool"),
                    labels: &manifest.routes,
                }],
            );
            if manifest.shell && keys.args.values().any(holds_code) {
                let title = format!(
                    "state goes into the arguments of `{}`, which reach a shell",
                    keys.tool
                );
                let finding = Diagnostic::new(&G502, title)
                    .at(self.compiler.report.key(&args_at), "holds `${...}`")
                    .help("hand the text over in a file, or check it in a `call` node first");
                self.compiler.report.push(finding);
            }
        }
        if let Some(into) = &keys.into {
            let place = at.key("into");
            if let Some(channel) = self.channel(&place, into) {
                let result = manifest.and_then(|manifest| manifest.result.as_ref());
                let kind = result.map_or(Type::Any, read_schema);
                if !fits(self.types, &kind, &channel.kind) {
                    self.misfit(&place, into, &channel.kind, &kind);
                }
                writes.push((into.clone(), place));
            }
        }
        Some(SpecPlan::Tool(ToolSpec {
            info,
            tool: keys.tool.clone(),
            args: args?,
            into: keys.into.clone(),
        }))
    }
}
