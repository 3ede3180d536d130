use tine_engine::text::is_cjk;

/// The most characters of a piece of arguments.
const ARGUMENTS: usize = 64;

/// Cuts a text into pieces as a model would send it: words with the space after them, characters of scripts that are
/// written without spaces.
pub(super) fn words(text: &str) -> Vec<&str> {
    let mut cuts = Vec::new();
    let mut before = None;
    for (at, c) in text.char_indices() {
        let cut = before.is_some_and(|before: char| {
            (before.is_whitespace() && !c.is_whitespace())
                || is_cjk(c)
                || (is_cjk(before) && c.is_alphanumeric())
        });
        if cut {
            cuts.push(at);
        }
        before = Some(c);
    }
    between(text, &cuts)
}

/// Cuts the text of arguments into pieces.
pub(super) fn arguments(text: &str) -> Vec<&str> {
    let starts = text.char_indices().map(|(at, _)| at);
    let cuts: Vec<usize> = starts.step_by(ARGUMENTS).skip(1).collect();
    between(text, &cuts)
}

fn between<'a>(text: &'a str, cuts: &[usize]) -> Vec<&'a str> {
    if text.is_empty() {
        return Vec::new();
    }
    let mut start = 0;
    let ends = cuts.iter().copied().chain([text.len()]);
    ends.map(|end| {
        let piece = &text[start..end];
        start = end;
        piece
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_comes_in_words_and_characters() {
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(words(text), expected, "{text:?}");
            assert_eq!(words(text).concat(), text);
        };
        check("Tea is  hot.\n", &["Tea ", "is  ", "hot.\n"]);
        check("今天 AI 新闻。", &["今", "天 ", "AI ", "新", "闻。"]);
        check("共3条", &["共", "3", "条"]);
        check("", &[]);
    }

    #[test]
    fn arguments_come_in_pieces_of_equal_length() {
        let text = "新".repeat(130);
        assert_eq!(
            arguments(&text)
                .iter()
                .map(|piece| piece.chars().count())
                .collect::<Vec<_>>(),
            [64, 64, 2]
        );
    }
}
