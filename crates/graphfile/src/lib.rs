#![doc = include_str!("../README.md")]

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
pub use load::{check, load, load_definition};
pub use nodes::CxFacts;
pub use spec::Kind;
pub use template::{Template, TemplateError};
pub use types::Mismatch;
pub use value::{Part, ValueExpr};
