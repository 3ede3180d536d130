//! Errors as the command tells them: what is wrong, and the way out.

use super::output::{Stream, Tone};
use super::status::Status;
use super::terminal::line::clean;
use serde_json::{Value, json};
use std::fmt::Display;
use tine::engine::{RunError, StoreError};
use tine::models::ModelsError;
use tine::stores::archive::ArchiveError;
use tine::tools::assemble::AssemblyError;
use tine::tools::config::ConfigError;
use tine::tools::paths::HomeError;

/// Why a command did not do what it was told to.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit status.
    pub(crate) status: Status,
    /// What the JSON form calls it.
    code: String,
    error: anyhow::Error,
    hints: Vec<String>,
}

impl Failure {
    /// A mistake in what the user gave.
    pub(crate) fn usage(message: impl Display) -> Self {
        Self {
            status: Status::Usage,
            code: "usage".to_owned(),
            error: anyhow::anyhow!("{message}"),
            hints: Vec::new(),
        }
    }

    /// A home that can not be worked with.
    pub(crate) fn home(message: impl Display) -> Self {
        Self::of("home", anyhow::anyhow!("{message}")).in_home()
    }

    /// Nothing in the command is wrong: the folder that it needs can not be used.
    fn in_home(self) -> Self {
        Self {
            status: Status::Failed,
            ..self
        }
        .hint(
            "TINE_HOME names the folder that tine keeps threads and files in; it must be writable",
        )
    }

    fn of(code: &str, error: impl Into<anyhow::Error>) -> Self {
        Self {
            code: code.to_owned(),
            error: error.into(),
            ..Self::usage("")
        }
    }

    /// Adds a way out.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The same failure in other words.
    pub(crate) fn instead(self, status: Status, message: &str, hint: &str) -> Self {
        Self {
            status,
            error: anyhow::anyhow!("{message}"),
            hints: vec![hint.to_owned()],
            ..self
        }
    }

    /// The same failure, with the place where it is.
    pub(crate) fn of_place(self, place: &str) -> Self {
        let message = chain(&self.error);
        Self {
            error: anyhow::anyhow!("{place}: {message}"),
            ..self
        }
    }

    /// What is wrong, in one line.
    pub(crate) fn message(&self) -> String {
        chain(&self.error)
    }

    /// The ways out.
    pub(crate) fn hints(&self) -> &[String] {
        &self.hints
    }

    /// Prints it for people.
    pub(crate) fn print(&self, stderr: &mut Stream) {
        print_error(stderr, &chain(&self.error), &self.hints);
    }

    /// The line that stands for the outcome in `--json`.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "event": "outcome",
            "exit": "refused",
            "error": {"code": self.code, "message": chain(&self.error)},
            "hints": self.hints,
        })
    }
}

/// Prints an error and its hints.
pub(crate) fn print_error(stderr: &mut Stream, message: &str, hints: &[String]) {
    let label = stderr.paint(Tone::Bad, "error:");
    stderr.line(&format!("{label} {}", clean(message)));
    for hint in hints {
        let label = stderr.paint(Tone::Hint, "hint:");
        stderr.line(&format!("{label} {}", clean(hint)));
    }
}

/// Prints a word on what was done otherwise than one may think.
pub(crate) fn print_note(stderr: &mut Stream, message: &str) {
    let label = stderr.paint(Tone::Hint, "note:");
    stderr.line(&format!("{label} {}", clean(message)));
}

