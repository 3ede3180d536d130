//! Limits that hold over the invocations of a run, or bound a step.

use super::Runner;
use super::budget::{Account, Budget, Ledger, Spend, open_spend};
use super::context::RunCx;
use super::task::TaskCx;
use crate::checkpoint::{Checkpoint, Record, Scope};
use crate::error::RunError;
use crate::graph::Graph;
use crate::step::ThreadState;
use crate::world::Timestamp;
use std::sync::Arc;
use std::time::Duration;

/// The ledger of a run that begins, or that goes on with an open step of which these are the records: with what its
/// finished steps have spent, and what the tasks of the open one have.
pub(super) fn account(
    graph: &Graph,
    thread: &ThreadState,
    open: Option<&[Record]>,
    budget: Budget,
) -> Arc<Ledger> {
    let spent = open.map_or_else(Spend::default, |records| {
        Account::of(graph, thread).spent.and(open_spend(records))
    });
    Arc::new(Ledger::new(budget, spent))
}

/// When a run began. A run that goes on and was never asked for it finds out from its checkpoints, and keeps it.
///
/// # Errors
/// If they can not be read.
pub(super) async fn began(
    runner: &Runner,
    scope: &Scope,
    graph: &Graph,
    thread: &mut ThreadState,
    goes_on: Option<&Checkpoint>,
) -> Result<Timestamp, RunError> {
    let (Some(head), Some(checkpointer)) = (goes_on, &runner.checkpointer) else {
        return Ok(runner.world.now());
    };
    if let Some(began) = Account::of(graph, thread).began {
        return Ok(began);
    }
    // Up the line of ancestors; between them stand checkpoints of other branches.
    let (mut parent, mut began) = (head.parent, head.created);
    let mut before = head.id;
    while parent.is_some() {
        let page = checkpointer
            .history(scope, Some(before), Some(PAGE))
            .await?;
        let Some(oldest) = page.last() else { break };
        before = oldest.id;
        for checkpoint in page.iter().filter(|checkpoint| checkpoint.run == head.run) {
            if Some(checkpoint.id) == parent {
                (parent, began) = (checkpoint.parent, checkpoint.created);
            }
        }
        if page.iter().any(|checkpoint| Some(checkpoint.id) == parent) {
            // It belongs to another run, where this one did not begin.
            break;
        }
    }
    keep_began(graph, thread, began);
    Ok(began)
}

/// How many checkpoints are read at once.
const PAGE: usize = 64;

/// Keeps when the run began.
pub(super) fn keep_began(graph: &Graph, thread: &mut ThreadState, began: Timestamp) {
    let account = Account::of(graph, thread);
    let account = Account {
        began: Some(began),
        ..account
    };
    account.keep(graph, thread);
}

/// Adds what a finished step has spent to the account of its run.
pub(super) fn keep_spent(graph: &Graph, thread: &mut ThreadState, spent: Spend) {
    let account = Account::of(graph, thread);
    let account = Account {
        spent: account.spent.and(spent),
        ..account
    };
    account.keep(graph, thread);
}

/// The error of a run that has taken longer than it may; `None` if it has time left, or no limit.
pub(super) fn out_of_time(
    run: &RunCx,
    deadline: Option<(Timestamp, Duration)>,
) -> Option<RunError> {
    let (began, wall) = deadline?;
    let taken = Duration::from_millis(run.world.now().0.saturating_sub(began.0));
    (taken >= wall).then(|| over_wall(run, wall, taken))
}

fn over_wall(run: &RunCx, wall: Duration, taken: Duration) -> RunError {
    RunError::Budget {
        location: run.location(""),
        budget: "wall_millis".into(),
        limit: super::bound::millis(wall),
        spent: super::bound::millis(taken),
        asked: 0,
    }
}

/// How long a step may take, and why.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepBound {
    pub(super) after: Duration,
    /// The wall time of the run, if it is that which ends.
    wall: Option<Duration>,
}

impl StepBound {
    /// The sooner of two limits.
    pub(super) fn of(run: &RunCx, deadline: Option<(Timestamp, Duration)>) -> Option<Self> {
        let step = run.step_timeout.map(|after| Self { after, wall: None });
        let wall = deadline.map(|(began, wall)| {
            let taken = Duration::from_millis(run.world.now().0.saturating_sub(began.0));
            Self {
                after: wall.saturating_sub(taken),
                wall: Some(wall),
            }
        });
        match (step, wall) {
            (Some(step), Some(wall)) if step.after < wall.after => Some(step),
            (step, wall) => wall.or(step),
        }
    }

    /// What becomes of a task that is not finished then.
    pub(super) fn error(&self, cx: &TaskCx) -> RunError {
        match self.wall {
            Some(wall) => over_wall(&cx.run, wall, wall),
            None => RunError::StepTimeout {
                location: cx.asker().location(),
                millis: super::bound::millis(self.after),
            },
        }
    }
}
