//! Compiles the conditions, values and prompts of a file, and checks what they hold.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_yaml::Value as Yaml;
use tine_engine::Value;

use crate::diag::{Diagnostic, FileId, G004, G107, G203, G205, G209, G304, Level, Span};
use crate::expr::{Checker, Expression, Names, Parsed, parse};
use crate::host::Sources;
use crate::report::Report;
use crate::spec::{FileRef, decode};
use crate::syntax::At;
use crate::template::{self, Template};
use crate::types::{ObjectType, Others, Type, Types, fits};
use crate::value::{Cut, Part, ValueExpr, cut, from_yaml};

/// What is needed to compile any of the three languages.
pub(super) struct Compiler<'c, 't> {
    pub(super) report: &'c mut Report<'t>,
    pub(super) types: &'c Types,
    pub(super) sources: &'c dyn Sources,
    /// Channels that something reads.
    pub(super) reads: BTreeSet<String>,
    /// Prompt files, by path, for the stored definition.
    pub(super) files: Vec<(At, String)>,
}

impl Compiler<'_, '_> {
    fn parse(&mut self, at: &At, base: usize, text: &str) -> Option<Parsed> {
        match parse(text) {
            Ok(parsed) => Some(parsed),
            Err(problem) => {
                let span = self
                    .report
                    .index
                    .inside(at, base + problem.start, base + problem.end);
                let finding = Diagnostic::new(
                    &G209,
                    format!("an expression does not parse: {}", problem.problem),
                )
                .at(span, "here")
                .help_if(problem.help.map(str::to_owned));
                self.report.push(finding);
                None
            }
        }
    }

    /// Compiles the condition of a branch of `owner`.
    pub(super) fn condition(
        &mut self,
        at: &At,
        text: &str,
        names: &Names,
        owner: &str,
    ) -> Option<Expression> {
        if let Some((start, end)) = wrapped(text) {
            let span = self.report.index.inside(at, start, end);
            let finding = Diagnostic::new(&G209, "a condition is written bare")
                .at(span, "`${...}` belongs into values")
                .help(format!("write `{}`", text[start + 2..end - 1].trim()));
            self.report.push(finding);
            return None;
        }
        let parsed = self.parse(at, 0, text)?;
        let checker = Checker::new(
            self.report,
            self.types,
            names,
            at,
            0,
            &parsed,
            true,
            &mut self.reads,
        );
        let checked = checker.check_condition("the condition");
        if checked.constant && matches!(checked.kind, Type::Bool) {
            let finding = Diagnostic::new(&G304, format!("a condition of `{owner}` never changes"))
                .level(Level::Warning)
                .at(self.report.value(at), "names nothing of the state");
            self.report.push(finding);
        }
        Some(Expression::new(text, &parsed))
    }

    fn expression(
        &mut self,
        at: &At,
        base: usize,
        text: &str,
        names: &Names,
    ) -> Option<(Expression, Type)> {
        let parsed = self.parse(at, base, text)?;
        let checker = Checker::new(
            self.report,
            self.types,
            names,
            at,
            base,
            &parsed,
            false,
            &mut self.reads,
        );
        let checked = checker.check();
        Some((Expression::new(text, &parsed), checked.kind))
    }

