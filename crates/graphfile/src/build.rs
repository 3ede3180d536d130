//! A file without errors to the engine's graph.

use std::sync::Arc;

use tine_engine::channel::Definition;
use tine_engine::command::{END, START};
use tine_engine::{Breakpoints, Graph, GraphBuilder, Node, Target};

use crate::graph::{Channels, Pause, To};
use crate::host::{NodeKinds, Routes};
use crate::load::{Analysed, NodePlan, SpecPlan, ThenPlan, target};
use crate::nodes::{BranchRouter, InterruptNode, Routed, SetNode};
use crate::spec::Goto;
use crate::syntax::At;

/// Builds the graph; an error is about the place it comes with.
pub(crate) fn build(file: &Analysed, kinds: &dyn NodeKinds) -> Result<Graph, (At, String)> {
    let mut builder = Graph::builder(file.outline.name.as_str());
    for (name, channel) in &file.channels {
        builder.channel(name.as_str(), Definition::from(channel.spec(&file.types)));
    }
    builder.input(file.outline.input.iter().map(String::as_str));
    builder.output(file.outline.output.iter().map(String::as_str));
    if file.counts_visits {
        builder.count_visits();
    }
    for plan in &file.nodes {
        add_node(&mut builder, file, plan, kinds)?;
    }
    for plan in &file.nodes {
        add_ways(&mut builder, plan.id.as_str(), &plan.then, &file.view, true);
        if !plan.wait_for.is_empty() {
            builder.wait_for(plan.id.as_str(), plan.wait_for.iter().map(String::as_str));
        }
    }
    add_ways(&mut builder, START, &file.start, &file.view, false);
    let paused = |side: Pause| {
        let nodes = file.nodes.iter().filter(|node| node.pause == Some(side));
        Breakpoints::at(nodes.map(|node| node.id.as_str()))
    };
    for side in [Pause::Before, Pause::After] {
        if file.nodes.iter().any(|node| node.pause == Some(side)) {
            match side {
                Pause::Before => builder.interrupt_before(paused(side)),
                Pause::After => builder.interrupt_after(paused(side)),
            };
        }
    }
    // Everything the engine refuses was checked before; what is left would be a gap in the checks.
    builder
        .build()
        .map_err(|error| (At::root().key("nodes"), error.to_string()))
}

fn add_node(
    builder: &mut GraphBuilder,
    file: &Analysed,
    plan: &NodePlan,
    kinds: &dyn NodeKinds,
) -> Result<(), (At, String)> {
    let made = make(file, plan, kinds).map_err(|problem| (plan.at.clone(), problem))?;
    let mut options = builder.node(plan.id.as_str(), made);
    if let Some(retry) = &plan.retry {
        options = options.retry(retry.clone());
    }
    if let Some(timeout) = plan.timeout {
        options = options.timeout(timeout);
    }
    if let Some(visits) = file.outline.limits.max_visits.get(&plan.id) {
        options = options.max_visits(u64::from(*visits));
    }
    let labelled = plan.routes.iter().flat_map(|(label, goto)| {
        goto.targets
            .iter()
            .map(|(to, _)| (label.as_str(), name(to)))
    });
    options.goes_to_labelled(labelled);
    Ok(())
}

fn make(file: &Analysed, plan: &NodePlan, kinds: &dyn NodeKinds) -> Result<Arc<dyn Node>, String> {
    let routed = |node: Arc<dyn Node>, routes: &Routes, writes: Option<Vec<String>>| {
        Arc::new(Routed {
            node,
            routes: routes.clone(),
            writes,
        }) as Arc<dyn Node>
    };
    match &plan.spec {
        Some(SpecPlan::Model(spec)) => {
            Ok(routed(kinds.model(spec.clone())?, &spec.info.routes, None))
        }
        Some(SpecPlan::Tools(spec)) => {
            Ok(routed(kinds.tools(spec.clone())?, &spec.info.routes, None))
        }
        Some(SpecPlan::Tool(spec)) => {
            Ok(routed(kinds.tool(spec.clone())?, &spec.info.routes, None))
        }
        Some(SpecPlan::Call(spec)) => {
            let writes = Some(spec.writes.clone());
            Ok(routed(kinds.call(spec.clone())?, &spec.info.routes, writes))
        }
        Some(SpecPlan::Set(writes)) => Ok(Arc::new(SetNode {
            writes: writes.clone(),
            channels: file.view.clone(),
        })),
        Some(SpecPlan::Interrupt(interrupt)) => Ok(Arc::new(InterruptNode {
            plan: interrupt.clone(),
            channels: file.view.clone(),
        })),
        None => Err(format!("`{}` was not compiled", plan.id)),
    }
}

/// Adds the default edge of a node, or the ways in.
fn add_ways(
    builder: &mut GraphBuilder,
    from: &str,
    then: &ThenPlan,
    channels: &Channels,
    default: bool,
) {
    match then {
        ThenPlan::None => {}
        ThenPlan::Go(goto) => {
            for (to, _) in &goto.targets {
                match default {
                    true => builder.default_edge(from, name(to)),
                    false => builder.edge(from, name(to)),
                };
            }
        }
        ThenPlan::Branches {
            branches,
            otherwise,
        } => {
            let targets = |goto: &Goto| -> Vec<Target> {
                goto.targets.iter().map(|(to, _)| target(to)).collect()
            };
            let router = BranchRouter {
                branches: branches
                    .iter()
                    .filter_map(|(_, when, goto)| Some((when.clone()?, targets(goto))))
                    .collect(),
                otherwise: otherwise.as_ref().map(targets).unwrap_or_default(),
                channels: channels.clone(),
            };
            let all = then.gotos().into_iter().flat_map(|goto| &goto.targets);
            let names: Vec<&str> = all.map(|(to, _)| name(to)).collect();
            match default {
                true => builder.default_branch(from, router).goes_to(names),
                false => builder.branch(from, router).goes_to(names),
            };
        }
    }
}

fn name(to: &To) -> &str {
    match to {
        To::Node(name) => name,
        To::End => END,
    }
}
