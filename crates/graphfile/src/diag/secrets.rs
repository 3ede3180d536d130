//! Finds what looks like a key or a token, so that it is neither accepted nor printed.

use super::Span;

/// Prefixes that providers put before their keys, with the least number of characters to follow.
const PREFIXES: &[(&str, usize)] = &[
    ("sk-", 16),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghs_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("xoxb-", 16),
    ("xoxp-", 16),
    ("AKIA", 16),
    ("AIza", 30),
    ("eyJ", 60),
];

/// From this length on, a run of base64 with capitals, small letters and digits is taken for one.
const LONG_BASE64: usize = 60;

/// Returns the places of all suspicious words of a text.
pub(crate) fn find_secrets(text: &str) -> Vec<Span> {
    let mut found = Vec::new();
    let inside =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '+' | '/' | '=' | '.');
    for word in text.split(|c: char| !inside(c)) {
        // Words are separated by one character of any width, so the place comes from the slice.
        let at = word.as_ptr() as usize - text.as_ptr() as usize;
        if let Some(offset) = suspicious(word) {
            found.push(Span::new(at + offset, at + word.len()));
        }
    }
    found
}

fn suspicious(word: &str) -> Option<usize> {
    for (prefix, least) in PREFIXES {
        let Some(at) = word.find(prefix) else {
            continue;
        };
        let free = at == 0 || !word.as_bytes()[at - 1].is_ascii_alphanumeric();
        if free && word.len() - at >= prefix.len() + least {
            return Some(at);
        }
    }
    let plain = word.trim_end_matches('=');
    let base64 = plain.len() >= LONG_BASE64
        && !plain.contains(['-', '.'])
        && plain.matches('/').count() * 12 < plain.len()
        && plain.contains(|c: char| c.is_ascii_uppercase())
        && plain.contains(|c: char| c.is_ascii_lowercase())
        && plain.contains(|c: char| c.is_ascii_digit());
    base64.then_some(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let found: Vec<_> = find_secrets(text)
            .into_iter()
            .map(|s| &text[s.start..s.end])
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn keys_of_providers_are_found_and_paths_are_not() {
        let key = format!("sk-{}", "a1".repeat(12));
        check(&format!("params: {{ api_key: {key} }}"), &[&key]);
        check(&format!("api_key={key}"), &[&key]);
        let base64 = "QWxhZGRpbjpvcGVuIHNlc2FtZQ0123456789abcdefghijklmnopqrstuvwxyzABCD";
        check(&format!("密钥：{base64}"), &[base64]);
        check(
            "task-management is no key, nor is ask-before-anything-is-done-here",
            &[],
        );
        check(
            "/mnt/user-data/outputs/a/very/long/path/that/goes/on/and/on/Report2024/final.md",
            &[],
        );
    }
}
