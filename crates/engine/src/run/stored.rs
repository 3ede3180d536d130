//! Results of tasks in the form in which they are kept, brought back into the places of the graph.

use super::context::RunCx;
use crate::command::Target;
use crate::error::RunError;
use crate::event::ChannelWrite;
use crate::graph::Graph;
use crate::step::{Done, Task};
use std::sync::Arc;

/// The result of a task that finished before.
///
/// # Errors
/// If it wrote or went where the graph has nothing any more.
pub(super) fn stored_result(
    run: &RunCx,
    task: &Task,
    writes: &[ChannelWrite],
    targets: &[Target],
    joins: &[Arc<str>],
) -> Result<Done, RunError> {
    let graph = &run.graph;
    let gone = |(what, name): (&str, &Arc<str>)| RunError::Mismatch {
        location: run.location(task.name(graph)),
        message: format!(
            "node `{}` finished and {what} `{name}`, which the graph does not have",
            task.path
        ),
    };
    let mut done = Done::default();
    for write in writes {
        let found = graph.0.channels.find(&write.channel);
        let channel = found.ok_or_else(|| gone(("wrote", &write.channel)))?;
        done.writes.push((channel, write.write.clone()));
    }
    add_ways(graph, targets, joins, &mut done).map_err(gone)?;
    Ok(done)
}

/// Adds where a task went to its result.
///
/// # Errors
/// What it did, and the name that the graph does not have.
pub(super) fn add_ways<'a>(
    graph: &Graph,
    targets: &'a [Target],
    joins: &'a [Arc<str>],
    done: &mut Done,
) -> Result<(), (&'static str, &'a Arc<str>)> {
    for target in targets {
        match target {
            Target::Node(name) => {
                let node = graph.find(name).ok_or(("goes to", name))?;
                done.nodes.push(node);
            }
            Target::Dispatch(dispatch) => {
                let node = graph
                    .find(&dispatch.node)
                    .ok_or(("goes to", &dispatch.node))?;
                done.dispatch(node, dispatch.input.clone());
            }
            Target::End => {}
        }
    }
    for name in joins {
        let found = graph.0.joins.iter().position(|join| join.name == *name);
        done.feed(found.ok_or(("feeds the join", name))? as u32);
    }
    Ok(())
}
