//! How a model and a toolbox become graph nodes.
//!
//! A graph file says `type: model`, `type: tools`, `type: tool`, `type: call`; [`Agent`] makes these nodes of what the
//! host has: models by alias, an assembled toolbox, folders for threads, functions. Around each call of a tool stands a
//! chain of [middleware]: errors become messages that the model can act on, questions reach the user, approvals are
//! asked for.
//!
//! This crate owns the nodes, the chain, and the history that a model is sent ([`history`]), which is valid whatever
//! state a thread is in. It never speaks HTTP.

mod agent;
mod call_node;
pub mod cut_off;
pub mod events;
mod function;
pub mod history;
mod kinds;
pub mod middleware;
mod model_node;
mod output;
mod spans;
mod start;
mod tool_call;
mod tool_node;
mod tools_node;

pub use agent::{Agent, Folders};
pub use function::{Function, Functions};
