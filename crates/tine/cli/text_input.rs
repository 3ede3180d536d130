//! Texts and JSON that a command gets as arguments, from standard input or from files.

use super::Cx;
use super::failure::Failure;
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use tine::engine::Value;

/// What stands for standard input.
const STDIN: &str = "-";

/// How much is read, in bytes.
const MOST: u64 = 16 << 20;

/// The words of a command as one text; a lone `-` is what standard input has.
pub(crate) fn words(words: &[String]) -> Result<String, Failure> {
    match words {
        [word] if word == STDIN => {
            let text = read(std::io::stdin().lock(), "standard input")?;
            if text.trim().is_empty() {
                return Err(Failure::usage("standard input is empty")
                    .hint("write the text to it, as in `echo TEXT | tine ... -`"));
            }
            Ok(text)
        }
        words => Ok(words.join(" ")),
    }
}

/// Whether the words stand for standard input.
pub(crate) fn is_stdin(words: &[String]) -> bool {
    matches!(words, [word] if word == STDIN)
}

/// JSON as an option has it: written out, `@FILE` for the content of a file, `-` for that of standard input.
///
/// A key that stands twice in an object is refused, for one of its values would be lost.
pub(crate) fn json(cx: &Cx, option: &str, given: &str) -> Result<Value, Failure> {
    let (text, name) = match given.strip_prefix('@') {
        _ if given == STDIN => (
            read(std::io::stdin().lock(), "standard input")?,
            "what standard input has".to_owned(),
        ),
        Some(path) => {
            let path = cx.env.directory.join(path);
            let shown = cx.env.shown(&path);
            (file(&path, &shown)?, shown)
        }
        None => (without_mark(given).to_owned(), format!("`{option}`")),
    };
    if text.trim().is_empty() {
        return Err(
            Failure::usage(format!("{name} is empty, and JSON is wanted")).hint(format!(
                "write it as `{option} '{{\"name\": \"value\"}}'`, `{option} @FILE` or `{option} -`"
            )),
        );
    }
    let not_json = |error: serde_json::Error| {
        Failure::usage(format!("{name} is not JSON: {error}")).hint(format!(
            "write it as `{option} '{{\"name\": \"value\"}}'`, `{option} @FILE` or `{option} -`"
        ))
    };
    let value = serde_json::from_str::<Value>(&text).map_err(not_json)?;
    match serde_json::from_str::<Unique>(&text) {
        Ok(Unique) => Ok(value),
        Err(error) => Err(
            Failure::usage(format!("{name} says a thing twice: {error}"))
                .hint("leave one of the two out"),
        ),
    }
}

fn file(path: &Path, shown: &str) -> Result<String, Failure> {
    let refused = |error: std::io::Error| {
        Failure::usage(format!("{shown} can not be read: {error}"))
            .hint("name a file of JSON as `@FILE`, or write the JSON out")
    };
    // Opening a pipe would wait for somebody to write to it, and that is what is wanted of `@<(...)`.
    let file = File::open(path).map_err(refused)?;
    if file.metadata().map_err(refused)?.is_dir() {
        return Err(Failure::usage(format!("{shown} is a folder"))
            .hint("name a file of JSON as `@FILE`, or write the JSON out"));
    }
    read(file, shown)
}

/// Reads all there is as text, without a mark of its encoding and the end of its last line.
fn read(from: impl Read, name: &str) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    from.take(MOST + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| {
            Failure::usage(format!("{name} can not be read: {error}"))
                .hint("write the text as an argument of the command")
        })?;
    if bytes.len() as u64 > MOST {
        return Err(
            Failure::usage(format!("{name} has more than {} MiB of text", MOST >> 20))
                .hint("hand large data in as a file: `tine run GRAPH TEXT --upload FILE`"),
        );
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::usage(format!("{name} is not UTF-8 text: byte {} is none of it", at + 1))
            .hint("convert it, as in `iconv -f GB18030 -t UTF-8`, or hand a file that is no text in with `--upload FILE`")
    })?;
    Ok(without_mark(&text)
        .trim_end_matches(['\n', '\r'])
        .to_owned())
}

/// The text without the mark that tells its encoding.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// JSON in which no object has a key twice.
struct Unique;

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Unique {
    type Value = Self;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }
    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }
    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }
    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }
    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }
    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self, A::Error> {
        let mut seen = BTreeSet::new();
        while let Some(key) = entries.next_key::<String>()? {
            if seen.contains(&key) {
                return Err(A::Error::custom(format_args!(
                    "the key `{key}` stands twice in one object"
                )));
            }
            entries.next_value::<Self>()?;
            seen.insert(key);
        }
        Ok(self)
    }
}
