//! Where findings are collected while a file is loaded.

pub(crate) use tine_engine::text::nearest;

use crate::diag::{Diagnostic, Diagnostics, Level, Span};
use crate::syntax::{At, Index};

/// The findings so far, beside the text and index that give them their places.
#[derive(Debug)]
pub(crate) struct Report<'t> {
    pub(crate) text: &'t str,
    pub(crate) index: Index,
    pub(crate) diagnostics: Diagnostics,
}

impl Report<'_> {
    pub(crate) fn push(&mut self, finding: Diagnostic) {
        self.diagnostics.push(finding);
    }

    pub(crate) fn value(&self, at: &At) -> Span {
        self.index.value(at)
    }

    pub(crate) fn key(&self, at: &At) -> Span {
        self.index.key(at)
    }

    pub(crate) fn brief(&self, at: &At) -> Span {
        self.index.brief(at, self.text)
    }

    /// The first line that is no comment.
    pub(crate) fn first_line(&self) -> Span {
        let root = self.index.value(&At::root());
        let line = self
            .text
            .get(root.start..)
            .and_then(|text| text.lines().next());
        Span::new(root.start, root.start + line.map_or(0, str::len))
    }

    pub(crate) fn errors(&self) -> usize {
        self.diagnostics.count(Level::Error)
    }
}

/// Lists names for a message: "`a`, `b` or `c`", cut after two dozen.
pub(crate) fn one_of<S: AsRef<str>>(names: &[S]) -> String {
    const MOST: usize = 24;
    let quoted: Vec<String> = names
        .iter()
        .take(MOST)
        .map(|name| format!("`{}`", name.as_ref()))
        .collect();
    let more = names.len().saturating_sub(MOST);
    match quoted.split_last() {
        None => "none".to_owned(),
        Some(_) if more > 0 => format!("{} and {more} more", quoted.join(", ")),
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
    }
}
