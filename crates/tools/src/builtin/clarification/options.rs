use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

/// How many options of a question are offered.
const MOST: usize = 100;

/// How long the text of an option may be where it is shown, in characters.
const LONGEST_LABEL: usize = 200;

/// One choice, as front ends read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Choice {
    pub(super) id: String,
    /// What people see.
    pub(super) label: String,
    /// What choosing it answers.
    pub(super) value: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
}

/// The options of a question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) list: Vec<Choice>,
    /// How many there were beyond those that are offered.
    pub(super) left_out: usize,
}

impl Choice {
    /// Writes it as one line.
    pub(super) fn line(&self) -> String {
        match &self.description {
            Some(description) => format!("{} — {description}", self.label),
            None => self.label.clone(),
        }
    }
}

impl Options {
    /// Lists what people see.
    pub(super) fn labels(&self) -> Vec<String> {
        self.list
            .iter()
            .map(|choice| choice.label.clone())
            .collect()
    }
}

/// Reads options in any shape that models send, and gives each an id:
/// `option-1`, `option-2`, ... for the prefix `option`.
///
/// A list, a list written as JSON text, one a line, one between two commas, an
/// object or several: what is left is plain texts, each once, in order. Of
/// objects such as `{label, value, description}` the label is for people and
/// the value is the answer.
pub(super) fn read(value: Option<&Value>, prefix: &str) -> Options {
    let mut found = Vec::new();
    match value {
        Some(Value::String(text)) => from_text(text, &mut found),
        Some(Value::Array(items)) => match items.as_slice() {
            // The whole list as the text of its only item.
            [Value::String(text)] => match serde_json::from_str(text) {
                Ok(list @ Value::Array(_)) => collect(&list, &mut found),
                _ => found.push(Found::plain(text)),
            },
            items => items.iter().for_each(|item| collect(item, &mut found)),
        },
        Some(value) => collect(value, &mut found),
        None => {}
    }
    let mut options = Options::default();
    let mut seen = BTreeSet::new();
    for option in found {
        let value = tidy(&option.value);
        let label = shown(&tidy(&option.label));
        if label.is_empty() || value.is_empty() || !seen.insert((label.clone(), value.clone())) {
            continue;
        }
        if options.list.len() == MOST {
            options.left_out += 1;
            continue;
        }
        let description = option.description.map(|text| shown(&tidy(&text)));
        options.list.push(Choice {
            id: format!("{prefix}-{}", options.list.len() + 1),
            description: description.filter(|text| !text.is_empty()),
            label,
            value,
        });
    }
    options
}

/// An option as it was found.
struct Found {
    label: String,
    value: String,
    description: Option<String>,
}

impl Found {
    fn plain(text: &str) -> Self {
        Self {
            label: text.to_owned(),
            value: text.to_owned(),
            description: None,
        }
    }
}

/// Reads options from a text: JSON, or written one after the other.
fn from_text(text: &str, found: &mut Vec<Found>) {
    let text = text.trim();
    match serde_json::from_str::<Value>(text) {
        // A text in a text, which is shorter each time.
        Ok(Value::String(inner)) => return from_text(&inner, found),
        Ok(parsed) => return collect(&parsed, found),
        Err(_) => {}
    }
    // A list as Python writes it.
    let bracketed = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    if let Some(inside) = bracketed {
        let parts = split(inside);
        found.extend(parts.iter().map(|part| Found::plain(part)));
        return;
    }
    let lines: Vec<&str> = text
        .lines()
        .map(without_bullet)
        .filter(|line| !line.is_empty())
        .collect();
    match lines.as_slice() {
        [line] => found.extend(split(line).iter().map(|part| Found::plain(part))),
        lines => found.extend(lines.iter().map(|line| Found::plain(line))),
    }
}

/// Splits at commas; not within quotes or numbers.
fn split(line: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quote = None;
    let mut last = ' ';
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        let starts = parts.last().is_none_or(|part| part.trim().is_empty());
        let next_is_digit = rest.peek().is_some_and(char::is_ascii_digit);
        match (c, quote) {
            ('"' | '\'', None) if starts => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            (',', None) if last.is_ascii_digit() && next_is_digit => push(&mut parts, c),
            (',' | '，' | '、', None) => parts.push(String::new()),
            (c, _) => push(&mut parts, c),
        }
        last = c;
    }
    match quote {
        // It was an apostrophe, and commas behind it may be meant as such.
        Some(_) => line.split([',', '，', '、']).map(str::to_owned).collect(),
        None => parts,
    }
}

fn push(parts: &mut [String], c: char) {
    if let Some(part) = parts.last_mut() {
        part.push(c);
    }
}

fn collect(value: &Value, found: &mut Vec<Found>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Object(fields) => {
            let text = |key: &str| fields.get(key).and_then(scalar);
            let label = ["label", "text", "title", "name", "option"]
                .into_iter()
                .find_map(text);
            let value = text("value");
            match (label, value) {
                // Every value in the object is an option.
                (None, None) => fields.values().for_each(|field| collect(field, found)),
                (label, value) => {
                    let both = label.as_ref().or(value.as_ref()).cloned();
                    let both = both.unwrap_or_default();
                    found.push(Found {
                        label: label.unwrap_or_else(|| both.clone()),
                        value: value.unwrap_or(both),
                        description: text("description"),
                    });
                }
            }
        }
        other => found.extend(scalar(other).map(|text| Found::plain(&text))),
    }
}

/// Writes a text, a number or a flag as text.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn tidy(text: &str) -> String {
    without_tags(text).trim().to_owned()
}

/// Puts a text on one line that can be read.
fn shown(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= LONGEST_LABEL {
        return line;
    }
    let mut start: String = line.chars().take(LONGEST_LABEL - 1).collect();
    start.push('…');
    start
}

/// Takes `- `, `* `, `1. ` or `2) ` from the front of a line.
fn without_bullet(line: &str) -> &str {
    let line = line.trim();
    if let Some(rest) = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")) {
        return rest;
    }
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let rest = &line[digits..];
    match rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") ")) {
        Some(rest) if digits > 0 => rest,
        _ => line,
    }
}

/// Removes XML tags, which some models wrap options in.
///
/// A tag that is never closed is no tag: `Option<A>` stays.
fn without_tags(text: &str) -> String {
    let closed: BTreeSet<&str> = text
        .split("</")
        .skip(1)
        .filter_map(|rest| rest.split_once('>'))
        .map(|(name, _)| name.trim())
        .collect();
    let is_tag = |inside: &str| {
        let name = inside
            .split(|c: char| c.is_whitespace() || c == '/')
            .next()
            .unwrap_or_default();
        let named = |name: &str| name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        match inside.strip_prefix('/') {
            Some(name) => named(name),
            None => named(name) && (inside.ends_with('/') || closed.contains(name)),
        }
    };
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        let (before, tag) = rest.split_at(start);
        clean.push_str(before);
        let inside = &tag[1..];
        match inside.find(['<', '>']) {
            Some(end) if inside[end..].starts_with('>') && is_tag(&inside[..end]) => {
                rest = &inside[end + 1..];
            }
            _ => {
                clean.push('<');
                rest = inside;
            }
        }
    }
    clean.push_str(rest);
    clean
}
