#![doc = include_str!("../README.md")]

pub mod assemble;
mod builtin;
pub mod config;
mod cx;
mod error;
mod output;
pub mod paths;
mod sandbox;
pub mod schema;
pub mod search;
mod spec;
mod tool;

#[cfg(test)]
mod fixture;

pub use builtin::{FieldKind, Form, FormField};
pub use cx::{Ask, Blocking, Listen, ToolCx};
pub use error::ToolError;
pub use output::{ToolCommand, ToolOutput};
pub use schema::Args;
pub use spec::{Effect, Manifest, RouteLabel, Source, ToolSpec};
pub use tool::Tool;
