//! Tools: the trait, assembly from a configuration, and those that ship.
pub mod paths;
