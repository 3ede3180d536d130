//! Title and address in the front matter of a Markdown file.

use serde_yaml::Value;

/// More is no front matter; the reader of YAML is slow on hostile text.
const LARGEST: usize = 16 * 1024;

/// What a file says about itself before its text.
#[derive(Debug, Default)]
pub(super) struct FrontMatter {
    pub(super) title: Option<String>,
    pub(super) url: Option<String>,
    /// What could not be used, for people.
    pub(super) notes: Vec<String>,
}

impl FrontMatter {
    /// Reads YAML; what is none is searched for the two keys line by line.
    pub(super) fn read(text: &str) -> Self {
        let mut found = Self::default();
        let by_line = |found: &mut Self, why: &str| {
            found.title = key_of_line(text, "title");
            found.url = key_of_line(text, "url");
            let note =
                format!("the front matter is {why}: only `title` and `url` are taken from it");
            found.notes.push(note);
        };
        if text.len() > LARGEST {
            by_line(&mut found, &format!("larger than {} KiB", LARGEST / 1024));
        } else {
            match serde_yaml::from_str(text) {
                Ok(Value::Mapping(matter)) => {
                    found.title = matter.get("title").and_then(scalar);
                    found.url = matter.get("url").and_then(scalar);
                }
                Ok(Value::Null) => {}
                Ok(_) => found
                    .notes
                    .push("the front matter has no keys, left out".to_owned()),
                Err(_) => by_line(&mut found, "not valid YAML"),
            }
        }
        if found.url.as_deref().is_some_and(|url| !is_address(url)) {
            found.url = None;
            found
                .notes
                .push("the `url` in the front matter has a space, `<` or `>`, left out".to_owned());
        }
        found
    }
}

/// Gives a plain value as one line of text.
fn scalar(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        _ => return None,
    };
    one_line(&text)
}

fn key_of_line(text: &str, key: &str) -> Option<String> {
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?
        .trim();
    let unquoted = ['"', '\'']
        .into_iter()
        .find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
    one_line(unquoted.unwrap_or(value))
}

fn one_line(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// Tells whether a text may stand between the `<` and `>` of a link.
fn is_address(url: &str) -> bool {
    !url.contains(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '<' | '>'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, title: Option<&str>, url: Option<&str>, notes: &[&str]) {
        let found = FrontMatter::read(text);
        assert_eq!(
            (found.title.as_deref(), found.url.as_deref()),
            (title, url),
            "{text:?}"
        );
        assert_eq!(found.notes, notes, "{text:?}");
    }

    #[test]
    fn titles_and_addresses_may_be_any_plain_value() {
        check(
            "title: On tea\nurl: https://x\n",
            Some("On tea"),
            Some("https://x"),
            &[],
        );
        check("title: 2026\n", Some("2026"), None, &[]);
        check("title: 2.50\nurl: true", Some("2.5"), Some("true"), &[]);
        check("title: [a]\nurl: ''", None, None, &[]);
        check("title: |\n  two\n  lines\n", Some("two lines"), None, &[]);
        check("", None, None, &[]);
    }

    #[test]
    fn front_matter_that_is_no_yaml_still_names_its_file() {
        let note = "the front matter is not valid YAML: only `title` and `url` are taken from it";
        check(
            "title: AI: the news\nurl: 'https://x'\n",
            Some("AI: the news"),
            Some("https://x"),
            &[note],
        );
        check(": [\n", None, None, &[note]);
        check(
            "just words",
            None,
            None,
            &["the front matter has no keys, left out"],
        );
    }

    #[test]
    fn an_address_that_would_break_a_link_is_left_out() {
        let note = "the `url` in the front matter has a space, `<` or `>`, left out";
        check("url: \"https://x>\\n# injected\"", None, None, &[note]);
        check("url: https://x y", None, None, &[note]);
        check("url: https://x<b", None, None, &[note]);
    }

    #[test]
    fn hostile_front_matter_is_not_given_to_the_reader_of_yaml() {
        let note =
            "the front matter is larger than 16 KiB: only `title` and `url` are taken from it";
        let text = format!("title: t\nx: {}", "[".repeat(1_000_000));
        check(&text, Some("t"), None, &[note]);
        let nested = "[".repeat(LARGEST - 10);
        assert_eq!(FrontMatter::read(&nested).notes.len(), 1);
    }
}