    /// Compiles a value that goes where `wanted` is expected; `place` names that for messages.
    pub(super) fn value(
        &mut self,
        at: &At,
        yaml: &Yaml,
        wanted: &Type,
        names: &Names,
        place: &str,
    ) -> Option<ValueExpr> {
        match yaml {
            Yaml::String(text) => self.text(at, text, wanted, names, place),
            Yaml::Sequence(items) if holds_code(yaml) => {
                let inner = match self.types.plain(wanted) {
                    Type::List(list) => list.items.clone(),
                    Type::Any => Type::Any,
                    _ => {
                        self.misfit(self.report.brief(at), place, wanted, "a list");
                        Type::Any
                    }
                };
                let items: Vec<_> = items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| self.value(&at.item(index), item, &inner, names, place))
                    .collect();
                items
                    .into_iter()
                    .collect::<Option<_>>()
                    .map(ValueExpr::List)
            }
            Yaml::Mapping(entries) if holds_code(yaml) => {
                let object = match self.types.plain(wanted) {
                    Type::Object(object) => Some(Arc::clone(object)),
                    _ => None,
                };
                let others = match self.types.plain(wanted) {
                    Type::Map(values) => (**values).clone(),
                    Type::Any | Type::Object(_) => Type::Any,
                    _ => {
                        self.misfit(self.report.brief(at), place, wanted, "a mapping");
                        Type::Any
                    }
                };
                if let Some(object) = &object {
                    self.fields(at, entries, object, wanted, place);
                }
                let mut compiled = Some(Vec::new());
                for (key, value) in entries {
                    let key = key.as_str().unwrap_or_default();
                    let wanted = match object.as_ref().and_then(|object| object.fields.get(key)) {
                        Some(field) => field.kind.clone(),
                        None => others.clone(),
                    };
                    match (
                        self.value(&at.key(key), value, &wanted, names, place),
                        &mut compiled,
                    ) {
                        (Some(value), Some(compiled)) => compiled.push((key.into(), value)),
                        _ => compiled = None,
                    }
                }
                compiled.map(ValueExpr::Map)
            }
            literal => {
                let value = from_yaml(literal);
                self.literal(at, &value, wanted, place);
                Some(ValueExpr::Literal(value))
            }
        }
    }

    /// Checks which fields a mapping with computed values has.
    fn fields(
        &mut self,
        at: &At,
        entries: &serde_yaml::Mapping,
        object: &ObjectType,
        wanted: &Type,
        place: &str,
    ) {
        for (name, field) in &object.fields {
            if field.required && field.default.is_none() && !entries.contains_key(name.as_str()) {
                let finding = Diagnostic::new(&G205, format!("{place} lacks `{name}`"))
                    .at(self.report.brief(at), format!("{wanted} needs it"));
                self.report.push(finding);
            }
        }
        if !matches!(object.others, Others::Forbidden) {
            return;
        }
        for key in entries.keys().filter_map(Yaml::as_str) {
            if !object.fields.contains_key(key) {
                let names = object.fields.keys().map(String::as_str);
                let near = crate::report::nearest(key, names);
                let title = match wanted {
                    Type::Named(name) => format!("{name} has no field `{key}`"),
                    _ => format!("no field `{key}` in {place}"),
                };
                let finding = Diagnostic::new(&G205, title)
                    .at(self.report.key(&at.key(key)), "unknown field")
                    .help_if(near.map(|near| format!("did you mean `{near}`?")));
                self.report.push(finding);
            }
        }
    }

    fn text(
        &mut self,
        at: &At,
        text: &str,
        wanted: &Type,
        names: &Names,
        place: &str,
    ) -> Option<ValueExpr> {
        match cut(text).as_slice() {
            [Cut::Text(_)] => {
                let value = Value::from(text);
                self.literal(at, &value, wanted, place);
                Some(ValueExpr::Literal(value))
            }
            [Cut::Code { text: code, start }] => {
                let (expression, kind) = self.expression(at, *start, code, names)?;
                if !fits(self.types, &kind, wanted) {
                    let span = self.report.index.inside(at, *start, start + code.len());
                    self.misfit(span, place, wanted, &kind.to_string());
                }
                Some(ValueExpr::Expression(expression))
            }
            cuts => {
                if !fits(self.types, &Type::text(), wanted) {
                    self.misfit(self.report.brief(at), place, wanted, "a text");
                }
                let mut parts = Some(Vec::new());
                for cut in cuts {
                    let part = match cut {
                        Cut::Text(text) => Some(Part::Text((*text).into())),
                        Cut::Code { text, start } => {
                            self.expression(at, *start, text, names)
                                .map(|(expression, kind)| {
                                    self.printable(at, *start, text, &kind);
                                    Part::Expression(expression)
                                })
                        }
                        Cut::Open { start } => {
                            let span = self.report.index.inside(at, *start, start + 2);
                            let finding = Diagnostic::new(&G209, "`${` without its `}`")
                                .at(span, "opened here");
                            self.report.push(finding);
                            None
                        }
                    };
                    match (part, &mut parts) {
                        (Some(part), Some(parts)) => parts.push(part),
                        _ => parts = None,
                    }
                }
                parts.map(|parts| ValueExpr::Text(parts.into()))
            }
        }
    }

    fn printable(&mut self, at: &At, start: usize, code: &str, kind: &Type) {
        if matches!(self.types.resolve(kind), Type::Null) {
            let span = self.report.index.inside(at, start, start + code.len());
            let finding = Diagnostic::new(&G203, "null cannot stand inside a text").at(span, "");
            self.report.push(finding);
        }
    }

    fn misfit(&mut self, span: Span, place: &str, wanted: &Type, found: &str) {
        let finding = Diagnostic::new(&G205, format!("{place} takes {wanted}, not {found}"))
            .at(span, format!("this is {found}"));
        self.report.push(finding);
    }

    /// Checks a value that is known now.
    pub(super) fn literal(&mut self, at: &At, value: &Value, wanted: &Type, place: &str) {
        if let Err(wrong) = self.types.check(wanted, value) {
            let inner = wrong
                .pointer
                .split('/')
                .skip(1)
                .fold(at.clone(), |at, step| at.key(step));
            let is_enum = matches!(self.types.plain(wanted), Type::Enum(_));
            let check = if is_enum { &crate::diag::G204 } else { &G205 };
            let finding = Diagnostic::new(check, format!("the value does not fit {place}"))
                .at(self.report.brief(&inner), wrong.problem);
            self.report.push(finding);
        }
    }

    /// Compiles a prompt: a text, or `{ file: path }`.
    pub(super) fn template(&mut self, at: &At, yaml: &Yaml, names: &Names) -> Option<Template> {
        match yaml {
            Yaml::String(text) => {
                let place = at.name().unwrap_or("prompt").to_owned();
                template::check(
                    self.report,
                    &place,
                    text,
                    names,
                    self.types,
                    &mut self.reads,
                    &|report, start, end| report.index.inside(at, start, end),
                    &|finding| finding,
                )
            }
            Yaml::Mapping(_) => {
                let reference: FileRef = decode(self.report, at, yaml, &[])?;
                let place = at.key("file");
                let text = match read(self.sources, &reference.file) {
                    Ok(text) => text,
                    Err(problem) => {
                        let title = format!("`{}` cannot be read: {problem}", reference.file);
                        let finding = Diagnostic::new(&G107, title)
                            .at(self.report.value(&place), "named here");
                        self.report.push(finding);
                        return None;
                    }
                };
                let id = self.report.diagnostics.add_file(&reference.file, &text);
                self.files.push((at.clone(), text.clone()));
                template::check(
                    self.report,
                    &reference.file,
                    &text,
                    names,
                    self.types,
                    &mut self.reads,
                    &|_, start, end| Span { start, end },
                    &|finding| in_file(finding, id),
                )
            }
            _ => {
                let finding = Diagnostic::new(&G004, "expected the text of a prompt")
                    .at(self.report.brief(at), "a text, or `{ file: path }`");
                self.report.push(finding);
                None
            }
        }
    }
}

