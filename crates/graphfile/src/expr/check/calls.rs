//! Functions and the types of their arguments.

use cel::IdedExpr;
use cel::common::ast::CallExpr;

use super::operators::truth_test;
use super::{Checked, Checker};
use crate::diag::{Diagnostic, G203, G210};
use crate::report::nearest;
use crate::types::{Type, fits};

/// Functions by name, with the form they are called in.
const FUNCTIONS: [(&str, &str); 17] = [
    ("size", "size(list, map or text)"),
    ("last", "last(list)"),
    ("first", "first(list)"),
    ("text", "text(message)"),
    ("has_tool_calls", "has_tool_calls(message)"),
    ("tool_calls", "tool_calls(message)"),
    ("string", "string(value)"),
    ("int", "int(value)"),
    ("double", "double(value)"),
    ("startsWith", "text.startsWith(text)"),
    ("endsWith", "text.endsWith(text)"),
    ("contains", "text.contains(text)"),
    ("has", "has(state.channel)"),
    ("exists", "list.exists(item, condition)"),
    ("all", "list.all(item, condition)"),
    ("map", "list.map(item, value)"),
    ("filter", "list.filter(item, condition)"),
];

impl Checker<'_, '_> {
    pub(super) fn call(&mut self, node: &IdedExpr, call: &CallExpr) -> Type {
        if let Some(kind) = self.operator(node, call) {
            return kind;
        }
        let name = call.func_name.as_str();
        let Some((_, form)) = FUNCTIONS.iter().find(|(known, _)| *known == name) else {
            return self.unknown_function(node, call);
        };
        let operands: Vec<&IdedExpr> = call
            .target
            .as_deref()
            .into_iter()
            .chain(&call.args)
            .collect();
        let kinds: Vec<Type> = operands.iter().map(|operand| self.infer(operand)).collect();
        for (operand, kind) in operands.iter().zip(&kinds) {
            self.ask_first(operand, kind);
        }
        let method = call.target.is_some();
        match (name, method, operands.as_slice(), kinds.as_slice()) {
            ("size", _, [operand], [kind]) => {
                self.size(operand, kind);
                Type::integer()
            }
            ("last" | "first", false, [operand], [kind]) => self.end(operand, kind),
            ("text", false, [operand], [kind]) => {
                self.message(operand, kind);
                Type::text()
            }
            ("has_tool_calls", false, [operand], [kind]) => {
                self.message(operand, kind);
                Type::Bool
            }
            ("tool_calls", false, [operand], [kind]) => {
                self.message(operand, kind);
                Type::list(Type::Named("tool_call".into()))
            }
            ("string", false, [_], _) => Type::text(),
            ("int", false, [_], _) => Type::integer(),
            ("double", false, [_], _) => Type::number(),
            ("startsWith" | "endsWith" | "contains", true, [a, b], [first, second]) => {
                for (operand, kind) in [(a, first), (b, second)] {
                    if !fits(self.types, kind, &Type::text()) {
                        let title = format!("`{name}` takes texts, not {kind}");
                        self.wrong(&G203, title, operand, &format!("this is {kind}"));
                    }
                }
                Type::Bool
            }
            _ => {
                let title = format!("`{name}` is not called like this");
                self.wrong(&G203, title, node, &format!("expected `{form}`"));
                Type::Any
            }
        }
    }

    fn unknown_function(&mut self, node: &IdedExpr, call: &CallExpr) -> Type {
        let names: Vec<&str> = FUNCTIONS.iter().map(|(name, _)| *name).collect();
        let name = &call.func_name;
        let help = match nearest(name, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the functions are `{}`", names.join("`, `")),
        };
        let finding = Diagnostic::new(&G210, format!("no function named `{name}` in expressions"))
            .at(self.place(self.parsed.name_span(node)), "unknown function")
            .help(help);
        self.report.push(finding);
        // Arguments are not checked: without the function nothing is known about them but names.
        for argument in call.target.as_deref().into_iter().chain(&call.args) {
            self.infer(argument);
        }
        Type::Any
    }

    fn size(&mut self, operand: &IdedExpr, kind: &Type) {
        let sized = matches!(
            self.types.plain(kind),
            Type::List(_)
                | Type::Map(_)
                | Type::Object(_)
                | Type::Text(_)
                | Type::Enum(_)
                | Type::Any
                | Type::Never
        );
        if !sized {
            let title = format!("{kind} has no size");
            self.wrong(&G203, title, operand, "expected a list, map or text");
        }
    }

    fn end(&mut self, operand: &IdedExpr, kind: &Type) -> Type {
        match self.types.plain(kind) {
            Type::List(list) => list.items.clone(),
            Type::Any | Type::Never => Type::Any,
            _ => {
                let title = format!("{kind} has no items");
                self.wrong(&G203, title, operand, "expected a list");
                Type::Any
            }
        }
    }

    fn message(&mut self, operand: &IdedExpr, kind: &Type) {
        if fits(self.types, kind, &Type::Named("message".into())) {
            return;
        }
        let finding = Diagnostic::new(&G203, format!("expected a message, found {kind}"))
            .at(self.span(operand), format!("this is {kind}"));
        let is_list = matches!(self.types.plain(kind), Type::List(_));
        let finding = match is_list {
            true => finding.help("take one of them: `last(...)`"),
            false => finding,
        };
        self.report.push(finding);
    }

    /// Checks an expression whose value decides.
    pub(crate) fn check_condition(self, of: &str) -> Checked {
        let (root, types) = (&self.parsed.expr, self.types);
        let span = self.span(root);
        let (report, checked) = self.check_with_report();
        if !matches!(
            types.plain(&checked.kind),
            Type::Bool | Type::Any | Type::Never
        ) {
            let kind = &checked.kind;
            let finding = Diagnostic::new(&G203, format!("{of} is not boolean"))
                .at(
                    span,
                    format!("this is {kind}, a condition is true or false"),
                )
                .help_if(truth_test(root, types.plain(kind)));
            report.push(finding);
        }
        checked
    }
}
