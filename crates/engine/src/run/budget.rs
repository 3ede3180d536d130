//! What a run may spend, and what it has spent.

use super::task::TaskCx;
use crate::checkpoint::{Checkpoint, Record, RecordKind, RecordOp};
use crate::cx::NodeCx;
use crate::error::{Location, NodeError, NodeErrorKind, RunError};
use crate::graph::{ACCOUNT, Graph};
use crate::step::ThreadState;
use crate::value::Value;
use crate::world::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What a run may spend, over all its invocations. A run that is over its budget ends with
/// [`Exit::Budget`](super::Exit), and can go on with a larger one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Tokens of models.
    pub tokens: Option<u64>,
    /// Money, in millionths of whatever the run counts in.
    pub cost_micros: Option<u64>,
    /// Time since the run began, that in which it waited included. Bounds the step in progress too.
    pub wall: Option<Duration>,
}

/// An amount that a run spends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spend {
    /// Tokens of models.
    #[serde(default)]
    pub tokens: u64,
    /// Money, in millionths of whatever the run counts in.
    #[serde(default)]
    pub cost_micros: u64,
}

impl Spend {
    /// Tokens alone.
    #[must_use]
    pub fn tokens(tokens: u64) -> Self {
        Self {
            tokens,
            ..Self::default()
        }
    }

    /// Nothing.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn and(self, more: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(more.tokens),
            cost_micros: self.cost_micros.saturating_add(more.cost_micros),
        }
    }

    fn less(self, part: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_sub(part.tokens),
            cost_micros: self.cost_micros.saturating_sub(part.cost_micros),
        }
    }
}

/// What a run has spent, shared by the root graph and its children.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    limits: Budget,
    /// Whether there is a limit to look at between steps.
    pub(crate) bounded: bool,
    /// Whether anything was ever spent.
    touched: AtomicBool,
    sums: Mutex<Sums>,
}

#[derive(Debug, Default)]
struct Sums {
    settled: Spend,
    reserved: Spend,
}

impl Ledger {
    pub(crate) fn new(limits: Budget, spent: Spend) -> Self {
        Self {
            bounded: limits.tokens.is_some() || limits.cost_micros.is_some(),
            limits,
            touched: AtomicBool::new(!spent.is_zero()),
            sums: Mutex::new(Sums {
                settled: spent,
                reserved: Spend::default(),
            }),
        }
    }

    fn sums(&self) -> MutexGuard<'_, Sums> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn touched(&self) -> bool {
        self.touched.load(Ordering::Relaxed)
    }

    pub(crate) fn spent(&self) -> Spend {
        self.sums().settled
    }

    /// Sets an amount aside.
    ///
    /// # Errors
    /// If it is more than is left.
    fn reserve(&self, location: Location, asked: Spend) -> Result<(), RunError> {
        self.touched.store(true, Ordering::Relaxed);
        let mut sums = self.sums();
        let taken = sums.settled.and(sums.reserved);
        let wanted = taken.and(asked);
        for limit in self.limits() {
            if limit.of(wanted) > limit.limit {
                return Err(limit.error(location, limit.of(taken), limit.of(asked)));
            }
        }
        sums.reserved = sums.reserved.and(asked);
        Ok(())
    }

    fn settle(&self, reserved: Spend, used: Spend) {
        let mut sums = self.sums();
        sums.reserved = sums.reserved.less(reserved);
        sums.settled = sums.settled.and(used);
    }

    /// Whether the run has spent more than it may.
    pub(crate) fn exceeded(&self, location: Location) -> Option<RunError> {
        let spent = self.spent();
        let over = self.limits().find(|limit| limit.of(spent) > limit.limit)?;
        Some(over.error(location, over.of(spent), 0))
    }

    fn limits(&self) -> impl Iterator<Item = Limit> {
        let Budget {
            tokens,
            cost_micros,
            wall: _,
        } = self.limits;
        let tokens = tokens.map(|limit| Limit {
            budget: "tokens",
            limit,
            part: |spend| spend.tokens,
        });
        let cost = cost_micros.map(|limit| Limit {
            budget: "cost_micros",
            limit,
            part: |spend| spend.cost_micros,
        });
        tokens.into_iter().chain(cost)
    }
}

/// One limit of a budget.
struct Limit {
    budget: &'static str,
    limit: u64,
    part: fn(Spend) -> u64,
}

impl Limit {
    fn of(&self, spend: Spend) -> u64 {
        (self.part)(spend)
    }

    fn error(&self, location: Location, spent: u64, asked: u64) -> RunError {
        RunError::Budget {
            location,
            budget: self.budget.into(),
            limit: self.limit,
            spent,
            asked,
        }
    }
}

/// An amount set aside for work that is about to be done, so that tasks side by side do not spend it twice.
///
/// Say with [`settle`](Self::settle) what was really used. A reservation that is dropped counts in full, for nobody
/// knows what the work that was broken off had used; say with [`release`](Self::release) that nothing was.
#[must_use = "a reservation that is dropped counts as spent in full"]
pub struct Reservation {
    cx: NodeCx,
    reserved: Spend,
    open: bool,
}

impl Reservation {
    /// Counts what was used in place of what was set aside, and records it. It may be more.
    ///
    /// # Errors
    /// If it could not be recorded.
    pub async fn settle(mut self, used: Spend) -> Result<(), NodeError> {
        self.close(used);
        let task = self.cx.spender();
        if used.is_zero() || self.cx.task.is_over(self.cx.attempt) {
            return Ok(());
        }
        let stored = task
            .run
            .record(task.info.checkpoint, spent_records(task).collect())
            .await;
        stored.map_err(|error| {
            NodeError::from_kind(NodeErrorKind::Run(Box::new(RunError::Store(error))))
        })
    }

