//! The form that nearly all payloads have, read without a general reader.

use std::borrow::Cow;

use memchr::memchr;
use serde::{Deserialize, Deserializer, de::DeserializeSeed};

use super::{
    general::Value,
    reading::{Found, Reading, has_repetition},
};

/// None for any other form: then the general reader judges, and what was read here is of no use.
pub(super) fn read_into<'p>(reading: &mut Reading<'p>, text: &'p str) -> Option<()> {
    if has_odd_byte(text) {
        return None;
    }
    let mut plain = Plain { text, at: 0 };
    plain.take(b'{')?;
    loop {
        plain.member(reading)?;
        if plain.take(b',').is_none() {
            break;
        }
    }
    plain.take(b'}')?;
    let is_whole = plain.at == text.len() && !has_repetition(&mut reading.others);
    is_whole.then_some(())
}

/// Whether there is white space other than blanks, an escape, or what has to be escaped. All bytes are looked at, whatever
/// the first ones are, so that many are at once; then a text ends at the next quote.
fn has_odd_byte(text: &str) -> bool {
    text.bytes().fold(false, |odd, byte| odd | (byte < b' ') | (byte == b'\\'))
}

/// A place in a payload that is one object without white space and escapes, whose known claims are texts, lists of texts
/// and whole numbers. Every step that finds anything else gives up.
struct Plain<'p> {
    text: &'p str,
    at: usize,
}

impl<'p> Plain<'p> {
    fn member(&mut self, reading: &mut Reading<'p>) -> Option<()> {
        let name = self.string()?;
        self.take(b':')?;
        let Some(found) = reading.field(name) else {
            reading.others.push(Cow::Borrowed(name));
            return self.skip();
        };
        if !matches!(found, Found::Nothing) {
            return None;
        }
        *found = match self.peek()? {
            b'"' => Found::Text(Cow::Borrowed(self.string()?)),
            b'[' => self.texts()?,
            _ => Found::Whole(self.whole()?),
        };
        Some(())
    }

    /// Passes over the value of a claim that nobody reads here.
    fn skip(&mut self) -> Option<()> {
        match self.peek()? {
            b'"' => self.string().map(drop),
            b'0'..=b'9' => self.whole().map(drop),
            _ => {
                let mut rest = serde_json::Deserializer::from_str(&self.text[self.at..]).into_iter::<Skipped>();
                rest.next()?.ok()?;
                self.at += rest.byte_offset();
                Some(())
            }
        }
    }

    fn texts(&mut self) -> Option<Found<'p>> {
        self.take(b'[')?;
        let mut texts = Vec::with_capacity(2);
        loop {
            texts.push(Cow::Borrowed(self.string()?));
            if self.take(b',').is_none() {
                break;
            }
        }
        self.take(b']')?;
        Some(Found::Entries { texts, others: false })
    }

    fn string(&mut self) -> Option<&'p str> {
        self.take(b'"')?;
        let start = self.at;
        let length = memchr(b'"', &self.text.as_bytes()[start..])?;
        self.at += length + 1;
        self.text.get(start..start + length)
    }

    /// A number of at most 18 digits, which do not overflow, and nothing else up to the end of the member.
    fn whole(&mut self) -> Option<u64> {
        let (start, mut number) = (self.at, 0_u64);
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            number = number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
            self.at += 1;
        }
        let digits = self.at - start;
        let has_form = digits == 1 || (2..=18).contains(&digits) && self.text.as_bytes()[start] != b'0';
        (has_form && matches!(self.peek()?, b',' | b'}')).then_some(number)
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

/// A value that the general reader takes, not kept.
struct Skipped;

impl<'p> Deserialize<'p> for Skipped {
    fn deserialize<D: Deserializer<'p>>(deserializer: D) -> Result<Self, D::Error> {
        Value { into: None }.deserialize(deserializer).map(|()| Self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::{
        char::range,
        collection::vec,
        prelude::*,
        sample::{Index, select},
    };

    use super::*;
    use crate::claims::unverified::general;

    fn read(text: &str) -> Option<Reading<'_>> {
        let mut reading = Reading::default();
        read_into(&mut reading, text).map(|()| reading)
    }

    #[test]
    fn usual_payloads_are_read() {
        for payload in [
            r#"{"iss":"https://as.example","aud":["a","b"],"exp":10,"iat":0,"sub":"ä","sid":"x"}"#,
            r#"{"realm_access":{"roles":["a",{"b":null}]},"acr":1,"email_verified":true,"scope":""}"#,
            r#"{"exp":999999999999999999}"#,
        ] {
            assert!(read(payload).is_some(), "{payload}");
        }
    }

    #[test]
    fn others_are_left_to_the_general_reader() {
        for payload in [
            r#"{}"#,
            r#"{ "exp":1}"#,
            r#"{"exp":1}x"#,
            r#"{"exp":1,}"#,
            r#"{"exp":01}"#,
            r#"{"exp":}"#,
            r#"{"exp":1.5}"#,
            r#"{"exp":-1}"#,
            r#"{"exp":1e3}"#,
            r#"{"exp":1000000000000000000}"#,
            r#"{"exp":1,"exp":1}"#,
            r#"{"a":1,"a":1}"#,
            r#"{"aud":[]}"#,
            r#"{"aud":["a",1]}"#,
            r#"{"sub":null}"#,
            r#"{"sub":"\u0061"}"#,
            r#"{"s\u0075b":"a"}"#,
            r#"{"sub":"a"#,
            r#"{"a":tru}"#,
            r#"{"a":["\u0061"]}"#,
            "{\"sub\":\"a\u{1f}\"}",
        ] {
            assert!(read(payload).is_none(), "{payload}");
        }
    }

    proptest! {
        /// At any place, whatever stands beside it, and however many there are.
        #[test]
        fn odd_bytes_are_seen(
            text in "[ -\\[\\]-~\u{7f}äß\u{2028}]{0,70}",
            odd in vec((any::<Index>(), prop_oneof![range('\0', '\x1f'), Just('\\')]), 1..4),
        ) {
            prop_assert!(!has_odd_byte(&text));
            let mut characters: Vec<char> = text.chars().collect();
            for (place, character) in odd {
                characters.insert(place.index(characters.len() + 1), character);
            }
            prop_assert!(has_odd_byte(&String::from_iter(characters)));
        }

        /// Whatever is read here, the general reader reads the same.
        #[test]
        fn the_general_reader_agrees(
            members in vec((select(NAMES), select(VALUES)), 0..5),
            breaks in select(&["", "", "", "", " ", ",", "}", "\""][..]),
        ) {
            let members: Vec<String> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
            let payload = format!("{{{}{breaks}}}", members.join(","));
            if let Some(found) = read(&payload) {
                prop_assert_eq!(Ok(found), general::read(&payload), "{}", payload);
            }
        }
    }

    const NAMES: &[&str] = &["sub", "aud", "exp", "scope", "x", "y", "z", "", "ä"];
    const VALUES: &[&str] = &[
        "\"a\"",
        "\"\"",
        "\"ä\"",
        "\"\\n\"",
        "[\"a\",\"b\"]",
        "[\"a\"",
        "[]",
        "[1]",
        "12",
        "0",
        "00",
        "1.5",
        "-1",
        "7e1",
        "true",
        "null",
        "nul",
        "{\"a\":[1e999]}",
        "{\"a\":{\"a\":[]}}",
        "{",
        "999999999999999999",
        "1000000000000000000",
        "18446744073709551616",
    ];
}
