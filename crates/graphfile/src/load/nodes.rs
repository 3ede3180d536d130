//! Nodes: every name in them resolved, every expression compiled.

use std::collections::BTreeMap;
use std::sync::Arc;

use indexmap::IndexMap;
use serde_yaml::Value as Yaml;
use tine_engine::{RetryPolicy, Target};

use super::channels::ChannelPlan;
use super::compile::Compiler;
use super::plan::{NodePlan, SpecPlan, ThenPlan};
use super::tools::{NamedTool, ToolNames};
use crate::diag::{Diagnostic, G004, G008, G305, G307, Level};
use crate::expr::{Expression, Names, unknown_channel};
use crate::graph::{Channels, To};
use crate::host::{NodeInfo, Registry, RouteLabel, Routes};
use crate::spec::{Goto, KindKeys, NodeDraft, RetryKeys, Then};
use crate::syntax::At;
use crate::types::{Type, Types};

/// What nodes are compiled against.
pub(super) struct Nodes<'c, 't> {
    pub(super) compiler: Compiler<'c, 't>,
    pub(super) types: &'c Arc<Types>,
    pub(super) channels: &'c IndexMap<String, ChannelPlan>,
    /// The names every expression of a node may use.
    pub(super) names: Names,
    pub(super) view: Channels,
    pub(super) tools: ToolNames<'c>,
    pub(super) registry: &'c Registry,
    /// The tools of `model` and `tools` nodes, for checks between nodes.
    pub(super) named: BTreeMap<String, Vec<NamedTool>>,
}

impl Nodes<'_, '_> {
    /// Compiles one node.
    pub(super) fn compile(&mut self, draft: &NodeDraft) -> NodePlan {
        let mut writes = Vec::new();
        let info = NodeInfo {
            id: draft.id.clone(),
            description: draft.common.description.clone(),
            routes: routes(&draft.routes),
            channels: self.view.clone(),
        };
        let spec = match &draft.kind {
            Some(KindKeys::Model(keys)) => self.model(draft, info, keys, &mut writes),
            Some(KindKeys::Tools(keys)) => self.tools(draft, info, keys, &mut writes),
            Some(KindKeys::Tool(keys)) => self.tool(draft, info, keys, &mut writes),
            Some(KindKeys::Call(keys)) => self.call(draft, info, keys, &mut writes),
            Some(KindKeys::Set(keys)) => {
                let names = self.names.clone();
                let at = draft.at.key("set");
                self.set(&at, &keys.set, &names, &mut writes)
                    .map(SpecPlan::Set)
            }
            Some(KindKeys::Interrupt(keys)) => self.interrupt(draft, keys, &mut writes),
            None => None,
        };
        if let Some(keys) = &draft.kind {
            let silent = matches!(
                keys,
                KindKeys::Model(_) | KindKeys::Set(_) | KindKeys::Interrupt(_)
            );
            if silent {
                self.check_labels(draft, &[]);
            }
        }
        if draft.common.pause.is_some() {
            self.needs_checkpointer(&draft.at.key("pause"), &draft.id, "`pause`");
        }
        let retry = draft.common.retry.as_ref().map(retry);
        self.check_waits(draft, retry.as_ref());
        NodePlan {
            id: draft.id.clone(),
            at: draft.at.clone(),
            kind: draft.kind.as_ref().map(KindKeys::kind),
            then: self.then(draft, &writes),
            routes: draft.routes.clone(),
            wait_for: draft.common.wait_for.clone(),
            timeout: draft.common.timeout.map(|timeout| timeout.0),
            retry,
            pause: draft.common.pause,
            spec,
            writes,
        }
    }

    /// A first wait above the longest one would be cut without a word.
    fn check_waits(&mut self, draft: &NodeDraft, policy: Option<&RetryPolicy>) {
        let (Some(keys), Some(policy)) = (&draft.common.retry, policy) else {
            return;
        };
        if keys.initial.is_none() || policy.initial <= policy.max {
            return;
        }
        let report = &mut *self.compiler.report;
        let at = draft.at.key("retry");
        let title = format!(
            "the first wait of `{}` is longer than its longest",
            draft.id
        );
        let finding = Diagnostic::new(&G004, title)
            .at(
                report.value(&at.key("initial")),
                format!("longer than `max`, which is {:?}", policy.max),
            )
            .help("raise `max`, or lower `initial`");
        report.push(finding);
    }

    fn then(&mut self, draft: &NodeDraft, writes: &[(String, At)]) -> ThenPlan {
        let mut names = self.names.clone();
        names.assured = writes.iter().map(|(channel, _)| channel.clone()).collect();
        match &draft.then {
            Some(then) => self.then_plan(then, &names, &draft.id),
            None => {
                if draft.common.then.is_none() && draft.routes.is_empty() {
                    let finding = Diagnostic::new(&G008, format!("`{}` has no `then`", draft.id))
                        .at(
                            self.compiler.report.key(&draft.at),
                            "where does it go next?",
                        )
                        .help("add `then: end`, or the next node");
                    self.compiler.report.push(finding);
                }
                ThenPlan::None
            }
        }
    }

