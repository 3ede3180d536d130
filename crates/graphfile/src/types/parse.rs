//! Reads type expressions: `list<Plan>`, `optional<string>`.

use super::{Type, Types};
use crate::report::{nearest, one_of};

const SIMPLE: [&str; 5] = ["string", "integer", "number", "boolean", "any"];
const GENERIC: [&str; 3] = ["list", "map", "optional"];
const MAX_DEPTH: usize = 16;

/// What is wrong with a type expression, and where in it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TypeError {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) title: String,
    pub(crate) label: String,
    pub(crate) help: Option<String>,
}

/// Reads a type expression.
pub(crate) fn parse(text: &str, types: &Types) -> Result<Type, TypeError> {
    let mut parser = Parser { text, at: 0, types };
    let kind = parser.kind(0)?;
    match parser.rest().is_empty() {
        true => Ok(kind),
        false => Err(parser.syntax("the type ends before this")),
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    types: &'t Types,
}

impl<'t> Parser<'t> {
    fn rest(&mut self) -> &'t str {
        let rest = self.text[self.at..].trim_start();
        self.at = self.text.len() - rest.len();
        rest.trim_end()
    }

    fn syntax(&self, label: &str) -> TypeError {
        TypeError {
            start: self.at.min(self.text.len()),
            end: self.text.len(),
            title: format!("`{}` is not a type", self.text),
            label: label.to_owned(),
            help: Some("types are written like `string`, `list<Plan>` or `optional<Plan>`".into()),
        }
    }

    fn kind(&mut self, depth: usize) -> Result<Type, TypeError> {
        let rest = self.rest();
        let length = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(rest.len());
        let name = &rest[..length];
        if name.is_empty() {
            return Err(self.syntax("expected the name of a type"));
        }
        if depth > MAX_DEPTH {
            return Err(self.syntax("nested too deeply"));
        }
        let start = self.at;
        self.at += length;
        let generic = self.rest().starts_with('<');
        if generic != GENERIC.contains(&name) {
            self.at = start;
            return Err(match generic {
                true => self.syntax("takes no type in angle brackets"),
                false if GENERIC.contains(&name) => self.syntax("needs a type in angle brackets"),
                false => return self.simple(name, start, length),
            });
        }
        if !generic {
            return self.simple(name, start, length);
        }
        self.at += 1;
        let inner = self.kind(depth + 1)?;
        if !self.rest().starts_with('>') {
            return Err(self.syntax("expected `>`"));
        }
        self.at += 1;
        Ok(match name {
            "list" => Type::list(inner),
            "map" => Type::map(inner),
            _ => Type::optional(inner),
        })
    }

    fn simple(&mut self, name: &str, start: usize, length: usize) -> Result<Type, TypeError> {
        self.at = start + length;
        Ok(match name {
            "string" => Type::text(),
            "integer" => Type::integer(),
            "number" => Type::number(),
            "boolean" => Type::Bool,
            "any" => Type::Any,
            name if self.types.has(name) => Type::Named(name.into()),
            name => {
                let known: Vec<&str> = SIMPLE.into_iter().chain(self.types.names()).collect();
                let near = nearest(name, known.iter().copied().chain(GENERIC));
                return Err(TypeError {
                    start,
                    end: start + length,
                    title: format!("no type named `{name}`"),
                    label: "not declared under `types`".to_owned(),
                    help: Some(match near {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("the types here are {}", one_of(&known)),
                    }),
                });
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let mut types = Types::default();
        types.insert("Plan", Type::Any);
        let found = match parse(text, &types) {
            Ok(kind) => kind.to_string(),
            Err(error) => format!("{}..{} {}", error.start, error.end, error.label),
        };
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn type_expressions_are_read_and_mistakes_are_placed() {
        check("string", "string");
        check("list<optional<Plan>>", "list<optional<Plan>>");
        check("map< list <message> >", "map<list<message>>");
        check("Plam", "0..4 not declared under `types`");
        check("list<Plam>", "5..9 not declared under `types`");
        check("list", "0..4 needs a type in angle brackets");
        check("string<any>", "0..11 takes no type in angle brackets");
        check("list<string", "11..11 expected `>`");
        check("list<string>>", "12..13 the type ends before this");
        check("", "0..0 expected the name of a type");
        check("Plan?", "4..5 the type ends before this");
        check(&"list<".repeat(40), "85..200 nested too deeply");
    }
}
