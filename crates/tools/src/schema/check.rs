use serde_json::{Map, Number, Value};

use super::Args;
use super::problem::{ArgumentProblem, describe};

/// Schemas may refer to themselves; values cannot be deeper than this.
const DEEPEST: usize = 64;

/// How many schemas one value may be held against in all: references that
/// branch at every level would take for ever within the depth above.
const MOST_STEPS: usize = 100_000;

pub(super) fn check(schema: &Value, args: Value) -> Result<Args, Vec<ArgumentProblem>> {
    let mut args = args;
    let mut checker = Checker {
        root: schema,
        problems: Vec::new(),
        steps: 0,
    };
    checker.visit(schema, &mut args, &Place::default(), 0);
    if checker.steps > MOST_STEPS {
        checker.problems = vec![ArgumentProblem {
            argument: String::new(),
            text: format!("took more than {MOST_STEPS} steps to check: send less at once"),
        }];
    }
    checker.problems.sort_by(|a, b| a.argument.cmp(&b.argument));
    match args {
        Value::Object(args) if checker.problems.is_empty() => Ok(args),
        _ => Err(checker.problems),
    }
}

/// Where in the arguments a value stands, as a reader writes it.
#[derive(Clone, Default)]
struct Place(String);

impl Place {
    fn key(&self, key: &str) -> Self {
        if self.0.is_empty() {
            Self(key.to_owned())
        } else {
            Self(format!("{}.{key}", self.0))
        }
    }

    fn item(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }
}

struct Checker<'a> {
    root: &'a Value,
    problems: Vec<ArgumentProblem>,
    steps: usize,
}

impl<'a> Checker<'a> {
    fn report(&mut self, place: &Place, text: String) {
        self.problems.push(ArgumentProblem {
            argument: place.0.clone(),
            text,
        });
    }

    /// Counts a step, and tells whether there was one left.
    fn step(&mut self) -> bool {
        self.steps += 1;
        self.steps <= MOST_STEPS
    }

