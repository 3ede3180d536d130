//! The nodes of an agent, driven through graph files.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

mod approval;
mod bad_args;
mod disturbed;
mod fixture;
mod hostile;
mod interrupts;
mod model;
mod rules;
mod starts;
mod store;
mod tools;
mod transcripts;
mod usage;
