//! Building engine graphs from cases.

use crate::case::{
    BranchSpec, ChannelSpec, GraphSpec, Lifetime, NodeSpec, OneOrMany, Op, Persistence, ReducerName,
};
use crate::lang::{Body, CaseError, Place};
use crate::neutral::{engine_name, target, typed_write};
use crate::probe::CaseRun;
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tine_engine::channel::{self, Definition};
use tine_engine::node::Targets;
use tine_engine::run::{ChildMemory, Subgraph};
use tine_engine::{
    Breakpoints, CachePolicy, END, ErrorClass, Graph, GraphBuilder, Keep, Node, NodeCx, NodeError,
    Output, RetryPolicy, Router, Update, Value,
};

/// Builds the engine's graph of a case's.
pub(crate) fn build(run: &Arc<CaseRun>, name: &str, spec: &GraphSpec) -> Result<Graph, CaseError> {
    let mut graph = Graph::builder(name);
    for (name, channel) in &spec.channels {
        let channel = channel.clone().unwrap_or_default();
        graph.channel(name.as_str(), Definition::from(channel_spec(&channel)));
    }
    if let Some(input) = &spec.input {
        graph.input(input.iter().map(String::as_str));
    }
    if let Some(output) = &spec.output {
        graph.output(output.iter().map(String::as_str));
    }
    for (name, node) in &spec.nodes {
        add_node(&mut graph, run, name, node)?;
    }
    for (from, to) in &spec.edges {
        let to = engine_name(to);
        match from {
            OneOrMany::One(from) => {
                graph.edge(engine_name(from), to);
            }
            // Waiting for several before nothing at all is nothing at all.
            OneOrMany::Many(_) if to == END => {}
            OneOrMany::Many(from) => {
                graph.join(from.iter().map(|name| engine_name(name)), to);
            }
        }
    }
    add_branches(&mut graph, run, &spec.branches);
    if let Some(at) = &spec.interrupt_before {
        graph.interrupt_before(breakpoints(at));
    }
    if let Some(at) = &spec.interrupt_after {
        graph.interrupt_after(breakpoints(at));
    }
    graph.build().map_err(|error| CaseError(error.to_string()))
}

fn channel_spec(spec: &ChannelSpec) -> tine_engine::ChannelSpec {
    let keep = match spec.lifetime {
        Lifetime::Thread => Keep::Thread,
        Lifetime::Ephemeral => Keep::Step,
        Lifetime::Untracked => Keep::Untracked,
    };
    let new = match spec.reducer {
        // What lives shorter than the thread takes one write a step, whatever it says.
        _ if spec.lifetime != Lifetime::Thread => tine_engine::ChannelSpec::new(channel::Last),
        ReducerName::Last => tine_engine::ChannelSpec::new(channel::Last),
        ReducerName::Append => tine_engine::ChannelSpec::new(channel::Append),
        ReducerName::Add => tine_engine::ChannelSpec::new(channel::Add),
        ReducerName::Max => tine_engine::ChannelSpec::new(channel::Extreme::Max),
        ReducerName::Merge => tine_engine::ChannelSpec::new(channel::Merge),
        ReducerName::Dedupe => tine_engine::ChannelSpec::new(channel::Dedupe::default()),
        ReducerName::Messages => tine_engine::ChannelSpec::new(channel::Messages),
    };
    tine_engine::ChannelSpec {
        keep,
        default: spec.default.clone(),
        ..new
    }
}

