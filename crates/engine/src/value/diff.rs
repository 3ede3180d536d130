//! What two states differ in.

use super::{Map, Value};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One difference of two states.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The channel, then keys of maps and places in lists. Places are those of the newer state; but the last one of what
    /// was removed is the place that it had.
    pub path: Vec<Part>,
    /// What is different there.
    #[serde(flatten)]
    pub kind: ChangeKind,
}

/// A part of the path of a [`Change`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Part {
    /// A key of a map.
    Key(Arc<str>),
    /// A place in a list, from 0.
    Place(usize),
}

/// What is different at a place.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum ChangeKind {
    /// It is in the newer state only.
    Added {
        /// The value.
        after: Value,
    },
    /// It was in the older state only.
    Removed {
        /// The value.
        before: Value,
    },
    /// It is another value.
    Changed {
        /// The older value.
        before: Value,
        /// The newer value.
        after: Value,
    },
}

/// The differences of two states, channel by channel: of maps key by key, of lists item by item. Objects in lists that
/// have an `id` are the same if their ids are; other items if they are equal.
///
/// Done level by level, and in each from the last removal to the first, then the additions and changes in order, the
/// changes make the newer state of the older one.
///
/// ```
/// use tine_engine::value::{ChangeKind, diff};
///
/// # let map = |pairs: [(&str, i64); 2]| pairs.into_iter().map(|(k, v)| (k.into(), v.into())).collect();
/// let changes = diff(&map([("a", 1), ("b", 2)]), &map([("a", 1), ("b", 3)]));
/// assert_eq!(changes.len(), 1);
/// assert_eq!(changes[0].kind, ChangeKind::Changed { before: 2.into(), after: 3.into() });
/// ```
#[must_use]
pub fn diff(before: &Map, after: &Map) -> Vec<Change> {
    let mut found = Vec::new();
    maps(&mut Vec::new(), before, after, &mut found);
    found
}

fn maps(path: &mut Vec<Part>, before: &Map, after: &Map, found: &mut Vec<Change>) {
    // Both are sorted, and so is what is found.
    let mut keys: BTreeMap<&Arc<str>, (Option<&Value>, Option<&Value>)> = BTreeMap::new();
    for (key, value) in before {
        keys.entry(key).or_default().0 = Some(value);
    }
    for (key, value) in after {
        keys.entry(key).or_default().1 = Some(value);
    }
    for (key, (before, after)) in keys {
        path.push(Part::Key(key.clone()));
        match (before, after) {
            (Some(before), Some(after)) => values(path, before, after, found),
            (before, after) => one_sided(path, before, after, found),
        }
        path.pop();
    }
}

fn one_sided(
    path: &[Part],
    before: Option<&Value>,
    after: Option<&Value>,
    found: &mut Vec<Change>,
) {
    let kind = match (before, after) {
        (Some(before), None) => ChangeKind::Removed {
            before: before.clone(),
        },
        (None, Some(after)) => ChangeKind::Added {
            after: after.clone(),
        },
        _ => return,
    };
    let path = path.to_vec();
    found.push(Change { path, kind });
}

fn values(path: &mut Vec<Part>, before: &Value, after: &Value, found: &mut Vec<Change>) {
    if before == after {
        return;
    }
    match (before, after) {
        (Value::Map(before), Value::Map(after)) => maps(path, before, after, found),
        (Value::List(before), Value::List(after)) => {
            let before: Vec<&Value> = before.iter().collect();
            let after: Vec<&Value> = after.iter().collect();
            lists(path, &before, &after, found);
        }
        _ => found.push(Change {
            path: path.clone(),
            kind: ChangeKind::Changed {
                before: before.clone(),
                after: after.clone(),
            },
        }),
    }
}

fn lists(path: &mut Vec<Part>, before: &[&Value], after: &[&Value], found: &mut Vec<Change>) {
    let pairs = aligned(before, after);
    let (mut old, mut new) = (0, 0);
    let ends = std::iter::once((before.len(), after.len()));
    let mut changed = Vec::new();
    for (at_old, at_new) in pairs.into_iter().chain(ends) {
        for (place, gone) in before.iter().enumerate().take(at_old).skip(old) {
            path.push(Part::Place(place));
            one_sided(path, Some(gone), None, found);
            path.pop();
        }
        for (place, come) in after.iter().enumerate().take(at_new).skip(new) {
            path.push(Part::Place(place));
            one_sided(path, None, Some(come), found);
            path.pop();
        }
        if let (Some(before), Some(after)) = (before.get(at_old), after.get(at_new)) {
            path.push(Part::Place(at_new));
            values(path, before, after, &mut changed);
            path.pop();
            found.append(&mut changed);
        }
        (old, new) = (at_old + 1, at_new + 1);
    }
}

