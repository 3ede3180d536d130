//! What several crates need to know about words, so that they agree on it.

use std::cmp::Reverse;

/// Finds the known name that a mistyped one most likely stands for.
///
/// Names are compared without regard to case; a name of which more than a third differs is no suggestion. Of equally
/// near names the one with the longest common beginning is given, then the first in alphabetical order.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_lowercase();
    let most = (name.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|candidate| {
            let folded = candidate.to_lowercase();
            let common = lower.chars().zip(folded.chars());
            let common = common.take_while(|(a, b)| a == b).count();
            let distance = strsim::damerau_levenshtein(&lower, &folded);
            (distance, Reverse(common), candidate)
        })
        .filter(|(distance, ..)| *distance <= most)
        .min()
        .map(|(.., candidate)| candidate)
}

/// Whether a character belongs to a script that is written without spaces between words: Chinese, Japanese, Korean.
#[must_use]
pub fn is_cjk(c: char) -> bool {
    matches!(c,
        '\u{3041}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_name_finds_its_neighbour() {
        let check = |name: &str, expected: Option<&str>| {
            let known = ["write_file", "read_file", "ls", "web_search"];
            assert_eq!(nearest(name, known), expected, "{name}");
        };
        check("web_serach", Some("web_search"));
        check("Read_File", Some("read_file"));
        check("l", Some("ls"));
        check("file", None);
        check("", None);
        assert_eq!(nearest("stat", ["start", "state"]), Some("state"));
        assert_eq!(nearest("bat", ["bay", "bar"]), Some("bar"));
    }

    #[test]
    fn scripts_without_spaces_are_known() {
        let found: String = "aé今ア한ー。1𠀀".chars().filter(|c| is_cjk(*c)).collect();
        assert_eq!(found, "今ア한ー𠀀");
    }
}