    pub(super) fn then_plan(&mut self, then: &Then, names: &Names, owner: &str) -> ThenPlan {
        match then {
            Then::Go(goto) => ThenPlan::Go(goto.clone()),
            Then::Branches {
                branches,
                otherwise,
            } => {
                let mut names = names.clone();
                let mut compiled = Vec::new();
                for branch in branches {
                    let when = self
                        .compiler
                        .condition(&branch.at, &branch.when, &names, owner);
                    // Further down the list this condition did not hold.
                    names
                        .present
                        .extend(when.iter().flat_map(Expression::present_otherwise));
                    compiled.push((branch.when.clone(), when, branch.goto.clone()));
                }
                ThenPlan::Branches {
                    branches: compiled,
                    otherwise: otherwise.clone(),
                }
            }
        }
    }

    /// Looks a channel up, reporting one that is not declared.
    pub(super) fn channel(&mut self, at: &At, name: &str) -> Option<ChannelPlan> {
        let found = self.channels.get(name).cloned();
        if found.is_none() {
            // A key of `set` names its channel itself; elsewhere the channel is a value.
            let span = match at.name() == Some(name) {
                true => self.compiler.report.key(at),
                false => self.compiler.report.value(at),
            };
            let finding = unknown_channel(self.compiler.report, &self.names.state, name, span);
            self.compiler.report.push(finding);
        }
        found
    }

    pub(super) fn needs_checkpointer(&mut self, at: &At, id: &str, what: &str) {
        if self.registry.checkpointer {
            return;
        }
        let finding = Diagnostic::new(
            &G307,
            format!("`{id}` waits for a person, and no thread is kept"),
        )
        .at(
            self.compiler.report.key(at),
            format!("{what} needs a checkpointer"),
        )
        .help("run the graph with a checkpointer, or leave this out");
        self.compiler.report.push(finding);
    }

    /// Compares the labels a node maps with those that can come; `source` names who returns what.
    pub(super) fn check_labels(&mut self, draft: &NodeDraft, sources: &[LabelSource<'_>]) {
        let report = &mut *self.compiler.report;
        for source in sources {
            for RouteLabel { label, optional } in source.labels {
                if *optional || draft.routes.contains_key(label) {
                    continue;
                }
                let title = format!(
                    "{} `{}` can return the route `{label}`, which `{}` does not map",
                    source.what, source.name, draft.id
                );
                let finding = Diagnostic::new(&G305, title)
                    .at(report.value(&source.at), format!("may route to `{label}`"))
                    .context(
                        report.key(&draft.at),
                        format!("add `routes: {{ {label}: <node> }}` to this node"),
                    );
                report.push(finding);
            }
        }
        if self.registry.offline {
            return;
        }
        for label in draft.routes.keys() {
            let comes = |source: &LabelSource<'_>| source.labels.iter().any(|l| l.label == *label);
            if sources.iter().any(comes) {
                continue;
            }
            let at = draft.at.key("routes").key(label);
            let known: Vec<&str> = sources
                .iter()
                .flat_map(|source| source.labels.iter().map(|l| l.label.as_str()))
                .collect();
            let near = crate::report::nearest(label, known.iter().copied());
            let finding = Diagnostic::new(
                &G305,
                format!("nothing in `{}` returns `{label}`", draft.id),
            )
            .level(Level::Warning)
            .at(report.key(&at), "never taken")
            .help_if(near.map(|near| format!("did you mean `{near}`?")));
            report.push(finding);
        }
    }

    /// Returns the names of expressions with one more.
    pub(super) fn names_with(&self, name: &'static str, kind: Type) -> Names {
        let mut names = self.names.clone();
        names.roots.push(crate::expr::Root { name, kind });
        names
    }
}

/// Someone who can return labels.
pub(super) struct LabelSource<'l> {
    pub(super) what: &'static str,
    pub(super) name: &'l str,
    pub(super) at: At,
    pub(super) labels: &'l [RouteLabel],
}

fn routes(routes: &IndexMap<String, Goto>) -> Routes {
    let targets = |goto: &Goto| goto.targets.iter().map(|(to, _)| target(to)).collect();
    Routes::new(
        routes
            .iter()
            .map(|(label, goto)| (label.as_str().into(), targets(goto)))
            .collect(),
    )
}

/// Returns the target of the engine.
pub(crate) fn target(to: &To) -> Target {
    match to {
        To::Node(name) => Target::Node(name.as_str().into()),
        To::End => Target::End,
    }
}

fn retry(keys: &RetryKeys) -> RetryPolicy {
    let standard = RetryPolicy::default();
    RetryPolicy {
        max_attempts: keys.max_attempts,
        initial: keys.initial.map_or(standard.initial, |initial| initial.0),
        factor: keys.factor.unwrap_or(standard.factor),
        max: keys.max.map_or(standard.max, |max| max.0),
        jitter: keys.jitter.unwrap_or(standard.jitter),
        on: keys.on.clone().unwrap_or(standard.on),
    }
}

/// Converts the `params` of a model node.
pub(super) fn plain(entries: &serde_yaml::Mapping) -> tine_engine::Value {
    crate::value::from_yaml(&Yaml::Mapping(entries.clone()))
}