    /// Gives the whole amount back: the work was not done.
    pub fn release(mut self) {
        self.close(Spend::default());
    }

    fn close(&mut self, used: Spend) {
        if std::mem::take(&mut self.open) {
            self.cx.spender().spend(used);
            self.cx.run_cx().ledger.settle(self.reserved, used);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.close(self.reserved);
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Reservation")
            .field("reserved", &self.reserved)
            .finish_non_exhaustive()
    }
}

impl NodeCx {
    /// Sets an amount aside before it is spent: the most that the work to come may use. Belongs inside a journaled call,
    /// so that a recorded result is not paid for again.
    ///
    /// # Errors
    /// If it is more than the budget of the run has left; the node must hand that on, and the run ends with
    /// [`Exit::Budget`](crate::Exit::Budget). If the attempt is over.
    pub fn reserve(&self, amount: Spend) -> Result<Reservation, NodeError> {
        self.check_attempt()?;
        let reserved = self.run_cx().ledger.reserve(self.task.location(), amount);
        reserved.map_err(|error| NodeError::from_kind(NodeErrorKind::Run(Box::new(error))))?;
        Ok(Reservation {
            cx: self.clone(),
            reserved: amount,
            open: true,
        })
    }

    /// What the run has spent so far, children and earlier invocations included; without what is only set aside.
    #[must_use]
    pub fn spent(&self) -> Spend {
        self.run_cx().ledger.spent()
    }

    /// The task of the root graph that pays: this one, or the one that this one's graph runs in at whatever depth.
    fn spender(&self) -> &Arc<TaskCx> {
        let mut task = &self.task;
        while let Some(host) = &task.run.host {
            task = host;
        }
        task
    }
}

/// What is recorded of what a task, and its handler, have spent at their checkpoint.
pub(super) fn spent_records(task: &TaskCx) -> impl Iterator<Item = RecordOp> {
    let asker = task.asker();
    let handler = (!std::ptr::eq(asker, task)).then_some(asker);
    let tasks = std::iter::once(task).chain(handler);
    tasks.filter_map(|task| {
        let spent = task.own_spent();
        let record = || {
            RecordOp::Put(Record {
                task: task.path.clone(),
                kind: RecordKind::Spent(spent),
            })
        };
        (!spent.is_zero()).then(record)
    })
}

/// What the account of a thread says: what the finished steps of its run have spent, what the runs before it have, and
/// when it began, if that was asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Account {
    pub(super) spent: Spend,
    pub(super) before: Spend,
    pub(super) began: Option<Timestamp>,
}

/// What was spent up to a checkpoint, as the line of its ancestors goes: other branches do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// By the run that the checkpoint belongs to.
    pub run: Spend,
    /// By that run and all before it.
    pub thread: Spend,
}

impl Checkpoint {
    /// What was spent up to here, and by the tasks planned here.
    #[must_use]
    pub fn spent(&self) -> Spent {
        self.spent_with(open_spend(&self.records))
    }

    /// What was spent up to here; not by the tasks planned here, which have spent it if the thread went on.
    #[must_use]
    pub fn spent_before(&self) -> Spent {
        self.spent_with(Spend::default())
    }

    fn spent_with(&self, open: Spend) -> Spent {
        let account = Account::load(self.values.get(ACCOUNT));
        let run = account.spent.and(open);
        Spent {
            run,
            thread: account.before.and(run),
        }
    }
}

/// What the tasks of an open step have spent, as these records say.
pub(super) fn open_spend(records: &[Record]) -> Spend {
    let open = records.iter().filter_map(|record| match record.kind {
        RecordKind::Spent(spent) => Some(spent),
        _ => None,
    });
    open.fold(Spend::default(), Spend::and)
}

impl Account {
    /// What is known of a run at a checkpoint.
    pub(super) fn of(graph: &Graph, thread: &ThreadState) -> Self {
        Self::load(thread.state.value(graph.0.account))
    }

    /// The account of the run that follows. `None` if there is nothing to keep.
    pub(super) fn next(self) -> Option<Self> {
        let before = self.before.and(self.spent);
        let next = Self {
            before,
            ..Self::default()
        };
        (!before.is_zero()).then_some(next)
    }

    /// Keeps the account with the thread.
    pub(super) fn keep(self, graph: &Graph, thread: &mut ThreadState) {
        crate::step::set(graph, thread, graph.0.account, self.to_value());
    }

    fn load(value: Option<&Value>) -> Self {
        let number = |key| match value.and_then(|value| value.get(key)) {
            Some(Value::Number(number)) => number.as_u64(),
            _ => None,
        };
        let spend = |tokens, cost_micros| Spend {
            tokens: number(tokens).unwrap_or(0),
            cost_micros: number(cost_micros).unwrap_or(0),
        };
        Self {
            spent: spend("tokens", "cost_micros"),
            before: spend("tokens_before", "cost_micros_before"),
            began: number("began").map(Timestamp),
        }
    }

    fn to_value(self) -> Value {
        let spent = [
            ("tokens", self.spent.tokens),
            ("cost_micros", self.spent.cost_micros),
            ("tokens_before", self.before.tokens),
            ("cost_micros_before", self.before.cost_micros),
        ];
        let spent = spent.into_iter().filter(|(_, amount)| *amount > 0);
        let began = self.began.map(|began| ("began", began.0));
        let entries = spent.chain(began);
        Value::from_pairs(entries.map(|(key, amount)| (key, amount.into())))
    }
}
