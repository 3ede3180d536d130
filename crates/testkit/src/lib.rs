//! Runs language-neutral conformance cases over the engine's public API.
//!
//! A case is a YAML file with a graph, actions on it, and what must be observed. The bodies of its nodes are written in
//! a mini-language; they are interpreted inside engine nodes, on a simulated clock, and what the engine tells is turned
//! into the neutral form of the case and compared with it.
//!
//! This crate owns: reading cases, the mini-language, observation, comparison, the report. It never looks inside the
//! engine: a store passes if the same cases pass over it, see [`run_case`].
//!
//! Beside that stand the rules of the requests that providers take, see [`openai_rules`]; [`provider`], a model provider
//! on this machine that answers as a test tells it; and [`traffic`], which reads what providers really sent.

pub mod case;
mod compare;
mod drive;
mod events;
mod graph;
mod lang;
mod neutral;
pub mod openai_rules;
mod probe;
pub mod provider;
mod suite;
mod support;
pub mod traffic;

pub use compare::Difference;
pub use drive::{Verdict, run_case};
pub use suite::{
    AreaCount, CaseFile, Differs, Judged, Judgement, LoadError, Options, Report, find_cases,
    run_suite,
};
