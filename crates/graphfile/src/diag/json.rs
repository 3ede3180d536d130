//! Diagnostics as programs read them.

use serde_json::{Value, json};

use super::{Diagnostic, Diagnostics, Label};

impl Diagnostics {
    /// Returns the findings as a JSON list.
    ///
    /// Each has `code`, `level`, `title`, `labels` and `help`; a label has `file`, `line` and
    /// `column` (both counted from 1, columns in characters), `start` and `end` (bytes), `text`
    /// and `primary`.
    pub fn to_json(&self) -> Value {
        self.items.iter().map(|item| self.item(item)).collect()
    }

    fn item(&self, item: &Diagnostic) -> Value {
        json!({
            "code": item.check.code,
            "level": item.level.as_str(),
            "title": item.title,
            "labels": item.labels.iter().map(|label| self.label(label)).collect::<Vec<_>>(),
            "help": item.help,
        })
    }

    fn label(&self, label: &Label) -> Value {
        let file = &self.files[label.file.0];
        let before = file.shown.get(..label.span.start).unwrap_or(&file.shown);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        json!({
            "file": &*file.name,
            "line": before.matches('\n').count() + 1,
            "column": before[line_start..].chars().count() + 1,
            "start": label.span.start,
            "end": label.span.end,
            "text": label.text,
            "primary": label.primary,
        })
    }
}
