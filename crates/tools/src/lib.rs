//! Tools: the trait, assembly from a configuration, and those that ship.

mod nearest;
pub mod paths;
pub mod schema;
