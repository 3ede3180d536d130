//! Diagnostics as people read them: the excerpt, its marks, the way out.

use annotate_snippets::{AnnotationKind, Group, Level as Weight, Renderer, Snippet};

use super::{Diagnostic, Diagnostics, FileId, Level, SourceFile};

impl Diagnostics {
    /// Renders all findings as plain text, a blank line between two.
    pub fn render(&self) -> String {
        self.render_with(&Renderer::plain())
    }

    /// Renders all findings with terminal colours.
    pub fn render_coloured(&self) -> String {
        self.render_with(&Renderer::styled())
    }

    fn render_with(&self, renderer: &Renderer) -> String {
        let mut out = String::new();
        for item in &self.items {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(&render_one(renderer, &self.files, item));
            out.push('\n');
        }
        out
    }
}

fn render_one(renderer: &Renderer, files: &[SourceFile], item: &Diagnostic) -> String {
    let weight = match item.level {
        Level::Error => Weight::ERROR,
        Level::Warning => Weight::WARNING,
        Level::Note => Weight::NOTE,
    };
    let mut main = weight
        .primary_title(item.title.as_str())
        .id(item.check.code)
        .elements(Vec::<Snippet<'_, annotate_snippets::Annotation<'_>>>::new());
    for (id, file) in files.iter().enumerate() {
        let labels: Vec<_> = item
            .labels
            .iter()
            .filter(|label| label.file == FileId(id))
            .collect();
        if labels.is_empty() {
            continue;
        }
        let length = file.shown.len();
        main = main.element(
            Snippet::source(file.shown.as_str())
                .path(&*file.name)
                .annotations(labels.into_iter().map(|label| {
                    let kind = match label.primary {
                        true => AnnotationKind::Primary,
                        false => AnnotationKind::Context,
                    };
                    let start = label.span.start.min(length);
                    let mark = kind.span(start..label.span.end.clamp(start, length));
                    match label.text.is_empty() {
                        true => mark,
                        false => mark.label(label.text.as_str()),
                    }
                })),
        );
    }
    let mut report = vec![main];
    report.extend(
        item.help
            .iter()
            .map(|help| Group::with_title(Weight::HELP.secondary_title(help.as_str()))),
    );
    renderer.render(&report)
}
