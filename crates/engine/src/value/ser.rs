//! Rust data into values, without a detour by `serde_json`.

use super::{List, Map, Value};
use serde::ser::{self, Serialize, SerializeMap as _, SerializeSeq as _, Serializer};
use std::fmt::Display;
use std::sync::Arc;

/// Why data could not become a value, or a value data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ValueError(String);

impl ser::Error for ValueError {
    fn custom<T: Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

impl serde::de::Error for ValueError {
    fn custom<T: Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

/// Turns serialisable data into a value.
///
/// # Errors
/// If the data holds what JSON cannot: a float that is not finite, a map key that is not a text or number.
pub fn to_value<T: Serialize + ?Sized>(data: &T) -> Result<Value, ValueError> {
    data.serialize(ToValue)
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(number) => number.serialize(serializer),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(items) => {
                let mut seq = serializer.serialize_seq(Some(items.len()))?;
                for item in items.iter() {
                    seq.serialize_element(item)?;
                }
                seq.end()
            }
            Self::Map(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, value) in entries.iter() {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

struct ToValue;

impl Serializer for ToValue {
    type Ok = Value;
    type Error = ValueError;
    type SerializeSeq = ToList;
    type SerializeTuple = ToList;
    type SerializeTupleStruct = ToList;
    type SerializeTupleVariant = ToVariant<ToList>;
    type SerializeMap = ToMap;
    type SerializeStruct = ToMap;
    type SerializeStructVariant = ToVariant<ToMap>;

    fn serialize_bool(self, value: bool) -> Result<Value, ValueError> {
        Ok(value.into())
    }
    fn serialize_i8(self, value: i8) -> Result<Value, ValueError> {
        self.serialize_i64(value.into())
    }
    fn serialize_i16(self, value: i16) -> Result<Value, ValueError> {
        self.serialize_i64(value.into())
    }
    fn serialize_i32(self, value: i32) -> Result<Value, ValueError> {
        self.serialize_i64(value.into())
    }
    fn serialize_i64(self, value: i64) -> Result<Value, ValueError> {
        Ok(value.into())
    }
    fn serialize_u8(self, value: u8) -> Result<Value, ValueError> {
        self.serialize_u64(value.into())
    }
    fn serialize_u16(self, value: u16) -> Result<Value, ValueError> {
        self.serialize_u64(value.into())
    }
    fn serialize_u32(self, value: u32) -> Result<Value, ValueError> {
        self.serialize_u64(value.into())
    }
    fn serialize_u64(self, value: u64) -> Result<Value, ValueError> {
        Ok(value.into())
    }
    fn serialize_f32(self, value: f32) -> Result<Value, ValueError> {
        self.serialize_f64(value.into())
    }
    fn serialize_f64(self, value: f64) -> Result<Value, ValueError> {
        Value::try_from(value)
    }
    fn serialize_char(self, value: char) -> Result<Value, ValueError> {
        Ok(value.to_string().into())
    }
    fn serialize_str(self, value: &str) -> Result<Value, ValueError> {
        Ok(value.into())
    }
    fn serialize_bytes(self, value: &[u8]) -> Result<Value, ValueError> {
        Ok(Value::List(
            value.iter().map(|byte| u64::from(*byte).into()).collect(),
        ))
    }
    fn serialize_none(self) -> Result<Value, ValueError> {
        Ok(Value::Null)
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, ValueError> {
        value.serialize(self)
    }
    fn serialize_unit(self) -> Result<Value, ValueError> {
        Ok(Value::Null)
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<Value, ValueError> {
        Ok(Value::Null)
    }
    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Value, ValueError> {
        Ok(variant.into())
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Value, ValueError> {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Value, ValueError> {
        Ok(Value::from_pairs([(variant, value.serialize(self)?)]))
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<ToList, ValueError> {
        Ok(ToList(List::new()))
    }
    fn serialize_tuple(self, _: usize) -> Result<ToList, ValueError> {
        Ok(ToList(List::new()))
    }
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<ToList, ValueError> {
        Ok(ToList(List::new()))
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<ToVariant<ToList>, ValueError> {
        Ok(ToVariant {
            variant,
            inner: ToList(List::new()),
        })
    }
    fn serialize_map(self, _: Option<usize>) -> Result<ToMap, ValueError> {
        Ok(ToMap::default())
    }
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<ToMap, ValueError> {
        Ok(ToMap::default())
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<ToVariant<ToMap>, ValueError> {
        Ok(ToVariant {
            variant,
            inner: ToMap::default(),
        })
    }
}

struct ToList(List);

impl ToList {
    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), ValueError> {
        self.0.push(to_value(value)?);
        Ok(())
    }
}

impl ser::SerializeSeq for ToList {
    type Ok = Value;
    type Error = ValueError;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), ValueError> {
        self.push(value)
    }
    fn end(self) -> Result<Value, ValueError> {
        Ok(Value::List(self.0))
    }
}

impl ser::SerializeTuple for ToList {
    type Ok = Value;
    type Error = ValueError;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), ValueError> {
        self.push(value)
    }
    fn end(self) -> Result<Value, ValueError> {
        Ok(Value::List(self.0))
    }
}

impl ser::SerializeTupleStruct for ToList {
    type Ok = Value;
    type Error = ValueError;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), ValueError> {
        self.push(value)
    }
    fn end(self) -> Result<Value, ValueError> {
        Ok(Value::List(self.0))
    }
}

#[derive(Default)]
struct ToMap {
    entries: Map,
    key: Option<Arc<str>>,
}

impl ToMap {
    fn put<T: Serialize + ?Sized>(&mut self, key: Arc<str>, value: &T) -> Result<(), ValueError> {
        self.entries.insert(key, to_value(value)?);
        Ok(())
    }
}

impl ser::SerializeMap for ToMap {
    type Ok = Value;
    type Error = ValueError;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), ValueError> {
        self.key = Some(match to_value(key)? {
            Value::Text(text) => text,
            Value::Number(number) if number.is_integer() => number.to_string().into(),
            other => {
                return Err(ser::Error::custom(format_args!(
                    "a map key must be a text, not {}",
                    other.kind()
                )));
            }
        });
        Ok(())
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), ValueError> {
        let key = self
            .key
            .take()
            .ok_or_else(|| ser::Error::custom("a map value without its key"))?;
        self.put(key, value)
    }
    fn end(self) -> Result<Value, ValueError> {
        Ok(self.entries.into())
    }
}

impl ser::SerializeStruct for ToMap {
    type Ok = Value;
    type Error = ValueError;
    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), ValueError> {
        self.put(key.into(), value)
    }
    fn end(self) -> Result<Value, ValueError> {
        Ok(self.entries.into())
    }
}

struct ToVariant<I> {
    variant: &'static str,
    inner: I,
}

impl ser::SerializeTupleVariant for ToVariant<ToList> {
    type Ok = Value;
    type Error = ValueError;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), ValueError> {
        self.inner.push(value)
    }
    fn end(self) -> Result<Value, ValueError> {
        Ok(Value::from_pairs([(
            self.variant,
            Value::List(self.inner.0),
        )]))
    }
}

impl ser::SerializeStructVariant for ToVariant<ToMap> {
    type Ok = Value;
    type Error = ValueError;
    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), ValueError> {
        self.inner.put(key.into(), value)
    }
    fn end(self) -> Result<Value, ValueError> {
        Ok(Value::from_pairs([(
            self.variant,
            self.inner.entries.into(),
        )]))
    }
}
