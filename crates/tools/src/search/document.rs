//! Files as documents: title, address and plain text.

use super::page::{Page, tidy};
use super::{html, markdown};

/// A title taken from a line of text must look like one.
const LONGEST_TITLE: usize = 120;

/// One searchable document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Document {
    pub(super) title: String,
    pub(super) url: String,
    /// Plain text, one paragraph a line, without the title.
    pub(super) body: String,
}

/// The kinds of files that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Markdown,
    Text,
    Html,
}

impl Kind {
    pub(super) fn of(name: &str) -> Option<Self> {
        let (_, extension) = name.rsplit_once('.')?;
        match extension.to_ascii_lowercase().as_str() {
            "md" | "markdown" => Some(Self::Markdown),
            "txt" => Some(Self::Text),
            "html" | "htm" => Some(Self::Html),
            _ => None,
        }
    }
}

impl Document {
    /// Reads a file found at `path`, which is relative to the folder. Gives
    /// also what in it could not be used.
    pub(super) fn read(kind: Kind, path: &str, text: &str) -> (Self, Vec<String>) {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let page = match kind {
            Kind::Markdown => markdown::read(text),
            Kind::Text => plain(text),
            Kind::Html => html::read(text),
        };
        let stem = path.rsplit('/').next().unwrap_or(path);
        let stem = stem.rsplit_once('.').map_or(stem, |(stem, _)| stem);
        let document = Self {
            title: page.title.unwrap_or_else(|| stem.to_owned()),
            url: page.url.unwrap_or_else(|| address(path)),
            body: page.body,
        };
        (document, page.notes)
    }
}

/// Makes the address of a file that names none: `local:/news/a.md`.
///
/// A path of the host would tell the model about the host, and would not hold
/// elsewhere.
fn address(path: &str) -> String {
    let mut url = "local:/".to_owned();
    for c in path.chars() {
        match c {
            '%' | '#' | '?' | ' ' | '(' | ')' | '<' | '>' | '"' => {
                url.push_str(&format!("%{:02X}", u32::from(c)));
            }
            _ => url.push(c),
        }
    }
    url
}

fn plain(text: &str) -> Page {
    let text = text.trim_start();
    let first = text.lines().next().map(str::trim).unwrap_or_default();
    if first.is_empty() || first.chars().count() > LONGEST_TITLE {
        return Page {
            body: tidy(text),
            ..Page::default()
        };
    }
    let rest = text.split_once('\n').map_or("", |(_, rest)| rest);
    Page {
        title: Some(first.to_owned()),
        body: tidy(rest),
        ..Page::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str, expected: [&str; 3]) {
        let (found, _) = Document::read(Kind::of(path).expect("a known kind"), path, text);
        assert_eq!(
            [found.title.as_str(), &found.url, &found.body],
            expected,
            "{path}: {text:?}"
        );
    }

    #[test]
    fn a_text_file_begins_with_its_title() {
        check(
            "t.txt",
            "\n标题\n\n  正文  一 \n",
            ["标题", "local:/t.txt", "正文 一"],
        );
        let long = "x".repeat(LONGEST_TITLE + 1);
        check("u.txt", &long, ["u", "local:/u.txt", &long]);
    }

    #[test]
    fn only_known_kinds_are_read() {
        assert_eq!(Kind::of("a.MD"), Some(Kind::Markdown));
        assert_eq!(Kind::of("a.htm"), Some(Kind::Html));
        assert_eq!(Kind::of("a.pdf"), None);
        assert_eq!(Kind::of("md"), None);
    }
}
