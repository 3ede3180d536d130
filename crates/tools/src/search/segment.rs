//! Words of a text, where Chinese has no spaces between them.
//!
//! SQLite's tokenizer takes a run of Chinese for one word, and its trigram
//! tokenizer finds nothing shorter than three characters, while most Chinese
//! words have two. So text is cut here before it is indexed: each run of
//! Chinese, Japanese or Korean gives its single characters and its pairs.

use tine_engine::text::is_cjk;

/// Words that hold a sentence together. They are left out of a query, unless
/// it has no others.
const FILLER_ENGLISH: &[&str] = &[
    "a", "about", "all", "an", "and", "any", "are", "as", "at", "be", "by", "can", "do", "find",
    "for", "from", "get", "give", "has", "have", "how", "i", "in", "is", "it", "me", "my", "of",
    "on", "or", "please", "s", "search", "show", "some", "tell", "that", "the", "their", "there",
    "this", "to", "was", "were", "what", "when", "where", "which", "who", "why", "will", "with",
    "write", "you", "your",
];
const FILLER_CHINESE: &[&str] = &[
    "是什么",
    "有哪些",
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

/// Words that ask for news. They rank what the others found, and find nothing
/// themselves, unless a query has no others.
const TIMELY_ENGLISH: &[&str] = &[
    "article", "articles", "latest", "new", "news", "recent", "report", "reports", "today",
    "update", "updates",
];
const TIMELY_CHINESE: &[&str] = &[
    "今天", "今日", "最新", "最近", "新闻", "消息", "资讯", "报道",
];

/// Single characters that are left over when such words are taken out.
const FILLER_CHARACTERS: &str = "的了和与及或在是有吗呢请搜查找写并存成我你这那一份篇个";

/// The most terms of one query; more would only be noise.
pub(super) const MOST_TERMS: usize = 64;

/// The most characters of one query; what follows is left out.
pub(super) const LONGEST_QUERY: usize = 500;

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

/// The words of a query, each one word of the index.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Terms {
    /// Any of these makes a document a result.
    pub(super) finding: Vec<String>,
    /// These only move a result up.
    pub(super) ranking: Vec<String>,
}

impl Terms {
    pub(super) fn of(query: &str) -> Self {
        // Each term is compared with all before it.
        let query: String = query.chars().take(LONGEST_QUERY).collect();
        let mut terms = Self::default();
        let mut all = Vec::new();
        for run in runs(&query) {
            match run {
                Run::Word(word) => {
                    let list = match word.as_str() {
                        word if FILLER_ENGLISH.contains(&word) => None,
                        word if TIMELY_ENGLISH.contains(&word) => Some(&mut terms.ranking),
                        _ => Some(&mut terms.finding),
                    };
                    if let Some(list) = list {
                        push(list, word.clone());
                    }
                    push(&mut all, word);
                }
                Run::Cjk(characters) => {
                    let text: String = characters.iter().collect();
                    pairs(&text, &mut all);
                    for timely in TIMELY_CHINESE.iter().filter(|word| text.contains(**word)) {
                        pairs(timely, &mut terms.ranking);
                    }
                    for part in topics(&text) {
                        pairs(&part, &mut terms.finding);
                    }
                }
            }
        }
        if terms.finding.is_empty() {
            terms = Self {
                finding: all,
                ranking: Vec::new(),
            };
        }
        terms.finding.truncate(MOST_TERMS);
        terms.ranking.truncate(MOST_TERMS);
        terms
    }

    /// Writes the terms as a query of FTS5.
    pub(super) fn expression(&self) -> String {
        let finding = any(&self.finding);
        if self.ranking.is_empty() {
            return finding;
        }
        // bm25 counts each word once for each time it stands here, so what
        // finds also weighs double.
        format!("({finding}) AND ({finding} OR {})", any(&self.ranking))
    }
}

/// Terms hold letters and digits only, so nothing in them needs escaping.
fn any(terms: &[String]) -> String {
    let quoted: Vec<String> = terms.iter().map(|term| format!("\"{term}\"")).collect();
    quoted.join(" OR ")
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

/// Cuts filler and timely words out of a run of Chinese.
fn topics(text: &str) -> Vec<String> {
    let mut parts = vec![text.to_owned()];
    for word in FILLER_CHINESE.iter().chain(TIMELY_CHINESE) {
        parts = parts
            .iter()
            .flat_map(|part| part.split(word).map(str::to_owned))
            .collect();
    }
    let cut = parts.len() > 1;
    parts.retain(|part| {
        let left_over = cut && part.chars().all(|c| FILLER_CHARACTERS.contains(c));
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
    fn a_query_is_found_by_its_topic_and_ranked_by_what_asks_for_news() {
        let check = |query: &str, finding: &[&str], ranking: &[&str]| {
            let terms = Terms::of(query);
            assert_eq!(terms.finding, finding, "query {query:?}");
            assert_eq!(terms.ranking, ranking, "query {query:?}");
        };
        check("今天 AI 新闻", &["ai"], &["今天", "新闻"]);
        check(
            "搜今天 AI 新闻并存成 Markdown",
            &["ai", "markdown"],
            &["今天", "新闻"],
        );
        check("今天新闻", &["今天", "天新", "新闻"], &[]);
        check("固态电池", &["固态", "态电", "电池"], &[]);
        check("关于茶的新闻", &["茶的"], &["新闻"]);
        check("茶", &["茶"], &[]);
        check(
            "the latest news about old batteries",
            &["old", "batteries"],
            &["latest", "news"],
        );
        check("what is new", &["what", "is", "new"], &[]);
        check("\"C++\" OR NOT *", &["c", "not"], &[]);
        check("!?", &[], &[]);
    }

    #[test]
    fn a_query_as_long_as_a_book_is_cut_first() {
        let many: String = ('\u{4E00}'..'\u{9FFF}').cycle().take(400_000).collect();
        assert_eq!(Terms::of(&many).finding.len(), MOST_TERMS);
        let late = format!("{}茶", "the ".repeat(LONGEST_QUERY));
        assert!(!Terms::of(&late).finding.contains(&"茶".to_owned()));
    }

    #[test]
    fn a_query_for_the_index_is_quoted() {
        let check = |query: &str, expected: &str| {
            assert_eq!(Terms::of(query).expression(), expected);
        };
        check("near AND rail", r#""near" OR "rail""#);
        check("rail news", r#"("rail") AND ("rail" OR "news")"#);
    }
}