/// The most pairs of items that are compared to find which stayed.
const MOST: usize = 4_000_000;

/// The items of two lists that are the same, by their places, in order.
///
/// Objects with an id are the same if their ids are, other items if they are equal. Of two lists that are too long and
/// too different, only what they begin and end with is.
fn aligned(before: &[&Value], after: &[&Value]) -> Vec<(usize, usize)> {
    let same = |a: usize, b: usize| is_same(before[a], after[b]);
    let least = before.len().min(after.len());
    let head = (0..least).take_while(|place| same(*place, *place)).count();
    let back = |count: usize| (before.len() - 1 - count, after.len() - 1 - count);
    let tail = (0..least - head)
        .take_while(|count| same(back(*count).0, back(*count).1))
        .count();
    let mut pairs: Vec<(usize, usize)> = (0..head).map(|place| (place, place)).collect();
    let (rows, cells) = (before.len() - head - tail, after.len() - head - tail);
    if rows.saturating_mul(cells) <= MOST {
        longest(head, rows, cells, &same, &mut pairs);
    }
    let ends = (0..tail).rev().map(back);
    pairs.extend(ends);
    pairs
}

/// The longest common subsequence of what lies between.
fn longest(
    head: usize,
    rows: usize,
    cells: usize,
    same: &dyn Fn(usize, usize) -> bool,
    pairs: &mut Vec<(usize, usize)>,
) {
    let width = cells + 1;
    // How many are the same from here on.
    let mut left = vec![0_u32; (rows + 1) * width];
    for row in (0..rows).rev() {
        for cell in (0..cells).rev() {
            left[row * width + cell] = if same(head + row, head + cell) {
                left[(row + 1) * width + cell + 1] + 1
            } else {
                left[(row + 1) * width + cell].max(left[row * width + cell + 1])
            };
        }
    }
    let (mut row, mut cell) = (0, 0);
    while row < rows && cell < cells {
        if same(head + row, head + cell) {
            pairs.push((head + row, head + cell));
            (row, cell) = (row + 1, cell + 1);
        } else if left[(row + 1) * width + cell] >= left[row * width + cell + 1] {
            row += 1;
        } else {
            cell += 1;
        }
    }
}

