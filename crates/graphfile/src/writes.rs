//! Writes of `set`: values, and the literal keys that stand for removing and replacing.

use std::sync::Arc;

use tine_engine::{Op, Update, Value, Write};

use crate::expr::{ExprError, Scene};
use crate::value::ValueExpr;

/// One write of a `set`.
#[derive(Clone, Debug)]
pub(crate) struct SetWrite {
    pub(crate) channel: Arc<str>,
    pub(crate) write: WriteExpr,
}

/// What is written.
///
/// Replacing and removing are written in the file as literal keys. A value that an expression
/// computes is always plain data, whatever keys it has.
#[derive(Clone, Debug)]
pub(crate) enum WriteExpr {
    Value(ValueExpr),
    /// `{ $replace: value }`
    Replace(ValueExpr),
    /// A list in which some item is a `{ remove: ... }`, or one of these alone.
    Ops(Vec<OpExpr>),
}

/// One operation on a list or map.
#[derive(Clone, Debug)]
pub(crate) enum OpExpr {
    Add(ValueExpr),
    /// `{ remove: id }`
    Remove(ValueExpr),
    /// `{ remove: all }`
    Clear,
}

impl WriteExpr {
    fn eval(&self, scene: &Scene<'_>) -> Result<Write, ExprError> {
        Ok(match self {
            Self::Value(value) => Write::Value(value.eval(scene)?),
            Self::Replace(value) => Write::Overwrite(value.eval(scene)?),
            Self::Ops(ops) => {
                let ops: Result<Vec<Op>, ExprError> = ops
                    .iter()
                    .map(|op| {
                        Ok(match op {
                            OpExpr::Add(value) => Op::Add(value.eval(scene)?),
                            OpExpr::Clear => Op::Clear,
                            OpExpr::Remove(name) => match name.eval(scene)? {
                                Value::Text(name) => Op::Remove(name),
                                other => Op::Remove(other.to_canonical().into()),
                            },
                        })
                    })
                    .collect();
                Write::Ops(ops?)
            }
        })
    }
}

/// Evaluates all writes against one state.
pub(crate) fn evaluate(writes: &[SetWrite], scene: &Scene<'_>) -> Result<Update, ExprError> {
    writes.iter().try_fold(Update::new(), |update, write| {
        Ok(update.with(Arc::clone(&write.channel), write.write.eval(scene)?))
    })
}
