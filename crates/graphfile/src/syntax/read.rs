//! Text to tree: syntax, and the parts of YAML that graph files do without.

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError};
use serde_yaml::{Mapping, Value};

use super::{At, Document, Index, bytes::Bytes, index::Entry, plain::plain, scalar::Scalar};
use crate::diag::{Diagnostic, Diagnostics, G001, G003, G004, G005, Span};

/// Deeper nesting than any graph needs; keeps the reader's callers from running out of stack.
const MAX_DEPTH: usize = 64;

/// Reads one plain YAML document.
///
/// Returns `None` if there is nothing to go on with; findings that leave the rest readable, such
/// as a key given twice, do not stop the reading.
pub(crate) fn read(name: &str, text: &str) -> (Option<Document>, Diagnostics) {
    let mut diagnostics = Diagnostics::new(name, text);
    if text.trim_start_matches('\u{feff}').trim().is_empty() {
        let empty = Diagnostic::new(&G001, "the file is empty")
            .at(Span::default(), "expected a graph")
            .help("start with `schema: graph/v1`, then `name`, `state`, `start` and `nodes`");
        diagnostics.push(empty);
        return (None, diagnostics);
    }
    let mut reader = Reader::new(text);
    match reader.run() {
        Ok(()) => {}
        Err(error) => {
            reader.findings.clear();
            reader
                .findings
                .push(syntax_error(text, &reader.bytes, &error));
            reader.root = None;
        }
    }
    for finding in reader.findings {
        diagnostics.push(finding);
    }
    let document = match reader.root {
        // What stands behind an alias is not there to be checked.
        Some(_) if reader.holes => None,
        Some(root @ Value::Mapping(_)) => Some(Document {
            root,
            index: reader.index,
        }),
        Some(_) => {
            let span = reader.index.value(&At::root());
            let finding = Diagnostic::new(&G001, "the file holds no mapping of keys")
                .at(span, "expected `key: value` lines")
                .help("start with `schema: graph/v1`, then `name`, `state`, `start` and `nodes`");
            diagnostics.push(finding);
            None
        }
        None => {
            if diagnostics.is_empty() {
                let finding = Diagnostic::new(&G001, "the file holds nothing but comments")
                    .at(Span::default(), "expected a graph");
                diagnostics.push(finding);
            }
            None
        }
    };
    (document, diagnostics)
}

fn syntax_error(text: &str, bytes: &Bytes, error: &ScanError) -> Diagnostic {
    let at = bytes.at(error.marker().index());
    let line_start = text[..at].rfind('\n').map_or(0, |start| start + 1);
    let indent: &str = text[line_start..]
        .split(|c: char| c != ' ' && c != '\t')
        .next()
        .unwrap_or("");
    if let Some(tab) = indent.find('\t') {
        let tab = line_start + tab;
        return Diagnostic::new(&G001, "a tab cannot indent YAML")
            .at(Span::new(tab, tab + 1), "this is a tab")
            .help("indent with spaces; two a level is the custom");
    }
    let width = text[at..].chars().next().map_or(0, char::len_utf8);
    let info = error.info();
    let finding = Diagnostic::new(&G001, format!("not YAML: {info}"))
        .at(Span::new(at, at + width), "the reader stopped here");
    let line = text[line_start..].lines().next().unwrap_or_default();
    if line.contains(": {{") || line.contains("- {{") {
        finding.help("quote text that begins with braces, or use a block: `prompt: |`")
    } else if info.contains("mapping values are not allowed") {
        finding.help("quote text that contains a colon followed by a space")
    } else {
        finding
    }
}

enum Frame {
    List {
        at: At,
        start: Span,
        items: Vec<Value>,
    },
    Map {
        at: At,
        start: Span,
        entries: Mapping,
        key: Option<Key>,
        braces: bool,
    },
}

enum Key {
    Known(String),
    /// A list or mapping that stands where a key belongs and is still being read.
    Complex,
    /// A key given before, or one that is no text: its value is read and left out.
    Refused,
}

