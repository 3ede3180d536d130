//! Ids as names of folders.
//!
//! A thread id comes from outside and may be anything: `../../x`, `CON`, a
//! novel. Here it becomes one folder name, so it can never be a path, and two
//! ids never share a folder, not even where the file system ignores case.

/// The longest folder name that is written out; eCryptfs allows 143 bytes.
const LONGEST: usize = 120;

/// How much of an over-long id stays readable before its hash.
const READABLE: usize = 48;

/// Encodes any id as one folder name of `a-z 0-9 _ - =`.
///
/// Lower-case letters, digits, `_` and `-` stand for themselves; every other
/// byte becomes `=xx` (two hexadecimal digits), upper-case letters included,
/// because some file systems do not tell `A` from `a`. The empty id is `=`.
/// An id whose name would be longer than 120 bytes is cut and closed with
/// `=h` and its BLAKE3 hash: `h` is no hexadecimal digit, so no short id
/// meets a long one.
#[must_use]
pub fn folder_name(id: &str) -> String {
    if id.is_empty() {
        return "=".to_owned();
    }
    let escape_first = is_device(id);
    let mut name = String::with_capacity(id.len());
    for (at, byte) in id.bytes().enumerate() {
        let plain = matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
        if plain && !(at == 0 && escape_first) {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("={byte:02x}"));
        }
    }
    if name.len() > LONGEST {
        name.truncate(READABLE);
        name.push_str("=h");
        name.push_str(&blake3::hash(id.as_bytes()).to_hex());
    }
    name
}

/// Tells the names that Windows reserves for devices in every folder.
fn is_device(id: &str) -> bool {
    let numbered = |stem: &str| {
        id.strip_prefix(stem)
            .is_some_and(|rest| rest.len() == 1 && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    matches!(id, "con" | "prn" | "aux" | "nul") || numbered("com") || numbered("lpt")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(id: &str, expected: &str) {
        assert_eq!(folder_name(id), expected, "id {id:?}");
    }

    #[test]
    fn an_id_is_one_plain_name() {
        check("news-1", "news-1");
        check("../../x", "=2e=2e=2f=2e=2e=2fx");
        check(".", "=2e");
        check("", "=");
        check("=", "=3d");
        check("News", "=4eews");
        check("a\0b", "a=00b");
        check("今", "=e4=bb=8a");
        check("con", "=63on");
        check("com1", "=63om1");
        check("com12", "com12");
        check("console", "console");
    }

    #[test]
    fn an_over_long_id_keeps_its_start_and_gets_a_hash() {
        let long = "a".repeat(121);
        let name = folder_name(&long);
        assert_eq!(name.len(), READABLE + 2 + 64);
        assert!(name.starts_with(&"a".repeat(READABLE)));
        assert_ne!(name, folder_name(&"a".repeat(122)));
        assert_eq!(folder_name(&"a".repeat(120)), "a".repeat(120));
    }

    proptest! {
        #[test]
        fn names_hold_safe_characters_only(id in any::<String>()) {
            let name = folder_name(&id);
            prop_assert!(!name.is_empty() && name.len() <= LONGEST);
            prop_assert!(name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'=')));
        }

        #[test]
        fn two_ids_never_share_a_name(a in "[aA./=hcon1-]{0,12}", b in "[aA./=hcon1-]{0,12}") {
            prop_assert_eq!(a == b, folder_name(&a) == folder_name(&b));
        }

        #[test]
        fn two_long_ids_never_share_a_name(a in "[aA]{118,124}", b in "[aA]{118,124}") {
            prop_assert_eq!(a == b, folder_name(&a) == folder_name(&b));
        }
    }
}
