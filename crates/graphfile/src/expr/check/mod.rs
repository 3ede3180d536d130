//! Types of expressions: what CEL would only say when the expression runs.

mod calls;
mod operators;

pub(super) use operators::collect_guards;

use std::collections::BTreeSet;

use cel::IdedExpr;
use cel::common::ast::{ComprehensionExpr, EntryExpr, Expr, LiteralValue, SelectExpr};
use indexmap::IndexMap;

use super::Parsed;
use crate::diag::{Check, Diagnostic, G201, G202, G203, G206, G208, G209, Level, Span};
use crate::report::{Report, nearest, one_of};
use crate::syntax::At;
use crate::types::{Others, Type, Types};

/// Names of other places, so that one used in the wrong place is told from a misspelt one.
const ROOTS: [(&str, &str); 6] = [
    ("input", "in a graph that runs as a branch"),
    ("result", "in `collect` and `output`"),
    ("resume", "in the `set` of an `interrupt`"),
    ("error", "in the `set` of `on_error`"),
    ("index", "in a `map`"),
    ("item", "in a `map`"),
];

/// Stands among the channels that are read for `run.visits`; no channel can have this name.
pub(crate) const VISITS: &str = "run.visits";

/// The names an expression may use, with their types.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    pub(crate) state: IndexMap<String, Type>,
    /// Names beside `state`: `run`, and what the place adds.
    pub(crate) roots: Vec<Root>,
    /// Channels that surely have a value here, such as those the node itself has just written.
    pub(crate) assured: BTreeSet<String>,
    /// Paths that are there, because a branch that is taken without them stands before.
    pub(crate) present: Vec<String>,
}

/// A name beside `state`.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    pub(crate) name: &'static str,
    pub(crate) kind: Type,
}

/// What the check of an expression found out.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) kind: Type,
    /// Whether it names nothing, so that it always has the same value.
    pub(crate) constant: bool,
}

/// Checks one expression.
pub(crate) struct Checker<'c, 't> {
    pub(crate) report: &'c mut Report<'t>,
    pub(crate) types: &'c Types,
    pub(crate) names: &'c Names,
    /// The scalar the expression stands in, and where in its text it begins.
    pub(crate) at: &'c At,
    pub(crate) base: usize,
    pub(crate) parsed: &'c Parsed,
    /// Whether to warn of optional values that nothing asked after.
    pub(crate) wary: bool,
    /// Channels found in the expression.
    pub(crate) reads: &'c mut BTreeSet<String>,
    bound: Vec<(String, Type)>,
    guards: Vec<String>,
    constant: bool,
}

