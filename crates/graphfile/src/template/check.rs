//! What can be said of a template before it is rendered.

use std::collections::BTreeSet;

use super::{FILTERS, Template};
use crate::diag::{Diagnostic, G201, G202, G208, G209, G210, Span};
use crate::expr::{Names, VISITS, unknown_channel_in};
use crate::report::{Report, nearest, one_of};
use crate::types::{Others, Type, Types};

/// Compiles a template and checks the names in it.
///
/// `finish` gives the place of bytes of the text, `mark` puts a finding into the file it is about.
#[expect(
    clippy::too_many_arguments,
    reason = "all of one place; there is one caller"
)]
pub(crate) fn check(
    report: &mut Report<'_>,
    place: &str,
    text: &str,
    names: &Names,
    types: &Types,
    reads: &mut BTreeSet<String>,
    finish: &dyn Fn(&Report<'_>, usize, usize) -> Span,
    mark: &dyn Fn(Diagnostic) -> Diagnostic,
) -> Option<Template> {
    let template = match Template::compile(place, text) {
        Ok(template) => template,
        Err(error) => {
            let range = error.range().unwrap_or(0..text.len());
            let problem = error.detail().unwrap_or("it does not parse").to_owned();
            let span = finish(report, range.start, range.end);
            let finding = Diagnostic::new(&G209, format!("a prompt does not parse: {problem}"))
                .at(span, "here");
            report.push(mark(finding));
            return None;
        }
    };
    for (start, end) in words_after_pipes(text) {
        let name = &text[start..end];
        if !FILTERS.contains(&name) {
            let finding = Diagnostic::new(&G210, format!("no filter named `{name}` in prompts"))
                .at(finish(report, start, end), "unknown filter")
                .help(match nearest(name, FILTERS) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("the filters are {}", one_of(&FILTERS)),
                });
            report.push(mark(finding));
        }
    }
    for (start, end) in foreign_tags(text) {
        let finding = Diagnostic::new(&G209, format!("prompts have no `{}`", &text[start..end]))
            .at(finish(report, start, end), "a prompt stands in one text");
        report.push(mark(finding));
    }
    let undeclared = template
        .inner
        .env
        .get_template(super::NAME)
        .ok()?
        .undeclared_variables(true);
    let mut paths: Vec<String> = undeclared.into_iter().collect();
    paths.sort_unstable();
    for path in paths {
        check_path(report, text, &path, names, types, reads, finish, mark);
    }
    Some(template)
}

