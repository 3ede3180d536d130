//! State as JSON text, and back.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;

/// How deep stored JSON may be nested.
///
/// Reading recurses, so there must be a bound, and one that holds for reading must hold for writing: otherwise a
/// thread could be stored and never loaded again. JSON that comes from outside is at most 128 deep; this leaves as
/// much again for what state wraps around it.
pub(crate) const MAX_DEPTH: usize = 256;

/// Why JSON could not be written or read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JsonError {
    #[error("it is nested {0} levels deep, and {1} can be stored")]
    TooDeep(usize, usize),
    #[error(transparent)]
    Syntax(#[from] serde_json::Error),
}

/// Prints data as JSON.
pub(crate) fn encode<T: Serialize + ?Sized>(data: &T) -> Result<String, JsonError> {
    encode_within(data, MAX_DEPTH)
}

/// Prints data that may be nested so deep.
pub(crate) fn encode_within<T: Serialize + ?Sized>(
    data: &T,
    depth: usize,
) -> Result<String, JsonError> {
    let text = serde_json::to_string(data)?;
    check_depth(&text, depth)?;
    Ok(text)
}

/// Reads what [`encode`] printed.
pub(crate) fn decode<T: DeserializeOwned>(text: &str) -> Result<T, JsonError> {
    decode_within(text, MAX_DEPTH)
}

/// Reads what [`encode_within`] printed.
pub(crate) fn decode_within<T: DeserializeOwned>(text: &str, depth: usize) -> Result<T, JsonError> {
    check_depth(text, depth)?;
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let data = T::deserialize(&mut reader)?;
    reader.end()?;
    Ok(data)
}

/// How many bytes the JSON of `data` has, without making it.
#[cfg_attr(not(feature = "sqlite"), expect(dead_code, reason = "for snapshots"))]
pub(crate) fn size<T: Serialize + ?Sized>(data: &T) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    serde_json::to_writer(&mut count, data)
        .expect("state has text keys and finite numbers only, and counting does not fail");
    count.0
}

fn check_depth(json: &str, most: usize) -> Result<(), JsonError> {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => loop {
                match bytes.next() {
                    Some(b'\\') => {
                        bytes.next();
                    }
                    Some(b'"') | None => break,
                    Some(_) => {}
                }
            },
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    if deepest > most {
        return Err(JsonError::TooDeep(deepest, most));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tine_engine::Value;

    fn nested(depth: usize) -> Value {
        (1..depth).fold(Value::list(), |inner, _| Value::from(vec![inner]))
    }

    #[test]
    fn values_come_back_as_they_went_in() {
        for value in [
            Value::from("\0 \u{1F98C} \u{FFFF} \u{2028} \\\" [[["),
            Value::from_json(serde_json::json!([
                0.1,
                1e-7,
                5e-324,
                1.7976931348623157e308,
                2.2250738585072014e-308,
                -0.0,
                1.0
            ])),
            Value::from_json(serde_json::json!([i64::MIN, u64::MAX, {"": null}])),
            nested(MAX_DEPTH),
        ] {
            let text = encode(&value).unwrap();
            assert_eq!(decode::<Value>(&text).unwrap(), value, "{text}");
            assert_eq!(size(&value), text.len());
        }
    }

    #[test]
    fn too_deep_is_refused_both_ways() {
        let deep = nested(MAX_DEPTH + 1);
        assert_eq!(
            encode(&deep).unwrap_err().to_string(),
            "it is nested 257 levels deep, and 256 can be stored"
        );
        assert!(decode::<Value>(&"[".repeat(1_000_000)).is_err());
    }

    #[test]
    fn brackets_in_texts_do_not_count() {
        let text = Value::from("[{".repeat(MAX_DEPTH) + "\"\\");
        assert!(encode(&text).is_ok());
    }

    #[test]
    fn what_is_not_json_is_an_error() {
        for text in ["", "[1", "1 2", "\"\\ud800\"", "{\"a\":nul}"] {
            assert!(decode::<Value>(text).is_err(), "{text}");
        }
    }
}
