//! The subset of JSON Schema that `types` and tool manifests are written in.

use std::sync::Arc;

use indexmap::IndexMap;
use serde_yaml::Value as Yaml;

use super::{Field, ListType, NumberLimits, ObjectType, Others, TextLimits, Type, Types};
use crate::diag::{Diagnostic, G002, G004, G102, G103};
use crate::report::{Report, nearest, one_of};
use crate::syntax::At;
use crate::value::from_yaml;

const KEYWORDS: [&str; 17] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "default",
    "description",
    "title",
];

/// Reads the `types` of a file.
pub(crate) fn read_types(report: &mut Report<'_>, sources: &IndexMap<String, Yaml>) -> Types {
    let mut types = Types::default();
    // Names first, so that a type may refer to one further down.
    for name in sources.keys() {
        types.insert(name, Type::Any);
    }
    let at = At::root().key("types");
    let read: Vec<_> = sources
        .iter()
        .map(|(name, schema)| {
            let mut reader = SchemaReader {
                types: &types,
                problems: Vec::new(),
            };
            let kind = reader.schema(&at.key(name), schema);
            (name.clone(), kind, reader.problems)
        })
        .collect();
    for (name, kind, problems) in read {
        types.insert(&name, kind);
        for problem in problems {
            report_problem(report, problem);
        }
    }
    for name in sources.keys() {
        if contains_itself(&types, name) {
            let finding = Diagnostic::new(&G102, format!("type `{name}` contains itself"))
                .at(report.key(&at.key(name)), "no value could ever be complete")
                .help("put a list or an optional field between");
            report.push(finding);
            types.insert(name, Type::Any);
        }
    }
    types
}

/// Reads the schema of a tool or function as far as the subset goes.
///
/// What it says beyond is left to the host, which checks the arguments whole when it gets them.
pub(crate) fn read_schema(schema: &serde_json::Value) -> Type {
    let types = Types::default();
    let mut reader = SchemaReader {
        types: &types,
        problems: Vec::new(),
    };
    serde_yaml::to_value(schema).map_or(Type::Any, |yaml| reader.schema(&At::root(), &yaml))
}

enum Problem {
    Keyword {
        at: At,
        keyword: String,
    },
    Reference {
        at: At,
        text: String,
        near: Option<String>,
    },
    Kind {
        at: At,
        expected: String,
    },
    Unknown {
        at: At,
        title: String,
        help: Option<String>,
    },
}

fn report_problem(report: &mut Report<'_>, problem: Problem) {
    let finding = match problem {
        Problem::Keyword { at, keyword } => {
            let near = nearest(&keyword, KEYWORDS);
            let title = format!("schema keyword `{keyword}` is outside the subset");
            let finding = Diagnostic::new(&G103, title).at(report.key(&at), "not understood here");
            match near {
                Some(near) => finding.help(format!("did you mean `{near}`?")),
                None => finding.help(format!(
                    "the keywords are `{}` and `$ref`",
                    KEYWORDS.join("`, `")
                )),
            }
        }
        Problem::Reference { at, text, near } => Diagnostic::new(
            &G102,
            format!("`$ref: {text}` leads to no type of this file"),
        )
        .at(report.value(&at), "not declared under `types`")
        .help(match near {
            Some(near) => format!("did you mean `#/types/{near}`?"),
            None => "references look like `\"#/types/Name\"`".to_owned(),
        }),
        Problem::Kind { at, expected } => {
            Diagnostic::new(&G004, format!("expected {expected}")).at(report.brief(&at), "")
        }
        Problem::Unknown { at, title, help } => Diagnostic::new(&G002, title)
            .at(report.brief(&at), "")
            .help_if(help),
    };
    report.push(finding);
}

struct SchemaReader<'t> {
    types: &'t Types,
    problems: Vec<Problem>,
}

