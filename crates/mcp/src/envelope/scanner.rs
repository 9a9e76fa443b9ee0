use std::borrow::Cow;

use super::error::EnvelopeError;

/// Scans JSON text (RFC 8259): checks the syntax and builds no values. Unexpected input fails with
/// [`EnvelopeError::NotJson`].
pub(super) struct Scanner<'a> {
    text: &'a str,
    /// The position in bytes. Always at the boundary of a character.
    at: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Container {
    Array,
    Object,
}

impl<'a> Scanner<'a> {
    /// Returns a scanner at the beginning of a text.
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Skips white space and returns the next byte, without consuming it.
    pub(super) fn peek_token(&mut self) -> Option<u8> {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.at += 1,
                byte => return byte,
            }
        }
    }

    /// Skips white space, after which the text must end.
    pub(super) fn end(&mut self) -> Result<(), EnvelopeError> {
        if self.peek_token().is_none() {
            Ok(())
        } else {
            Err(EnvelopeError::NotJson)
        }
    }

    /// Skips white space and consumes this byte, if it is next. Returns whether it is.
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let is_there = self.peek_token() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    /// Consumes the name of a member and its colon. Returns the decoded name.
    pub(super) fn name(&mut self) -> Result<Cow<'a, str>, EnvelopeError> {
        let start = self.at_name()?;
        let is_plain = self.string()?;
        let name = if is_plain {
            Cow::Borrowed(&self.text[start + 1..self.at - 1])
        } else {
            let decoded = serde_json::from_str(&self.text[start..self.at]);
            Cow::Owned(decoded.map_err(|_| EnvelopeError::NotJson)?)
        };
        self.colon().map(|()| name)
    }

    /// Skips white space and returns the start of a name.
    fn at_name(&mut self) -> Result<usize, EnvelopeError> {
        if self.peek_token() == Some(b'"') {
            Ok(self.at)
        } else {
            Err(EnvelopeError::NotJson)
        }
    }

    /// Consumes the colon after a name.
    fn colon(&mut self) -> Result<(), EnvelopeError> {
        if self.take(b':') {
            Ok(())
        } else {
            Err(EnvelopeError::NotJson)
        }
    }

    /// Consumes a value with a nesting depth of at most `max_depth`. Returns the value as written.
    /// Returns [`EnvelopeError::TooDeep`] at the first array or object that is too deep.
    pub(super) fn value(&mut self, max_depth: usize) -> Result<&'a str, EnvelopeError> {
        self.peek_token();
        let start = self.at;
        // Values with a depth of at most 1 allocate nothing.
        let mut innermost = None;
        let mut outer = Vec::new();
        loop {
            let opened = self.scalar_or_container()?;
            if let Some(container) = opened {
                self.at += 1;
                outer.extend(innermost.replace(container));
                if outer.len() >= max_depth {
                    return Err(EnvelopeError::TooDeep);
                }
                if self.peek_token() != Some(container.end()) {
                    self.member_of(container)?;
                    continue;
                }
            }
            // A value has ended, or a container is empty.
            loop {
                let Some(container) = innermost else {
                    return Ok(&self.text[start..self.at]);
                };
                if self.take(b',') {
                    self.member_of(container)?;
                    break;
                }
                if !self.take(container.end()) {
                    return Err(EnvelopeError::NotJson);
                }
                innermost = outer.pop();
            }
        }
    }

    /// Consumes a string, number or literal. Returns the container if an array or object is next,
    /// without consuming it.
    fn scalar_or_container(&mut self) -> Result<Option<Container>, EnvelopeError> {
        match self.peek_token() {
            Some(b'{') => return Ok(Some(Container::Object)),
            Some(b'[') => return Ok(Some(Container::Array)),
            Some(b'"') => {
                self.string()?;
            }
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.literal("true")?,
            Some(b'f') => self.literal("false")?,
            Some(b'n') => self.literal("null")?,
            _ => return Err(EnvelopeError::NotJson),
        }
        Ok(None)
    }

    /// Consumes the name and the colon before a value in an object. Before an element of an array,
    /// consumes nothing.
    fn member_of(&mut self, container: Container) -> Result<(), EnvelopeError> {
        if container == Container::Array {
            return Ok(());
        }
        self.at_name()?;
        self.string()?;
        self.colon()
    }

    /// Consumes a string with its quotes. Returns whether it has no escapes.
    fn string(&mut self) -> Result<bool, EnvelopeError> {
        let bytes = self.text.as_bytes();
        let mut at = self.at + 1;
        let mut is_plain = true;
        loop {
            match bytes.get(at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    at += 1 + escape(&bytes[at + 1..])?;
                    is_plain = false;
                }
                Some(0x20..) => at += 1,
                Some(_) | None => return Err(EnvelopeError::NotJson),
            }
        }
        self.at = at + 1;
        Ok(is_plain)
    }

    /// Consumes a number (RFC 8259 section 6).
    fn number(&mut self) -> Result<(), EnvelopeError> {
        self.at += usize::from(self.peek() == Some(b'-'));
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        Ok(())
    }

    /// Consumes at least one digit.
    fn digits(&mut self) -> Result<(), EnvelopeError> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at > start {
            Ok(())
        } else {
            Err(EnvelopeError::NotJson)
        }
    }

    /// Consumes this literal.
    fn literal(&mut self, literal: &str) -> Result<(), EnvelopeError> {
        if !self.text.as_bytes()[self.at..].starts_with(literal.as_bytes()) {
            return Err(EnvelopeError::NotJson);
        }
        self.at += literal.len();
        Ok(())
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

impl Container {
    /// Returns the byte that closes the container.
    fn end(self) -> u8 {
        match self {
            Self::Array => b']',
            Self::Object => b'}',
        }
    }
}

/// Returns the length of an escape after its backslash. Surrogate pairs are not checked.
fn escape(rest: &[u8]) -> Result<usize, EnvelopeError> {
    match rest {
        [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => Ok(1),
        [b'u', a, b, c, d, ..] if [a, b, c, d].iter().all(|digit| digit.is_ascii_hexdigit()) => {
            Ok(5)
        }
        _ => Err(EnvelopeError::NotJson),
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::select};
    use serde_json::value::RawValue;

    use super::*;

    /// Returns the value in a text that has only white space around it.
    fn scanned(text: &str) -> Option<&str> {
        let mut scanner = Scanner::new(text);
        let value = scanner.value(usize::MAX).ok()?;
        scanner.end().ok()?;
        Some(value)
    }

    fn by_serde(text: &str) -> Option<&str> {
        serde_json::from_str::<&RawValue>(text)
            .ok()
            .map(RawValue::get)
    }

    #[test]
    fn numbers_and_escapes_follow_the_rfc() {
        for good in [
            "0",
            "-0",
            "10",
            "1.50",
            "1e9",
            "1E-09",
            "0.0e+0",
            r#""\"\\\/\b\f\n\r\t""#,
            r#""\uD83D\u00e9""#,
        ] {
            assert_eq!(scanned(good), Some(good));
            assert_eq!(by_serde(good), Some(good));
        }
        for bad in [
            "-",
            "01",
            "1.",
            ".5",
            "1e",
            "1e+",
            "+1",
            "--1",
            r#""\x""#,
            r#""\u12g4""#,
            r#""\u123""#,
            "\"\\",
            "\"\n\"",
        ] {
            assert_eq!(scanned(bad), None, "{bad}");
            assert_eq!(by_serde(bad), None, "{bad}");
        }
    }

    #[test]
    fn depth_counts_from_one() {
        for (text, depth) in [("1", 0), ("[]", 1), ("{}", 1), ("[1,{\"a\":[]},[2]]", 3)] {
            assert!(Scanner::new(text).value(depth).is_ok(), "{text}");
            if depth > 0 {
                assert_eq!(
                    Scanner::new(text).value(depth - 1),
                    Err(EnvelopeError::TooDeep),
                    "{text}"
                );
            }
        }
    }

    const PIECES: &[&str] = &[
        "{", "}", "[", "]", ":", ",", "\"a\"", "\"", "\\", "\\u00e9", "\\n", "u", "1", "0", "-",
        ".", "e", "E", "+", "true", "false", "null", "t", " ", "\n", "\t", "\r", "\u{b}", "\u{1}",
        "\u{e9}", "\u{2028}", "{\"a\":", "[1,", "{}", "[]",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        /// F4: the scanner accepts the same texts as `serde_json`.
        #[test]
        fn the_scanner_agrees_with_serde_json(pieces in vec(select(PIECES), 0..12)) {
            let text = pieces.concat();
            prop_assert_eq!(scanned(&text), by_serde(&text), "{}", text);
        }

        /// F4: the same for texts that are nearly JSON.
        #[test]
        fn the_scanner_agrees_on_changed_texts(at in any::<prop::sample::Index>(), piece in select(PIECES), cut in 0_usize..3) {
            let text = r#" {"a":[1,-2.5e+7,{"b":"c\"\\\u00e9"},true,false,null],"":{"x":[[],{}]} , "n":0}"#;
            let at = at.index(text.len());
            let changed = format!("{}{piece}{}", &text[..at], &text[(at + cut).min(text.len())..]);
            prop_assert_eq!(scanned(&changed), by_serde(&changed), "{}", changed);
        }
    }
}
