//! Filters and tests that minijinja does not have, for taking a topic out of a request and naming a file by it.

use minijinja::Environment;
use tine_engine::text::is_cjk;
use xxhash_rust::xxh3::xxh3_64;

/// The most characters of a slug; with three bytes each, a file name still has room for more.
const SLUG: usize = 60;

pub(super) fn add_to(env: &mut Environment<'_>) {
    env.add_filter("strip_prefixes", strip_prefixes);
    env.add_filter("strip_suffixes", strip_suffixes);
    env.add_filter("before", before);
    env.add_filter("slug", slug);
    env.add_test("cjk", |text: &str| text.chars().any(is_cjk));
}

/// Takes phrases off the front, the longest first, and space and punctuation with them: at most `most`, else all.
#[expect(
    clippy::needless_pass_by_value,
    reason = "minijinja gives filters owned lists"
)]
fn strip_prefixes(text: &str, phrases: Vec<String>, most: Option<usize>) -> String {
    let mut rest = trim(text);
    for _ in 0..most.unwrap_or(usize::MAX) {
        let ends = phrases
            .iter()
            .filter_map(|phrase| match_at(rest, 0, phrase));
        match ends.max() {
            Some(end) if end > 0 => rest = trim(&rest[end..]),
            _ => break,
        }
    }
    rest.to_owned()
}

/// The same at the end.
///
/// Phrases are matched backwards from the end: the text is a user's, and may be as long as a book.
#[expect(
    clippy::needless_pass_by_value,
    reason = "minijinja gives filters owned lists"
)]
fn strip_suffixes(text: &str, phrases: Vec<String>) -> String {
    let mut rest = trim(text);
    loop {
        let starts = phrases
            .iter()
            .filter_map(|phrase| match_at_end(rest, phrase));
        match starts.min() {
            Some(start) if start < rest.len() => rest = trim(&rest[..start]),
            _ => return rest.to_owned(),
        }
    }
}

/// The text before the first of these phrases; the whole text if there is none.
#[expect(
    clippy::needless_pass_by_value,
    reason = "minijinja gives filters owned lists"
)]
fn before(text: &str, phrases: Vec<String>) -> String {
    let start = text.char_indices().map(|(start, _)| start).find(|start| {
        phrases
            .iter()
            .any(|phrase| match_at(text, *start, phrase).is_some_and(|end| end > *start))
    });
    trim(&text[..start.unwrap_or(text.len())]).to_owned()
}

/// A text as a file name or anchor: letters and digits of all scripts, in small letters, with `-` between the words.
///
/// Symbols (`C++`, `C#`, emoji) and what is too long do not fit in; six digits of a hash then tell such texts apart.
fn slug(text: &str) -> String {
    let mut slug = String::new();
    for (at, word) in text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .enumerate()
    {
        if at > 0 {
            slug.push('-');
        }
        slug.extend(word.chars().flat_map(char::to_lowercase));
    }
    let long = slug.chars().nth(SLUG).is_some();
    if !long && !text.contains(is_symbol) {
        return slug;
    }
    let hash = format!("{:06x}", xxh3_64(text.as_bytes()) & 0xff_ffff);
    let room = SLUG - hash.len() - 1;
    let short: String = slug.chars().take(room).collect();
    match short.trim_end_matches('-') {
        "" => hash,
        short => format!("{short}-{hash}"),
    }
}

/// Whether a character says something, and is neither letter, digit, space nor punctuation.
fn is_symbol(c: char) -> bool {
    match c {
        _ if c.is_alphanumeric() || c.is_whitespace() || c.is_control() => false,
        _ if c.is_ascii() => "+#@$%&*=^~|<>`".contains(c),
        // Quotation marks, dashes, and the punctuation of Chinese and Japanese.
        '«' | '»' | '·' | '¿' | '¡' => false,
        '\u{2010}'..='\u{205e}' | '\u{3000}'..='\u{303f}' | '\u{ff00}'..='\u{ff65}' => false,
        _ => true,
    }
}

/// Where `phrase` ends, if it stands in `text` at `start`: whole words only, in any case, with any space.
fn match_at(text: &str, start: usize, phrase: &str) -> Option<usize> {
    let mut rest = text[start..].chars();
    let mut wanted = phrase.chars();
    let mut last = None;
    while let Some(c) = wanted.next() {
        if c.is_whitespace() {
            let trimmed = rest.as_str().trim_start();
            if trimmed.len() == rest.as_str().len() {
                return None;
            }
            rest = trimmed.chars();
            wanted = wanted.as_str().trim_start().chars();
        } else if !rest.next()?.to_lowercase().eq(c.to_lowercase()) {
            return None;
        }
        last = Some(c);
    }
    let before = text[..start].chars().next_back();
    let inside = |left: Option<char>, right: Option<char>| {
        left.is_some_and(is_in_word) && right.is_some_and(is_in_word)
    };
    if inside(before, phrase.chars().next()) || inside(last, rest.clone().next()) {
        return None;
    }
    Some(text.len() - rest.as_str().len())
}

