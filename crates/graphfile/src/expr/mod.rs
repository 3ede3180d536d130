//! Expressions: CEL over a lazy view of the state, checked before they run.

mod check;
mod functions;
mod lazy;
mod native;
mod parse;
mod scene;

pub(crate) use check::{Checker, Names, Root, VISITS, unknown_channel, unknown_channel_in};
pub(crate) use parse::{Parsed, parse};
pub use scene::{Facts, Scene};

use std::fmt;
use std::sync::Arc;

use cel::common::ast::Expr;
use cel::{Context, ExecutionError};
use tine_engine::Value;

use functions::env;
use native::Native;

/// A compiled expression.
#[derive(Clone)]
pub struct Expression {
    inner: Arc<Inner>,
}

struct Inner {
    text: String,
    parsed: cel::IdedExpr,
    /// The same as a plain look-up, where the expression is simple enough for one.
    native: Option<Native>,
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression").field(&self.inner.text).finish()
    }
}

/// Why an expression had no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{expression}`: {problem}")]
#[non_exhaustive]
pub struct ExprError {
    /// The expression as the file has it.
    pub expression: String,
    /// What went wrong.
    pub problem: String,
}

impl Expression {
    pub(crate) fn new(text: &str, parsed: &Parsed) -> Self {
        let parsed_expr = parse::shared_side_left(parsed.expr.clone());
        let native = Native::compile(&parsed_expr);
        let inner = Inner {
            text: text.to_owned(),
            parsed: parsed_expr,
            native,
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Returns the expression as the file has it.
    pub fn text(&self) -> &str {
        &self.inner.text
    }

    /// Evaluates the expression.
    ///
    /// # Errors
    /// If a name has no value, or operands do not go together.
    pub fn eval(&self, scene: &Scene<'_>) -> Result<Value, ExprError> {
        if let Some(value) = self
            .inner
            .native
            .as_ref()
            .and_then(|native| native.eval(scene))
        {
            return Ok(value);
        }
        let mut context = Context::with_env(env());
        context.set_variable_resolver(scene);
        let value = cel::Value::resolve_val(&self.inner.parsed, &context)
            .map_err(|error| self.error(problem(&error)))?;
        lazy::to_value(value.as_ref()).map_err(|problem| self.error(problem))
    }

    /// Evaluates the expression as a condition.
    ///
    /// # Errors
    /// As [`eval`](Self::eval), and if the value is neither true nor false.
    pub fn holds(&self, scene: &Scene<'_>) -> Result<bool, ExprError> {
        match self.eval(scene)? {
            Value::Bool(holds) => Ok(holds),
            other => Err(self.error(format!("a condition is true or false, this is {other}"))),
        }
    }

    /// Returns the paths that are there if the condition does not hold.
    pub(crate) fn present_otherwise(&self) -> Vec<String> {
        let mut paths = Vec::new();
        check::collect_guards(&self.inner.parsed, false, &mut paths);
        paths
    }

    /// Returns the channel of an expression that is nothing but `state.channel`.
    pub(crate) fn channel(&self) -> Option<&str> {
        let Expr::Select(select) = &self.inner.parsed.expr else {
            return None;
        };
        match &select.operand.expr {
            Expr::Ident(root) if root == "state" && !select.test => Some(&select.field),
            _ => None,
        }
    }

    /// Returns the same expression, always evaluated by the interpreter.
    #[cfg(test)]
    fn without_native(&self) -> Self {
        let inner = Inner {
            text: self.inner.text.clone(),
            parsed: self.inner.parsed.clone(),
            native: None,
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    fn error(&self, problem: String) -> ExprError {
        ExprError {
            expression: self.inner.text.clone(),
            problem,
        }
    }
}

/// Says what an error of the interpreter means here, without printing whole values.
fn problem(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("`{key}` has no value"),
        ExecutionError::UndeclaredReference(name) => format!("nothing is named `{name}`"),
        ExecutionError::IndexOutOfBounds(cel::Value::Int(index)) => format!("no item at {index}"),
        ExecutionError::IndexOutOfBounds(cel::Value::UInt(index)) => format!("no item at {index}"),
        ExecutionError::IndexOutOfBounds(_) => "no item at this index".to_owned(),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "remainder of a division by zero".to_owned(),
        ExecutionError::Overflow(..) => "the result is too large for an integer".to_owned(),
        ExecutionError::NoSuchOverload(error) => {
            let types = error.argument_types().join(", ");
            format!("`{}` does not take ({types})", error.function())
        }
        ExecutionError::ValuesNotComparable(..) => "these values cannot be compared".to_owned(),
        ExecutionError::UnsupportedBinaryOperator(operator, ..) => {
            format!("`{operator}` does not take operands of these types")
        }
        ExecutionError::FunctionError { function, message } => format!("`{function}`: {message}"),
        ExecutionError::UnexpectedType { got, want } => format!("expected {want}, found {got}"),
        _ => "the operands do not go together".to_owned(),
    }
}

#[cfg(test)]
mod tests;
