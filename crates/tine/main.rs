//! The `tine` command.
fn main() {}
