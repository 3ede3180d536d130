//! The pure core: what runs next, and what becomes of its results.
//!
//! Nothing here waits, reads a clock or touches a store. [`plan`] turns the state of a thread into tasks; [`apply`]
//! folds their results into the state and says what changed and what was triggered.

mod apply;
mod changes;
mod fold;
mod plan;
mod resolve;
mod thread;

pub(crate) use apply::{Done, Results, apply, apply_one, fold_update};
pub(crate) use fold::{reset, set};
pub(crate) use plan::{Task, TaskKind, Tasks, plan, plan_unlimited};
pub(crate) use resolve::{
    resolve_label, resolve_one_write, resolve_output, resolve_target, resolve_update,
};
pub(crate) use thread::{AdvanceHead, Planned, ThreadState};