/// Moves the primary labels of a finding into the prompt file; context stays in the graph file.
fn in_file(mut finding: Diagnostic, id: FileId) -> Diagnostic {
    for label in &mut finding.labels {
        if label.primary {
            label.file = id;
        }
    }
    finding
}

/// Reads a file beside the graph file, and nothing further away.
fn read(sources: &dyn Sources, path: &str) -> Result<String, String> {
    let outside = path.starts_with(['/', '\\'])
        || path.contains('\0')
        || path.split(['/', '\\']).any(|part| part == "..")
        || path.get(1..2) == Some(":");
    match outside {
        true => Err("prompt files stand beside the graph file or below it".to_owned()),
        false => sources.read(path),
    }
}

/// Tells where a text is nothing but one `${...}`.
fn wrapped(text: &str) -> Option<(usize, usize)> {
    let trimmed = text.trim();
    let start = text.find("${")?;
    (trimmed.starts_with("${") && trimmed.ends_with('}')).then(|| (start, text.trim_end().len()))
}

/// Tells whether anything in a value has to be computed.
pub(super) fn holds_code(yaml: &Yaml) -> bool {
    match yaml {
        Yaml::String(text) => text.contains("${"),
        Yaml::Sequence(items) => items.iter().any(holds_code),
        Yaml::Mapping(entries) => entries.values().any(holds_code),
        _ => false,
    }
}
