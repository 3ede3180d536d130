//! The `model` node.

use super::Writes;
use crate::diag::{Diagnostic, G104};
use crate::host::{ModelSpec, NodeInfo, ReturnsSpec, ToolChoice};
use crate::load::channels::read_type;
use crate::load::nodes::{Nodes, plain};
use crate::load::plan::SpecPlan;
use crate::load::tools::{NamedTool, unknown};
use crate::report::{nearest, one_of};
use crate::spec::{ModelKeys, NodeDraft};
use crate::syntax::At;
use crate::types::{Type, fits};

impl Nodes<'_, '_> {
    pub(in crate::load) fn model(
        &mut self,
        draft: &NodeDraft,
        info: NodeInfo,
        keys: &ModelKeys,
        writes: &mut Writes,
    ) -> Option<SpecPlan> {
        let at = &draft.at;
        if !self.registry.models.contains(&keys.model) {
            let span = self.compiler.report.value(&at.key("model"));
            let known = self.registry.models.iter();
            if let Some(reason) = self.registry.unusable.get(&keys.model) {
                let title = format!("model `{}` can not be used", keys.model);
                let finding = Diagnostic::new(&G104, title)
                    .at(span, "configured, but not to be used as it is")
                    .help(reason.as_str());
                self.compiler.report.push(finding);
            } else {
                unknown(
                    self.compiler.report,
                    self.registry,
                    "model",
                    &keys.model,
                    known,
                    span,
                );
            }
        }
        let names = self.names.clone();
        let system = keys
            .system
            .as_ref()
            .map(|yaml| self.compiler.template(&at.key("system"), yaml, &names));
        let prompt = keys
            .prompt
            .as_ref()
            .map(|yaml| self.compiler.template(&at.key("prompt"), yaml, &names));
        let messages = match keys.messages.as_deref() {
            Some("none") => None,
            Some(name) => Some(name.to_owned()),
            None => self
                .channels
                .contains_key("messages")
                .then(|| "messages".to_owned()),
        };
        if let Some(name) = &messages {
            let place = match keys.messages {
                Some(_) => at.key("messages"),
                None => at.clone(),
            };
            self.conversation(&place, name);
            writes.push((name.clone(), place));
        }
        // A model is told of the tools that were promoted.
        for (name, channel) in self.channels {
            if channel.reduce.name() == "promoted" {
                self.compiler.reads.insert(name.clone());
            }
        }
        let tools = match &keys.tools {
            Some(yaml) => self
                .tools
                .list(self.compiler.report, &at.key("tools"), yaml),
            None => Vec::new(),
        };
        let tool_choice = self.tool_choice(at, keys, &tools);
        let returns = keys.returns.as_ref().and_then(|returns| {
            let place = at.key("returns");
            let kind = match &returns.kind {
                Some(text) => read_type(self.compiler.report, &place.key("type"), text, self.types),
                None => Type::text(),
            };
            let channel = self.channel(&place.key("into"), &returns.into)?;
            if !fits(self.types, &kind, &channel.kind) {
                self.misfit(&place.key("into"), &returns.into, &channel.kind, &kind);
            }
            writes.push((returns.into.clone(), place.key("into")));
            Some(ReturnsSpec {
                into: returns.into.clone(),
                shape: self.shape(kind),
            })
        });
        let names = tools.iter().map(|tool| tool.name.clone()).collect();
        self.named.insert(draft.id.clone(), tools);
        Some(SpecPlan::Model(ModelSpec {
            info,
            model: keys.model.clone(),
            system: match system {
                Some(system) => Some(system?),
                None => None,
            },
            prompt: match prompt {
                Some(prompt) => Some(prompt?),
                None => None,
            },
            prompt_once: keys.prompt_once,
            messages,
            tools: names,
            tool_choice,
            returns,
            params: plain(&keys.params),
            stream: keys.stream,
        }))
    }

    fn tool_choice(&mut self, at: &At, keys: &ModelKeys, tools: &[NamedTool]) -> ToolChoice {
        match keys.tool_choice.as_deref() {
            None | Some("auto") => ToolChoice::Auto,
            Some("none") => ToolChoice::None,
            Some("required") => ToolChoice::Required,
            Some(name) if tools.iter().any(|tool| tool.name == name) => {
                ToolChoice::Tool(name.to_owned())
            }
            Some(name) => {
                let mut known: Vec<&str> = vec!["auto", "none", "required"];
                known.extend(tools.iter().map(|tool| tool.name.as_str()));
                let title = format!("`tool_choice: {name}` is no tool of this node");
                let finding = Diagnostic::new(&G104, title)
                    .at(
                        self.compiler.report.value(&at.key("tool_choice")),
                        "not offered here",
                    )
                    .help(match nearest(name, known.iter().copied()) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("expected {}", one_of(&known)),
                    });
                self.compiler.report.push(finding);
                ToolChoice::Auto
            }
        }
    }
}
