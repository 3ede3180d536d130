//! Values of the engine as the interpreter sees them: shared, converted one by one when touched.

use std::sync::OnceLock;

use cel::ExecutionError;
use cel::common::traits::{Adder, Container, Indexer, Iterable, Iterator as CelIterator, Sizer};
use cel::common::types::{
    self, CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString, CelUInt,
};
use cel::common::value::{CowVal, StaticVal, Val};
use tine_engine::Value;
use tine_engine::value::{List, Map};

/// Converts a scalar; wraps a list or map without looking into it.
///
/// Every integer becomes a CEL `int`, for CEL does not add an `int` to a `uint`.
pub(super) fn to_val<'v>(value: &Value) -> Box<dyn Val + 'v> {
    match value {
        Value::Null => Box::new(CelNull),
        Value::Bool(value) => Box::new(CelBool::from(*value)),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => Box::new(CelInt::from(value)),
            (None, Some(value)) => Box::new(CelUInt::from(value)),
            (None, None) => Box::new(CelDouble::from(number.as_f64())),
        },
        Value::Text(text) => Box::new(CelString::from(text.to_string())),
        Value::List(_) | Value::Map(_) => Box::new(Lazy::new(value.clone())),
    }
}

/// Converts a result back; a shared list or map comes back as it went in.
pub(super) fn to_value(val: &dyn Val) -> Result<Value, String> {
    if let Some(lazy) = val.downcast_ref::<Lazy>() {
        return Ok(lazy.value.clone());
    }
    if let Some(text) = val.downcast_ref::<CelString<'_>>() {
        return Ok(text.inner().into());
    }
    if let Some(value) = val.downcast_ref::<CelBool>() {
        return Ok((*value.inner()).into());
    }
    if let Some(value) = val.downcast_ref::<CelInt>() {
        return Ok((*value.inner()).into());
    }
    if let Some(value) = val.downcast_ref::<CelUInt>() {
        return Ok((*value).into_inner().into());
    }
    if let Some(value) = val.downcast_ref::<CelDouble>() {
        return Value::float(*value.inner()).ok_or_else(|| "the number is not finite".to_owned());
    }
    if val.downcast_ref::<CelNull>().is_some() {
        return Ok(Value::Null);
    }
    if let Some(list) = val.downcast_ref::<CelList<'_>>() {
        let items: Result<List, String> =
            list.inner().iter().map(|item| to_value(&**item)).collect();
        return items.map(Value::List);
    }
    if let Some(map) = val.downcast_ref::<CelMap<'_>>() {
        let mut entries = Map::new();
        // The order of the interpreter's map is lost in the sorted one.
        #[expect(clippy::iter_over_hash_type, reason = "goes into a sorted map")]
        for (key, value) in map.inner() {
            let CelMapKey::String(key) = key else {
                return Err("the keys of a map are texts".to_owned());
            };
            entries.insert(key.inner().into(), to_value(&**value)?);
        }
        return Ok(entries.into());
    }
    Err(format!("a {} cannot be kept", val.get_type().name()))
}

/// A list or map of the state.
#[derive(Debug)]
pub(super) struct Lazy {
    value: Value,
    /// Items of a list or keys of a map, converted when a macro first walks over them.
    items: OnceLock<Vec<Box<dyn Val>>>,
}

impl Lazy {
    fn new(value: Value) -> Self {
        Self {
            value,
            items: OnceLock::new(),
        }
    }

    fn items(&self) -> &[Box<dyn Val>] {
        self.items.get_or_init(|| match &self.value {
            Value::List(items) => items.iter().map(to_val).collect(),
            Value::Map(entries) => entries
                .keys()
                .map(|key| Box::new(CelString::from(key.to_string())) as Box<dyn Val>)
                .collect(),
            _ => Vec::new(),
        })
    }

    fn look_up(&self, key: &dyn Val) -> Result<&Value, ExecutionError> {
        if let (Value::Map(entries), Some(name)) =
            (&self.value, key.downcast_ref::<CelString<'_>>())
        {
            let found = entries.get(name.inner());
            return found.ok_or_else(|| ExecutionError::no_such_key(name.inner()));
        }
        if let (Value::List(items), Some(index)) = (&self.value, key.downcast_ref::<CelInt>()) {
            let found = usize::try_from(*index.inner())
                .ok()
                .and_then(|index| items.get(index));
            return found
                .ok_or_else(|| ExecutionError::IndexOutOfBounds(cel::Value::Int(*index.inner())));
        }
        Err(ExecutionError::UnexpectedType {
            got: key.get_type().name().to_owned(),
            want: "an index".to_owned(),
        })
    }
}

impl StaticVal for Lazy {}

impl Val for Lazy {
    fn get_type(&self) -> &types::Type {
        match self.value {
            Value::List(_) => &types::LIST_TYPE,
            _ => &types::MAP_TYPE,
        }
    }

