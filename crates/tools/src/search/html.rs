//! HTML to plain text.

use html5gum::{Token, Tokenizer, naive_next_state};

use super::page::{Page, tidy};

/// Elements whose text is not for readers.
const HIDDEN: [&[u8]; 8] = [
    b"script",
    b"style",
    b"noscript",
    b"template",
    b"iframe",
    b"svg",
    b"nav",
    b"noembed",
];

/// Elements that stand within a line of text; all others break it.
const INLINE: [&[u8]; 24] = [
    b"a", b"abbr", b"b", b"bdi", b"bdo", b"cite", b"code", b"del", b"dfn", b"em", b"font", b"i",
    b"ins", b"kbd", b"mark", b"q", b"s", b"small", b"span", b"strong", b"sub", b"sup", b"u",
    b"wbr",
];

/// The hidden elements whose content is no markup: a start tag in a script is
/// part of the script.
const RAW: [&[u8]; 4] = [b"script", b"style", b"iframe", b"noembed"];

/// Reads a page: its title (or else its first main heading) and its text.
pub(super) fn read(text: &str) -> Page {
    let mut tokens = Tokenizer::new(text);
    let mut reader = Reader::default();
    while let Some(token) = tokens.next() {
        let Ok(token) = token;
        match token {
            Token::StartTag(tag) => {
                let name: &[u8] = &tag.name;
                if let Some(state) = naive_next_state(name) {
                    // `noscript` holds markup unless scripts run.
                    if name != b"noscript" && !tag.self_closing {
                        tokens.set_state(state);
                    }
                }
                reader.start(name, tag.self_closing);
            }
            Token::EndTag(tag) => reader.end(&tag.name),
            Token::String(text) => reader.text(&String::from_utf8_lossy(&text)),
            _ => {}
        }
    }
    reader.finish()
}

#[derive(Default)]
struct Reader {
    title: String,
    heading: String,
    body: String,
    in_title: bool,
    in_heading: bool,
    /// Within an element whose content is no markup.
    raw: bool,
    hidden: Option<Hidden>,
}

/// An element whose text is not for readers.
struct Hidden {
    name: Vec<u8>,
    /// How many of its kind are open.
    depth: usize,
    /// Where the body ended when it began.
    body: usize,
}

impl Reader {
    fn start(&mut self, name: &[u8], closed: bool) {
        self.raw |= RAW.contains(&name) && !closed;
        match &mut self.hidden {
            Some(hidden) if hidden.name == name && !closed => hidden.depth += 1,
            None if HIDDEN.contains(&name) && !self.raw && !closed => {
                self.hidden = Some(Hidden {
                    name: name.to_vec(),
                    depth: 1,
                    body: self.body.len(),
                });
            }
            None => {
                self.in_title |= name == b"title" && self.title.is_empty();
                self.in_heading |= name == b"h1" && self.heading.is_empty();
            }
            Some(_) => {}
        }
        self.body.push_str(match name {
            b"td" | b"th" => " ",
            _ if INLINE.contains(&name) => "",
            _ => "\n",
        });
    }

    fn end(&mut self, name: &[u8]) {
        self.raw &= !RAW.contains(&name);
        match &mut self.hidden {
            Some(hidden) if hidden.name == name => {
                hidden.depth -= 1;
                if hidden.depth == 0 {
                    self.body.truncate(hidden.body);
                    self.hidden = None;
                }
            }
            Some(_) => {}
            None => {
                self.in_title &= name != b"title";
                self.in_heading &= name != b"h1";
            }
        }
        if !INLINE.contains(&name) && !matches!(name, b"td" | b"th") {
            self.body.push('\n');
        }
    }

    fn text(&mut self, text: &str) {
        if self.raw {
            return;
        }
        let text = text.replace(['\n', '\r', '\t'], " ");
        if self.in_title && self.hidden.is_none() {
            self.title.push_str(&text);
            return;
        }
        if self.in_heading && self.hidden.is_none() {
            self.heading.push_str(&text);
        }
        self.body.push_str(&text);
    }

