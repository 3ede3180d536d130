use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

/// One choice, as front ends read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Choice {
    id: String,
    label: String,
    value: String,
}

/// Gives each option an id: `option-1`, `option-2`, ...
pub(super) fn with_ids(prefix: &str, options: &[String]) -> Vec<Choice> {
    options
        .iter()
        .enumerate()
        .map(|(index, option)| Choice {
            id: format!("{prefix}-{}", index + 1),
            label: option.clone(),
            value: option.clone(),
        })
        .collect()
}

/// Reads options in any shape that models send.
///
/// A list, a list written as JSON text, one a line, an object or several:
/// what is left is plain texts, each once, in order.
pub(super) fn read(value: Option<&Value>) -> Vec<String> {
    let mut found = Vec::new();
    match value {
        Some(Value::String(text)) => match serde_json::from_str::<Value>(text) {
            Ok(parsed) if !parsed.is_string() => collect(&parsed, &mut found),
            _ => text
                .lines()
                .map(without_bullet)
                .for_each(|line| found.push(line.to_owned())),
        },
        Some(value) => collect(value, &mut found),
        None => {}
    }
    let mut options: Vec<String> = Vec::new();
    for option in found {
        let option = without_tags(&option).trim().to_owned();
        if !option.is_empty() && !options.contains(&option) {
            options.push(option);
        }
    }
    options
}

fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Null => {}
        Value::String(text) => found.push(text.clone()),
        Value::Bool(flag) => found.push(flag.to_string()),
        Value::Number(number) => found.push(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        // Of `{label, value}` the label is for people; otherwise every value
        // in the object is an option.
        Value::Object(fields) => match ["label", "text", "title"]
            .iter()
            .find_map(|k| fields.get(*k))
        {
            Some(label @ (Value::String(_) | Value::Number(_))) => collect(label, found),
            _ => fields.values().for_each(|field| collect(field, found)),
        },
    }
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
