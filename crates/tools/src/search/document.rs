//! Files as documents: title, address and plain text.

use pulldown_cmark::{Event, MetadataBlockKind, Options, Parser, Tag, TagEnd};

use super::html;

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
    /// Reads a file found at `path`, which is relative to the folder.
    pub(super) fn read(kind: Kind, path: &str, text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let page = match kind {
            Kind::Markdown => markdown(text),
            Kind::Text => plain(text),
            Kind::Html => html::read(text),
        };
        let stem = path.rsplit('/').next().unwrap_or(path);
        let stem = stem.rsplit_once('.').map_or(stem, |(stem, _)| stem);
        Self {
            title: page.title.unwrap_or_else(|| stem.to_owned()),
            url: page.url.unwrap_or_else(|| address(path)),
            body: page.body,
        }
    }
}

/// What the text of a file gives.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) title: Option<String>,
    pub(super) url: Option<String>,
    pub(super) body: String,
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
        url: None,
        body: tidy(rest),
    }
}

fn markdown(text: &str) -> Page {
    let options = Options::ENABLE_YAML_STYLE_METADATA_BLOCKS
        | Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH;
    let mut page = Page::default();
    let mut matter = String::new();
    let mut heading: Option<String> = None;
    let mut in_matter = false;
    let mut in_heading = false;
    let mut body = String::new();
    for event in Parser::new_ext(text, options) {
        match event {
            Event::Start(Tag::MetadataBlock(MetadataBlockKind::YamlStyle)) => in_matter = true,
            Event::End(TagEnd::MetadataBlock(_)) => in_matter = false,
            Event::Start(Tag::Heading { .. }) if heading.is_none() => {
                heading = Some(String::new());
                in_heading = true;
            }
            Event::End(TagEnd::Heading(_)) if in_heading => in_heading = false,
            Event::Text(text) if in_matter => matter.push_str(&text),
            Event::Text(text) | Event::Code(text) => match &mut heading {
                Some(heading) if in_heading => heading.push_str(&text),
                _ => body.push_str(&text),
            },
            Event::SoftBreak if between_cjk(&body) => {}
            Event::SoftBreak | Event::End(TagEnd::TableCell) => body.push(' '),
            Event::Html(html) | Event::InlineHtml(html) => {
                body.push_str(&html::read(&html).body);
            }
            Event::HardBreak | Event::End(_) if !is_inline_end(&event) => body.push('\n'),
            _ => {}
        }
    }
    front_matter(&matter, &mut page);
    if let Some(heading) = heading.filter(|heading| !heading.trim().is_empty()) {
        match &page.title {
            // A heading that only repeats the title says nothing more.
            Some(title) if title == heading.trim() => {}
            Some(_) => body = format!("{heading}\n{body}"),
            None => page.title = Some(heading.trim().to_owned()),
        }
    }
    page.body = tidy(&body);
    page
}

fn is_inline_end(event: &Event<'_>) -> bool {
    matches!(
        event,
        Event::End(
            TagEnd::Emphasis
                | TagEnd::Strong
                | TagEnd::Strikethrough
                | TagEnd::Link
                | TagEnd::Image
        )
    )
}

/// Tells whether a line break would put a space into running Chinese.
fn between_cjk(body: &str) -> bool {
    body.chars()
        .next_back()
        .is_some_and(super::segment::is_cjk_or_mark)
}

/// Reads `title` and `url`; front matter that is no mapping is left aside.
fn front_matter(text: &str, page: &mut Page) {
    let Ok(serde_yaml::Value::Mapping(matter)) = serde_yaml::from_str(text) else {
        return;
    };
    let get = |key: &str| {
        let text = matter.get(key)?.as_str()?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    page.title = get("title");
    page.url = get("url");
}

/// Puts one paragraph on each line, words one space apart.
pub(super) fn tidy(text: &str) -> String {
    let mut tidy = String::with_capacity(text.len());
    for line in text.lines() {
        let mut words = line.split_whitespace().peekable();
        if words.peek().is_none() {
            continue;
        }
        if !tidy.is_empty() {
            tidy.push('\n');
        }
        for (index, word) in words.enumerate() {
            if index > 0 {
                tidy.push(' ');
            }
            tidy.push_str(word);
        }
    }
    tidy
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str, expected: [&str; 3]) {
        let found = Document::read(Kind::of(path).expect("a known kind"), path, text);
        assert_eq!(
            [found.title.as_str(), &found.url, &found.body],
            expected,
            "{path}: {text:?}"
        );
    }

    #[test]
    fn markdown_gives_title_address_and_plain_text() {
        check(
            "a/tea.md",
            "---\ntitle: On tea\nurl: https://tea.example/1\ndate: 2026-03-01\n---\n# On tea\n\nGreen *and* [black](http://x).\nSecond `line`.\n\n- one\n- two\n",
            [
                "On tea",
                "https://tea.example/1",
                "Green and black. Second line.\none\ntwo",
            ],
        );
        check(
            "news/a b.md",
            "# 今日 **AI** 新闻\n\n第一行，\n第二行。\n\n<script>x()</script>\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
            [
                "今日 AI 新闻",
                "local:/news/a%20b.md",
                "第一行，第二行。\na b\n1 2",
            ],
        );
        check(
            "plain.md",
            "no heading\n",
            ["plain", "local:/plain.md", "no heading"],
        );
        check(
            "bad.md",
            "---\n: [\n---\ntext\n",
            ["bad", "local:/bad.md", "text"],
        );
        check("empty.md", "", ["empty", "local:/empty.md", ""]);
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
