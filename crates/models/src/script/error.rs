use std::sync::Arc;

/// Why a script can not be read, or has no reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// Not YAML, an unknown or repeated key, a value of another type.
    #[error("script {script}: {message}")]
    Syntax {
        /// The script.
        script: Arc<str>,
        /// What is wrong, with line and column where they are known.
        message: String,
    },
    /// A format that this program does not read.
    #[error("script {script}: the schema `{found}` is not known; write `schema: script/v1`")]
    Schema {
        /// The script.
        script: Arc<str>,
        /// What the script says.
        found: String,
    },
    /// Something that can be read, and makes no sense.
    #[error("script {script}, {place}: {message}")]
    Invalid {
        /// The script.
        script: Arc<str>,
        /// The rule or name, and the field.
        place: String,
        /// What is wrong.
        message: String,
    },
    /// A template or an expression that is not well formed, or failed on this request.
    #[error("script {script}, {place}: {message}")]
    Template {
        /// The script.
        script: Arc<str>,
        /// The rule or name, and the field.
        place: String,
        /// What went wrong, with its causes.
        message: String,
    },
    /// A condition that is neither true nor false.
    #[error(
        "script {script}, {place}: a condition must be true or false, and this is {found}; compare it, or test it with `is`"
    )]
    NotBoolean {
        /// The script.
        script: Arc<str>,
        /// The rule.
        place: String,
        /// What kind of value it gave.
        found: String,
    },
    /// No rule fits the request.
    #[error(
        "script {script} has no rule for this request: {seen}\n{}",
        lines(rules)
    )]
    NoRule {
        /// The script.
        script: Arc<str>,
        /// What the request is.
        seen: String,
        /// Why each rule does not fit, in order.
        rules: Vec<String>,
    },
}

fn lines(rules: &[String]) -> String {
    let mut text = String::new();
    for (index, why) in rules.iter().enumerate() {
        let newline = if index == 0 { "" } else { "\n" };
        text.push_str(&format!("{newline}  rule {}: {why}", index + 1));
    }
    text
}