    /// Finds what a `$ref` of a schema stands for.
    fn target(&self, schema: &Map<String, Value>) -> Option<&'a Value> {
        let target = schema.get("$ref").and_then(Value::as_str)?;
        self.root.pointer(target.strip_prefix('#')?)
    }

    fn visit(&mut self, schema: &'a Value, value: &mut Value, place: &Place, depth: usize) {
        if !self.step() {
            return;
        }
        let schema = match schema {
            Value::Object(keywords) => keywords,
            Value::Bool(false) => return self.report(place, "is not allowed".to_owned()),
            _ => return,
        };
        if depth > DEEPEST {
            return self.report(place, format!("is nested deeper than {DEEPEST} levels"));
        }
        if let Some(target) = self.target(schema) {
            self.visit(target, value, place, depth + 1);
        }
        if let Some(kinds) = schema.get("type") {
            let kinds = names(kinds);
            if !kinds.is_empty() && !kinds.iter().any(|kind| is_kind(kind, value)) {
                let expected = expected_kinds(&kinds);
                return self.report(
                    place,
                    format!("expected {expected}, got {}", describe(value)),
                );
            }
            if kinds.contains(&"integer") && !kinds.contains(&"number") {
                make_integer(value);
            }
        }
        self.choices(schema, value, place);
        self.bounds(schema, value, place);
        match value {
            Value::Object(fields) => self.object(schema, fields, place, depth),
            Value::Array(items) => {
                if let Some(schema) = schema.get("items") {
                    for (index, item) in items.iter_mut().enumerate() {
                        self.visit(schema, item, &place.item(index), depth + 1);
                    }
                }
            }
            _ => {}
        }
        for part in list(schema.get("allOf")) {
            self.visit(part, value, place, depth + 1);
        }
        for keyword in ["anyOf", "oneOf"] {
            self.alternatives(list(schema.get(keyword)), value, place, depth);
        }
    }

    fn choices(&mut self, schema: &Map<String, Value>, value: &Value, place: &Place) {
        if let Some(Value::Array(choices)) = schema.get("enum")
            && !choices.iter().any(|choice| is_same(choice, value))
        {
            let choices: Vec<String> = choices.iter().map(Value::to_string).collect();
            let text = format!(
                "expected one of {}, got {}",
                choices.join(", "),
                describe(value)
            );
            self.report(place, text);
        }
        if let Some(only) = schema.get("const")
            && !is_same(only, value)
        {
            self.report(place, format!("expected {only}, got {}", describe(value)));
        }
    }

    fn bounds(&mut self, schema: &Map<String, Value>, value: &Value, place: &Place) {
        let bound = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
        let (size, unit, keywords) = match value {
            Value::Number(number) => (number.as_f64(), "", ["minimum", "maximum"]),
            Value::String(text) => (
                Some(text.chars().count() as f64),
                " characters",
                ["minLength", "maxLength"],
            ),
            Value::Array(items) => (Some(items.len() as f64), " items", ["minItems", "maxItems"]),
            _ => return,
        };
        let Some(size) = size else { return };
        let got = if unit.is_empty() {
            describe(value)
        } else {
            format!("{size}{unit}")
        };
        if let Some(least) = bound(keywords[0])
            && size < least
        {
            if size == 0.0 && !unit.is_empty() {
                return self.report(place, "must not be empty".to_owned());
            }
            self.report(place, format!("expected at least {least}{unit}, got {got}"));
        }
        if let Some(most) = bound(keywords[1])
            && size > most
        {
            self.report(place, format!("expected at most {most}{unit}, got {got}"));
        }
        if unit.is_empty() {
            if let Some(limit) = bound("exclusiveMinimum")
                && size <= limit
            {
                self.report(place, format!("expected more than {limit}, got {got}"));
            }
            if let Some(limit) = bound("exclusiveMaximum")
                && size >= limit
            {
                self.report(place, format!("expected less than {limit}, got {got}"));
            }
        }
    }

    fn object(
        &mut self,
        schema: &'a Map<String, Value>,
        fields: &mut Map<String, Value>,
        place: &Place,
        depth: usize,
    ) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let property = |key: &str| properties.and_then(|properties| properties.get(key));
        let required = schema.get("required").map(names).unwrap_or_default();
        fields.retain(|key, value| {
            let optional = !required.contains(&key.as_str());
            let left_out = value.is_null()
                && optional
                && property(key).is_some_and(|s| !self.allows_null(s, 0));
            !left_out
        });
        for key in &required {
            if !fields.contains_key(*key) {
                let expected = property(key).map_or_else(String::new, |schema| {
                    let kinds = schema.get("type").map(names).unwrap_or_default();
                    match kinds.is_empty() {
                        true => String::new(),
                        false => format!(": {}", expected_kinds(&kinds)),
                    }
                });
                self.report(
                    &place.key(key),
                    format!("is missing and required{expected}"),
                );
            }
        }
        for (key, value) in fields.iter_mut() {
            let place = place.key(key);
            match (property(key), schema.get("additionalProperties")) {
                (Some(known), _) => self.visit(known, value, &place, depth + 1),
                (None, Some(Value::Bool(false))) => {
                    let known = properties.into_iter().flat_map(Map::keys);
                    let text = unknown(key, known.map(String::as_str));
                    self.report(&place, text);
                }
                (None, Some(other)) => self.visit(other, value, &place, depth + 1),
                (None, None) => {}
            }
        }
    }

    fn alternatives(
        &mut self,
        schemas: &'a [Value],
        value: &mut Value,
        place: &Place,
        depth: usize,
    ) {
        if schemas.is_empty() {
            return;
        }
        let before = self.problems.len();
        let mut nearest: Option<Vec<ArgumentProblem>> = None;
        for schema in schemas {
            let mut copy = value.clone();
            self.visit(schema, &mut copy, place, depth + 1);
            let found = self.problems.split_off(before);
            if found.is_empty() {
                *value = copy;
                return;
            }
            // What is wrong within the right type says more than "wrong type".
            let kinds = schema.get("type").map(names).unwrap_or_default();
            if nearest.is_none() && kinds.iter().any(|kind| is_kind(kind, value)) {
                nearest = Some(found);
            }
        }
        match nearest {
            Some(found) => self.problems.extend(found),
            None => {
                let kinds: Vec<&str> = schemas
                    .iter()
                    .flat_map(|s| s.get("type").map(names).unwrap_or_default())
                    .collect();
                let expected = match kinds.is_empty() {
                    true => "another shape".to_owned(),
                    false => expected_kinds(&kinds),
                };
                self.report(
                    place,
                    format!("expected {expected}, got {}", describe(value)),
                );
            }
        }
    }

    /// Tells whether null fits a schema: whatever the schema says of values
    /// must allow it.
    fn allows_null(&mut self, schema: &'a Value, depth: usize) -> bool {
        let schema = match schema {
            Value::Object(keywords) => keywords,
            other => return *other != Value::Bool(false),
        };
        if depth > DEEPEST || !self.step() {
            return false;
        }
        let typed = match schema.get("type").map(names) {
            Some(kinds) if !kinds.is_empty() => kinds.contains(&"null"),
            _ => true,
        };
        let chosen = match schema.get("enum") {
            Some(Value::Array(choices)) => choices.contains(&Value::Null),
            _ => true,
        };
        let fixed = schema.get("const").is_none_or(Value::is_null);
        if !(typed && chosen && fixed) {
            return false;
        }
        let parts = list(schema.get("allOf"));
        let mut all = self.target(schema).into_iter().chain(parts);
        if !all.all(|part| self.allows_null(part, depth + 1)) {
            return false;
        }
        ["anyOf", "oneOf"].iter().all(|keyword| {
            let parts = list(schema.get(*keyword));
            parts.is_empty() || parts.iter().any(|part| self.allows_null(part, depth + 1))
        })
    }
}