fn add_node(
    graph: &mut GraphBuilder,
    run: &Arc<CaseRun>,
    name: &str,
    spec: &NodeSpec,
) -> Result<(), CaseError> {
    let node: Arc<dyn Node> = match (&spec.body, &spec.subgraph) {
        (Some(body), None) => Arc::new(BodyNode {
            run: run.clone(),
            ops: body.clone(),
        }),
        (None, Some(child)) => {
            let child = run.child_graph(child)?;
            Arc::new(ChildNode {
                run: run.clone(),
                subgraph: Subgraph::new(child.clone()).memory(child_memory(spec.persistence)),
                child,
            })
        }
        _ => {
            return Err(CaseError(format!(
                "node `{name}` needs one of `do` and `subgraph`"
            )));
        }
    };
    let mut options = graph.node(name, node);
    if let Some(reads) = &spec.reads {
        options = options.reads(reads.iter().map(String::as_str));
    }
    if spec.defer {
        options = options.defer();
    }
    if let Some(retry) = spec.retry {
        options = options.retry(RetryPolicy {
            max_attempts: retry.max_attempts,
            initial: Duration::from_millis(10),
            jitter: false,
            on: vec![ErrorClass::Transport, ErrorClass::Timeout],
            ..RetryPolicy::default()
        });
    }
    if spec.cache {
        options = options.cache(CachePolicy::new());
    }
    if let Some(ops) = &spec.error_handler {
        options = options.on_error(BodyNode {
            run: run.clone(),
            ops: ops.clone(),
        });
    }
    if let Some(millis) = spec.timeout_ms {
        options.timeout(Duration::from_millis(millis));
    }
    Ok(())
}

fn add_branches(graph: &mut GraphBuilder, run: &Arc<CaseRun>, branches: &[BranchSpec]) {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for branch in branches {
        let place = seen.entry(&branch.from).or_default();
        let total = branches
            .iter()
            .filter(|other| other.from == branch.from)
            .count();
        let mark = if total > 1 {
            format!("?{place}")
        } else {
            "?".to_owned()
        };
        *place += 1;
        let router = BodyRouter {
            run: run.clone(),
            mark,
            ops: branch.body.clone(),
        };
        let options = graph.branch(engine_name(&branch.from), router);
        if let Some(map) = &branch.path_map {
            options.labels(map.iter().map(|(label, to)| (label.as_str(), target(to))));
        }
    }
}

/// Breakpoints at nodes, or `*` for all.
pub(crate) fn breakpoints(at: &OneOrMany) -> Breakpoints {
    match at {
        OneOrMany::One(all) if all == "*" => Breakpoints::All,
        OneOrMany::One(name) => Breakpoints::at([name.as_str()]),
        OneOrMany::Many(names) => Breakpoints::at(names.iter().map(String::as_str)),
    }
}

/// The engine's word for how long a child keeps its state. That a child keeps nothing at all is not supported, and
/// refused before a case runs.
pub(crate) fn child_memory(persistence: Persistence) -> ChildMemory {
    match persistence {
        Persistence::None | Persistence::Invocation => ChildMemory::Run,
        Persistence::Thread => ChildMemory::Thread,
    }
}

/// What a child graph gets of a map: its input channels.
pub(crate) fn child_update(graph: &Graph, input: &Value) -> Update {
    graph
        .input()
        .filter_map(|name| Some((name, input.get(name)?)))
        .fold(Update::new(), |update, (name, value)| {
            update.with(name.clone(), typed_write(value.clone()))
        })
}

/// A node with a body in the mini-language.
struct BodyNode {
    run: Arc<CaseRun>,
    ops: Vec<Op>,
}

#[async_trait]
impl Node for BodyNode {
    async fn run(&self, cx: NodeCx) -> Result<Output, NodeError> {
        self.run.probe.task_input(&cx);
        let mut body = Body::begin(&self.run, &cx, Place::Node);
        body.execute(&self.ops).await?;
        Ok(body.output())
    }
}

/// A node that is a child graph.
struct ChildNode {
    run: Arc<CaseRun>,
    child: Graph,
    subgraph: Subgraph,
}

#[async_trait]
impl Node for ChildNode {
    async fn run(&self, cx: NodeCx) -> Result<Output, NodeError> {
        self.run.probe.task_input(&cx);
        self.run.probe.enter(&cx.path(), &self.child);
        self.subgraph.run(cx).await
    }
    fn subgraph(&self) -> Option<&Subgraph> {
        Some(&self.subgraph)
    }
}

/// A router with a body in the mini-language.
struct BodyRouter {
    run: Arc<CaseRun>,
    mark: String,
    ops: Vec<Op>,
}

#[async_trait]
impl Router for BodyRouter {
    async fn route(&self, cx: NodeCx) -> Result<Targets, NodeError> {
        let mut body = Body::begin(&self.run, &cx, Place::Router(&self.mark));
        body.execute(&self.ops).await?;
        Ok(Targets(body.routes()))
    }
}
