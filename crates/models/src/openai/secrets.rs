//! What must never be shown.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use reqwest::Url;

/// The shortest that is kept from view. Local endpoints have keys such as `none` and `EMPTY`, which are no secret and
/// stand in many a sentence.
const SHORTEST: usize = 8;

/// Texts that must never be shown, each in the forms in which a provider or a proxy may say it again.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    pub(crate) fn add(&mut self, secret: impl Into<String>) {
        let secret = secret.into();
        if secret.len() >= SHORTEST && !self.0.contains(&secret) {
            self.0.push(secret);
            // One may be a part of another, of which nothing must be left.
            self.0.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        }
    }

    /// The value of a header, and what stands in it behind `Bearer` and its like.
    pub(crate) fn add_header(&mut self, value: &str) {
        self.add(value);
        self.add(value.rsplit(' ').next().unwrap_or_default());
    }

    /// User, password and the values of the query of an address: as written there, as meant, and as sent in a header.
    pub(crate) fn add_address(&mut self, url: &Url) {
        let (user, password) = (url.username(), url.password().unwrap_or_default());
        let (meant_user, meant_password) = (decoded(user), decoded(password));
        let sent = BASE64_STANDARD.encode(format!("{meant_user}:{meant_password}"));
        if !user.is_empty() || !password.is_empty() {
            self.add(sent.trim_end_matches('='));
            self.add(sent);
        }
        for text in [user, password, &meant_user, &meant_password] {
            self.add(text);
        }
        for pair in url.query().unwrap_or_default().split('&') {
            // A key may stand there alone.
            let (_, value) = pair.split_once('=').unwrap_or(("", pair));
            self.add(value);
            self.add(value.replace('+', "%20"));
            self.add(decoded(value));
            self.add(decoded(&value.replace('+', " ")));
        }
    }

    /// A text without them.
    pub(crate) fn clean(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| {
            text.replace(secret.as_str(), "***")
        })
    }
}

/// A part of an address without `%`.
fn decoded(text: &str) -> String {
    let hex = |digits: &[u8]| {
        let digits = std::str::from_utf8(digits).ok()?;
        let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        u8::from_str_radix(digits, 16).ok().filter(|_| is_hex)
    };
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let escaped = more.get(..2).filter(|_| *first == b'%').and_then(hex);
        bytes.push(escaped.unwrap_or(*first));
        rest = match escaped {
            Some(_) => more.get(2..).unwrap_or_default(),
            None => more,
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_kept_from_view_in_every_form() {
        let mut secrets = Secrets::default();
        let mut url = Url::parse(
            "https://ada-lovelace:p%40ss%20word@x/v1?key=a%2Fsecret%2Bkey&short=1&lonely-key",
        )
        .unwrap();
        url.query_pairs_mut()
            .append_pair("more", "another secret/key");
        secrets.add_address(&url);
        for told in [
            "ada-lovelace",
            "p@ss word",
            "p%40ss%20word",
            &BASE64_STANDARD.encode("ada-lovelace:p@ss word"),
            "a/secret+key",
            "a%2Fsecret%2Bkey",
            "lonely-key",
            "another secret/key",
            "another+secret%2Fkey",
            "another%20secret%2Fkey",
        ] {
            assert_eq!(secrets.clean(&format!("<{told}>")), "<***>", "{told}");
        }
        assert_eq!(secrets.clean("1 and more"), "1 and more");
    }

    #[test]
    fn a_user_alone_is_a_key() {
        let mut secrets = Secrets::default();
        secrets.add_address(&Url::parse("https://sk-something@x/v1").unwrap());
        assert_eq!(secrets.clean("sk-something"), "***");
        let sent = BASE64_STANDARD.encode("sk-something:");
        assert_eq!(secrets.clean(&sent), "***");
    }

    #[test]
    fn nothing_is_left_of_one_with_another_in_it() {
        let mut secrets = Secrets::default();
        secrets.add("12345678");
        secrets.add_header("Bearer 12345678-abc");
        assert_eq!(secrets.clean("12345678-abc 12345678"), "*** ***");
    }

    #[test]
    fn what_is_no_escape_stays() {
        for (text, expected) in [
            ("100%", "100%"),
            ("%4", "%4"),
            ("%zz%41", "%zzA"),
            ("%+1", "%+1"),
            ("é%é", "é%é"),
        ] {
            assert_eq!(decoded(text), expected);
        }
    }
}
