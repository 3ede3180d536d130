//! Graph files: text to checked graph.
//!
//! A graph file says in YAML what a graph is made of: channels, nodes, and the ways between them.
//! [`load`] turns one into a graph of the engine and tells everything that is wrong with it, all at
//! once and with the place of each mistake; [`check`] does the same without making nodes.
//!
//! This crate owns the format: its syntax, its types, its expressions (CEL) and prompts
//! (MiniJinja), its checks and their explanations, its drawings. It never runs a graph, reads no
//! disk or network but through [`Sources`], and knows no tool, model or function but by the names
//! in the [`Registry`] of its host. The kinds of nodes that do work are made by the host's
//! [`NodeKinds`]; they get everything compiled and never see an expression language.

mod build;
mod diag;
mod draw;
mod expr;
mod flow;
mod graph;
mod host;
mod load;
mod nodes;
mod report;
mod spec;
mod syntax;
mod template;
mod types;
mod value;
mod writes;

#[cfg(test)]
mod tests;

pub use diag::{CHECKS, Check, Diagnostic, Diagnostics, FileId, Label, Level, Span, explain};
pub use draw::mermaid;
pub use expr::{ExprError, Expression, Facts, Scene};
pub use graph::{Channels, Edge, Keep, Limits, LoadedGraph, Outline, Pause, To, Why};
pub use host::{
    CallSpec, FunctionManifest, ModelSpec, NoSources, NodeInfo, NodeKinds, OnToolError, Registry,
    ReturnsSpec, RouteLabel, Routes, Shape, Sources, ToolChoice, ToolManifest, ToolSpec, ToolsSpec,
};
pub use load::{check, load};
pub use nodes::CxFacts;
pub use spec::Kind;
pub use template::{Template, TemplateError};
pub use types::Mismatch;
pub use value::{Part, ValueExpr};
