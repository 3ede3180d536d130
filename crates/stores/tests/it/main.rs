//! What holds for every store, and what holds for SQLite.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    missing_docs
)]

mod archive;
mod conformance;
mod contract;
mod damage;
mod example;
mod growth;
#[path = "../../../../examples/json_files/json_files.rs"]
mod json_files;
mod kit;
mod model;
mod processes;
mod programs;
mod runs;
mod writers;