/// Where `phrase` begins, if the text ends with it: the mirror image of [`match_at`].
fn match_at_end(text: &str, phrase: &str) -> Option<usize> {
    let mut rest = text.chars();
    let mut wanted = phrase.chars();
    let mut first = None;
    while let Some(c) = wanted.next_back() {
        if c.is_whitespace() {
            let trimmed = rest.as_str().trim_end();
            if trimmed.len() == rest.as_str().len() {
                return None;
            }
            rest = trimmed.chars();
            wanted = wanted.as_str().trim_end().chars();
        } else if !rest.next_back()?.to_lowercase().eq(c.to_lowercase()) {
            return None;
        }
        first = Some(c);
    }
    let start = rest.as_str().len();
    let before = rest.next_back();
    let inside = before.is_some_and(is_in_word) && first.is_some_and(is_in_word);
    (!inside).then_some(start)
}

/// Whether words that are written with spaces between them go on over this character.
fn is_in_word(c: char) -> bool {
    (c.is_alphanumeric() && !is_cjk(c)) || matches!(c, '-' | '_' | '\'' | '’')
}

/// Takes space and the marks that end or join sentences off both ends. A full stop in front stays: `.NET`.
fn trim(text: &str) -> &str {
    let joins = |c: char| c.is_whitespace() || ",;:，；：、。！？!?".contains(c);
    text.trim_start_matches(joins)
        .trim_end_matches(|c| joins(c) || matches!(c, '.' | '…'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(phrases: &[&str]) -> Vec<String> {
        phrases.iter().map(|&phrase| phrase.to_owned()).collect()
    }

    #[test]
    fn phrases_in_front_go_as_whole_words() {
        let check = |text: &str, expected: &str| {
            let phrases = list(&["please", "find", "搜", "搜一下", "look for"]);
            assert_eq!(strip_prefixes(text, phrases, None), expected, "{text:?}");
        };
        check("Please, find  tea.", "tea");
        check("findings of tea", "findings of tea");
        check("find-and-replace", "find-and-replace");
        check("LOOK  FOR .NET news", ".NET news");
        check("搜一下 茶。", "茶");
        check("搜AI", "AI");
        check("please", "");
        check("", "");
        check("İstanbul", "İstanbul");
        let once = strip_prefixes("搜搜狐", list(&["搜"]), Some(1));
        assert_eq!(once, "搜狐");
    }

    #[test]
    fn phrases_at_the_end_go_too() {
        let check = |text: &str, expected: &str| {
            let phrases = list(&["as markdown", "and save it", "的报告", "的"]);
            assert_eq!(strip_suffixes(text, phrases), expected, "{text:?}");
        };
        check("tea and save it as Markdown!", "tea");
        check("电池的报告", "电池");
        check("sand save it", "sand save it");
        check("的", "");
        check("tea and  save\nit", "tea");
        check("ＡＳ markdown", "ＡＳ markdown");
    }

    #[test]
    fn a_text_as_long_as_a_book_is_cut_in_one_go() {
        // Looking for each phrase from the front again takes hours here.
        let long = "茶".to_owned() + &"吧".repeat(300_000);
        assert_eq!(strip_suffixes(&long, list(&["吧", "好吧"])), "茶");
        let words = "tea".to_owned() + &" for now".repeat(100_000);
        assert_eq!(strip_suffixes(&words, list(&["now", "for now"])), "tea");
        let none = "新闻今天的事情很多".repeat(30_000);
        assert_eq!(strip_suffixes(&none, list(&["吧"])), none);
        assert_eq!(strip_prefixes(&none, list(&["吧"]), None), none);
        assert_eq!(before(&none, list(&["吧", "存成"])), none);
    }

    #[test]
    fn a_text_is_cut_before_the_first_phrase() {
        let check = |text: &str, expected: &str| {
            let phrases = list(&["and save", "存成", "并存成"]);
            assert_eq!(before(text, phrases), expected, "{text:?}");
        };
        check("今天 AI 新闻并存成 Markdown", "今天 AI 新闻");
        check("tea, and save it. And save me.", "tea");
        check("brand saves", "brand saves");
        check("tea.", "tea");
    }

    #[test]
    fn empty_phrases_match_nothing() {
        assert_eq!(before("tea", list(&[""])), "tea");
        assert_eq!(strip_prefixes("tea", list(&[""]), None), "tea");
        assert_eq!(strip_suffixes("tea", list(&[""])), "tea");
    }

    #[test]
    fn a_slug_keeps_letters_and_digits_of_all_scripts() {
        assert_eq!(slug("今天 AI 新闻!"), "今天-ai-新闻");
        assert_eq!(slug("  ../a_b — “Café”（一）"), "a-b-café-一");
        assert_eq!(slug("?!"), "");
    }

    #[test]
    fn texts_whose_slugs_lose_something_get_different_ones() {
        let texts = ["C", "C++", "C#", "🎉", "🎊", "a", "a\u{301}"];
        let long = ["ab ".repeat(60), "ab ".repeat(61)];
        let all: Vec<&str> = texts
            .into_iter()
            .chain(long.iter().map(String::as_str))
            .collect();
        let slugs: std::collections::BTreeSet<String> = all.iter().map(|text| slug(text)).collect();
        assert_eq!(slugs.len(), all.len(), "{slugs:?}");
        assert!(slugs.iter().all(|slug| slug.chars().count() <= SLUG));
        assert_eq!(slug("C++").strip_prefix("c-").map(str::len), Some(6));
        assert_eq!(slug("🎉").len(), 6);
    }
}