impl SchemaReader<'_> {
    fn wrong(&mut self, at: At, expected: &str) {
        self.problems.push(Problem::Kind {
            at,
            expected: expected.to_owned(),
        });
    }

    fn schema(&mut self, at: &At, schema: &Yaml) -> Type {
        let entries = match schema {
            Yaml::Mapping(entries) => entries,
            Yaml::Bool(true) => return Type::Any,
            _ => {
                self.wrong(at.clone(), "a schema such as `{ type: string }`");
                return Type::Any;
            }
        };
        if let Some(reference) = entries.get("$ref") {
            return self.reference(&at.key("$ref"), reference);
        }
        for key in entries.keys().filter_map(Yaml::as_str) {
            if !KEYWORDS.contains(&key) {
                self.problems.push(Problem::Keyword {
                    at: at.key(key),
                    keyword: key.to_owned(),
                });
            }
        }
        if let Some(values) = entries.get("enum") {
            let Yaml::Sequence(values) = values else {
                self.wrong(at.key("enum"), "a list of values");
                return Type::Any;
            };
            return Type::Enum(values.iter().map(from_yaml).collect());
        }
        if let Some(value) = entries.get("const") {
            return Type::Enum(Arc::new([from_yaml(value)]));
        }
        match entries.get("type") {
            None if entries.contains_key("properties") => self.object(at, entries),
            None if entries.contains_key("items") => self.list(at, entries),
            None => Type::Any,
            Some(Yaml::String(kind)) => self.of_kind(at, kind, entries),
            // `type: [string, "null"]` is the usual way to say that null is allowed.
            Some(Yaml::Sequence(kinds)) => {
                let names: Vec<&str> = kinds.iter().filter_map(Yaml::as_str).collect();
                match names.as_slice() {
                    [kind, "null"] | ["null", kind] => {
                        Type::optional(self.of_kind(at, kind, entries))
                    }
                    [kind] => self.of_kind(at, kind, entries),
                    _ => Type::Any,
                }
            }
            Some(_) => {
                self.wrong(at.key("type"), "the name of a type");
                Type::Any
            }
        }
    }

    fn of_kind(&mut self, at: &At, kind: &str, entries: &serde_yaml::Mapping) -> Type {
        match kind {
            "string" => Type::Text(Arc::new(self.text(at, entries))),
            "integer" => Type::Integer(self.number(at, entries)),
            "number" => Type::Number(self.number(at, entries)),
            "boolean" => Type::Bool,
            "null" => Type::Null,
            "array" => self.list(at, entries),
            "object" => self.object(at, entries),
            _ => {
                const KINDS: [&str; 7] = [
                    "string", "integer", "number", "boolean", "null", "array", "object",
                ];
                let help = match kind {
                    "list" => Some("lists are `array` in a schema".to_owned()),
                    "map" => Some("maps are `object` in a schema".to_owned()),
                    _ => nearest(kind, KINDS).map(|near| format!("did you mean `{near}`?")),
                };
                self.problems.push(Problem::Unknown {
                    at: at.key("type"),
                    title: format!("no schema type named `{kind}`; expected {}", one_of(&KINDS)),
                    help,
                });
                Type::Any
            }
        }
    }

    fn reference(&mut self, at: &At, reference: &Yaml) -> Type {
        let text = reference.as_str().unwrap_or_default();
        match text.strip_prefix("#/types/") {
            Some(name) if self.types.has(name) => Type::Named(name.into()),
            name => {
                let name = name.unwrap_or(text);
                let near = nearest(name, self.types.names()).map(str::to_owned);
                let text = text.to_owned();
                self.problems.push(Problem::Reference {
                    at: at.clone(),
                    text,
                    near,
                });
                Type::Any
            }
        }
    }

    fn size(&mut self, at: &At, entries: &serde_yaml::Mapping, key: &str) -> Option<usize> {
        let value = entries.get(key)?;
        let size = value.as_u64().and_then(|size| usize::try_from(size).ok());
        if size.is_none() {
            self.wrong(at.key(key), "a whole number that is not negative");
        }
        size
    }

    fn text(&mut self, at: &At, entries: &serde_yaml::Mapping) -> TextLimits {
        let pattern = match entries.get("pattern") {
            None => None,
            Some(pattern) => {
                let pattern = pattern
                    .as_str()
                    .and_then(|text| regex::Regex::new(text).ok());
                if pattern.is_none() {
                    self.wrong(at.key("pattern"), "a regular expression");
                }
                pattern
            }
        };
        TextLimits {
            min: self.size(at, entries, "minLength"),
            max: self.size(at, entries, "maxLength"),
            pattern,
        }
    }

    fn number(&mut self, at: &At, entries: &serde_yaml::Mapping) -> NumberLimits {
        let mut bound = |key: &str| {
            let value = entries.get(key)?;
            if value.as_f64().is_none() {
                self.wrong(at.key(key), "a number");
            }
            value.as_f64()
        };
        NumberLimits {
            min: bound("minimum"),
            max: bound("maximum"),
        }
    }

    fn list(&mut self, at: &At, entries: &serde_yaml::Mapping) -> Type {
        let items = match entries.get("items") {
            Some(items) => self.schema(&at.key("items"), items),
            None => Type::Any,
        };
        let (min, max) = (
            self.size(at, entries, "minItems"),
            self.size(at, entries, "maxItems"),
        );
        Type::List(Arc::new(ListType { items, min, max }))
    }

    fn object(&mut self, at: &At, entries: &serde_yaml::Mapping) -> Type {
        let mut fields = IndexMap::new();
        match entries.get("properties") {
            None => {}
            Some(Yaml::Mapping(properties)) => {
                for (name, schema) in properties {
                    let Some(name) = name.as_str() else { continue };
                    let place = at.key("properties").key(name);
                    let kind = self.schema(&place, schema);
                    let field = Field {
                        kind,
                        required: false,
                        default: schema.get("default").map(from_yaml),
                        description: schema
                            .get("description")
                            .and_then(Yaml::as_str)
                            .map(str::to_owned),
                    };
                    fields.insert(name.to_owned(), field);
                }
            }
            Some(_) => self.wrong(at.key("properties"), "a mapping of fields"),
        }
        match entries.get("required") {
            None => {}
            Some(Yaml::Sequence(names)) => {
                for (index, name) in names.iter().enumerate() {
                    match name.as_str().and_then(|name| fields.get_mut(name)) {
                        Some(field) => field.required = true,
                        None => {
                            let known: Vec<&str> = fields.keys().map(String::as_str).collect();
                            let near = name.as_str().and_then(|name| nearest(name, known));
                            self.problems.push(Problem::Unknown {
                                at: at.key("required").item(index),
                                title: "`required` names a field that `properties` does not".into(),
                                help: near.map(|near| format!("did you mean `{near}`?")),
                            });
                        }
                    }
                }
            }
            Some(_) => self.wrong(at.key("required"), "a list of fields"),
        }
        let others = match entries.get("additionalProperties") {
            None => Others::Unsaid,
            Some(Yaml::Bool(false)) => Others::Forbidden,
            Some(others) => Others::Typed(self.schema(&at.key("additionalProperties"), others)),
        };
        match (fields.is_empty(), others) {
            (true, Others::Typed(values)) => Type::map(values),
            (true, Others::Unsaid) => Type::map(Type::Any),
            (_, others) => Type::Object(Arc::new(ObjectType { fields, others })),
        }
    }
}

/// Tells whether every value of a type would have to hold another value of the same type.
fn contains_itself(types: &Types, name: &str) -> bool {
    fn visit(types: &Types, kind: &Type, target: &str, seen: &mut Vec<String>) -> bool {
        match kind {
            Type::Named(name) => {
                if &**name == target && !seen.is_empty() {
                    return true;
                }
                if seen.iter().any(|other| **other == **name) {
                    return false;
                }
                seen.push(name.to_string());
                types
                    .named
                    .get(name)
                    .is_some_and(|kind| visit(types, kind, target, seen))
            }
            Type::Object(object) => object
                .fields
                .values()
                .any(|field| field.required && visit(types, &field.kind, target, seen)),
            _ => false,
        }
    }
    visit(types, &Type::Named(name.into()), name, &mut Vec::new())
}