impl<'c, 't> Checker<'c, 't> {
    #[expect(
        clippy::too_many_arguments,
        reason = "all of one place; there is one caller"
    )]
    pub(crate) fn new(
        report: &'c mut Report<'t>,
        types: &'c Types,
        names: &'c Names,
        at: &'c At,
        base: usize,
        parsed: &'c Parsed,
        wary: bool,
        reads: &'c mut BTreeSet<String>,
    ) -> Self {
        let (bound, guards) = (Vec::new(), names.present.clone());
        Self {
            report,
            types,
            names,
            at,
            base,
            parsed,
            wary,
            reads,
            bound,
            guards,
            constant: true,
        }
    }

    pub(crate) fn check(self) -> Checked {
        self.check_with_report().1
    }

    fn check_with_report(mut self) -> (&'c mut Report<'t>, Checked) {
        let kind = self.infer(&self.parsed.expr);
        (
            self.report,
            Checked {
                kind,
                constant: self.constant,
            },
        )
    }

    fn place(&self, (start, end): (usize, usize)) -> Span {
        self.report
            .index
            .inside(self.at, self.base + start, self.base + end)
    }

    fn span(&self, node: &IdedExpr) -> Span {
        self.place(self.parsed.span(node))
    }

    fn wrong(&mut self, check: &'static Check, title: String, node: &IdedExpr, label: &str) {
        let finding = Diagnostic::new(check, title).at(self.span(node), label);
        self.report.push(finding);
    }

    fn infer(&mut self, node: &IdedExpr) -> Type {
        match &node.expr {
            Expr::Literal(literal) => self.literal(node, literal),
            Expr::Ident(name) => self.name(node, name),
            Expr::Select(select) => self.select(node, select),
            Expr::Call(call) => self.call(node, call),
            Expr::Comprehension(inner) => self.comprehension(inner),
            Expr::List(list) => {
                let mut items = Type::Never;
                for element in &list.elements {
                    let kind = self.infer(element);
                    items = self.join(items, kind);
                }
                Type::list(items)
            }
            Expr::Map(map) => self.map(map),
            Expr::Struct(_) => {
                let title = "records are written as maps: `{'key': value}`".to_owned();
                self.wrong(&G209, title, node, "not part of the format");
                Type::Any
            }
            Expr::Unspecified => Type::Any,
        }
    }

    fn literal(&mut self, node: &IdedExpr, literal: &LiteralValue) -> Type {
        match literal {
            LiteralValue::Boolean(_) => Type::Bool,
            LiteralValue::Double(_) => Type::number(),
            LiteralValue::Int(_) => Type::integer(),
            LiteralValue::Null => Type::Null,
            LiteralValue::String(_) => Type::text(),
            LiteralValue::UInt(_) => {
                let title = "whole numbers are written without `u`".to_owned();
                self.wrong(&G209, title, node, "an unsigned number");
                Type::integer()
            }
            LiteralValue::Bytes(_) => {
                let title = "state holds text, not bytes".to_owned();
                self.wrong(&G209, title, node, "a literal of bytes");
                Type::Any
            }
        }
    }

    fn map(&mut self, map: &cel::common::ast::MapExpr) -> Type {
        let mut fields = Vec::new();
        let mut values = Type::Never;
        let mut literal_keys = true;
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else {
                continue;
            };
            let kind = self.infer(&entry.value);
            values = self.join(values, kind.clone());
            match &entry.key.expr {
                Expr::Literal(LiteralValue::String(key)) => {
                    fields.push((key.inner().to_owned(), kind));
                }
                _ => {
                    literal_keys = false;
                    let key = self.infer(&entry.key);
                    if !matches!(
                        self.types.plain(&key),
                        Type::Text(_) | Type::Enum(_) | Type::Any
                    ) {
                        let title = "the keys of a map are texts".to_owned();
                        self.wrong(&G203, title, &entry.key, &format!("this is {key}"));
                    }
                }
            }
        }
        if !literal_keys || fields.is_empty() {
            return Type::map(values);
        }
        let fields: Vec<_> = fields
            .iter()
            .map(|(name, kind)| (name.as_str(), kind.clone(), true))
            .collect();
        crate::types::record(&fields, Others::Forbidden)
    }

    fn name(&mut self, node: &IdedExpr, name: &str) -> Type {
        if let Some((_, kind)) = self.bound.iter().rev().find(|(bound, _)| bound == name) {
            return kind.clone();
        }
        self.constant = false;
        if name == "state" {
            return Type::Any;
        }
        if let Some(root) = self.names.roots.iter().find(|root| root.name == name) {
            return root.kind.clone();
        }
        let span = self.span(node);
        let finding = if let Some((_, place)) = ROOTS.iter().find(|(root, _)| *root == name) {
            Diagnostic::new(&G208, format!("`{name}` is not available here"))
                .at(span, format!("only {place}"))
        } else {
            let roots: Vec<&str> = std::iter::once("state")
                .chain(self.names.roots.iter().map(|root| root.name))
                .collect();
            let finding = Diagnostic::new(&G201, format!("nothing is named `{name}` here"))
                .at(span, "unknown name");
            if self.names.state.contains_key(name) {
                finding.help(format!("channels are read as `state.{name}`"))
            } else if let Some(near) = nearest(name, roots.iter().copied()) {
                finding.help(format!("did you mean `{near}`?"))
            } else {
                finding.help(format!(
                    "expressions see {}; text stands in quotes",
                    one_of(&roots)
                ))
            }
        };
        self.report.push(finding);
        Type::Any
    }

    fn select(&mut self, node: &IdedExpr, select: &SelectExpr) -> Type {
        let kind = match &select.operand.expr {
            Expr::Ident(root) if root == "state" && !self.is_bound("state") => {
                self.constant = false;
                self.channel(node, &select.field)
            }
            _ => {
                let operand = self.infer(&select.operand);
                self.ask_first(&select.operand, &operand);
                if path_text(node).as_deref() == Some(VISITS) {
                    self.reads.insert(VISITS.to_owned());
                }
                self.field(node, &operand, &select.field)
            }
        };
        if select.test { Type::Bool } else { kind }
    }

    fn is_bound(&self, name: &str) -> bool {
        self.bound.iter().any(|(bound, _)| bound == name)
    }

    fn channel(&mut self, node: &IdedExpr, name: &str) -> Type {
        if let Some(kind) = self.names.state.get(name) {
            self.reads.insert(name.to_owned());
            return kind.clone();
        }
        let span = self.place(self.parsed.span(node));
        let finding = unknown_channel(self.report, &self.names.state, name, span);
        self.report.push(finding);
        Type::Any
    }

    fn field(&mut self, node: &IdedExpr, operand: &Type, field: &str) -> Type {
        match self.types.plain(operand) {
            Type::Any | Type::Never => Type::Any,
            Type::Map(values) => (**values).clone(),
            Type::Object(object) => match (object.fields.get(field), &object.others) {
                (Some(found), _) if found.required || found.default.is_some() => found.kind.clone(),
                (Some(found), _) => Type::optional(found.kind.clone()),
                (None, Others::Typed(others)) => others.clone(),
                (None, Others::Unsaid | Others::Forbidden) => {
                    let names: Vec<&str> = object.fields.keys().map(String::as_str).collect();
                    let of = match operand {
                        Type::Optional(inner) => inner,
                        operand => operand,
                    };
                    let of = match (of, &node.expr) {
                        (Type::Named(name), _) => name.to_string(),
                        (_, Expr::Select(select)) => path_text(&select.operand)
                            .map_or_else(|| of.to_string(), |path| format!("`{path}`")),
                        _ => of.to_string(),
                    };
                    let finding = Diagnostic::new(&G202, format!("{of} has no field `{field}`"))
                        .at(self.place(self.parsed.field_span(node)), "unknown field")
                        .help(match nearest(field, names.iter().copied()) {
                            Some(near) => format!("did you mean `{near}`?"),
                            None => format!("its fields are {}", one_of(&names)),
                        });
                    self.report.push(finding);
                    Type::Any
                }
            },
            plain => {
                let finding = Diagnostic::new(&G202, format!("{plain} has no fields")).at(
                    self.place(self.parsed.field_span(node)),
                    format!("`.{field}` of {plain}"),
                );
                self.report.push(finding);
                Type::Any
            }
        }
    }

    /// Warns if something optional is used without having been asked after.
    fn ask_first(&mut self, node: &IdedExpr, kind: &Type) {
        if !self.wary || !self.types.resolve(kind).is_optional() {
            return;
        }
        let Some(path) = path_text(node) else { return };
        let assured = path.strip_prefix("state.").is_some_and(|channel| {
            self.names
                .assured
                .contains(channel.split('.').next().unwrap_or(channel))
        });
        if assured || self.guards.contains(&path) {
            return;
        }
        let finding = Diagnostic::new(&G206, format!("`{path}` may be missing"))
            .level(Level::Warning)
            .at(self.span(node), format!("of type {kind}"))
            .help(format!("ask first: `has({path}) && ...`"));
        self.report.push(finding);
        self.guards.push(path);
    }

    fn comprehension(&mut self, inner: &ComprehensionExpr) -> Type {
        let range = self.infer(&inner.iter_range);
        self.ask_first(&inner.iter_range, &range);
        let item = match self.types.plain(&range) {
            Type::List(list) => list.items.clone(),
            Type::Map(_) | Type::Object(_) => Type::text(),
            Type::Any | Type::Never => Type::Any,
            other => {
                let title = format!("{other} cannot be walked over");
                self.wrong(&G203, title, &inner.iter_range, "expected a list or map");
                Type::Any
            }
        };
        let before = self.infer(&inner.accu_init);
        self.bound.push((inner.iter_var.clone(), item));
        self.bound.push((inner.accu_var.clone(), before.clone()));
        let after = self.infer(&inner.loop_step);
        self.bound.pop();
        self.bound
            .push((inner.accu_var.clone(), self.join(before, after)));
        let result = self.infer(&inner.result);
        self.bound.truncate(self.bound.len() - 2);
        result
    }

    /// Returns a type both types fit into, `Any` if there is no better one.
    fn join(&self, a: Type, b: Type) -> Type {
        match (&a, &b) {
            (Type::Never, _) => b,
            (_, Type::Never) => a,
            (Type::Null, _) => Type::optional(b),
            (_, Type::Null) => Type::optional(a),
            (Type::List(left), Type::List(right)) => {
                Type::list(self.join(left.items.clone(), right.items.clone()))
            }
            _ if crate::types::fits(self.types, &b, &a) => a,
            _ if crate::types::fits(self.types, &a, &b) => b,
            _ => Type::Any,
        }
    }
}

