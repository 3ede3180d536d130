//! Words of a text, where Chinese has no spaces between them.
//!
//! SQLite's tokenizer takes a run of Chinese for one word, and its trigram
//! tokenizer finds nothing shorter than three characters, while most Chinese
//! words have two. So text is cut here before it is indexed: each run of
//! Chinese, Japanese or Korean gives its single characters and its pairs.

use std::fmt::Write as _;

/// Words that name no topic. They select nothing unless a query has no others.
const WEAK_ENGLISH: &[&str] = &[
    "a", "about", "all", "an", "and", "any", "are", "article", "articles", "as", "at", "be", "by",
    "can", "do", "find", "for", "from", "get", "give", "has", "have", "how", "i", "in", "is", "it",
    "latest", "me", "my", "new", "news", "of", "on", "or", "please", "recent", "report", "s",
    "search", "show", "some", "tell", "that", "the", "their", "there", "this", "to", "today",
    "update", "updates", "was", "were", "what", "when", "where", "which", "who", "why", "will",
    "with", "write", "you", "your",
];

/// The same for Chinese, longest first so that the longest is taken out.
const WEAK_CHINESE: &[&str] = &[
    "是什么",
    "有哪些",
    "今天",
    "今日",
    "最新",
    "最近",
    "新闻",
    "消息",
    "资讯",
    "报道",
    "报告",
    "关于",
    "有关",
    "什么",
    "怎么",
    "如何",
    "哪些",
    "搜索",
    "查找",
    "查询",
    "一下",
    "一份",
    "帮我",
    "给我",
    "告诉",
    "请问",
    "介绍",
    "情况",
];

/// Single characters that are left over when weak words are taken out.
const WEAK_CHARACTERS: &str = "的了和与及或在是有吗呢请搜查找写并存成我你这那一份篇个";

/// The most terms of one query; more would only be noise.
const MOST_TERMS: usize = 64;

/// Writes a text as words with spaces between them, for the index.
pub(super) fn for_index(text: &str) -> String {
    let mut words = String::with_capacity(text.len() * 2);
    for run in runs(text) {
        match run {
            Run::Word(word) => {
                words.push_str(&word);
                words.push(' ');
            }
            Run::Cjk(characters) => {
                for (index, c) in characters.iter().enumerate() {
                    words.push(*c);
                    words.push(' ');
                    if let Some(next) = characters.get(index + 1) {
                        words.push(*c);
                        words.push(*next);
                        words.push(' ');
                    }
                }
            }
        }
    }
    words
}

/// The terms of a query, each one word of the index.
///
/// Weak words are left out, unless there are no others.
pub(super) fn terms(query: &str) -> Vec<String> {
    let mut strong = Vec::new();
    let mut all = Vec::new();
    for run in runs(query) {
        match run {
            Run::Word(word) => {
                if !WEAK_ENGLISH.contains(&word.as_str()) {
                    push(&mut strong, word.clone());
                }
                push(&mut all, word);
            }
            Run::Cjk(characters) => {
                let text: String = characters.iter().collect();
                pairs(&text, &mut all);
                for part in without_weak(&text) {
                    pairs(&part, &mut strong);
                }
            }
        }
    }
    let mut terms = if strong.is_empty() { all } else { strong };
    terms.truncate(MOST_TERMS);
    terms
}

/// Writes terms as an FTS5 query that any of them satisfies.
pub(super) fn match_any(terms: &[String]) -> String {
    let mut query = String::new();
    for (index, term) in terms.iter().enumerate() {
        let or = if index > 0 { " OR " } else { "" };
        // Terms hold letters and digits only, so nothing needs escaping.
        write!(query, "{or}\"{term}\"").ok();
    }
    query
}

/// Gives a text as it is compared: small letters, full-width forms narrowed.
pub(super) fn fold(text: &str) -> String {
    text.chars()
        .map(narrow)
        .flat_map(char::to_lowercase)
        .collect()
}

