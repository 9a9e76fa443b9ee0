//! [`Canaries`]: detects leaked secrets.

mod encodings;

use std::{collections::BTreeMap, fmt::Write as _};

use self::encodings::{MIN_LEN, forms};

/// Secrets that must not occur in an output. They are searched in every encoding that a program is
/// likely to write.
///
/// ```
/// use portcullis_testkit::Canaries;
///
/// let mut canaries = Canaries::default();
/// canaries.add("the client secret", "correct horse battery staple");
/// canaries.assert_absent("the log", "POST /token 200");
/// assert_eq!(canaries.leaks("secret=correct%20horse%20battery%20staple")[0].form, "percent");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Canaries(BTreeMap<String, Canary>);

/// A text that must not occur: an encoding of a secret.
#[derive(Clone, Debug)]
struct Canary {
    /// The name of the secret.
    name: String,
    /// The name of the encoding.
    form: &'static str,
}

/// A leaked secret. It contains none of the secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leak {
    /// The name of the secret.
    pub what: String,
    /// The encoding, such as `hex`.
    pub form: &'static str,
    /// The line number of the beginning, from 1.
    pub line: usize,
    /// The line, with all secrets removed.
    pub text: String,
}

impl Canaries {
    /// Adds a secret. If it is a token with three segments, its signature is also added as a secret
    /// of its own. Strings shorter than 8 bytes are ignored.
    pub fn add(&mut self, what: impl Into<String>, secret: &str) {
        let what = what.into();
        if let [_, _, signature] = secret.split('.').collect::<Vec<_>>()[..] {
            self.add_forms(&format!("the signature of {what}"), signature);
        }
        self.add_forms(&what, secret);
    }

    /// Returns whether there are no secrets to search for.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns all leaks in a text.
    pub fn leaks(&self, text: &str) -> Vec<Leak> {
        let mut leaks = Vec::new();
        for (canary, Canary { name, form }) in &self.0 {
            for (position, _) in text.match_indices(canary) {
                // A secret can span lines: the text is that of its first and last line, without
                // what is between.
                let before = &text[..position];
                let after = &text[position + canary.len()..];
                let beginning = before.rsplit('\n').next().unwrap_or_default();
                let end = after.split('\n').next().unwrap_or_default();
                let line_without = |text: String, canary: &String| text.replace(canary, "[..]");
                let text = self
                    .0
                    .keys()
                    .fold(format!("{beginning}[..]{end}"), line_without);
                leaks.push(Leak {
                    what: name.clone(),
                    form,
                    line: before.matches('\n').count() + 1,
                    text,
                });
            }
        }
        leaks
    }

    /// Asserts that a text contains no secret.
    ///
    /// # Panics
    /// Panics if the text contains a secret or there are no secrets to search for.
    pub fn assert_absent(&self, name: &str, text: &str) {
        assert!(!self.is_empty(), "no secrets to search for in {name}");
        let leaks = self.leaks(text);
        assert!(
            leaks.is_empty(),
            "{name} has {} leaks, such as {:#?}",
            leaks.len(),
            &leaks[..leaks.len().min(3)]
        );
    }

    /// Adds the encodings of a secret that is long enough.
    fn add_forms(&mut self, name: &str, secret: &str) {
        if secret.len() < MIN_LEN {
            return;
        }
        for (form, text) in forms(secret) {
            self.0.entry(text).or_insert_with(|| Canary {
                name: name.to_owned(),
                form,
            });
        }
    }
}

impl<N: Into<String>, S: AsRef<str>> FromIterator<(N, S)> for Canaries {
    fn from_iter<I: IntoIterator<Item = (N, S)>>(secrets: I) -> Self {
        let mut canaries = Self::default();
        for (what, secret) in secrets {
            canaries.add(what, secret.as_ref());
        }
        canaries
    }
}

impl std::fmt::Display for Leak {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {} ({}): ", self.line, self.what, self.form)?;
        self.text
            .chars()
            .take(400)
            .try_for_each(|character| f.write_char(character))
    }
}

