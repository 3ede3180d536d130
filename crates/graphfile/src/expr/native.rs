//! Simple conditions as plain look-ups: no interpreter, no context, no allocation.

use cel::IdedExpr;
use cel::common::ast::{Expr, LiteralValue, operators};
use tine_engine::Value;
use tine_engine::value::Number;

use super::Scene;
use super::functions::message_has_calls;

/// An expression that is a look-up, a test of one, or a few of these joined.
///
/// Evaluation gives `None` where CEL would raise an error; the interpreter then runs and says so.
#[derive(Debug)]
pub(super) enum Native {
    Path(Path),
    Has(Path),
    Equals {
        path: Path,
        value: Value,
        equal: bool,
    },
    Compare {
        path: Path,
        with: f64,
        less: bool,
        or_equal: bool,
    },
    HasToolCalls {
        channel: String,
    },
    Not(Box<Self>),
    And(Box<Self>, Box<Self>),
    Or(Box<Self>, Box<Self>),
}

/// `state.channel.field.field`, or another root.
#[derive(Debug)]
pub(super) struct Path {
    root: String,
    fields: Vec<String>,
}

impl Native {
    pub(super) fn compile(node: &IdedExpr) -> Option<Self> {
        match &node.expr {
            Expr::Select(select) if select.test => {
                let mut path = Path::compile(&select.operand)?;
                path.fields.push(select.field.clone());
                Some(Self::Has(path))
            }
            Expr::Select(_) => Path::compile(node).map(Self::Path),
            Expr::Call(call) => {
                let name = call.func_name.as_str();
                match (name, call.args.as_slice()) {
                    (operators::LOGICAL_NOT, [inner]) => {
                        Some(Self::Not(Box::new(Self::compile(inner)?)))
                    }
                    (operators::LOGICAL_AND, [a, b]) => Some(Self::And(
                        Box::new(Self::compile(a)?),
                        Box::new(Self::compile(b)?),
                    )),
                    (operators::LOGICAL_OR, [a, b]) => Some(Self::Or(
                        Box::new(Self::compile(a)?),
                        Box::new(Self::compile(b)?),
                    )),
                    (operators::EQUALS | operators::NOT_EQUALS, [path, value]) => {
                        Some(Self::Equals {
                            path: Path::compile(path)?,
                            value: literal(value)?,
                            equal: name == operators::EQUALS,
                        })
                    }
                    (
                        operators::LESS
                        | operators::LESS_EQUALS
                        | operators::GREATER
                        | operators::GREATER_EQUALS,
                        [path, with],
                    ) => Some(Self::Compare {
                        path: Path::compile(path)?,
                        with: literal(with)?.as_f64()?,
                        less: name == operators::LESS || name == operators::LESS_EQUALS,
                        or_equal: name == operators::LESS_EQUALS
                            || name == operators::GREATER_EQUALS,
                    }),
                    ("has_tool_calls", [argument]) => Self::has_tool_calls(argument),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn has_tool_calls(argument: &IdedExpr) -> Option<Self> {
        let Expr::Call(last) = &argument.expr else {
            return None;
        };
        let (true, [list]) = (last.func_name == "last", last.args.as_slice()) else {
            return None;
        };
        let path = Path::compile(list)?;
        match path.fields.as_slice() {
            [channel] if path.root == "state" => Some(Self::HasToolCalls {
                channel: channel.clone(),
            }),
            _ => None,
        }
    }

    pub(super) fn eval(&self, scene: &Scene<'_>) -> Option<Value> {
        match self {
            Self::Path(path) => path.look_up(scene),
            condition => condition.holds(scene).map(Value::Bool),
        }
    }

    fn holds(&self, scene: &Scene<'_>) -> Option<bool> {
        match self {
            Self::Path(path) => path.look_up(scene)?.as_bool(),
            Self::Has(path) => path.is_present(scene),
            Self::Equals { path, value, equal } => {
                let found = path.look_up(scene)?;
                let same = match (&found, value) {
                    (Value::Number(a), Value::Number(b)) => same_number(*a, *b)?,
                    (Value::List(_) | Value::Map(_), _) => return None,
                    (a, b) => a == b,
                };
                Some(same == *equal)
            }
            Self::Compare {
                path,
                with,
                less,
                or_equal,
            } => {
                let Value::Number(found) = path.look_up(scene)? else {
                    return None;
                };
                let found = exact(found)?;
                let (low, high) = if *less {
                    (found, *with)
                } else {
                    (*with, found)
                };
                Some(if *or_equal { low <= high } else { low < high })
            }
            Self::HasToolCalls { channel } => {
                let messages = scene.channel(channel)?;
                messages.as_list()?.last().map(message_has_calls)
            }
            Self::Not(inner) => inner.holds(scene).map(|holds| !holds),
            // The interpreter's `&&` is false if either side is, even if the other fails; what is
            // not plain here is left to it.
            Self::And(a, b) => match a.holds(scene)? {
                true => b.holds(scene),
                false => Some(false),
            },
            Self::Or(a, b) => match a.holds(scene)? {
                true => Some(true),
                false => b.holds(scene),
            },
        }
    }
}

impl Path {
    fn compile(node: &IdedExpr) -> Option<Self> {
        match &node.expr {
            Expr::Ident(root) => Some(Self {
                root: root.clone(),
                fields: Vec::new(),
            }),
            Expr::Select(select) if !select.test => {
                let mut path = Self::compile(&select.operand)?;
                path.fields.push(select.field.clone());
                Some(path)
            }
            _ => None,
        }
    }

    fn look_up(&self, scene: &Scene<'_>) -> Option<Value> {
        self.walk(scene, &self.fields)
    }

    fn walk(&self, scene: &Scene<'_>, fields: &[String]) -> Option<Value> {
        let (mut value, below) = match (self.root.as_str(), fields.split_first()) {
            ("state", Some((channel, below))) => (scene.channel(channel)?, below),
            ("state", None) => return None,
            (root, _) => (scene.local(root)?, fields),
        };
        for field in below {
            let inner = value.get(field)?.clone();
            value = inner;
        }
        Some(value)
    }

    fn is_present(&self, scene: &Scene<'_>) -> Option<bool> {
        if let ("state", [channel]) = (self.root.as_str(), self.fields.as_slice()) {
            return Some(scene.channel(channel).is_some());
        }
        let (field, before) = self.fields.split_last()?;
        match self.walk(scene, before)? {
            Value::Map(entries) => Some(entries.contains_key(field.as_str())),
            _ => None,
        }
    }
}

fn literal(node: &IdedExpr) -> Option<Value> {
    match &node.expr {
        Expr::Literal(LiteralValue::Boolean(value)) => Some((*value.inner()).into()),
        Expr::Literal(LiteralValue::Int(value)) => Some((*value.inner()).into()),
        Expr::Literal(LiteralValue::Double(value)) => Value::float(*value.inner()),
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner().into()),
        _ => None,
    }
}

fn same_number(a: Number, b: Number) -> Option<bool> {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => Some(a == b),
        _ => Some(exact(a)? == exact(b)?),
    }
}

/// The number as a float, if nothing is lost by that.
fn exact(number: Number) -> Option<f64> {
    const SAFE: f64 = 9_007_199_254_740_992.0;
    let float = number.as_f64();
    (float.abs() < SAFE || !number.is_integer()).then_some(float)
}
