//! The `call` node.

use super::Writes;
use crate::host::{CallSpec, NodeInfo};
use crate::load::nodes::{LabelSource, Nodes};
use crate::load::plan::SpecPlan;
use crate::load::tools::unknown;
use crate::spec::{CallKeys, NodeDraft};
use crate::types::{Type, read_schema};

impl Nodes<'_, '_> {
    pub(in crate::load) fn call(
        &mut self,
        draft: &NodeDraft,
        info: NodeInfo,
        keys: &CallKeys,
        writes: &mut Writes,
    ) -> Option<SpecPlan> {
        let at = &draft.at;
        let registry = self.registry;
        let manifest = registry.functions.get(&keys.function);
        if manifest.is_none() {
            let span = self.compiler.report.value(&at.key("function"));
            let known = registry.functions.keys();
            unknown(
                self.compiler.report,
                registry,
                "function",
                &keys.function,
                known,
                span,
            );
        }
        let wanted = manifest.map_or(Type::Any, |manifest| read_schema(&manifest.input));
        let place = format!("the input of `{}`", keys.function);
        let input = self.arguments(&at.key("input"), &keys.input, &wanted, &place);
        for (index, channel) in keys.writes.iter().enumerate() {
            let place = at.key("writes").item(index);
            if self.channel(&place, channel).is_some() {
                writes.push((channel.clone(), place));
            }
        }
        if let Some(manifest) = manifest {
            self.check_labels(
                draft,
                &[LabelSource {
                    what: "function",
                    name: &keys.function,
                    at: at.key("function"),
                    labels: &manifest.routes,
                }],
            );
        }
        Some(SpecPlan::Call(CallSpec {
            info,
            function: keys.function.clone(),
            input: input?,
            writes: keys.writes.clone(),
        }))
    }
}
