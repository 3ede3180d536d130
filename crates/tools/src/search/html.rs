//! HTML to plain text.

use html5gum::{Token, Tokenizer, naive_next_state};

use super::document::{Page, tidy};

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

/// Reads a page: its title (or else its first main heading) and its text.
pub(super) fn read(text: &str) -> Page {
    let mut tokens = Tokenizer::new(text);
    let mut title = String::new();
    let mut heading = String::new();
    let mut body = String::new();
    let mut hidden: Option<Vec<u8>> = None;
    let mut depth = 0usize;
    let mut in_title = false;
    let mut in_heading = false;
    while let Some(token) = tokens.next() {
        let Ok(token) = token;
        match token {
            Token::StartTag(tag) => {
                let name: &[u8] = &tag.name;
                if let Some(state) = naive_next_state(name) {
                    // `noscript` holds markup unless scripts run.
                    if name != b"noscript" && !tag.self_closing {
                        tokens.set_last_start_tag(std::str::from_utf8(name).ok());
                        tokens.set_state(state);
                    }
                }
                match &hidden {
                    Some(open) if open.as_slice() == name && !tag.self_closing => depth += 1,
                    Some(_) => {}
                    None if HIDDEN.contains(&name) && !tag.self_closing => {
                        hidden = Some(name.to_vec());
                        depth = 1;
                    }
                    None => {
                        in_title |= name == b"title" && title.is_empty();
                        in_heading |= name == b"h1" && heading.is_empty();
                        if !INLINE.contains(&name) {
                            body.push(if matches!(name, b"td" | b"th") {
                                ' '
                            } else {
                                '\n'
                            });
                        }
                    }
                }
            }
            Token::EndTag(tag) => {
                let name: &[u8] = &tag.name;
                match &hidden {
                    Some(open) if open.as_slice() == name => {
                        depth -= 1;
                        if depth == 0 {
                            hidden = None;
                        }
                    }
                    Some(_) => {}
                    None => {
                        in_title &= name != b"title";
                        in_heading &= name != b"h1";
                        if !INLINE.contains(&name) && !matches!(name, b"td" | b"th") {
                            body.push('\n');
                        }
                    }
                }
            }
            Token::String(text) if hidden.is_none() => {
                let text = String::from_utf8_lossy(&text).replace(['\n', '\r', '\t'], " ");
                if in_title {
                    title.push_str(&text);
                } else {
                    if in_heading {
                        heading.push_str(&text);
                    }
                    body.push_str(&text);
                }
            }
            _ => {}
        }
    }
    let title = [title, heading]
        .into_iter()
        .map(|text| tidy(&text))
        .find(|text| !text.is_empty());
    let mut body = tidy(&body);
    // A first heading that repeats the title says nothing more.
    if let Some(rest) = title.as_deref().and_then(|t| body.strip_prefix(t)) {
        body = rest.trim_start_matches('\n').to_owned();
    }
    Page {
        title,
        url: None,
        body,
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
}
