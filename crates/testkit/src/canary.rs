use std::{collections::BTreeMap, fmt::Write as _};

use base64::{
    Engine as _, alphabet,
    engine::{GeneralPurpose, general_purpose::NO_PAD},
};

/// Shorter texts are found in anything.
const MIN_LEN: usize = 8;

/// Secrets to be looked for where they must not be, in every form in which a program is likely to write them.
#[derive(Clone, Debug, Default)]
pub struct Canaries(BTreeMap<String, Canary>);

#[derive(Clone, Debug)]
struct Canary {
    what: String,
    form: &'static str,
}

/// A secret that was found. It does not tell the secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leak {
    /// What the secret is.
    pub what: String,
    /// How it was written, such as `hex`.
    pub form: &'static str,
    /// The line that it stands in, counted from 1.
    pub line: usize,
    /// That line, with the secret taken out.
    pub text: String,
}

impl Canaries {
    /// Adds a secret. Of a token its signature alone counts, too, wherever that has three parts. Texts of less than 8 bytes are left out.
    pub fn add(&mut self, what: impl Into<String>, secret: &str) {
        let what = what.into();
        if let [_, _, signature] = secret.split('.').collect::<Vec<_>>()[..] {
            self.add_forms(&format!("the signature of {what}"), signature);
        }
        self.add_forms(&what, secret);
    }

    /// Whether nothing is looked for.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Where in a text they are.
    pub fn leaks(&self, text: &str) -> Vec<Leak> {
        let mut leaks = Vec::new();
        for (canary, Canary { what, form }) in &self.0 {
            // One search of the whole text first: few of so many are ever in it.
            if !text.contains(canary) {
                continue;
            }
            for (line, content) in (1..).zip(text.lines()).filter(|(_, content)| content.contains(canary)) {
                leaks.push(Leak { what: what.clone(), form, line, text: content.replace(canary, "[..]") });
            }
        }
        leaks
    }

    /// Asserts that none is in a text, and that the text has something to search.
    ///
    /// # Panics
    /// When one is.
    pub fn assert_absent(&self, name: &str, text: &str) {
        assert!(!self.is_empty(), "nothing to look for in {name}");
        let leaks = self.leaks(text);
        assert!(leaks.is_empty(), "{name} has {} leaks, such as {:#?}", leaks.len(), &leaks[..leaks.len().min(3)]);
    }

    fn add_forms(&mut self, what: &str, secret: &str) {
        if secret.len() < MIN_LEN {
            return;
        }
        for (form, text) in forms(secret) {
            self.0.entry(text).or_insert_with(|| Canary { what: what.to_owned(), form });
        }
    }
}

/// A text as programs write it: as it is, escaped, encoded.
pub(crate) fn forms(secret: &str) -> Vec<(&'static str, String)> {
    let bytes = secret.as_bytes();
    let joined = |byte: &dyn Fn(u8) -> String| bytes.iter().map(|b| byte(*b)).collect::<String>();
    let within = |text: String| text[1..text.len() - 1].to_owned();
    let mut forms = vec![
        ("raw", secret.to_owned()),
        ("JSON", within(serde_json::Value::from(secret).to_string())),
        ("debug", within(format!("{secret:?}"))),
        ("hex", joined(&|byte| format!("{byte:02x}"))),
        ("hex", joined(&|byte| format!("{byte:02X}"))),
        ("decimal", bytes.iter().map(u8::to_string).collect::<Vec<_>>().join(", ")),
        ("decimal", bytes.iter().map(u8::to_string).collect::<Vec<_>>().join(",")),
        ("percent", joined(&|byte| format!("%{byte:02x}"))),
        ("percent", joined(&|byte| format!("%{byte:02X}"))),
        ("reversed", secret.chars().rev().collect()),
    ];
    // Encoders differ in which of the marks they leave alone, and in the case of their digits.
    for kept in ["-_.~", "-_.", "-_~", "-_", ""] {
        for upper in [true, false] {
            let escaped = joined(&|byte| match byte {
                byte if byte.is_ascii_alphanumeric() || kept.as_bytes().contains(&byte) => char::from(byte).to_string(),
                byte if upper => format!("%{byte:02X}"),
                byte => format!("%{byte:02x}"),
            });
            forms.push(("percent", escaped));
        }
    }
    forms.push(("percent", in_query(secret)));
    for alphabet in [alphabet::STANDARD, alphabet::URL_SAFE] {
        let engine = GeneralPurpose::new(&alphabet, NO_PAD);
        forms.extend((0..3).map(|before| ("base64", encoded_within(&engine, bytes, before))));
    }
    forms.retain(|(_, form)| form.len() >= MIN_LEN);
    forms
}

