//! JSON in which characters that could deceive a reader are escaped.

use std::io::{self, Write};

use portcullis_metadata::EscapedText;
use serde::Serialize;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter, Serializer};

/// Appends a value as compact JSON. Strings have the characters of [`EscapedText`] as `\uXXXX`, which JSON does not require
/// for all of them.
pub(crate) fn write_json(out: &mut Vec<u8>, value: &impl Serialize) {
    // Writing to a vector does not fail, and neither does serializing a record.
    let _ = value.serialize(&mut Serializer::with_formatter(out, EscapingFormatter));
}

/// Writes part of a JSON string with the characters of [`EscapedText`] as `\uXXXX`. Quotes and backslashes stay unchanged.
pub(super) fn write_escaped(out: &mut (impl Write + ?Sized), text: &str) -> io::Result<()> {
    let mut rest = text;
    while let Some((before, character, after)) = EscapedText::split_at_escape(rest) {
        out.write_all(before.as_bytes())?;
        for unit in character.encode_utf16(&mut [0; 2]) {
            write!(out, "\\u{unit:04x}")?;
        }
        rest = after;
    }
    out.write_all(rest.as_bytes())
}

struct EscapingFormatter;

impl Formatter for EscapingFormatter {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        write_escaped(out, fragment)
    }

    fn write_char_escape<W: ?Sized + Write>(&mut self, out: &mut W, escape: CharEscape) -> io::Result<()> {
        let control = match escape {
            CharEscape::Backspace => 0x08,
            CharEscape::Tab => b'\t',
            CharEscape::LineFeed => b'\n',
            CharEscape::FormFeed => 0x0c,
            CharEscape::CarriageReturn => b'\r',
            CharEscape::AsciiControl(control) => control,
            CharEscape::Quote | CharEscape::ReverseSolidus | CharEscape::Solidus => {
                return CompactFormatter.write_char_escape(out, escape);
            }
        };
        write!(out, "\\u{control:04x}")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn json(text: &str) -> String {
        let mut out = Vec::new();
        write_json(&mut out, &text);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn strings_are_json() {
        for text in ["", "plain /~", "a\"b", "a\\b", "line\nline", "Zoë", "\u{7f}\u{1}"] {
            assert_eq!(serde_json::from_str::<String>(&json(text)).unwrap(), text);
        }
        let escaped = json("Zoë\u{1b}\t\n\"\u{202e}\u{e0041}\\");
        assert_eq!(escaped, "\"Zoë\\u001b\\u0009\\u000a\\\"\\u202e\\udb40\\udc41\\\\\"");
    }

    proptest! {
        /// J8: a JSON string keeps the value of any text, without a character that could deceive a reader.
        #[test]
        fn strings_keep_their_value(text: String) {
            let escaped = json(&text);
            prop_assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
            prop_assert!(!escaped.contains(EscapedText::escapes));
        }
    }
}
