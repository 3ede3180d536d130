//! The mini-language of case files: values, conditions, targets, bodies.

mod body;
mod expr;

pub(crate) use body::{Body, Place, command_targets};
pub(crate) use expr::{CaseError, Env, eval, eval_map};
