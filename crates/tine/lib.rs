//! A graph state machine engine for agents.
//!
//! An agent is a graph: model, tools, interrupt and other nodes over typed state channels with reducers. Tools and nodes
//! return [`Command`](engine::Command)s that update state and route. Between two steps stands a checkpoint, from which a
//! run goes on after a question, a crash or a week.
//!
//! This crate gathers the others under short names:
//!
//! - [`engine`] runs graphs: channels, reducers, commands, steps, interrupts, checkpoints, events;
//! - [`graphfile`] reads graph files: from text to a checked graph, or to everything that is wrong with it;
//! - [`stores`] keeps threads in SQLite;
//! - [`models`] has chat models behind one trait: over HTTP, and the scripted one;
//! - [`tools`] assembles toolboxes from a configuration, and has the tools that ship;
//! - [`agent`] makes graph nodes of models and tools.
//!
//! The `tine` command is the other half of the package. It wires these together and adds what libraries must not have:
//! a terminal, the environment, exit statuses. All that it can do, a program can.
//!
//! ```
//! use tine::engine::blocking::Runner;
//! use tine::engine::channel::append;
//! use tine::engine::node::from_fn;
//! use tine::engine::{Graph, RunOptions, START, ThreadKey, TokioWorld, Update};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut graph = Graph::builder("greet");
//! graph.channel("said", append::<String>());
//! graph.node("greet", from_fn(|_| Ok(Update::from([("said", "hello")]))));
//! graph.edge(START, "greet");
//!
//! let runner = Runner::new(graph.build()?, TokioWorld::new());
//! let outcome = runner.invoke(&ThreadKey::local("t1"), Update::new(), RunOptions::default())?;
//! assert_eq!(outcome.values["said"].to_canonical(), r#"["hello"]"#);
//! # Ok(())
//! # }
//! ```
//!
//! The page of the [engine] begins with a map of it, and `examples` in the repository has whole programs.

pub use tine_agent as agent;
pub use tine_engine as engine;
pub use tine_graphfile as graphfile;
pub use tine_models as models;
pub use tine_stores as stores;
pub use tine_tools as tools;

/// The code of the repository's README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
