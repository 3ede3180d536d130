//! Markdown to plain text.

use pulldown_cmark::{Event, MetadataBlockKind, Options, Parser, Tag, TagEnd};

use super::front_matter::FrontMatter;
use super::html::{self, Mark};
use super::page::{Page, tidy};

/// Reads a text: title and address from the front matter, or else the title
/// from the first heading.
pub(super) fn read(text: &str) -> Page {
    let options = Options::ENABLE_YAML_STYLE_METADATA_BLOCKS
        | Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH;
    let mut reader = Reader::default();
    for event in Parser::new_ext(text, options) {
        reader.take(event);
    }
    reader.finish()
}

#[derive(Default)]
struct Reader {
    matter: String,
    in_matter: bool,
    /// The first heading; later ones are part of the body.
    heading: Option<String>,
    in_heading: bool,
    /// A block of HTML, which comes line by line and is read as a whole.
    html: Option<String>,
    /// The element within a paragraph whose text is not for readers.
    hidden: Option<String>,
    body: String,
}

impl Reader {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(Tag::MetadataBlock(MetadataBlockKind::YamlStyle)) => self.in_matter = true,
            Event::End(TagEnd::MetadataBlock(_)) => self.in_matter = false,
            Event::Text(text) if self.in_matter => self.matter.push_str(&text),
            Event::Start(Tag::Heading { .. }) if self.heading.is_none() => {
                self.heading = Some(String::new());
                self.in_heading = true;
            }
            Event::End(TagEnd::Heading(_)) if self.in_heading => {
                self.in_heading = false;
                self.hidden = None;
            }
            Event::Start(Tag::HtmlBlock) => self.html = Some(String::new()),
            Event::Html(line) => self.html.get_or_insert_default().push_str(&line),
            Event::End(TagEnd::HtmlBlock) => self.block(),
            Event::InlineHtml(tag) => self.inline(&tag),
            Event::Text(text) | Event::Code(text) => self.push(&text),
            Event::SoftBreak if self.after_cjk() => {}
            Event::SoftBreak | Event::End(TagEnd::TableCell) => self.push(" "),
            Event::HardBreak => self.push("\n"),
            Event::End(end) if !is_inline(end) => {
                self.hidden = None;
                self.push("\n");
            }
            _ => {}
        }
    }

    fn push(&mut self, text: &str) {
        if self.hidden.is_none() {
            self.target().push_str(text);
        }
    }

    fn target(&mut self) -> &mut String {
        match &mut self.heading {
            Some(heading) if self.in_heading => heading,
            _ => &mut self.body,
        }
    }

    /// Tells whether a line break would put a space into running Chinese.
    fn after_cjk(&mut self) -> bool {
        let last = self.target().chars().next_back();
        last.is_some_and(super::segment::is_cjk_or_mark)
    }

    /// Reads the block of HTML that has ended.
    fn block(&mut self) {
        let page = html::read(&self.html.take().unwrap_or_default());
        match page.title {
            Some(title) if self.heading.is_none() => self.heading = Some(title),
            Some(title) => self.body.push_str(&(title + "\n")),
            None => {}
        }
        self.body.push_str(&page.body);
        self.body.push('\n');
    }

    fn inline(&mut self, tag: &str) {
        match (html::mark(tag), &self.hidden) {
            (Mark::Ends(name), Some(open)) if name == *open => self.hidden = None,
            (_, Some(_)) => {}
            (Mark::Hides(name), None) => self.hidden = Some(name),
            (Mark::Breaks | Mark::Ends(_), None) => self.push(" "),
            (Mark::Flows, None) => {}
        }
    }

    fn finish(mut self) -> Page {
        let matter = FrontMatter::read(&self.matter);
        let heading = self.heading.map(|text| tidy(&text).replace('\n', " "));
        let mut title = matter.title;
        if let Some(heading) = heading.filter(|heading| !heading.is_empty()) {
            match &title {
                // A heading that only repeats the title says nothing more.
                Some(title) if *title == heading => {}
                Some(_) => self.body = format!("{heading}\n{}", self.body),
                None => title = Some(heading),
            }
        }
        Page {
            title,
            url: matter.url,
            body: tidy(&self.body),
            notes: matter.notes,
        }
    }
}

fn is_inline(end: TagEnd) -> bool {
    matches!(
        end,
        TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link | TagEnd::Image
    )
}

#[cfg(test)]
mod tests {
    use super::super::document::{Document, Kind};
    use super::*;

    fn check(path: &str, text: &str, expected: [&str; 3]) {
        let (found, _) = Document::read(Kind::Markdown, path, text);
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
    fn html_in_markdown_is_read_as_html() {
        let check = |text: &str, title: &str, body: &str| {
            let page = read(text);
            assert_eq!(
                (page.title.as_deref().unwrap_or("-"), page.body.as_str()),
                (title, body),
                "{text:?}"
            );
        };
        check(
            "# T\n\n<script>\nvar secret = 1;\n\nvar more = 2;\n</script>\n\ntext\n",
            "T",
            "text",
        );
        check("# T\n\n<!--\nhidden\n\nnote\n-->\n\ntext\n", "T", "text");
        check("# T\n\n<style>\np { color: red }\n</style>\n", "T", "");
        check(
            "# T\n\n<div>\n<p>one</p>\n<p>two\nthree</p>\n</div>\n",
            "T",
            "one\ntwo three",
        );
        check("# T\n\none<br>two and x<br/>y\n", "T", "one two and x y");
        check(
            "# T\n\na &lt; b, <span>in</span>line <kbd>Ctrl</kbd>，<b>重</b>要\n",
            "T",
            "a < b, inline Ctrl，重要",
        );
        check("a <script>x()</script> b<!-- c -->\n\nd", "-", "a b\nd");
        check("a <script>never closed\n\nb", "-", "a\nb");
        check("<h1 align=center>Tea</h1>\n\nGreen.\n", "Tea", "Green.");
        check("# Tea\n\n<h1>More</h1>\nGreen.\n", "Tea", "More\nGreen.");
    }

    #[test]
    fn a_heading_over_two_lines_is_one_title() {
        check(
            "a.md",
            "Night trains\nreturn\n=====\n\nbody\n",
            ["Night trains return", "local:/a.md", "body"],
        );
        check(
            "a.md",
            "夜间\n列车\n=====\n\n正文\n",
            ["夜间列车", "local:/a.md", "正文"],
        );
    }
}
