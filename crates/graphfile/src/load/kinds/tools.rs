//! The `tools` node.

use super::Writes;
use crate::diag::{Diagnostic, G104};
use crate::host::{NodeInfo, ToolsSpec};
use crate::load::nodes::{LabelSource, Nodes};
use crate::load::plan::SpecPlan;
use crate::report::nearest;
use crate::spec::{NodeDraft, ToolsKeys};

impl Nodes<'_, '_> {
    pub(in crate::load) fn tools(
        &mut self,
        draft: &NodeDraft,
        info: NodeInfo,
        keys: &ToolsKeys,
        writes: &mut Writes,
    ) -> Option<SpecPlan> {
        let at = &draft.at;
        let from = keys.from.clone().unwrap_or_else(|| "messages".to_owned());
        let place = if keys.from.is_some() {
            at.key("from")
        } else {
            at.clone()
        };
        self.conversation(&place, &from);
        writes.push((from.clone(), place));
        let tools = self
            .tools
            .list(self.compiler.report, &at.key("tools"), &keys.tools);
        let registry = self.registry;
        let mut sources = Vec::new();
        for tool in &tools {
            let Some(manifest) = registry.tools.get(&tool.name) else {
                continue;
            };
            self.tool_writes(&tool.name, &tool.at, manifest, writes);
            sources.push(LabelSource {
                what: "tool",
                name: &tool.name,
                at: tool.at.clone(),
                labels: &manifest.routes,
            });
        }
        self.check_labels(draft, &sources);
        for (index, name) in keys.ask_before.iter().enumerate() {
            if !tools.iter().any(|tool| tool.name == *name) {
                let near = nearest(name, tools.iter().map(|tool| tool.name.as_str()));
                let title = format!(
                    "`ask_before` names `{name}`, which does not run in `{}`",
                    draft.id
                );
                let finding = Diagnostic::new(&G104, title)
                    .at(
                        self.compiler
                            .report
                            .value(&at.key("ask_before").item(index)),
                        "no tool of this node",
                    )
                    .help_if(near.map(|near| format!("did you mean `{near}`?")));
                self.compiler.report.push(finding);
            }
        }
        if !keys.ask_before.is_empty() {
            self.needs_checkpointer(&at.key("ask_before"), &draft.id, "`ask_before`");
        }
        let names = tools.iter().map(|tool| tool.name.clone()).collect();
        self.named.insert(draft.id.clone(), tools);
        Some(SpecPlan::Tools(ToolsSpec {
            info,
            tools: names,
            from,
            max_parallel: usize::try_from(keys.max_parallel).unwrap_or(usize::MAX),
            ask_before: keys.ask_before.clone(),
            on_tool_error: keys.on_tool_error,
        }))
    }
}
