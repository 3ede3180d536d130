//! The environment. It is read here and nowhere else.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use tine::tools::config::EnvSource;

/// What the command takes from its surroundings, passed on to all that need it.
#[derive(Clone, Debug)]
pub(crate) struct Env {
    /// Where threads live: `TINE_HOME`, else `.tine` in the working directory.
    pub(crate) home: PathBuf,
    /// What is to be told on standard error: `TINE_LOG`.
    pub(crate) log: Option<String>,
    /// At which of its writes the process is to die, for tests of what a crash leaves: `TINE_FAILPOINT`, a number or a
    /// name.
    pub(crate) failpoint: Option<String>,
    /// The working directory.
    pub(crate) directory: PathBuf,
    /// What standard output is.
    pub(crate) stdout: Device,
    /// What standard error is.
    pub(crate) stderr: Device,
    /// Whether somebody can be asked at standard input.
    pub(crate) stdin_terminal: bool,
}

/// What an output stream leads to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Device {
    /// Whether somebody looks at it.
    pub(crate) terminal: bool,
    /// Whether it is to be coloured.
    pub(crate) colour: bool,
    /// How many columns a line has.
    pub(crate) width: usize,
}

/// The width of what is no terminal.
const PIPED_WIDTH: usize = 100;

impl Env {
    /// Reads the environment of this process.
    pub(crate) fn read() -> Self {
        let home = variable("TINE_HOME").filter(|home| !home.is_empty());
        let columns = variable("COLUMNS")
            .and_then(|columns| columns.to_str()?.parse().ok())
            .filter(|columns| *columns > 0);
        let plain = variable("NO_COLOR").is_some_and(|value| !value.is_empty())
            || variable("TERM").is_some_and(|term| term == "dumb");
        let device = |terminal: bool, found: Option<usize>| Device {
            terminal,
            colour: terminal && !plain,
            width: found.or(columns).unwrap_or(PIPED_WIDTH),
        };
        let (out, err) = (std::io::stdout(), std::io::stderr());
        Self {
            home: home.map_or_else(|| PathBuf::from(".tine"), PathBuf::from),
            log: variable("TINE_LOG")
                .map(|filter| filter.to_string_lossy().into_owned())
                .filter(|filter| !filter.is_empty()),
            failpoint: variable("TINE_FAILPOINT")
                .map(|place| place.to_string_lossy().into_owned())
                .filter(|place| !place.is_empty()),
            directory: std::env::current_dir().unwrap_or_default(),
            stdout: device(out.is_terminal(), columns_of(&out)),
            stderr: device(err.is_terminal(), columns_of(&err)),
            stdin_terminal: std::io::stdin().is_terminal(),
        }
    }

    /// The file that threads are stored in.
    pub(crate) fn database(&self) -> PathBuf {
        self.home.join("threads.db")
    }

    /// A path with the working directory before it, for those who come back from elsewhere.
    pub(crate) fn absolute(&self, path: &Path) -> PathBuf {
        let joined = self.directory.join(path);
        std::fs::canonicalize(&joined).unwrap_or(joined)
    }

    /// A path as short as it can be said from here.
    pub(crate) fn shown(&self, path: &Path) -> String {
        let inside = path.strip_prefix(&self.directory).unwrap_or(path);
        inside.display().to_string()
    }
}

#[cfg(unix)]
fn columns_of(stream: &impl std::os::fd::AsFd) -> Option<usize> {
    terminal_size::terminal_size_of(stream).map(|(width, _)| usize::from(width.0))
}

#[cfg(not(unix))]
fn columns_of<T>(_: &T) -> Option<usize> {
    terminal_size::terminal_size().map(|(width, _)| usize::from(width.0))
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is where the environment is read"
)]
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// `$NAME` in a configuration.
impl EnvSource for Env {
    fn var(&self, name: &str) -> Option<String> {
        variable(name)?.into_string().ok()
    }
}
