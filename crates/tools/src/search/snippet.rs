use super::segment::fold;

/// How long a snippet may be, in characters.
const LONGEST: usize = 240;

/// Takes the stretch of sentences that holds most of the terms, the earliest
/// of equals.
pub(super) fn snippet(body: &str, terms: &[String]) -> String {
    let sentences = sentences(body);
    let folded: Vec<String> = sentences.iter().map(|sentence| fold(sentence)).collect();
    let stems: Vec<&str> = terms.iter().map(|term| stem(term)).collect();
    let mut best = (0, 0, 0);
    for first in 0..sentences.len() {
        // A start without a term would only push the words out of sight.
        if !stems.iter().any(|stem| folded[first].contains(stem)) {
            continue;
        }
        let mut length = 0;
        let mut last = first;
        while last < sentences.len() {
            length += sentences[last].chars().count();
            if length > LONGEST && last > first {
                break;
            }
            last += 1;
        }
        let within = &folded[first..last];
        let found = stems
            .iter()
            .filter(|stem| within.iter().any(|sentence| sentence.contains(**stem)))
            .count();
        if found > best.0 {
            best = (found, first, last);
        }
    }
    let (found, first, last) = best;
    let chosen = match found {
        0 => sentences.concat(),
        _ => sentences[first..last].concat(),
    };
    cut(chosen.replace('\n', " ").trim())
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
    fn a_long_sentence_is_cut() {
        let cut = snippet(&"长".repeat(500), &["长长".to_owned()]);
        assert_eq!(cut.chars().count(), LONGEST + 1);
        assert!(cut.ends_with('…'));
    }
}
