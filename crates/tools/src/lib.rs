//! Tools: the trait, assembly from a configuration, and those that ship.

pub mod config;
mod nearest;
pub mod paths;
pub mod schema;
pub mod search;
