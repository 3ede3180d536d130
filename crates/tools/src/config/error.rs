use std::io;

use super::Place;

/// Says what is wrong with a configuration, and where.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file could not be read.
    #[error("cannot read the configuration {file}: {source}")]
    Read {
        /// The file.
        file: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The text is not YAML.
    #[error("{place}: not valid YAML: {message}")]
    Yaml {
        /// Where reading stopped.
        place: Place,
        /// What the reader met there.
        message: String,
    },
    /// The text holds more than one YAML document.
    #[error("{place}: a second YAML document begins here: put all sections into one")]
    SecondDocument {
        /// Where it begins.
        place: Place,
    },
    /// A key stands twice in one mapping.
    #[error("{place}: `{key}` is given twice; it stands first on line {first}")]
    DuplicateKey {
        /// The second place.
        place: Place,
        /// The key.
        key: String,
        /// The line of the first place.
        first: usize,
    },
    /// A top-level key is neither ours nor DeerFlow's.
    #[error("{place}: unknown section `{name}`{}", did_you_mean(nearest.as_deref()))]
    UnknownSection {
        /// Where it stands.
        place: Place,
        /// The key.
        name: String,
        /// The known key that it resembles.
        nearest: Option<String>,
    },
    /// A value has the wrong type or is out of range.
    #[error("{place}: {what} must be {expected}, not {found}")]
    Value {
        /// Where it stands.
        place: Place,
        /// What it belongs to, such as ``"`max_results` of tools.web_search"``.
        what: String,
        /// What would be right.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// A value that must be there is not.
    #[error("{place}: {what} needs `{key}`")]
    Missing {
        /// Where the thing without it stands.
        place: Place,
        /// The thing without it.
        what: String,
        /// The key that is missing.
        key: &'static str,
    },
    /// A `$NAME` value names a variable that the environment does not have.
    #[error(
        "{place}: {what} is ${variable}, and there is no environment variable {variable}: set it, or write the value in its place"
    )]
    Variable {
        /// Where it stands.
        place: Place,
        /// What it belongs to.
        what: String,
        /// The name of the variable.
        variable: String,
    },
    /// A setting given on top of the file has no place in it.
    #[error("cannot set `{path}`: {reason}")]
    Target {
        /// The dotted path.
        path: String,
        /// Why, and what could be set.
        reason: String,
    },
}

pub(crate) fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}
