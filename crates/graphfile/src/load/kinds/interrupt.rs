//! The `interrupt` node.

use super::Writes;
use crate::diag::{Diagnostic, G007};
use crate::load::channels::read_type;
use crate::load::nodes::Nodes;
use crate::load::plan::{InterruptPlan, SpecPlan};
use crate::spec::{InterruptKeys, NodeDraft};
use crate::types::Type;

impl Nodes<'_, '_> {
    pub(in crate::load) fn interrupt(
        &mut self,
        draft: &NodeDraft,
        keys: &InterruptKeys,
        writes: &mut Writes,
    ) -> Option<SpecPlan> {
        let at = &draft.at;
        self.needs_checkpointer(&at.key("type"), &draft.id, "an `interrupt`");
        if keys.expires.is_some() {
            let finding = Diagnostic::new(&G007, "`expires` is not supported yet").at(
                self.compiler.report.key(&at.key("expires")),
                "questions stay open until answered",
            );
            self.compiler.report.push(finding);
        }
        let names = self.names.clone();
        let payload = self.compiler.value(
            &at.key("payload"),
            &keys.payload,
            &Type::Any,
            &names,
            "the payload",
        );
        let kind = read_type(
            self.compiler.report,
            &at.key("resume"),
            &keys.resume,
            self.types,
        );
        let names = self.names_with("resume", kind.clone());
        let set = self.set(&at.key("set"), &keys.set, &names, writes);
        Some(SpecPlan::Interrupt(InterruptPlan {
            payload: payload?,
            answer: self.shape(kind),
            writes: set?,
        }))
    }
}