#[expect(
    clippy::too_many_arguments,
    reason = "what `check` was given, for one name"
)]
fn check_path(
    report: &mut Report<'_>,
    text: &str,
    path: &str,
    names: &Names,
    types: &Types,
    reads: &mut BTreeSet<String>,
    finish: &dyn Fn(&Report<'_>, usize, usize) -> Span,
    mark: &dyn Fn(Diagnostic) -> Diagnostic,
) {
    let parts: Vec<&str> = path.split('.').collect();
    if parts.starts_with(&["run", "visits"]) || path == "run" {
        reads.insert(VISITS.to_owned());
    }
    let place = |length: usize| {
        let wanted = parts[..length].join(".");
        let start = find_code(text, &wanted).unwrap_or(0);
        (
            start,
            if start == 0 && !text.starts_with(&wanted) {
                text.len()
            } else {
                start + wanted.len()
            },
        )
    };
    let (mut kind, mut known) = match parts.as_slice() {
        ["state"] => {
            reads.extend(names.state.keys().cloned());
            return;
        }
        ["state", channel, ..] => match names.state.get(*channel) {
            Some(kind) => {
                reads.insert((*channel).to_owned());
                (kind.clone(), 2)
            }
            None => {
                let (start, end) = place(2);
                let span = finish(report, start, end);
                let finding = unknown_channel_in(report, &names.state, channel, span, true);
                // The help of an unknown channel shows its declaration, which is in the graph file.
                report.push(mark(finding));
                return;
            }
        },
        [root, ..] => match names.roots.iter().find(|known| known.name == *root) {
            Some(root) => (root.kind.clone(), 1),
            None => {
                let (start, end) = place(1);
                let span = finish(report, start, end);
                report.push(mark(unknown_root(names, root, span)));
                return;
            }
        },
        [] => return,
    };
    for field in &parts[known..] {
        known += 1;
        kind = match types.plain(&kind) {
            Type::Object(object) => match (object.fields.get(*field), &object.others) {
                (Some(found), _) => found.kind.clone(),
                (None, Others::Typed(others)) => others.clone(),
                (None, _) => {
                    let fields: Vec<&str> = object.fields.keys().map(String::as_str).collect();
                    let (_, end) = place(known);
                    let span = finish(report, end - field.len().min(end), end);
                    let of = match &kind {
                        Type::Optional(inner) => inner.to_string(),
                        Type::Named(name) => name.to_string(),
                        _ => format!("`{}`", parts[..known - 1].join(".")),
                    };
                    let finding = Diagnostic::new(&G202, format!("{of} has no field `{field}`"))
                        .at(span, "unknown field")
                        .help(match nearest(field, fields.iter().copied()) {
                            Some(near) => format!("did you mean `{near}`?"),
                            None => format!("its fields are {}", one_of(&fields)),
                        });
                    report.push(mark(finding));
                    return;
                }
            },
            Type::Map(values) => (**values).clone(),
            _ => return,
        };
    }
}

fn unknown_root(names: &Names, root: &str, span: Span) -> Diagnostic {
    if ["resume", "result", "error", "item", "index", "input"].contains(&root) {
        return Diagnostic::new(&G208, format!("`{root}` is not available in a prompt"))
            .at(span, "prompts see `state` and `run`");
    }
    let finding = Diagnostic::new(&G201, format!("nothing is named `{root}` in prompts"))
        .at(span, "unknown name");
    match names.state.contains_key(root) {
        true => finding.help(format!("channels are read as `state.{root}`")),
        false => finding.help("prompts see `state` and `run`"),
    }
}

/// Returns the parts of a template between `{{ }}` and `{% %}`.
fn code(text: &str) -> Vec<(usize, &str)> {
    let mut parts = Vec::new();
    let mut at = 0;
    while let Some(open) = text[at..].find('{').map(|found| at + found) {
        let close = match text.as_bytes().get(open + 1) {
            Some(b'{') => "}}",
            Some(b'%') => "%}",
            Some(b'#') => "#}",
            _ => {
                at = open + 1;
                continue;
            }
        };
        let Some(length) = text[open + 2..].find(close) else {
            break;
        };
        if close != "#}" {
            parts.push((open + 2, &text[open + 2..open + 2 + length]));
        }
        at = open + 2 + length + 2;
    }
    parts
}

fn find_code(text: &str, wanted: &str) -> Option<usize> {
    let word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    code(text).into_iter().find_map(|(start, part)| {
        part.match_indices(wanted).map(|(at, _)| at).find_map(|at| {
            let before = part[..at].chars().next_back();
            let after = part[at + wanted.len()..].chars().next();
            let whole = !before.is_some_and(word)
                && !after.is_some_and(|c| c.is_alphanumeric() || c == '_');
            whole.then_some(start + at)
        })
    })
}

fn words_after_pipes(text: &str) -> Vec<(usize, usize)> {
    let mut words = Vec::new();
    for (start, part) in code(text) {
        let mut quote = None;
        for (at, c) in part.char_indices() {
            match (quote, c) {
                (Some(open), c) if c == open => quote = None,
                (Some(_), _) => {}
                (None, '\'' | '"') => quote = Some(c),
                (None, '|') => {
                    let rest = &part[at + 1..];
                    let name = rest.trim_start();
                    let from = start + at + 1 + (rest.len() - name.len());
                    let length = name
                        .find(|c: char| !(c.is_alphanumeric() || c == '_'))
                        .unwrap_or(name.len());
                    words.push((from, from + length));
                }
                _ => {}
            }
        }
    }
    words
}

/// Finds tags that would reach for other templates.
fn foreign_tags(text: &str) -> Vec<(usize, usize)> {
    const TAGS: [&str; 4] = ["include", "import", "from", "extends"];
    code(text)
        .into_iter()
        .filter(|(start, _)| text[..*start].ends_with("{%"))
        .filter_map(|(start, part)| {
            let inner = part.trim_start_matches(['-', '+']).trim_start();
            let at = start + part.len() - inner.len();
            let word = inner.split_whitespace().next()?;
            TAGS.contains(&word).then_some((at, at + word.len()))
        })
        .collect()
}