/// An error with those causes that it does not name itself.
fn chain(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

/// What helps against an error of a run.
pub(crate) fn run_hints(error: &RunError) -> Vec<String> {
    let hint = match error {
        RunError::Store(error) => store_hint(error),
        RunError::StepLimit { .. } => {
            "`--max-steps N` allows more, `limits.max_steps` in the graph file for good"
        }
        RunError::VisitLimit { .. } => "`limits.max_visits` in the graph file allows more",
        RunError::UnknownInput { .. } => {
            "`tine show FILE` draws the graph; its `input:` lists what it takes"
        }
        RunError::MultipleInterrupts { .. } | RunError::UnknownInterrupt { .. } => {
            "`tine threads show THREAD` lists the open questions with their ids; answer with `--answer ID=VALUE`"
        }
        RunError::InvalidAnswer { .. } => {
            "`tine threads show THREAD` shows the question; an answer that is no text is given with `--answer-json JSON`"
        }
        RunError::EmptyResume => "answer with `--answer ID=VALUE`",
        RunError::EmptyInput { .. } => "start it with `tine run GRAPH TEXT --thread THREAD`",
        RunError::AmbiguousUpdate { .. } => "say as which with `--as NODE`",
        RunError::Mismatch { .. } => {
            "go on with the graph file that the thread was started with, or start a new thread"
        }
        RunError::ConcurrentUpdate { .. } | RunError::Reducer { .. } => {
            "the channel's `type:` and `reduce:` in the graph file say what it takes, and how writes are folded"
        }
        _ => "`tine threads show THREAD` tells where a thread stands",
    };
    vec![hint.to_owned()]
}

fn store_hint(error: &StoreError) -> &'static str {
    match error {
        StoreError::Held { .. } => "wait until it has ended, or work on another thread",
        StoreError::Damaged { .. } => {
            "put a good copy in its place, or set TINE_HOME to another folder to begin anew"
        }
        StoreError::Exists { .. } => "choose another name, or delete that thread first",
        StoreError::UnknownCheckpoint { .. } => {
            "`tine threads history THREAD` lists the checkpoints"
        }
        StoreError::Newer { .. } => {
            "set TINE_HOME to another folder to begin anew with this program"
        }
        StoreError::Unavailable { .. } => {
            "threads live in TINE_HOME, or `.tine` in the working directory; it must be writable, and have room"
        }
        _ => "threads live in TINE_HOME, or `.tine` in the working directory",
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        let failure = Self {
            status: Status::of_error(&error),
            hints: run_hints(&error),
            ..Self::usage("")
        };
        Self {
            code: error.code(),
            error: match error {
                // It names its place itself.
                RunError::Store(error) => error.into(),
                error => error.into(),
            },
            ..failure
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        RunError::Store(error).into()
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        let hint = match &error {
            ConfigError::Read { .. } => "name a configuration with `--config FILE`",
            ConfigError::Target { .. } => {
                "settings are given as `--set tools.web_search.path=DIR`; `tine tools` lists the tools"
            }
            ConfigError::Variable { .. } => "export the variable in the shell that runs tine",
            ConfigError::UnknownSection { .. } => {
                "config/README.md explains the format; `--config FILE` names another file"
            }
            _ => "config/README.md explains the format",
        };
        Self::of("config", error).hint(hint)
    }
}

impl From<AssemblyError> for Failure {
    fn from(error: AssemblyError) -> Self {
        match error {
            AssemblyError::Config(error) => error.into(),
            error => Self::of("assembly", error)
                .hint("config/README.md lists what `use:` can name and how tools are called"),
        }
    }
}

impl From<ModelsError> for Failure {
    fn from(error: ModelsError) -> Self {
        Self::of("models", error).hint("crates/models/README.md explains the `models:` section")
    }
}

impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Self {
        match error {
            ArchiveError::Store(error) => error.into(),
            error @ (ArchiveError::Io(_)
            | ArchiveError::TooLong { .. }
            | ArchiveError::TooMany { .. }) => {
                Self::of("archive", error).hint("nothing was kept of it")
            }
            error => Self::of("archive", error).hint(
                "nothing was kept of it; `tine threads export THREAD -o FILE` writes a good one",
            ),
        }
    }
}

impl From<HomeError> for Failure {
    fn from(error: HomeError) -> Self {
        Self::of("home", error).in_home()
    }
}