/// Tells a character of a script that is written without spaces, or one of
/// its punctuation marks.
pub(super) fn is_cjk_or_mark(c: char) -> bool {
    is_cjk(c)
        || matches!(c, '\u{3000}'..='\u{303F}' | '\u{FF00}'..='\u{FF0F}' | '\u{FF1A}'..='\u{FF1F}')
}

fn is_cjk(c: char) -> bool {
    matches!(
        c,
        '\u{3400}'..='\u{4DBF}'
            | '\u{4E00}'..='\u{9FFF}'
            | '\u{F900}'..='\u{FAFF}'
            | '\u{20000}'..='\u{3FFFF}'
            | '\u{3041}'..='\u{30FF}'
            | '\u{AC00}'..='\u{D7AF}'
    )
}

fn narrow(c: char) -> char {
    match c {
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(u32::from(c) - 0xFEE0).unwrap_or(c),
        _ => c,
    }
}

enum Run {
    Word(String),
    Cjk(Vec<char>),
}

fn runs(text: &str) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut open = false;
    for c in text.chars().map(narrow) {
        if is_cjk(c) {
            match runs.last_mut() {
                Some(Run::Cjk(characters)) if open => characters.push(c),
                _ => runs.push(Run::Cjk(vec![c])),
            }
            open = true;
        } else if c.is_alphanumeric() {
            match runs.last_mut() {
                Some(Run::Word(word)) if open => word.extend(c.to_lowercase()),
                _ => runs.push(Run::Word(c.to_lowercase().collect())),
            }
            open = true;
        } else {
            open = false;
        }
    }
    runs
}

/// Cuts the weak words out of a run of Chinese.
fn without_weak(text: &str) -> Vec<String> {
    let mut parts = vec![text.to_owned()];
    for weak in WEAK_CHINESE {
        parts = parts
            .iter()
            .flat_map(|part| part.split(weak).map(str::to_owned))
            .collect();
    }
    let cut = parts.len() > 1;
    parts.retain(|part| {
        let left_over = cut && part.chars().all(|c| WEAK_CHARACTERS.contains(c));
        !part.is_empty() && !left_over
    });
    parts
}

/// Adds the pairs of a run, or its one character.
fn pairs(text: &str, terms: &mut Vec<String>) {
    let characters: Vec<char> = text.chars().collect();
    match characters.as_slice() {
        [] => {}
        [one] => push(terms, one.to_string()),
        many => {
            for pair in many.windows(2) {
                push(terms, pair.iter().collect());
            }
        }
    }
}

fn push(terms: &mut Vec<String>, term: String) {
    if !terms.contains(&term) {
        terms.push(term);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chinese_is_cut_into_characters_and_pairs() {
        assert_eq!(for_index("AI新闻, Ｇ1!"), "ai 新 新闻 闻 g1 ");
        assert_eq!(for_index(" \n"), "");
    }

    #[test]
    fn a_query_keeps_the_words_that_name_a_topic() {
        let check = |query: &str, expected: &[&str]| {
            assert_eq!(terms(query), expected, "query {query:?}");
        };
        check("今天 AI 新闻", &["ai"]);
        check("搜今天 AI 新闻并存成 Markdown", &["ai", "markdown"]);
        check("今天新闻", &["今天", "天新", "新闻"]);
        check("固态电池", &["固态", "态电", "电池"]);
        check("关于茶的新闻", &["茶的"]);
        check("茶", &["茶"]);
        check(
            "the latest news about solid-state batteries",
            &["solid", "state", "batteries"],
        );
        check("what is new", &["what", "is", "new"]);
        check("\"C++\" OR NOT *", &["c", "not"]);
        check("!?", &[]);
    }

    #[test]
    fn a_query_for_the_index_is_quoted() {
        assert_eq!(match_any(&terms("near AND rail")), r#""near" OR "rail""#);
    }
}
