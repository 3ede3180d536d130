//! The nodes of an agent, driven through graph files.
#![allow(clippy::unwrap_used, clippy::panic)]

mod approval;
mod fixture;
mod hostile;
mod model;
mod starts;
mod store;
mod tools;
mod usage;