fn is_same(a: &Value, b: &Value) -> bool {
    let id = |value: &Value| match value {
        Value::Map(entries) => entries.get("id").filter(|id| !id.is_null()).cloned(),
        _ => None,
    };
    match (id(a), id(b)) {
        (Some(a), Some(b)) => a == b,
        (None, None) => a == b,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn map(json: serde_json::Value) -> Map {
        Value::from_json(json).as_map().unwrap().clone()
    }

    fn check(before: serde_json::Value, after: serde_json::Value, expected: &[&str]) {
        let (before, after) = (map(before), map(after));
        let changes = diff(&before, &after);
        let lines: Vec<String> = changes
            .iter()
            .map(|change| {
                let mark = match change.kind {
                    ChangeKind::Added { .. } => '+',
                    ChangeKind::Removed { .. } => '-',
                    ChangeKind::Changed { .. } => '~',
                };
                let place = place_of(&change.path);
                match &change.kind {
                    ChangeKind::Added { after: value } | ChangeKind::Removed { before: value } => {
                        format!("{mark} {place} {value}")
                    }
                    ChangeKind::Changed { before, after } => {
                        format!("{mark} {place} {before} → {after}")
                    }
                }
            })
            .collect();
        assert_eq!(lines, expected);
        assert_eq!(patched(&before, &changes), after, "{changes:?}");
    }

    /// A JSON pointer.
    fn place_of(path: &[Part]) -> String {
        let parts = path.iter().map(|part| match part {
            Part::Key(key) => format!("/{}", key.replace('~', "~0").replace('/', "~1")),
            Part::Place(place) => format!("/{place}"),
        });
        parts.collect()
    }

    /// Makes the newer state of the older one and the differences.
    fn patched(before: &Map, changes: &[Change]) -> Map {
        let mut whole = serde_json::to_value(before).unwrap();
        // Lists inside of lists change after those around them.
        let deepest = changes.iter().map(|change| change.path.len()).max();
        for depth in 0..=deepest.unwrap_or(0) {
            let here = || {
                changes
                    .iter()
                    .filter(move |change| change.path.len() == depth)
            };
            let removed = here()
                .rev()
                .filter(|c| matches!(c.kind, ChangeKind::Removed { .. }));
            let other = here().filter(|c| !matches!(c.kind, ChangeKind::Removed { .. }));
            for change in removed.chain(other) {
                let (last, above) = change.path.split_last().unwrap();
                let holder = whole.pointer_mut(&place_of(above)).unwrap();
                match (&change.kind, last, holder) {
                    (
                        ChangeKind::Removed { before },
                        Part::Key(key),
                        serde_json::Value::Object(map),
                    ) => {
                        assert_eq!(map.remove(&**key).unwrap(), json!(before));
                    }
                    (
                        ChangeKind::Removed { before },
                        Part::Place(at),
                        serde_json::Value::Array(list),
                    ) => {
                        assert_eq!(list.remove(*at), json!(before));
                    }
                    (
                        ChangeKind::Added { after },
                        Part::Key(key),
                        serde_json::Value::Object(map),
                    ) => {
                        assert!(map.insert(key.to_string(), json!(after)).is_none());
                    }
                    (
                        ChangeKind::Added { after },
                        Part::Place(at),
                        serde_json::Value::Array(list),
                    ) => {
                        list.insert(*at, json!(after));
                    }
                    (ChangeKind::Changed { before, after }, _, holder) => {
                        let at = place_of(std::slice::from_ref(last));
                        let value = holder.pointer_mut(&at).unwrap();
                        assert_eq!(*value, json!(before));
                        *value = json!(after);
                    }
                    (kind, last, holder) => panic!("{kind:?} at {last:?} of {holder}"),
                }
            }
        }
        serde_json::from_value(whole).unwrap()
    }

    #[test]
    fn differences_are_found_and_make_the_newer_state() {
        check(json!({}), json!({}), &[]);
        check(
            json!({"a": 1, "b": null, "c": "x"}),
            json!({"a": 2, "b": null, "d": [1]}),
            &["~ /a 1 → 2", r#"- /c "x""#, "+ /d [1]"],
        );
        check(
            json!({"list": [1, 2, 3, 4, 5]}),
            json!({"list": [0, 1, 3, 9, 4, 5]}),
            &["+ /list/0 0", "- /list/1 2", "+ /list/3 9"],
        );
        check(
            json!({"m": {"x": {"y": 1, "z": 2}, "w": [[1], [2]]}}),
            json!({"m": {"x": {"y": 3}, "w": [[2]]}}),
            &["- /m/w/0 [1]", "~ /m/x/y 1 → 3", "- /m/x/z 2"],
        );
        check(
            json!({"l": [{"id": "a", "n": 1}, {"id": "b", "n": [1]}, {"id": "c"}]}),
            json!({"l": [{"id": "b", "n": [2]}, {"id": "c"}, {"id": "a", "n": 1}, {"n": 1}]}),
            &[
                r#"- /l/0 {"id":"a","n":1}"#,
                "- /l/0/n/0 1",
                "+ /l/0/n/0 2",
                r#"+ /l/2 {"id":"a","n":1}"#,
                r#"+ /l/3 {"n":1}"#,
            ],
        );
        check(
            json!({"l": [1], "m": {}, "t": "text"}),
            json!({"l": {}, "m": [], "t": 1}),
            &["~ /l [1] → {}", "~ /m {} → []", r#"~ /t "text" → 1"#],
        );
    }

    #[test]
    fn any_two_lists_are_told_apart() {
        // All lists of up to four items of three kinds.
        let mut lists: Vec<Vec<u32>> = vec![vec![]];
        for length in 1..=4 {
            for number in 0..3_u32.pow(length) {
                let digits = (0..length).map(|place| number / 3_u32.pow(place) % 3);
                lists.push(digits.collect());
            }
        }
        for before in &lists {
            for after in &lists {
                let (before, after) = (map(json!({"l": before})), map(json!({"l": after})));
                let changes = diff(&before, &after);
                assert_eq!(patched(&before, &changes), after, "{changes:?}");
            }
        }
    }
}
