use std::fmt;

use serde_json::Value;

/// What is wrong with one argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentProblem {
    /// Where: `path`, `filepaths[0]`, `fields[1].type`; empty for the
    /// arguments as a whole.
    pub argument: String,
    /// What is wrong, and what was expected.
    pub text: String,
}

impl fmt::Display for ArgumentProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.argument.is_empty() {
            f.write_str(&self.text)
        } else {
            write!(f, "`{}`: {}", self.argument, self.text)
        }
    }
}

/// Says why the arguments of a call do not fit the tool; the tool was not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentErrors {
    /// The tool that was called.
    pub tool: String,
    /// All problems, ordered by argument.
    pub problems: Vec<ArgumentProblem>,
}

impl fmt::Display for ArgumentErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} was not run, because its arguments are wrong:",
            self.tool
        )?;
        for problem in &self.problems {
            write!(f, "\n- {problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ArgumentErrors {}

/// Describes a value in a few words, for `expected …, got …`.
pub(crate) fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => {
            const SHOWN: usize = 40;
            let cut: String = text.chars().take(SHOWN).collect();
            let more = if cut.len() < text.len() { "…" } else { "" };
            format!("the string {:?}", cut + more)
        }
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Object(_) => "an object".to_owned(),
    }
}