    /// An element that was never closed hides nothing: its text is in the
    /// body by now, and stays.
    fn finish(self) -> Page {
        let title = [self.title, self.heading]
            .into_iter()
            .map(|text| tidy(&text))
            .find(|text| !text.is_empty());
        let body = tidy(&self.body);
        let repeated = title.as_deref().and_then(|title| body.strip_prefix(title));
        Page {
            // A first line that repeats the title says nothing more.
            body: match repeated {
                Some("") => String::new(),
                Some(rest) if rest.starts_with('\n') => rest[1..].to_owned(),
                _ => body,
            },
            title,
            ..Page::default()
        }
    }
}

/// What a tag within a line of Markdown does to the line.
pub(super) enum Mark {
    /// Begins an element whose text is not for readers.
    Hides(String),
    /// Ends such an element.
    Ends(String),
    /// Separates the words beside it.
    Breaks,
    /// Changes how the text looks, or is a comment.
    Flows,
}

/// Says what a single tag does.
pub(super) fn mark(tag: &str) -> Mark {
    let owned = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    let Some(Ok(token)) = Tokenizer::new(tag).next() else {
        return Mark::Flows;
    };
    match token {
        Token::StartTag(tag) if HIDDEN.contains(&&tag.name[..]) && !tag.self_closing => {
            Mark::Hides(owned(&tag.name))
        }
        Token::EndTag(tag) if HIDDEN.contains(&&tag.name[..]) => Mark::Ends(owned(&tag.name)),
        Token::StartTag(tag) if !INLINE.contains(&&tag.name[..]) => Mark::Breaks,
        Token::EndTag(tag) if !INLINE.contains(&&tag.name[..]) => Mark::Breaks,
        _ => Mark::Flows,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(html: &str, title: Option<&str>, body: &str) {
        let page = read(html);
        assert_eq!(
            (page.title.as_deref(), page.body.as_str()),
            (title, body),
            "{html}"
        );
    }

    #[test]
    fn a_page_gives_its_title_and_readable_text() {
        check(
            "<!doctype html><html><head><title>A &amp; B</title><style>p{}</style></head><body><h1>A &amp; B</h1><p>One <b>two</b>,\n three.</p><script>if (a < b) x('</p>')</script><ul><li>x<li>y</ul><!-- no --></body></html>",
            Some("A & B"),
            "One two, three.\nx\ny",
        );
        check(
            "<h1>标题<br>二</h1><p>正文&nbsp;一</p>",
            Some("标题二"),
            "标题\n二\n正文 一",
        );
        check("<table><tr><td>1</td><td>2</td></tr></table>", None, "1 2");
        check("<nav><nav>a</nav>b</nav>c", None, "c");
        check(
            "<svg><title>icon</title></svg><title>Real</title>x",
            Some("Real"),
            "x",
        );
        check("a<br>b<img alt='pic'>c", None, "a\nb\nc");
        check("just text", None, "just text");
        check("", None, "");
    }

    #[test]
    fn broken_markup_is_read_as_far_as_it_goes() {
        check("<p>open <b>bold", None, "open bold");
        check("a < b & c", None, "a < b & c");
        check("<script>never closed", None, "");
        check("</p></p>x<", None, "x<");
        check("<title>never closed", Some("never closed"), "");
    }

    #[test]
    fn only_a_first_line_that_is_the_title_is_taken_for_it() {
        check(
            "<title>Tea</title><p>Teapots are old.</p>",
            Some("Tea"),
            "Teapots are old.",
        );
        check(
            "<title>AI</title><p>AIR travel</p>",
            Some("AI"),
            "AIR travel",
        );
        check("<title>Tea</title><p>Tea</p>", Some("Tea"), "");
        check("<h1>Tea</h1>houses", Some("Tea"), "houses");
    }

    #[test]
    fn an_element_that_is_never_closed_hides_nothing_but_scripts() {
        check(
            "<p>one<nav>menu<p>two</p></div>rest of page",
            None,
            "one\nmenu\ntwo\nrest of page",
        );
        check("<nav>a<script>x()</script>b", None, "a\nb");
        check("<noscript>a</noscript>b<svg>c", None, "b\nc");
        check("a<style>p {}", None, "a");
    }
}
