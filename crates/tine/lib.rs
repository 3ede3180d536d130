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
//! - [`models`] has chat models behind one trait, and the scripted one;
//! - [`tools`] assembles toolboxes from a configuration, and has the tools that ship;
//! - [`agent`] makes graph nodes of models and tools.
//!
//! The `tine` command is the other half of the package. It wires these together and adds what libraries must not have:
//! a terminal, the environment, exit statuses. All that it can do, a program can.
//!
//! ```
//! use tine::engine::channel::append;
//! use tine::engine::{Graph, NodeCx, RunOptions, Runner, START, ThreadKey, TokioWorld, Update};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut graph = Graph::builder("greet");
//! let said = graph.channel("said", append::<String>());
//! graph.node("greet", move |_: NodeCx| {
//!     let update = Update::new().write(&said, vec!["hello".to_owned()]);
//!     async move { Ok(update) }
//! });
//! graph.edge(START, "greet");
//!
//! let runner = Runner::new(graph.build()?, TokioWorld::new());
//! let thread = ThreadKey::local("t1");
//! let run = runner.invoke(&thread, Update::new(), RunOptions::default());
//! let outcome = tokio::runtime::Builder::new_current_thread().build()?.block_on(run)?;
//! assert_eq!(outcome.values["said"].to_canonical(), r#"["hello"]"#);
//! # Ok(())
//! # }
//! ```

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
