//! The writes of `set`, in a `set` node and after an answer.

use indexmap::IndexMap;
use serde_yaml::Value as Yaml;

use super::Writes;
use crate::diag::{Diagnostic, G205};
use crate::expr::Names;
use crate::load::channels::ChannelPlan;
use crate::load::nodes::Nodes;
use crate::syntax::At;
use crate::types::Type;
use crate::writes::{OpExpr, SetWrite, WriteExpr};

impl Nodes<'_, '_> {
    /// Compiles the writes of a `set`.
    pub(in crate::load) fn set(
        &mut self,
        at: &At,
        entries: &IndexMap<String, Yaml>,
        names: &Names,
        writes: &mut Writes,
    ) -> Option<Vec<SetWrite>> {
        let mut compiled = Some(Vec::new());
        for (name, yaml) in entries {
            let place = at.key(name);
            writes.push((name.clone(), place.clone()));
            let write = match self.channel(&place, name) {
                Some(channel) => {
                    let said = format!("channel `{name}`");
                    self.write(&place, yaml, &channel, names, &said)
                }
                None => None,
            };
            match (write, &mut compiled) {
                (Some(write), Some(compiled)) => {
                    compiled.push(SetWrite {
                        channel: name.as_str().into(),
                        write,
                    });
                }
                _ => compiled = None,
            }
        }
        compiled
    }

    fn write(
        &mut self,
        at: &At,
        yaml: &Yaml,
        channel: &ChannelPlan,
        names: &Names,
        said: &str,
    ) -> Option<WriteExpr> {
        if let Some(value) = only(yaml, "$replace") {
            let kind = channel.kind.clone();
            let value = self
                .compiler
                .value(&at.key("$replace"), value, &kind, names, said)?;
            return Some(WriteExpr::Replace(value));
        }
        let removes = channel.reduce.takes_items() || channel.reduce.name() == "merge";
        if removes && only(yaml, "remove").is_some() {
            return Some(WriteExpr::Ops(vec![
                self.op(at, yaml, channel, names, said)?,
            ]));
        }
        if let (true, Yaml::Sequence(items)) = (removes, yaml)
            && items.iter().any(|item| only(item, "remove").is_some())
        {
            let ops: Vec<_> = items
                .iter()
                .enumerate()
                .map(|(index, item)| self.op(&at.item(index), item, channel, names, said))
                .collect();
            return ops.into_iter().collect::<Option<_>>().map(WriteExpr::Ops);
        }
        let wanted = channel.write_type(self.types, yaml);
        self.compiler
            .value(at, yaml, &wanted, names, said)
            .map(WriteExpr::Value)
    }

    fn op(
        &mut self,
        at: &At,
        yaml: &Yaml,
        channel: &ChannelPlan,
        names: &Names,
        said: &str,
    ) -> Option<OpExpr> {
        let Some(removed) = only(yaml, "remove") else {
            let wanted = channel.write_type(self.types, yaml);
            return self
                .compiler
                .value(at, yaml, &wanted, names, said)
                .map(OpExpr::Add);
        };
        let place = at.key("remove");
        if removed.as_str() == Some("all") {
            return Some(OpExpr::Clear);
        }
        let named = matches!(channel.reduce.name(), "messages" | "merge" | "upsert");
        if !named {
            let title = format!("items of {said} have no names to remove them by");
            let finding = Diagnostic::new(&G205, title).at(
                self.compiler.report.value(&place),
                "only `all` can be removed",
            );
            self.compiler.report.push(finding);
            return None;
        }
        let wanted = Type::text();
        self.compiler
            .value(&place, removed, &wanted, names, "`remove`")
            .map(OpExpr::Remove)
    }
}

/// Returns the value of a mapping's only key, if that is `key`.
fn only<'y>(yaml: &'y Yaml, key: &str) -> Option<&'y Yaml> {
    match yaml {
        Yaml::Mapping(entries) if entries.len() == 1 => entries.get(key),
        _ => None,
    }
}
