//! A graph state machine engine for agents.
pub use tine_engine as engine;
