//! The kinds of nodes, one method each.

use indexmap::IndexMap;
use serde_yaml::Value as Yaml;

use super::channels::read_type;
use super::compile::holds_code;
use super::nodes::{LabelSource, Nodes, plain};
use super::plan::{InterruptPlan, SpecPlan};
use super::tools::{NamedTool, unknown};
use crate::diag::{Diagnostic, G104, G201, G205, G502};
use crate::expr::Names;
use crate::host::{
    CallSpec, ModelSpec, NodeInfo, ReturnsSpec, Shape, ToolChoice, ToolSpec, ToolsSpec,
};
use crate::report::{nearest, one_of};
use crate::spec::{CallKeys, InterruptKeys, ModelKeys, NodeDraft, ToolKeys, ToolsKeys};
use crate::syntax::At;
use crate::types::{Type, fits, read_schema};
use crate::value::ValueExpr;
use crate::writes::{OpExpr, SetWrite, WriteExpr};

/// Channels a node writes, with the places that say so.
type Writes = Vec<(String, At)>;

impl Nodes<'_, '_> {
    pub(super) fn model(
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
            unknown(
                self.compiler.report,
                self.registry,
                "model",
                &keys.model,
                known,
                span,
            );
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

    fn shape(&self, kind: Type) -> Shape {
        Shape {
            kind,
            types: std::sync::Arc::clone(self.types),
        }
    }

    fn misfit(&mut self, at: &At, channel: &str, wanted: &Type, found: &Type) {
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
    fn conversation(&mut self, at: &At, name: &str) {
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

    pub(super) fn tools(
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
            self.tool_writes(&tool.name, &tool.at, &manifest.writes, writes);
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
            max_parallel: usize::try_from(keys.max_parallel.max(1)).unwrap_or(usize::MAX),
            ask_before: keys.ask_before.clone(),
            on_tool_error: keys.on_tool_error,
        }))
    }

    /// Checks that the channels a tool writes are declared.
    fn tool_writes(&mut self, tool: &str, at: &At, channels: &[String], writes: &mut Writes) {
        for channel in channels {
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

    pub(super) fn tool(
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
            self.tool_writes(&keys.tool, &at.key("tool"), &manifest.writes, writes);
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

    /// Compiles a map of arguments.
    fn arguments(
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

    pub(super) fn call(
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

    pub(super) fn interrupt(
        &mut self,
        draft: &NodeDraft,
        keys: &InterruptKeys,
        writes: &mut Writes,
    ) -> Option<SpecPlan> {
        let at = &draft.at;
        self.needs_checkpointer(&at.key("type"), &draft.id, "an `interrupt`");
        if keys.expires.is_some() {
            let finding = Diagnostic::new(&crate::diag::G007, "`expires` is not supported yet").at(
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

    /// Compiles the writes of a `set`.
    pub(super) fn set(
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
        channel: &super::channels::ChannelPlan,
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
        channel: &super::channels::ChannelPlan,
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