/// Compares as JSON Schema does: `1.0` is `1`.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        _ => a == b,
    }
}

fn list(value: Option<&Value>) -> &[Value] {
    match value {
        Some(Value::Array(items)) => items,
        _ => &[],
    }
}

/// Reads a keyword that is a name or a list of names.
fn names(value: &Value) -> Vec<&str> {
    match value {
        Value::String(name) => vec![name],
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn is_kind(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => match value {
            Value::Number(number) => as_integer(number).is_some(),
            _ => false,
        },
        // A kind that JSON does not have: nothing to hold against the value.
        _ => true,
    }
}

/// JSON Schema counts `3.0` as an integer; Rust's readers do not.
fn as_integer(number: &Number) -> Option<Number> {
    if number.is_i64() || number.is_u64() {
        return Some(number.clone());
    }
    let float = number.as_f64()?;
    const EXACT: f64 = 9_007_199_254_740_992.0;
    (float.fract() == 0.0 && float.abs() <= EXACT).then(|| Number::from(float as i64))
}

fn make_integer(value: &mut Value) {
    if let Value::Number(number) = value
        && let Some(integer) = as_integer(number)
    {
        *number = integer;
    }
}

fn expected_kinds(kinds: &[&str]) -> String {
    let words: Vec<&str> = kinds
        .iter()
        .map(|kind| match *kind {
            "string" => "a string",
            "integer" => "a whole number",
            "number" => "a number",
            "boolean" => "true or false",
            "array" => "a list",
            "object" => "an object",
            other => other,
        })
        .collect();
    words.join(" or ")
}

fn unknown<'k>(key: &str, known: impl Iterator<Item = &'k str> + Clone) -> String {
    let nearest = tine_engine::text::nearest(key, known.clone());
    let mut known: Vec<&str> = known.collect();
    known.sort_unstable();
    match nearest {
        Some(name) => format!("is not an argument of this tool; did you mean `{name}`?"),
        None if known.is_empty() => "is not an argument of this tool, which takes none".to_owned(),
        None => format!(
            "is not an argument of this tool; it takes {}",
            known.join(", ")
        ),
    }
}
