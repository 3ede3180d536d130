//! Values of the engine as templates see them: shared, never converted as a whole.

use std::sync::Arc;

use minijinja::value::{Enumerator, Object, ObjectRepr, Value as Jinja};
use tine_engine::Value;

/// A list or map of the state.
#[derive(Debug)]
struct Shared(Value);

pub(super) fn to_jinja(value: Option<&Value>) -> Jinja {
    match value {
        // A channel without a value is none, so that `if` can ask after it.
        None | Some(Value::Null) => Jinja::from(()),
        Some(Value::Bool(value)) => Jinja::from(*value),
        Some(Value::Number(number)) => match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => Jinja::from(value),
            (None, Some(value)) => Jinja::from(value),
            (None, None) => Jinja::from(number.as_f64()),
        },
        Some(Value::Text(text)) => Jinja::from(Arc::clone(text)),
        Some(value @ (Value::List(_) | Value::Map(_))) => Jinja::from_object(Shared(value.clone())),
    }
}

impl Object for Shared {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        match self.0 {
            Value::List(_) => ObjectRepr::Seq,
            _ => ObjectRepr::Map,
        }
    }

    fn get_value(self: &Arc<Self>, key: &Jinja) -> Option<Jinja> {
        let found = match &self.0 {
            Value::List(items) => items.get(key.as_usize()?),
            Value::Map(entries) => entries.get(key.as_str()?),
            _ => None,
        };
        found.map(|value| to_jinja(Some(value)))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        match &self.0 {
            Value::List(items) => Enumerator::Seq(items.len()),
            Value::Map(entries) => Enumerator::Values(
                entries
                    .keys()
                    .map(|key| Jinja::from(Arc::clone(key)))
                    .collect(),
            ),
            _ => Enumerator::Empty,
        }
    }
}
