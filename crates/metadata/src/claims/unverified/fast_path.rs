//! Parses the most common payloads without a full JSON parser.
//!
//! Most access tokens have a payload without whitespace and escapes, with claims that are strings, arrays of strings and
//! integers. This parser handles them faster than `json_parser`, which handles all other payloads.

use std::borrow::Cow;

use memchr::memchr;
use serde::{Deserialize, Deserializer, de::DeserializeSeed};

use super::{
    json_parser::ValueSeed,
    parsed::{ClaimValue, ParsedClaims, has_duplicate},
};

/// Parses the claims. Returns `None` if the payload needs `json_parser`; `claims` is then incomplete and must be discarded.
pub(super) fn parse_into<'p>(claims: &mut ParsedClaims<'p>, json: &'p str) -> Option<()> {
    if has_control_or_backslash(json) {
        return None;
    }
    let mut parser = Parser { json, position: 0 };
    parser.expect(b'{')?;
    loop {
        parser.member(claims)?;
        if parser.expect(b',').is_none() {
            break;
        }
    }
    parser.expect(b'}')?;
    let is_complete = parser.position == json.len() && !has_duplicate(&mut claims.others);
    is_complete.then_some(())
}

/// Returns whether the payload has a control character or a backslash. Without them, a string ends at the next quote.
/// The fold has no early exit, so the compiler vectorizes it.
fn has_control_or_backslash(json: &str) -> bool {
    json.bytes().fold(false, |found, byte| found | (byte < b' ') | (byte == b'\\'))
}

/// A position in a payload. Each method returns `None` if the payload needs `json_parser`.
struct Parser<'p> {
    json: &'p str,
    position: usize,
}

impl<'p> Parser<'p> {
    fn member(&mut self, claims: &mut ParsedClaims<'p>) -> Option<()> {
        let name = self.string()?;
        self.expect(b':')?;
        let Some(field) = claims.field_mut(name) else {
            claims.others.push(Cow::Borrowed(name));
            return self.skip_value();
        };
        if !field.is_missing() {
            return None;
        }
        *field = match self.peek()? {
            b'"' => ClaimValue::String(Cow::Borrowed(self.string()?)),
            b'[' => self.array()?,
            _ => ClaimValue::Integer(self.integer()?),
        };
        Some(())
    }

    /// Checks and skips the value of a claim that has no field.
    fn skip_value(&mut self) -> Option<()> {
        match self.peek()? {
            b'"' => self.string().map(drop),
            b'0'..=b'9' => self.integer().map(drop),
            _ => {
                let mut rest = serde_json::Deserializer::from_str(&self.json[self.position..]).into_iter::<Discarded>();
                rest.next()?.ok()?;
                self.position += rest.byte_offset();
                Some(())
            }
        }
    }

    /// Parses an array of at least one string.
    fn array(&mut self) -> Option<ClaimValue<'p>> {
        self.expect(b'[')?;
        let mut strings = Vec::with_capacity(2);
        loop {
            strings.push(Cow::Borrowed(self.string()?));
            if self.expect(b',').is_none() {
                break;
            }
        }
        self.expect(b']')?;
        Some(ClaimValue::Array { strings, has_others: false })
    }

    fn string(&mut self) -> Option<&'p str> {
        self.expect(b'"')?;
        let start = self.position;
        let length = memchr(b'"', &self.json.as_bytes()[start..])?;
        self.position += length + 1;
        self.json.get(start..start + length)
    }

    /// Parses an integer of at most 18 digits, which cannot overflow. The member must end after it.
    fn integer(&mut self) -> Option<u64> {
        let (start, mut number) = (self.position, 0_u64);
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            number = number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
            self.position += 1;
        }
        let digits = self.position - start;
        let is_valid = digits == 1 || (2..=18).contains(&digits) && self.json.as_bytes()[start] != b'0';
        (is_valid && matches!(self.peek()?, b',' | b'}')).then_some(number)
    }

    /// Consumes the next byte if it is `byte`.
    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.position += 1)
    }

    fn peek(&self) -> Option<u8> {
        self.json.as_bytes().get(self.position).copied()
    }
}

/// A JSON value that is checked and discarded.
struct Discarded;

impl<'p> Deserialize<'p> for Discarded {
    fn deserialize<D: Deserializer<'p>>(deserializer: D) -> Result<Self, D::Error> {
        ValueSeed { target: None }.deserialize(deserializer).map(|()| Self)
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
    use crate::claims::unverified::json_parser;

    fn parse(json: &str) -> Option<ParsedClaims<'_>> {
        let mut claims = ParsedClaims::default();
        parse_into(&mut claims, json).map(|()| claims)
    }

    #[test]
    fn common_payloads_are_parsed() {
        for payload in [
            r#"{"iss":"https://as.example","aud":["a","b"],"exp":10,"iat":0,"sub":"ä","sid":"x"}"#,
            r#"{"realm_access":{"roles":["a",{"b":null}]},"acr":1,"email_verified":true,"scope":""}"#,
            r#"{"exp":999999999999999999}"#,
        ] {
            assert!(parse(payload).is_some(), "{payload}");
        }
    }

    #[test]
    fn other_payloads_are_left_to_the_json_parser() {
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
            assert!(parse(payload).is_none(), "{payload}");
        }
    }

    proptest! {
        /// Control characters and backslashes are found at any position, in any number.
        #[test]
        fn control_characters_and_backslashes_are_found(
            text in "[ -\\[\\]-~\u{7f}äß\u{2028}]{0,70}",
            special in vec((any::<Index>(), prop_oneof![range('\0', '\x1f'), Just('\\')]), 1..4),
        ) {
            prop_assert!(!has_control_or_backslash(&text));
            let mut characters: Vec<char> = text.chars().collect();
            for (position, character) in special {
                characters.insert(position.index(characters.len() + 1), character);
            }
            prop_assert!(has_control_or_backslash(&String::from_iter(characters)));
        }

        /// Both parsers give the same result for every payload that this one accepts.
        #[test]
        fn both_parsers_agree(
            members in vec((select(NAMES), select(VALUES)), 0..5),
            suffix in select(&["", "", "", "", " ", ",", "}", "\""][..]),
        ) {
            let members: Vec<String> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
            let payload = format!("{{{}{suffix}}}", members.join(","));
            if let Some(claims) = parse(&payload) {
                prop_assert_eq!(Ok(claims), json_parser::parse(&payload), "{}", payload);
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
