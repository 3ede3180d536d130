//! Operators and the types of their operands.

use cel::IdedExpr;
use cel::common::ast::{CallExpr, Expr, LiteralValue, operators};
use tine_engine::Value;

use super::{Checker, path_text};
use crate::diag::{Diagnostic, G203, G204};
use crate::report::{nearest, one_of};
use crate::types::Type;

/// The kinds that can be told from each other in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Any,
    Null,
    Bool,
    Number,
    Text,
    List,
    Map,
}

impl Checker<'_, '_> {
    /// Checks an operator; `None` if the call is of a function.
    pub(super) fn operator(&mut self, node: &IdedExpr, call: &CallExpr) -> Option<Type> {
        let args = call.args.as_slice();
        Some(match (call.func_name.as_str(), args) {
            (operators::LOGICAL_AND, [left, right]) => {
                self.condition(left, "`&&`");
                self.guarded(left, true, |this| this.condition(right, "`&&`"));
                Type::Bool
            }
            (operators::LOGICAL_OR, [left, right]) => {
                self.condition(left, "`||`");
                self.guarded(left, false, |this| this.condition(right, "`||`"));
                Type::Bool
            }
            (operators::LOGICAL_NOT, [inner]) => {
                self.condition(inner, "`!`");
                Type::Bool
            }
            (operators::NOT_STRICTLY_FALSE, [inner]) => {
                self.infer(inner);
                Type::Bool
            }
            (operators::CONDITIONAL, [condition, yes, no]) => {
                self.condition(condition, "`?:`");
                let yes = self.guarded(condition, true, |this| this.infer(yes));
                let no = self.guarded(condition, false, |this| this.infer(no));
                self.join(yes, no)
            }
            (operators::EQUALS | operators::NOT_EQUALS, [left, right]) => {
                self.comparison(node, left, right, true);
                Type::Bool
            }
            (
                operators::LESS
                | operators::LESS_EQUALS
                | operators::GREATER
                | operators::GREATER_EQUALS,
                [left, right],
            ) => {
                self.comparison(node, left, right, false);
                Type::Bool
            }
            (operators::ADD, [left, right]) => self.addition(node, left, right),
            (
                operators::SUBSTRACT | operators::MULTIPLY | operators::DIVIDE | operators::MODULO,
                [left, right],
            ) => {
                let (a, b) = (self.operand(left), self.operand(right));
                self.arithmetic(node, &a, &b)
            }
            (operators::NEGATE, [inner]) => {
                let kind = self.operand(inner);
                if !matches!(self.sort(&kind), Sort::Number | Sort::Any) {
                    self.wrong(&G203, format!("`-` takes a number, not {kind}"), inner, "");
                }
                kind
            }
            (operators::INDEX, [list, index]) => self.index(list, index),
            (operators::IN, [item, list]) => {
                let item_kind = self.infer(item);
                let list_kind = self.operand(list);
                self.membership(node, item, &item_kind, list, &list_kind);
                Type::Bool
            }
            _ => return None,
        })
    }

    fn operand(&mut self, node: &IdedExpr) -> Type {
        let kind = self.infer(node);
        self.ask_first(node, &kind);
        kind
    }

    /// Checks something that has to be true or false.
    fn condition(&mut self, node: &IdedExpr, of: &str) {
        let kind = self.operand(node);
        if !matches!(self.sort(&kind), Sort::Bool | Sort::Any) {
            let finding = Diagnostic::new(&G203, format!("{of} takes booleans, not {kind}"))
                .at(self.span(node), format!("this is {kind}"))
                .help_if(truth_test(node, &kind));
            self.report.push(finding);
        }
    }

    /// Runs a check in which what `condition` asked after is known to be there.
    fn guarded<T>(
        &mut self,
        condition: &IdedExpr,
        holds: bool,
        check: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let before = self.guards.len();
        collect_guards(condition, holds, &mut self.guards);
        let checked = check(self);
        self.guards.truncate(before);
        checked
    }

