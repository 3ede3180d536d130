//! Where a node goes next: a target, several, or branches.

use serde::Deserialize;
use serde_yaml::Value;

use super::decode;
use crate::diag::{Diagnostic, G004, G007, G304};
use crate::graph::To;
use crate::report::Report;
use crate::syntax::At;

/// The targets of one edge; all of them run.
#[derive(Clone, Debug)]
pub(crate) struct Goto {
    /// The place of the whole, and each target with its own place.
    pub(crate) at: At,
    pub(crate) targets: Vec<(To, At)>,
}

/// The default edge of a node.
#[derive(Clone, Debug)]
pub(crate) enum Then {
    Go(Goto),
    Branches {
        branches: Vec<Branch>,
        otherwise: Option<Goto>,
    },
}

/// One guarded way; the first whose condition holds is taken.
#[derive(Clone, Debug)]
pub(crate) struct Branch {
    pub(crate) when: String,
    pub(crate) at: At,
    pub(crate) goto: Goto,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BranchKeys {
    /// Text as a rule; `true` and `false` are read so that they can be reported as constant.
    when: Option<Value>,
    goto: Option<Value>,
    #[serde(rename = "else")]
    otherwise: Option<Value>,
}

/// Decodes the value of `then` or `start`; `owner` is the node, for messages.
pub(crate) fn decode_then(
    report: &mut Report<'_>,
    at: &At,
    value: &Value,
    owner: &str,
) -> Option<Then> {
    match value {
        Value::Sequence(items) if items.iter().any(Value::is_mapping) => {
            Some(decode_branches(report, at, items, owner))
        }
        value => decode_goto(report, at, value).map(Then::Go),
    }
}

fn decode_branches(report: &mut Report<'_>, at: &At, items: &[Value], owner: &str) -> Then {
    let mut branches = Vec::new();
    let mut otherwise: Option<Goto> = None;
    let mut has_else = false;
    for (index, item) in items.iter().enumerate() {
        let place = at.item(index);
        if !item.is_mapping() {
            let finding = Diagnostic::new(&G004, "a target among branches")
                .at(
                    report.value(&place),
                    "expected `when` and `goto`, or `else`",
                )
                .help("a list holds either targets, which all run, or branches");
            report.push(finding);
            continue;
        }
        let Some(keys) = decode::<BranchKeys>(report, &place, item, &[]) else {
            continue;
        };
        if has_else {
            let finding = Diagnostic::new(&G304, format!("a branch of `{owner}` after its `else`"))
                .at(
                    report.brief(&place),
                    "never reached: `else` is always taken",
                );
            report.push(finding);
        }
        match (keys.when, keys.goto, keys.otherwise) {
            (None, None, Some(goto)) => {
                has_else = true;
                otherwise = otherwise.or(decode_goto(report, &place.key("else"), &goto));
            }
            (Some(when), Some(goto), None) => {
                let goto = decode_goto(report, &place.key("goto"), &goto);
                let text = match when {
                    Value::String(text) => text,
                    Value::Bool(value) => value.to_string(),
                    _ => {
                        let finding = Diagnostic::new(&G004, "expected a condition").at(
                            report.brief(&place.key("when")),
                            "conditions are written as text",
                        );
                        report.push(finding);
                        continue;
                    }
                };
                if let Some(goto) = goto {
                    branches.push(Branch {
                        when: text,
                        at: place.key("when"),
                        goto,
                    });
                }
            }
            _ => {
                let finding = Diagnostic::new(&G004, "a branch that is neither `when` nor `else`")
                    .at(
                        report.brief(&place),
                        "expected `when` with `goto`, or `else` alone",
                    );
                report.push(finding);
            }
        }
    }
    if !has_else {
        let finding = Diagnostic::new(&G304, format!("the branches of `{owner}` have no `else`"))
            .at(report.key(at), "if no condition holds there is no way on")
            .help("add a last branch: `- else: end`");
        report.push(finding);
    }
    Then::Branches {
        branches,
        otherwise,
    }
}

/// Decodes one target or a list of targets.
pub(crate) fn decode_goto(report: &mut Report<'_>, at: &At, value: &Value) -> Option<Goto> {
    let mut targets = Vec::new();
    match value {
        Value::String(name) => targets.extend(decode_target(report, at, name)),
        Value::Sequence(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                match item.as_str() {
                    Some(name) => targets.extend(decode_target(report, &at.item(index), name)),
                    None => not_a_target(report, &at.item(index)),
                }
            }
        }
        _ => not_a_target(report, at),
    }
    (!targets.is_empty()).then(|| Goto {
        at: at.clone(),
        targets,
    })
}

fn decode_target(report: &mut Report<'_>, at: &At, name: &str) -> Option<(To, At)> {
    if name == "end" {
        return Some((To::End, at.clone()));
    }
    if let Some(label) = name.strip_prefix("end/") {
        let finding = Diagnostic::new(&G007, "raising a label to a parent is not supported yet")
            .at(
                report.value(at),
                format!("`{label}` has no parent graph to go to"),
            )
            .help("go to `end`");
        report.push(finding);
        return None;
    }
    Some((To::Node(name.to_owned()), at.clone()))
}

fn not_a_target(report: &mut Report<'_>, at: &At) {
    let finding = Diagnostic::new(&G004, "expected a target").at(
        report.brief(at),
        "expected a node, `end`, or a list of them",
    );
    report.push(finding);
}
