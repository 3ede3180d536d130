use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use saphyr_parser::{Event, Marker, Parser};

/// Where in a configuration a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a file.
    File {
        /// The file's name, as it was given.
        file: Arc<str>,
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
    },
    /// Given on top of the file, with [`Config::set`](super::Config::set).
    Override {
        /// The dotted path, such as `tools.web_search.path`.
        path: Arc<str>,
        /// The folder that a relative path in the value is taken from; the working directory if empty.
        directory: Arc<Path>,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { file, line, column } => write!(f, "{file}:{line}:{column}"),
            Self::Override { path, .. } => write!(f, "setting {path}"),
        }
    }
}

/// The places of all keys and items of one YAML text.
#[derive(Clone, Debug)]
pub(super) struct Places {
    file: Arc<str>,
    found: BTreeMap<String, (usize, usize)>,
    second_document: Option<(usize, usize)>,
}

/// A key that stands twice in one mapping.
#[derive(Clone)]
pub(super) struct DuplicateKey {
    pub(super) key: String,
    pub(super) place: Place,
    pub(super) first: usize,
}

impl Places {
    /// Reads the places of a text that is valid YAML.
    ///
    /// Keys are joined with `/`; items count from 0: `tools/3/use`.
    pub(super) fn read(file: &Arc<str>, text: &str) -> Result<Self, DuplicateKey> {
        let mut places = Self {
            file: Arc::clone(file),
            found: BTreeMap::new(),
            second_document: None,
        };
        let mut documents = 0;
        let mut open: Vec<Frame> = Vec::new();
        let mut parser = Parser::new_from_str(text);
        // What the parser refuses, the reader of values has refused before.
        while let Some(Ok((event, span))) = parser.next_event() {
            match event {
                Event::DocumentStart(..) => {
                    documents += 1;
                    if documents > 1 {
                        let at = (span.start.line(), span.start.col() + 1);
                        places.second_document = Some(at);
                        break;
                    }
                }
                Event::SequenceStart(..) => {
                    let path = places.enter(&mut open, span.start, None)?;
                    open.push(Frame::List { path, next: 0 });
                }
                Event::MappingStart(..) => {
                    let path = places.enter(&mut open, span.start, None)?;
                    open.push(Frame::Map { path, key: None });
                }
                Event::Scalar(text, ..) => {
                    places.enter(&mut open, span.start, Some(&text))?;
                }
                Event::Alias(_) => {
                    places.enter(&mut open, span.start, None)?;
                }
                Event::SequenceEnd | Event::MappingEnd => {
                    open.pop();
                }
                _ => {}
            }
        }
        Ok(places)
    }

    /// Notes one node under the frame it is in, and gives its path.
    fn enter(
        &mut self,
        open: &mut [Frame],
        start: Marker,
        scalar: Option<&str>,
    ) -> Result<String, DuplicateKey> {
        let at = (start.line(), start.col() + 1);
        let path = match open.last_mut() {
            None => String::new(),
            Some(Frame::List { path, next }) => {
                let child = join(path, &next.to_string());
                *next += 1;
                child
            }
            Some(Frame::Map { path, key }) => match key.take() {
                // The place of a value is that of its key.
                Some(key) => return Ok(key),
                None => {
                    let name = scalar.unwrap_or("?");
                    let child = join(path, name);
                    if let Some((first, _)) = self.found.get(&child)
                        && name != "<<"
                    {
                        return Err(DuplicateKey {
                            key: name.to_owned(),
                            place: self.place(at),
                            first: *first,
                        });
                    }
                    *key = Some(child.clone());
                    child
                }
            },
        };
        self.found.insert(path.clone(), at);
        Ok(path)
    }

    fn place(&self, (line, column): (usize, usize)) -> Place {
        Place::File {
            file: Arc::clone(&self.file),
            line,
            column,
        }
    }

    /// Says where a second document begins, if there is one.
    pub(super) fn second_document(&self) -> Option<Place> {
        self.second_document.map(|at| self.place(at))
    }

    /// Gives the place of a path, or of the nearest thing around it: what an
    /// alias stands for was written elsewhere.
    pub(super) fn at(&self, path: &str) -> Place {
        let mut path = path;
        loop {
            if let Some(at) = self.found.get(path) {
                return self.place(*at);
            }
            match path.rfind('/') {
                Some(cut) => path = &path[..cut],
                None => return self.place((1, 1)),
            }
        }
    }
}

enum Frame {
    List { path: String, next: usize },
    Map { path: String, key: Option<String> },
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}/{name}")
    }
}