    fn sort(&self, kind: &Type) -> Sort {
        match self.types.plain(kind) {
            Type::Any | Type::Never | Type::Optional(_) | Type::Named(_) => Sort::Any,
            Type::Null => Sort::Null,
            Type::Bool => Sort::Bool,
            Type::Integer(_) | Type::Number(_) => Sort::Number,
            Type::Text(_) => Sort::Text,
            Type::List(_) => Sort::List,
            Type::Map(_) | Type::Object(_) => Sort::Map,
            Type::Enum(values) => {
                let sort = |value: &Value| match value {
                    Value::Null => Sort::Null,
                    Value::Bool(_) => Sort::Bool,
                    Value::Number(_) => Sort::Number,
                    Value::Text(_) => Sort::Text,
                    Value::List(_) => Sort::List,
                    Value::Map(_) => Sort::Map,
                };
                match values.split_first() {
                    Some((first, rest)) if rest.iter().all(|v| sort(v) == sort(first)) => {
                        sort(first)
                    }
                    _ => Sort::Any,
                }
            }
        }
    }

    fn comparison(&mut self, node: &IdedExpr, left: &IdedExpr, right: &IdedExpr, equality: bool) {
        if equality && (is_null(left) || is_null(right)) {
            self.infer(left);
            self.infer(right);
            self.null_test(node, left, right);
            return;
        }
        let (a, b) = (self.operand(left), self.operand(right));
        let (left_sort, right_sort) = (self.sort(&a), self.sort(&b));
        let alike = left_sort == right_sort || left_sort == Sort::Any || right_sort == Sort::Any;
        if !alike {
            let finding = Diagnostic::new(&G203, format!("{a} is compared with {b}"))
                .at(self.span(node), "never of the same kind")
                .context(self.span(left), format!("{a}"))
                .context(self.span(right), format!("{b}"));
            self.report.push(finding);
            return;
        }
        if !equality && matches!(left_sort, Sort::List | Sort::Map | Sort::Null) {
            self.wrong(
                &G203,
                format!("{a} has no order"),
                node,
                "only numbers and texts have one",
            );
        }
        if equality {
            self.enum_member(&a, right);
            self.enum_member(&b, left);
        }
    }

    /// A channel without a value is absent, not null: comparing it with null raises an error.
    fn null_test(&mut self, node: &IdedExpr, left: &IdedExpr, right: &IdedExpr) {
        let paths = [left, right].map(path_text);
        let Some(path) = paths
            .iter()
            .flatten()
            .find(|path| path.matches('.').count() == 1)
        else {
            return;
        };
        if path.starts_with("state.") {
            let finding = Diagnostic::new(&G203, format!("`{path}` is never null"))
                .at(self.span(node), "a channel without a value is absent")
                .help(format!("write `has({path})` or `!has({path})`"));
            self.report.push(finding);
        }
    }

    /// Checks a text that is compared with an enum.
    pub(super) fn enum_member(&mut self, kind: &Type, literal: &IdedExpr) {
        let Type::Enum(values) = self.types.plain(kind) else {
            return;
        };
        let Expr::Literal(LiteralValue::String(text)) = &literal.expr else {
            return;
        };
        let text = text.inner();
        let names: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
        if names.contains(&text) {
            return;
        }
        let finding = Diagnostic::new(&G204, format!("`{text}` is not one of the values"))
            .at(self.span(literal), format!("expected {}", one_of(&names)))
            .help_if(nearest(text, names.iter().copied()).map(|n| format!("did you mean `{n}`?")));
        self.report.push(finding);
    }

    fn membership(
        &mut self,
        node: &IdedExpr,
        item: &IdedExpr,
        item_kind: &Type,
        list: &IdedExpr,
        list_kind: &Type,
    ) {
        match self.types.plain(list_kind) {
            Type::List(inner) => {
                let items = inner.items.clone();
                let (a, b) = (self.sort(item_kind), self.sort(&items));
                if a != b && a != Sort::Any && b != Sort::Any {
                    let title = format!("{item_kind} is never in {list_kind}");
                    self.wrong(&G203, title, node, "never of the same kind");
                }
                self.enum_member(&items, item);
                if let Expr::List(literal) = &list.expr {
                    for element in &literal.elements {
                        self.enum_member(item_kind, element);
                    }
                }
            }
            Type::Map(_) | Type::Object(_) | Type::Any | Type::Never => {}
            other => {
                let title = format!("`in` takes a list or map, not {other}");
                self.wrong(&G203, title, list, &format!("this is {other}"));
            }
        }
    }

