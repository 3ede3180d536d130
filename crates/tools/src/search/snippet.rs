use tine_engine::text::is_cjk;

use super::segment::{MOST_TERMS, fold};

/// How long a snippet may be, in characters.
const LONGEST: usize = 240;

/// How much of a text is looked at, in bytes. What an article is about stands
/// in its beginning, and a search should not take longer for a huge list.
const LOOKED_AT: usize = 64 * 1024;

/// Takes the stretch of sentences that holds most of the terms, the earliest
/// of equals.
pub(super) fn snippet(body: &str, terms: &[String]) -> String {
    let body = &body[..body.floor_char_boundary(LOOKED_AT)];
    let sentences = sentences(body);
    let terms: Vec<Term<'_>> = terms.iter().take(MOST_TERMS).map(|t| Term::of(t)).collect();
    let held: Vec<u64> = sentences.iter().map(|text| held(text, &terms)).collect();
    let lengths: Vec<usize> = sentences.iter().map(|text| text.chars().count()).collect();
    let mut best = (0, 0, 0);
    // The stretch that begins at `first` ends before `last`.
    let mut last = 0;
    let mut length = 0;
    for first in 0..sentences.len() {
        while last < sentences.len() && (last <= first || length + lengths[last] <= LONGEST) {
            length += lengths[last];
            last += 1;
        }
        // A start without a term would only push the words out of sight.
        if held[first] != 0 {
            let all = held[first..last].iter().fold(0, |all, held| all | held);
            let found = all.count_ones() as usize;
            if found > best.0 {
                best = (found, first, last);
            }
            if found == terms.len() {
                break;
            }
        }
        length -= lengths[first];
    }
    let (found, first, last) = best;
    let chosen = match found {
        // More than is shown, so that `cut` sees whether there is more.
        0 => body.chars().take(2 * LONGEST).collect(),
        _ => sentences[first..last].concat(),
    };
    cut(chosen.replace('\n', " ").trim())
}

/// One term as it is looked for in a sentence.
struct Term<'a> {
    text: &'a str,
    /// Written without spaces, so it may stand anywhere.
    cjk: bool,
    /// Too short to be the beginning of another word by no accident.
    whole: bool,
}

impl<'a> Term<'a> {
    fn of(term: &'a str) -> Self {
        Self {
            text: stem(term),
            cjk: term.chars().any(is_cjk),
            whole: term.chars().count() < 4,
        }
    }

    fn is_in(&self, folded: &str) -> bool {
        let in_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() && !is_cjk(c));
        folded.match_indices(self.text).any(|(at, found)| {
            let before = folded[..at].chars().next_back();
            let after = folded[at + found.len()..].chars().next();
            self.cjk || !(in_word(before) || self.whole && in_word(after))
        })
    }
}

/// Says which of the terms a sentence holds, a bit each.
fn held(sentence: &str, terms: &[Term<'_>]) -> u64 {
    let folded = fold(sentence);
    (0..u64::BITS)
        .zip(terms)
        .filter(|(_, term)| term.is_in(&folded))
        .fold(0, |held, (bit, _)| held | 1 << bit)
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
    }
}

/// Splits a text after each sentence and each line; joined they are the text.
fn sentences(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut start = 0;
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        let next = characters.peek().map(|(_, next)| *next);
        let ends = match c {
            '。' | '！' | '？' | '\n' => true,
            // `3.5` and `e.g.x` go on; a sentence is followed by a space.
            '.' | '!' | '?' => next.is_none_or(char::is_whitespace),
            _ => false,
        };
        if ends {
            let end = at + c.len_utf8();
            sentences.push(&text[start..end]);
            start = end;
        }
    }
    if start < text.len() {
        sentences.push(&text[start..]);
    }
    sentences
}

/// Cuts the commonest English endings, so that a snippet shows `battery` for
/// `batteries`; only the choice of the snippet depends on it.
fn stem(term: &str) -> &str {
    for ending in ["ies", "ing", "es", "ed", "s", "y"] {
        if let Some(stem) = term.strip_suffix(ending)
            && stem.len() >= 4
        {
            return stem;
        }
    }
    term
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, terms: &[&str], expected: &str) {
        let terms: Vec<String> = terms.iter().map(|term| (*term).to_owned()).collect();
        assert_eq!(snippet(body, &terms), expected);
    }

    #[test]
    fn the_sentences_with_most_terms_are_shown() {
        let filler = "Nothing to see here at all, but long enough. ".repeat(8);
        check(
            &format!("{filler}The Battery grew by 3.5 percent. It charges fast."),
            &["batteries", "charges"],
            "The Battery grew by 3.5 percent. It charges fast.",
        );
        check(
            "第一句。\n电池涨价。第三句。",
            &["电池"],
            "电池涨价。第三句。",
        );
        check("Only this.", &["absent"], "Only this.");
        check("", &["x"], "");
    }

    #[test]
    fn words_are_found_at_their_beginning_and_short_ones_whole() {
        let filler = "It was said that the rain in the paper remains a claim. ".repeat(8);
        for (term, end) in [
            ("ai", "Then an AI planner came."),
            ("ai", "Ask 用AI做的 one."),
            ("rain", "Rainy days."),
            ("train", "Trains ran."),
        ] {
            let filler = filler.replace("rain", if term == "rain" { "train" } else { "rain" });
            check(&format!("{filler}{end}"), &[term], end);
        }
        let start = filler.split_inclusive(". ").next().unwrap_or_default();
        assert!(snippet(&filler, &["ai".to_owned()]).starts_with(start));
    }

    #[test]
    fn a_hostile_text_costs_no_more_than_its_beginning() {
        let terms: Vec<String> = (0..MOST_TERMS).map(|n| format!("茶{n}")).collect();
        for text in ["茶。", "茶\n", "茶0。", "茶0 "] {
            let body = text.repeat(400_000);
            assert!(snippet(&body, &terms).chars().count() <= LONGEST + 1);
        }
        let late = "x ".repeat(LOOKED_AT) + "茶";
        assert!(!snippet(&late, &["茶".to_owned()]).contains('茶'));
    }

    #[test]
    fn a_long_sentence_is_cut() {
        let cut = snippet(&"长".repeat(500), &["长长".to_owned()]);
        assert_eq!(cut.chars().count(), LONGEST + 1);
        assert!(cut.ends_with('…'));
    }
}
