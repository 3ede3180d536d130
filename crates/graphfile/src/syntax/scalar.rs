//! Maps positions inside the decoded text of a scalar to positions in the file.

use crate::diag::Span;

/// How the decoded text of a scalar relates to its bytes in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    /// The text stands in the file as it is, this many bytes after the start of the value.
    Verbatim {
        /// Bytes between the start of the value and its text: 1 for a quoted scalar.
        skip: usize,
    },
    /// Each line of the text starts at its own place.
    Lines(
        /// Start in the text, start in the file.
        Vec<(usize, usize)>,
    ),
    /// Escapes or folding: no position inside it is known.
    Opaque,
}

impl Scalar {
    /// Finds out how `decoded` stands at `value` of the file; `indented` for a `|` block, whose
    /// span starts at its first character.
    pub(super) fn new(file: &str, value: Span, decoded: &str, indented: bool) -> Self {
        let Some(raw) = file.get(value.start..value.end) else {
            return Self::Opaque;
        };
        if indented {
            return Self::block(file, value, decoded);
        }
        for skip in [0, 1] {
            if raw.get(skip..).is_some_and(|raw| raw.starts_with(decoded)) {
                return Self::Verbatim { skip };
            }
        }
        Self::Opaque
    }

    fn block(file: &str, value: Span, decoded: &str) -> Self {
        let line_start = file[..value.start].rfind('\n').map_or(0, |at| at + 1);
        let indent = value.start - line_start;
        let mut lines = Vec::new();
        let (mut in_text, mut in_file) = (0, line_start);
        for line in decoded.split_inclusive('\n') {
            let Some(rest) = file.get(in_file..) else {
                break;
            };
            let raw = rest.split_inclusive('\n').next().unwrap_or_default();
            let begin = in_file + indent.min(raw.trim_end_matches(['\n', '\r']).len());
            if !file[begin..].starts_with(line.trim_end_matches('\n')) {
                return Self::Opaque;
            }
            lines.push((in_text, begin));
            in_text += line.len();
            in_file += raw.len();
        }
        Self::Lines(lines)
    }

    pub(super) fn locate(&self, value: Span, start: usize, end: usize) -> Span {
        match self {
            Self::Verbatim { skip } => {
                let base = value.start + skip;
                Span::new(base + start, (base + end).min(value.end))
            }
            Self::Lines(lines) => {
                let place = |offset: usize| {
                    let line = lines
                        .partition_point(|(text, _)| *text <= offset)
                        .checked_sub(1)?;
                    let (text, file) = lines[line];
                    Some(file + offset - text)
                };
                match (place(start), place(end.saturating_sub(1).max(start))) {
                    (Some(first), Some(last)) => Span::new(first, last + usize::from(end > start)),
                    _ => value,
                }
            }
            Self::Opaque => value,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::syntax::{At, read};

    fn check(yaml: &str, needle: &str, expected: &str) {
        let (document, _) = read("t.yaml", yaml);
        let document = document.unwrap();
        let text = document.root["k"].as_str().unwrap().to_owned();
        let start = text.find(needle).unwrap();
        let span = document
            .index
            .inside(&At::root().key("k"), start, start + needle.len());
        assert_eq!(&yaml[span.start..span.end], expected, "{yaml:?}");
    }

    #[test]
    fn a_position_in_decoded_text_is_found_in_the_file() {
        check("k: state.x == 1\n", "state.x", "state.x");
        check("k: \"is ${state.x} 中\"\n", "state.x", "state.x");
        check("k: '中文 ${state.x}'\n", "state.x", "state.x");
        check("k: |\n  one\n    two 中\n\n  three\n", "three", "three");
        check("k: |\n  one\n    two 中\n  three\n", "two 中", "two 中");
        check("k: \"a\\tb state.x\"\n", "state.x", "\"a\\tb state.x\"");
        check("k: 'it''s state.x'\n", "state.x", "'it''s state.x'");
    }
}