    fn addition(&mut self, node: &IdedExpr, left: &IdedExpr, right: &IdedExpr) -> Type {
        let (a, b) = (self.operand(left), self.operand(right));
        match (self.sort(&a), self.sort(&b)) {
            (Sort::Text, Sort::Text) => Type::text(),
            (Sort::List, Sort::List) => {
                self.join(self.types.plain(&a).clone(), self.types.plain(&b).clone())
            }
            (Sort::Text, other) | (other, Sort::Text) if other != Sort::Any => {
                let finding = Diagnostic::new(&G203, format!("{a} and {b} cannot be added"))
                    .at(self.span(node), "operands of different kinds")
                    .help("make a text of the other with `string(...)`");
                self.report.push(finding);
                Type::Any
            }
            _ => self.arithmetic(node, &a, &b),
        }
    }

    fn arithmetic(&mut self, node: &IdedExpr, a: &Type, b: &Type) -> Type {
        let (left, right) = (self.sort(a), self.sort(b));
        let number = |sort| matches!(sort, Sort::Number | Sort::Any);
        if !number(left) || !number(right) {
            let title = format!("{a} and {b} cannot be calculated with");
            self.wrong(&G203, title, node, "expected two numbers");
            return Type::Any;
        }
        match (self.types.plain(a), self.types.plain(b)) {
            (Type::Integer(_), Type::Integer(_)) => Type::integer(),
            (Type::Number(_), Type::Number(_)) => Type::number(),
            (Type::Integer(_), Type::Number(_)) | (Type::Number(_), Type::Integer(_)) => {
                let finding = Diagnostic::new(&G203, "an integer and a number cannot be mixed")
                    .at(self.span(node), format!("{a} and {b}"))
                    .help("convert one: `double(...)`, or write `1.0` for `1`");
                self.report.push(finding);
                Type::number()
            }
            _ => Type::Any,
        }
    }

    fn index(&mut self, list: &IdedExpr, index: &IdedExpr) -> Type {
        let (kind, key) = (self.operand(list), self.operand(index));
        let key_sort = self.sort(&key);
        match self.types.plain(&kind) {
            Type::List(inner) => {
                let items = inner.items.clone();
                if !matches!(key_sort, Sort::Number | Sort::Any) {
                    self.wrong(
                        &G203,
                        format!("a list is indexed by {key}"),
                        index,
                        "expected a number",
                    );
                }
                items
            }
            Type::Map(values) => (**values).clone(),
            Type::Any | Type::Never | Type::Object(_) => Type::Any,
            other => {
                let title = format!("{other} cannot be indexed");
                self.wrong(&G203, title, list, "expected a list or map");
                Type::Any
            }
        }
    }
}

fn is_null(node: &IdedExpr) -> bool {
    matches!(node.expr, Expr::Literal(LiteralValue::Null))
}

/// Collects what is there if a condition holds, or does not.
pub(crate) fn collect_guards(condition: &IdedExpr, holds: bool, guards: &mut Vec<String>) {
    match &condition.expr {
        Expr::Select(select) if select.test && holds => {
            let path = path_text(&select.operand).map(|path| format!("{path}.{}", select.field));
            guards.extend(path);
        }
        Expr::Call(call) => match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::LOGICAL_NOT, [inner]) => collect_guards(inner, !holds, guards),
            (operators::LOGICAL_AND, [a, b]) if holds => {
                collect_guards(a, true, guards);
                collect_guards(b, true, guards);
            }
            (operators::LOGICAL_OR, [a, b]) if !holds => {
                collect_guards(a, false, guards);
                collect_guards(b, false, guards);
            }
            _ => {}
        },
        _ => {}
    }
}

/// Suggests the test that was probably meant by a value that is no boolean.
pub(super) fn truth_test(node: &IdedExpr, kind: &Type) -> Option<String> {
    let path = path_text(node)?;
    Some(match kind {
        Type::List(_) | Type::Map(_) => format!("write `size({path}) > 0`"),
        Type::Text(_) => format!("write `{path} != ''`"),
        Type::Integer(_) => format!("write `{path} != 0`"),
        _ => format!("write `has({path})`"),
    })
}