/// Reports a channel that does not exist, with the declaration that was probably meant.
pub(crate) fn unknown_channel(
    report: &Report<'_>,
    state: &IndexMap<String, Type>,
    name: &str,
    span: Span,
) -> Diagnostic {
    let said = report.text.get(span.start..span.end).unwrap_or_default();
    unknown_channel_in(report, state, name, span, said.starts_with("state."))
}

/// Does the same for a text that may stand in another file; `pathed` if it says `state.` before.
pub(crate) fn unknown_channel_in(
    report: &Report<'_>,
    state: &IndexMap<String, Type>,
    name: &str,
    span: Span,
    pathed: bool,
) -> Diagnostic {
    let finding = Diagnostic::new(&G201, format!("no channel named `{name}`"))
        .at(span, "not declared under `state`");
    match nearest(name, state.keys().map(String::as_str)) {
        Some(near) => {
            let declared = report.key(&At::root().key("state").key(near));
            let edit = match pathed {
                true => format!("state.{near}"),
                false => near.to_owned(),
            };
            finding
                .context(declared, "a channel with a similar name")
                .help(format!("did you mean `{edit}`?"))
        }
        None => finding.help(format!(
            "declare it under `state`: `{name}: {{ type: ... }}`"
        )),
    }
}

/// Writes out a path such as `state.plan.title`.
fn path_text(node: &IdedExpr) -> Option<String> {
    match &node.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) => Some(format!("{}.{}", path_text(&select.operand)?, select.field)),
        _ => None,
    }
}