#[cfg(test)]
mod tests {
    use base64::{
        Engine as _, alphabet,
        engine::{GeneralPurpose, general_purpose::NO_PAD},
    };

    use super::{encodings::in_query, *};

    const SECRET: &str = "se.cr~et/+ *!\"\u{1}\u{e9}\\-_key";

    /// J2: a leak in any of these encodings is found, and the report does not repeat the secret.
    #[test]
    fn planted_leaks_are_found() {
        let standard = GeneralPurpose::new(&alphabet::STANDARD, NO_PAD);
        let url_safe = GeneralPurpose::new(&alphabet::URL_SAFE, NO_PAD);
        for (form, leak) in [
            ("raw", SECRET.to_owned()),
            (
                "JSON",
                serde_json::json!({ "outer": { "key": SECRET } }).to_string(),
            ),
            ("debug", format!("{:?}", Some(SECRET))),
            (
                "hex",
                SECRET.bytes().map(|byte| format!("{byte:02x}")).collect(),
            ),
            (
                "hex",
                SECRET.bytes().map(|byte| format!("{byte:02X}")).collect(),
            ),
            ("decimal", format!("{:?}", SECRET.as_bytes())),
            (
                "form",
                url::form_urlencoded::byte_serialize(SECRET.as_bytes()).collect(),
            ),
            (
                "percent",
                "se.cr~et%2F%2B%20*!%22%01%C3%A9%5C-_key".to_owned(),
            ),
            (
                "percent",
                SECRET.bytes().map(|byte| format!("%{byte:02x}")).collect(),
            ),
            ("percent", in_query(SECRET)),
            ("base64", standard.encode(SECRET)),
            ("base64", url_safe.encode(SECRET)),
            ("base64", standard.encode(format!("client:{SECRET}"))),
            ("base64", url_safe.encode(format!("a{SECRET}bc"))),
            ("reversed", SECRET.chars().rev().collect()),
        ] {
            let mut canaries = Canaries::default();
            canaries.add("a key", SECRET);
            let leaks = canaries.leaks(&format!("first\nfield=\"{leak}\" more\nlast"));
            let found = leaks.iter().find(|leak| leak.form == form);
            let found = found.unwrap_or_else(|| panic!("{form} was not found: {leak}: {leaks:?}"));
            assert_eq!(found.what.as_str(), "a key");
            assert_eq!(found.line, 2);
            assert!(!found.to_string().contains(&leak), "{found}");
        }
    }

    /// J2: a secret of several lines is found, and a line with several secrets shows none of them.
    #[test]
    fn secrets_can_span_and_share_lines() {
        let mut canaries = Canaries::default();
        canaries.add(
            "a private key",
            "-----BEGIN KEY-----\nabcdefgh\n-----END KEY-----",
        );
        let leaks = canaries
            .leaks("first\nkey: -----BEGIN KEY-----\nabcdefgh\n-----END KEY----- and more\nlast");
        assert_eq!(leaks[0].line, 2);
        assert_eq!(leaks[0].text.as_str(), "key: [..] and more");
        canaries.add("a password", "correct horse");
        canaries.add("a code", "battery staple");
        let leaks = canaries.leaks("correct horse, battery staple");
        assert_eq!(leaks.len(), 2);
        assert!(
            leaks.iter().all(|leak| leak.text == "[..], [..]"),
            "{leaks:?}"
        );
    }

    #[test]
    fn signatures_are_added_and_short_strings_are_ignored() {
        let mut canaries = Canaries::default();
        canaries.add("a token", "header-part.payload-part.signature-part");
        assert_eq!(
            canaries.leaks("x signature-part y")[0].what,
            "the signature of a token"
        );
        assert!(canaries.leaks("header-part.payload-part").is_empty());
        let mut canaries = Canaries::default();
        canaries.add("a word", "short");
        assert!(canaries.is_empty());
    }
}
