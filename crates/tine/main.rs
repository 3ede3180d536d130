//! The `tine` command: graphs from files, threads in SQLite, a terminal.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