    fn cel_type() -> &'static types::Type {
        &types::DYN_TYPE
    }

    fn as_adder<'b, 'v>(&'b self) -> Option<&'b (dyn Adder + 'v)>
    where
        Self: 'v,
    {
        matches!(self.value, Value::List(_)).then_some(self as _)
    }

    fn as_container(&self) -> Option<&dyn Container> {
        Some(self)
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_iterable<'b, 'v>(&'b self) -> Option<&'b (dyn Iterable + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_sizer(&self) -> Option<&dyn Sizer> {
        Some(self)
    }

    fn equals(&self, other: &dyn Val) -> bool {
        equal(&self.value, other)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(Self::new(self.value.clone()))
    }

    fn as_any(&self) -> Option<&dyn std::any::Any> {
        Some(self)
    }
}

/// Compares as CEL does: numbers by value, whatever their kind.
fn equal(value: &Value, other: &dyn Val) -> bool {
    match value {
        Value::List(items) => {
            if let Some(other) = other.downcast_ref::<CelList<'_>>() {
                return items.len() == other.inner().len()
                    && items.iter().zip(other.inner()).all(|(a, b)| equal(a, &**b));
            }
            let Some(Value::List(others)) = other.downcast_ref::<Lazy>().map(|lazy| &lazy.value)
            else {
                return false;
            };
            items.len() == others.len()
                && items
                    .iter()
                    .zip(others.iter())
                    .all(|(a, b)| equal(a, &*to_val(b)))
        }
        Value::Map(entries) => {
            if let Some(other) = other.downcast_ref::<CelMap<'_>>() {
                let find = |key: &str| {
                    other
                        .inner()
                        .get(&CelMapKey::String(CelString::from(key.to_owned())))
                };
                return entries.len() == other.inner().len()
                    && entries
                        .iter()
                        .all(|(k, a)| find(k).is_some_and(|b| equal(a, &**b)));
            }
            let Some(Value::Map(others)) = other.downcast_ref::<Lazy>().map(|lazy| &lazy.value)
            else {
                return false;
            };
            entries.len() == others.len()
                && entries
                    .iter()
                    .all(|(k, a)| others.get(k).is_some_and(|b| equal(a, &*to_val(b))))
        }
        scalar => to_val(scalar).equals(other),
    }
}

impl Adder for Lazy {
    fn add<'b, 'v>(&'b self, other: &(dyn Val + 'v)) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let mut items: Vec<Box<dyn Val + 'v>> = match &self.value {
            Value::List(items) => items.iter().map(to_val).collect(),
            _ => Vec::new(),
        };
        let other = other
            .as_iterable()
            .ok_or_else(|| ExecutionError::UnexpectedType {
                got: other.get_type().name().to_owned(),
                want: "list".to_owned(),
            })?;
        let mut others = other.iter();
        while let Some(item) = others.next() {
            items.push(item.clone_as_boxed());
        }
        Ok(CowVal::owned(CelList::from(items)))
    }
}

impl Container for Lazy {
    fn contains(&self, wanted: &dyn Val) -> Result<bool, ExecutionError> {
        Ok(match &self.value {
            Value::List(items) => items.iter().any(|item| equal(item, wanted)),
            Value::Map(entries) => wanted
                .downcast_ref::<CelString<'_>>()
                .is_some_and(|key| entries.contains_key(key.inner())),
            _ => false,
        })
    }
}

impl Indexer for Lazy {
    fn get<'b, 'v>(&'b self, key: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.look_up(key).map(|value| CowVal::Owned(to_val(value)))
    }

    fn steal<'v>(self: Box<Self>, key: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.look_up(key).map(to_val)
    }
}

impl Iterable for Lazy {
    fn iter<'b, 'v>(&'b self) -> Box<dyn CelIterator<'b, 'v> + 'b>
    where
        Self: 'v,
    {
        Box::new(Items(self.items().iter()))
    }
}

struct Items<'b>(std::slice::Iter<'b, Box<dyn Val>>);

impl<'b, 'v> CelIterator<'b, 'v> for Items<'b> {
    fn next(&mut self) -> Option<&'b (dyn Val + 'v)> {
        self.0.next().map(|item| &**item as &(dyn Val + 'v))
    }
}

impl Sizer for Lazy {
    fn size(&self) -> CelInt {
        let size = match &self.value {
            Value::List(items) => items.len(),
            Value::Map(entries) => entries.len(),
            _ => 0,
        };
        CelInt::from(i64::try_from(size).unwrap_or(i64::MAX))
    }
}