struct Reader<'t> {
    text: &'t str,
    bytes: Bytes,
    frames: Vec<Frame>,
    index: Index,
    root: Option<Value>,
    findings: Vec<Diagnostic>,
    documents: usize,
    /// Whether values are missing because aliases and merge keys were not followed.
    holes: bool,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            text,
            bytes: Bytes::new(text),
            frames: Vec::new(),
            index: Index::default(),
            root: None,
            findings: Vec::new(),
            documents: 0,
            holes: false,
        }
    }

    fn run(&mut self) -> Result<(), ScanError> {
        for event in Parser::new_from_str(self.text) {
            let (event, span) = event?;
            let span = Span::new(
                self.bytes.at(span.start.index()),
                self.bytes.at(span.end.index()),
            );
            if self.frames.len() > MAX_DEPTH {
                let finding = Diagnostic::new(&G001, "nested too deeply")
                    .at(span, format!("more than {MAX_DEPTH} levels"));
                self.findings = vec![finding];
                self.root = None;
                return Ok(());
            }
            if !self.event(event, span) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Takes one event; `false` ends the reading.
    fn event(&mut self, event: Event<'_>, span: Span) -> bool {
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    self.findings.push(
                        Diagnostic::new(&G001, "a second document in one file")
                            .at(span, "starts here")
                            .help("put each graph into its own file"),
                    );
                    return false;
                }
            }
            Event::Alias(_) => {
                self.holes = true;
                self.findings.push(
                    Diagnostic::new(&G005, "an alias in a graph file")
                        .at(span, "refers to an anchor")
                        .help("write the value out, or share it by `toolsets` or `defaults`"),
                );
                self.scalar("", ScalarStyle::Plain, span);
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse(span, anchor, tag.is_some());
                self.scalar(&text, style, span);
            }
            Event::SequenceStart(anchor, tag) => {
                self.refuse(span, anchor, tag.is_some());
                let at = self.open(span, "a list");
                self.frames.push(Frame::List {
                    at,
                    start: span,
                    items: Vec::new(),
                });
            }
            Event::MappingStart(anchor, tag) => {
                self.refuse(span, anchor, tag.is_some());
                let at = self.open(span, "a mapping");
                let entries = Mapping::new();
                self.frames.push(Frame::Map {
                    at,
                    start: span,
                    entries,
                    key: None,
                    braces: false,
                });
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(span),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
        true
    }

    fn refuse(&mut self, span: Span, anchor: usize, tag: bool) {
        if anchor > 0 {
            let line = self.text[..span.start].rfind('\n').map_or(0, |at| at + 1);
            let mark = self.text[line..span.start]
                .rfind('&')
                .map_or(span.start, |at| line + at);
            self.findings.push(
                Diagnostic::new(&G005, "an anchor in a graph file")
                    .at(
                        Span::new(mark, span.start.max(mark + 1)),
                        "names a value for reuse",
                    )
                    .help("write the value out, or share it by `toolsets` or `defaults`"),
            );
        }
        if tag {
            let line = self.text[..span.start].rfind('\n').map_or(0, |at| at + 1);
            let mark = self.text[line..span.start]
                .rfind('!')
                .map_or(span.start, |at| line + at);
            self.findings.push(
                Diagnostic::new(&G005, "a tag in a graph file")
                    .at(
                        Span::new(mark, span.start.max(mark + 1)),
                        "asks for another type",
                    )
                    .help("leave the tag out; types come from `state` and `types`"),
            );
        }
    }

    /// Returns the path of a list or mapping that begins, and refuses one that stands as a key.
    fn open(&mut self, span: Span, what: &str) -> At {
        let complex = match self.frames.last_mut() {
            Some(Frame::Map {
                start,
                key: key @ None,
                braces,
                ..
            }) => {
                *key = Some(Key::Complex);
                let braced = self.text.get(start.start..start.end) == Some("{");
                *braces |= braced;
                !braced
            }
            _ => false,
        };
        if complex {
            self.findings.push(
                Diagnostic::new(&G004, format!("expected a key, found {what}"))
                    .at(span, "keys are text")
                    .help("quote it if text was meant"),
            );
        }
        self.place()
    }

    /// Returns the path at which the next value stands.
    fn place(&self) -> At {
        match self.frames.last() {
            None => At::root(),
            Some(Frame::List { at, items, .. }) => at.item(items.len()),
            Some(Frame::Map {
                at,
                key: Some(Key::Known(key)),
                ..
            }) => at.key(key),
            // What stands below a refused key is read but never looked up.
            Some(Frame::Map { at, .. }) => at.key("?"),
        }
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, span: Span) {
        if let Some(Frame::Map {
            at,
            entries,
            key: key @ None,
            ..
        }) = self.frames.last_mut()
        {
            if text == "<<" && style == ScalarStyle::Plain {
                *key = Some(Key::Refused);
                self.holes = true;
                self.findings.push(
                    Diagnostic::new(&G005, "a merge key in a graph file")
                        .at(span, "merges another mapping into this one")
                        .help(
                            "share settings of nodes by `defaults`, lists of tools by `toolsets`",
                        ),
                );
            } else if entries.contains_key(text) {
                *key = Some(Key::Refused);
                let first = self.index.key(&at.key(text));
                self.findings.push(
                    Diagnostic::new(&G003, format!("`{text}` is given twice"))
                        .at(span, "given again")
                        .context(first, "first given here")
                        .help("keep one of the two"),
                );
            } else {
                *key = Some(Key::Known(text.to_owned()));
                // Stands in the tree at once, so that an entry is known before its value ends.
                let entry = Entry {
                    key: Some(span),
                    value: span,
                    scalar: None,
                };
                self.index.insert(at.key(text), entry);
            }
            return;
        }
        let at = self.place();
        let value = match style {
            ScalarStyle::Plain => plain(text),
            _ => Value::String(text.to_owned()),
        };
        let indented = style == ScalarStyle::Literal;
        // The span of a block runs on to the next token; what belongs to it ends with its text.
        let span = match style {
            ScalarStyle::Literal | ScalarStyle::Folded => {
                let raw = self.text.get(span.start..span.end).unwrap_or_default();
                Span::new(span.start, span.start + raw.trim_end().len())
            }
            _ => span,
        };
        let scalar = Scalar::new(self.text, span, text, indented);
        self.put(at, span, Some(scalar), value);
    }

    fn close(&mut self, end: Span) {
        let (at, start, value) = match self.frames.pop() {
            Some(Frame::List { at, start, items }) => (at, start, Value::Sequence(items)),
            Some(Frame::Map {
                at,
                start,
                entries,
                braces,
                ..
            }) => {
                if braces {
                    let span = Span::new(start.start, end.end);
                    self.findings.push(braces_as_text(span));
                    let meant = self.text.get(span.start..span.end).unwrap_or_default();
                    (at, start, Value::String(meant.to_owned()))
                } else {
                    (at, start, Value::Mapping(entries))
                }
            }
            None => return,
        };
        let flow = start.end > start.start;
        let end = match flow {
            true => end.end,
            // A block ends where the next token begins; its own text ends before the blanks.
            false => self.text[..end.start.max(start.start)]
                .trim_end()
                .len()
                .max(start.start),
        };
        self.put(at, Span::new(start.start, end), None, value);
    }

    fn put(&mut self, at: At, span: Span, scalar: Option<Scalar>, value: Value) {
        match self.index.entry_mut(&at) {
            Some(entry) if entry.key.is_some() => {
                entry.value = span;
                entry.scalar = scalar;
            }
            _ => self.index.insert(
                at,
                Entry {
                    key: None,
                    value: span,
                    scalar,
                },
            ),
        }
        match self.frames.last_mut() {
            None => self.root = Some(value),
            Some(Frame::List { items, .. }) => items.push(value),
            Some(Frame::Map { entries, key, .. }) => match key.take() {
                Some(Key::Known(name)) => {
                    entries.insert(Value::String(name), value);
                }
                Some(Key::Complex) => *key = Some(Key::Refused),
                Some(Key::Refused) | None => {}
            },
        }
    }
}

fn braces_as_text(span: Span) -> Diagnostic {
    Diagnostic::new(&G004, "expected text, found a mapping")
        .at(span, "YAML reads unquoted braces as a mapping")
        .help("quote it, or use a block: `prompt: |`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_reads_as_serde_yaml_reads_it() {
        let text = "a: 1\nb: [x, {y: z, w: [1, 2]}, \"q\"]\nc:\n  - d: |\n      t\n      u\n    e: 'v'\n  -\n    - 1\nf:\n";
        let (document, findings) = read("t.yaml", text);
        assert!(findings.is_empty(), "{}", findings.render());
        assert_eq!(
            document.unwrap().root,
            serde_yaml::from_str::<Value>(text).unwrap()
        );
    }
}
