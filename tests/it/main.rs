//! The integration tests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]
