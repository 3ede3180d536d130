//! Tests of the scripts that tine ships, and of models over HTTP against a provider on this machine.
#![allow(clippy::unwrap_used, clippy::panic)]

mod ends;
mod news_report;
mod openai;
mod recut;
mod secrets;
mod world;