/// A text as it stands in the query of a parsed URL, where few characters are escaped.
fn in_query(text: &str) -> String {
    let mut url = url::Url::parse("http://localhost/").expect("a URL");
    url.set_query(Some(text));
    url.query().unwrap_or_default().to_owned()
}

/// The characters that bytes become in Base64 wherever they stand behind so many others, modulo 3.
fn encoded_within(engine: &GeneralPurpose, bytes: &[u8], before: usize) -> String {
    let encoded = engine.encode([&[0; 2][..before], bytes].concat());
    let first = (before * 8).div_ceil(6);
    let end = (before + bytes.len()) * 8 / 6;
    encoded[first.min(end)..end].to_owned()
}

impl std::fmt::Display for Leak {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {} ({}): ", self.line, self.what, self.form)?;
        self.text.chars().take(400).try_for_each(|character| f.write_char(character))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "se.cr~et/+\"\u{1}\u{e9}\\-_key";

    /// J2: a leak in any of these encodings is found, and is not told again by whoever tells of it.
    #[test]
    fn planted_leaks_are_found() {
        let standard = GeneralPurpose::new(&alphabet::STANDARD, NO_PAD);
        let url_safe = GeneralPurpose::new(&alphabet::URL_SAFE, NO_PAD);
        for (form, leak) in [
            ("raw", SECRET.to_owned()),
            ("JSON", serde_json::json!({ "outer": { "key": SECRET } }).to_string()),
            ("debug", format!("{:?}", Some(SECRET))),
            ("hex", SECRET.bytes().map(|byte| format!("{byte:02x}")).collect()),
            ("hex", SECRET.bytes().map(|byte| format!("{byte:02X}")).collect()),
            ("decimal", format!("{:?}", SECRET.as_bytes())),
            ("percent", url::form_urlencoded::byte_serialize(SECRET.as_bytes()).collect()),
            ("percent", SECRET.bytes().map(|byte| format!("%{byte:02x}")).collect()),
            ("percent", in_query(SECRET)),
            ("base64", standard.encode(SECRET)),
            ("base64", url_safe.encode(SECRET)),
            ("base64", standard.encode(format!("client:{SECRET}"))),
            ("base64", url_safe.encode(format!("a{SECRET}bc"))),
        ] {
            let mut canaries = Canaries::default();
            canaries.add("a key", SECRET);
            let leaks = canaries.leaks(&format!("first\nfield=\"{leak}\" more\nlast"));
            let found = leaks.iter().find(|leak| leak.form == form);
            let found = found.unwrap_or_else(|| panic!("{form} is not found: {leak}: {leaks:?}"));
            assert_eq!((found.what.as_str(), found.line), ("a key", 2));
            assert!(!found.to_string().contains(&leak), "{found}");
        }
    }

    #[test]
    fn a_signature_counts_alone_and_short_texts_do_not() {
        let mut canaries = Canaries::default();
        canaries.add("a token", "header-part.payload-part.signature-part");
        assert_eq!(canaries.leaks("x signature-part y")[0].what, "the signature of a token");
        assert!(canaries.leaks("header-part.payload-part").is_empty());
        let mut canaries = Canaries::default();
        canaries.add("a word", "short");
        assert!(canaries.is_empty());
    }
}
