//! What a file has to hear: diagnostics with places, and the two forms they are shown in.

mod checks;
mod json;
mod render;
mod secrets;

use std::ops::Range;
use std::sync::Arc;

pub(crate) use checks::*;
pub use checks::{CHECKS, Check, explain};
pub(crate) use secrets::find_secrets;

/// How much a [`Diagnostic`] weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The file cannot be run.
    Error,
    /// The file runs, but probably not as meant.
    Warning,
    /// Something worth knowing, such as a check that could not be carried through.
    Note,
}

impl Level {
    /// Returns the word the level is printed with.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// A range of bytes of one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    pub(crate) fn new(start: usize, end: usize) -> Self {
        Self {
            start,
            end: end.max(start),
        }
    }

    fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

/// Names one of the files a [`Diagnostics`] speaks about; 0 is the graph file itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileId(pub(crate) usize);

/// A marked place with a word about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The file the span lies in.
    pub file: FileId,
    /// The marked bytes.
    pub span: Span,
    /// What is the matter there; may be empty.
    pub text: String,
    /// Whether this is where the mistake is, or only where its other party stands.
    pub primary: bool,
}

/// One finding about a file.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// The check that found it.
    pub check: &'static Check,
    /// How much it weighs; usually the level of its check.
    pub level: Level,
    /// One line that names the things involved.
    pub title: String,
    /// The places, primary ones first in the order they were given.
    pub labels: Vec<Label>,
    /// Edits that would put it right.
    pub help: Vec<String>,
}

impl Diagnostic {
    pub(crate) fn new(check: &'static Check, title: impl Into<String>) -> Self {
        Self {
            check,
            level: check.level,
            title: title.into(),
            labels: Vec::new(),
            help: Vec::new(),
        }
    }

    pub(crate) fn level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    pub(crate) fn at(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label {
            file: FileId::default(),
            span,
            text: text.into(),
            primary: true,
        });
        self
    }

    pub(crate) fn context(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label {
            file: FileId::default(),
            span,
            text: text.into(),
            primary: false,
        });
        self
    }

    pub(crate) fn help(mut self, text: impl Into<String>) -> Self {
        self.help.push(text.into());
        self
    }

    pub(crate) fn help_if(self, text: Option<String>) -> Self {
        match text {
            Some(text) => self.help(text),
            None => self,
        }
    }

    /// Returns the place the finding is reported at.
    pub fn primary(&self) -> Option<&Label> {
        self.labels.iter().find(|label| label.primary)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct SourceFile {
    pub(crate) name: Arc<str>,
    /// The text as it is shown: of the same length as the file, secrets masked.
    pub(crate) shown: String,
}

/// All findings about one graph file, in the order of their places.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    files: Vec<SourceFile>,
    items: Vec<Diagnostic>,
}

impl Diagnostics {
    pub(crate) fn new(name: &str, text: &str) -> Self {
        let mut this = Self::default();
        this.add_file(name, text);
        this
    }

    pub(crate) fn add_file(&mut self, name: &str, text: &str) -> FileId {
        let mut shown = text.to_owned();
        for secret in find_secrets(text) {
            shown.replace_range(secret.range(), &"*".repeat(secret.end - secret.start));
        }
        self.files.push(SourceFile {
            name: name.into(),
            shown,
        });
        FileId(self.files.len() - 1)
    }

    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        self.items.push(diagnostic);
    }

    /// Puts the findings in the order of the file and drops exact repetitions.
    pub(crate) fn finish(&mut self, secrets: &[String]) {
        for item in &mut self.items {
            item.labels.sort_by_key(|label| !label.primary);
            for secret in secrets {
                let mask = "*".repeat(secret.len());
                let hide = |text: &mut String| *text = text.replace(secret.as_str(), &mask);
                hide(&mut item.title);
                item.help.iter_mut().for_each(hide);
                item.labels
                    .iter_mut()
                    .for_each(|label| hide(&mut label.text));
            }
        }
        let place = |item: &Diagnostic| {
            let place = item.primary().map(|label| (label.file, label.span.start));
            (item.level == Level::Note, place, item.check.code)
        };
        self.items.sort_by_key(place);
        self.items.dedup_by(|a, b| {
            a.check.code == b.check.code && a.title == b.title && a.labels == b.labels
        });
    }

    /// Iterates over the findings.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.items.iter()
    }

    /// Returns how many findings there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Tells whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Tells whether the file cannot be run.
    pub fn has_errors(&self) -> bool {
        self.count(Level::Error) > 0
    }

    /// Counts the findings of one level.
    pub fn count(&self, level: Level) -> usize {
        self.items.iter().filter(|item| item.level == level).count()
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}
