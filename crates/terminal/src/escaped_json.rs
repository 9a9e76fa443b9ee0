//! JSON without characters that could deceive the reader of a terminal.

use std::fmt;

use portcullis_metadata::EscapedText;

/// Escapes JSON: every character that [`EscapedText`] escapes becomes a `\u` escape, or two beyond
/// the Basic Multilingual Plane (RFC 8259 section 7). `json` is the output of serde_json, where
/// such characters occur only in strings, except line feeds, which occur only outside strings.
pub(crate) fn escaped_json(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    // Writing to a string cannot fail.
    let _ = write_escaped(&mut escaped, json);
    escaped
}

/// Writes JSON as [`escaped_json`] returns it.
pub(crate) fn write_escaped(output: &mut impl fmt::Write, json: &str) -> fmt::Result {
    let mut rest = json;
    while let Some((position, character)) = rest
        .char_indices()
        .find(|(_, character)| *character != '\n' && EscapedText::escapes(*character))
    {
        output.write_str(&rest[..position])?;
        for unit in character.encode_utf16(&mut [0; 2]) {
            write!(output, "\\u{unit:04x}")?;
        }
        rest = &rest[position + character.len_utf8()..];
    }
    output.write_str(rest)
}
