//! What a run does, as spans and events of `tracing`.
//!
//! A run is a span, in it each step, in that each task, and in that whatever a node opens of its own; a child graph is a
//! span in its task. A run looks once whether anybody listens, and if not its steps have none. None holds values of
//! channels, inputs or answers: a log is no place for them. Errors may quote what they are about, so their words are
//! told at the level of debugging only.
//!
//! An interrupt is no error. A failure is an event where it happened, and once more at the end of the run that it ended.

use super::context::RunCx;
use super::options::{Exit, Outcome};
use super::task::TaskCx;
use crate::checkpoint::ThreadKey;
use crate::error::{NodeError, RunError};
use crate::graph::Graph;
use crate::step::Task;
use std::time::Duration;
use tracing::field::{Empty, display};
use tracing::{Level, Span, debug, debug_span, enabled, error, info, info_span, warn};

/// The span of an invocation of a root graph.
pub(super) fn run(graph: &Graph, thread: &ThreadKey) -> Span {
    let graph = graph.name();
    info_span!(target: "tine::run", "run", %graph, %thread, run = Empty, exit = Empty)
}

/// Tells how an invocation ended, on its span and as an event in it.
pub(super) fn ended(span: &Span, outcome: &Result<Outcome, RunError>) {
    if span.is_disabled() {
        return;
    }
    let _inside = span.enter();
    match outcome {
        Ok(outcome) => {
            let exit = outcome.exit.name();
            span.record("run", display(outcome.run))
                .record("exit", display(exit));
            let spent = outcome.spent;
            match &outcome.exit {
                Exit::Failed { error } => {
                    let code = error.code();
                    error!(target: "tine::run", %code, %exit, "the run failed");
                    debug!(target: "tine::run", %error, "in its words");
                }
                _ => info!(
                    target: "tine::run",
                    %exit,
                    questions = outcome.interrupts.len(),
                    tokens = spent.tokens,
                    cost_micros = spent.cost_micros,
                    "the run ended"
                ),
            }
        }
        Err(error) => {
            span.record("exit", display("refused"));
            let code = error.code();
            error!(target: "tine::run", %code, "the run was refused");
            debug!(target: "tine::run", %error, "in its words");
        }
    }
}

/// Whether anybody listens to the spans of steps and tasks.
pub(super) fn are_on() -> bool {
    enabled!(target: "tine::step", Level::DEBUG) || enabled!(target: "tine::task", Level::DEBUG)
}

/// The span of an invocation of a child graph.
pub(super) fn child(graph: &Graph) -> Span {
    debug_span!(target: "tine::run", "graph", graph = %graph.name())
}

/// The span of a step. The start of a run is none.
pub(super) fn step(run: &RunCx, number: i64, tasks: &[Task]) -> Span {
    if tasks.iter().all(|task| task.node().is_none()) {
        return Span::none();
    }
    let names = || {
        let names = tasks.iter().map(|task| &**task.name(&run.graph));
        names.collect::<Vec<_>>().join(", ")
    };
    debug_span!(target: "tine::step", "step", number, tasks = %names())
}

/// The span of a task, over all its attempts.
pub(super) fn task(cx: &TaskCx) -> Span {
    if cx.is_start() {
        return Span::none();
    }
    debug_span!(target: "tine::task", "task", node = %cx.node_name(), path = %cx.path)
}

/// Tells that an attempt of a task failed.
pub(super) fn attempt_failed(number: u32, error: &NodeError, delay: Option<Duration>) {
    let class = error.class();
    match delay {
        Some(delay) => {
            let millis = delay.as_millis();
            warn!(target: "tine::task", ?class, attempt = number, millis, "failed, and is tried again");
        }
        None => warn!(target: "tine::task", ?class, attempt = number, "failed"),
    }
    debug!(target: "tine::task", %error, "in its words");
}
