#![doc = include_str!("../README.md")]

pub mod blocking;
pub mod cache;
pub mod channel;
pub mod checkpoint;
pub mod command;
pub mod cx;
pub mod error;
pub mod event;
#[doc(hidden)] // for tests of the whole; nothing of it is promised
pub mod failpoint;
pub mod graph;
pub mod interrupt;
pub mod message;
pub mod node;
pub mod policy;
pub mod run;
pub mod state;
mod step;
#[doc(hidden)] // for the other crates of the workspace; nothing of it is promised
pub mod text;
pub mod value;
pub mod world;

pub use cache::{CachePolicy, MemoryNodeCache, NodeCache};
pub use channel::{Channel, ChannelSpec, Check, Keep, Reducer};
pub use checkpoint::{Checkpoint, Checkpointer, MemoryCheckpointer, ThreadKey};
pub use command::{
    ClientCommand, Command, Dispatch, END, GraphScope, Op, Output, START, Target, Update, Write,
};
pub use cx::NodeCx;
pub use error::{ErrorClass, HandledError, NodeError, RunError, StoreError};
pub use event::{Event, EventKind, Listener};
pub use graph::{Breakpoints, BuildError, ErrorHandler, Graph, GraphBuilder, NodeDefaults};
pub use interrupt::{Interrupt, InterruptId, Resume};
pub use message::Message;
pub use node::{Node, Router, Targets};
pub use policy::RetryPolicy;
pub use run::{Budget, Drain, Exit, Input, Outcome, RunOptions, Runner, Spend, Spent};
pub use state::StateView;
pub use value::{Value, from_value, to_value};
pub use world::{SimWorld, Timestamp, TokioWorld, World};
