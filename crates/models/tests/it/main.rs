//! Tests of the scripts that tine ships.
#![allow(clippy::unwrap_used, clippy::panic)]

mod news_report;
