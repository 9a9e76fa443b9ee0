//! Output of commands: text and escaped JSON.

use std::{
    error::Error,
    fmt::{self, Display},
    io::{self, Write as _},
};

use owo_colors::{OwoColorize as _, Stream};
use portcullis_metadata::EscapedText;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{escaped_json::escaped_json, raw_json::RawJson, sent_secrets::redact};

/// The cause in the error of a closed standard output, which distinguishes it from a closed
/// connection.
#[derive(Debug)]
pub(crate) struct OutputClosed;

/// Writes a line of the command's result to standard output.
///
/// # Errors
/// Fails when it cannot be written; [`CommandError::new`](crate::CommandError::new) recognizes that
/// its reader has closed it.
pub fn print(line: impl Display) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{line}").map_err(output_error)
}

/// Returns an error of standard output, which [`CommandError::new`](crate::CommandError::new)
/// recognizes if its reader has closed it.
pub fn output_error(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe => io::Error::new(io::ErrorKind::BrokenPipe, OutputClosed),
        _ => error,
    }
}

/// Writes a line for the user to standard error, without the secrets that were sent to servers.
pub fn tell(line: impl Display) {
    let line = format!("{line}\n");
    // In one piece. If standard error is closed, the failure cannot be reported.
    let _ = io::stderr().lock().write_all(redact(&line).as_bytes());
}

/// Writes a warning to standard output. Its text is escaped.
pub fn print_warning(text: &str) -> io::Result<()> {
    let label = "warning:".if_supports_color(Stream::Stdout, |text| text.yellow());
    print(format_args!("{label} {}", EscapedText(text)))
}

/// Writes a note to standard output. Its text is that of this program, and not escaped.
pub fn print_note(text: &str) -> io::Result<()> {
    let label = "note:".if_supports_color(Stream::Stdout, |text| text.cyan());
    print(format_args!("{label} {text}"))
}

/// Writes a value to standard output as JSON on several lines.
pub fn print_json(value: &impl Serialize) -> io::Result<()> {
    print(escaped_json(&serde_json::to_string_pretty(value)?))
}

/// Writes JSON text to standard output on several lines, without another copy of it.
///
/// # Errors
/// As [`print()`].
pub fn print_raw_json(json: &RawValue) -> io::Result<()> {
    let mut output = io::BufWriter::with_capacity(64 * 1024, io::stdout().lock());
    let written = writeln!(output, "{}", RawJson::pretty(json)).and_then(|()| output.flush());
    written.map_err(output_error)
}

/// A count with its noun: `1 problem`, `2 problems`.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

impl Display for OutputClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("standard output is closed")
    }
}

impl Error for OutputClosed {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// J8: escaped JSON has the same value and no deceptive characters.
    #[test]
    fn json_is_escaped() {
        let value =
            json!({ "a\u{202e}": "\u{1b}[2J\u{9b}\u{7f}\u{2028}\u{e0041}\n", "b": "Zoë 🦀" });
        let escaped = escaped_json(&value.to_string());
        let expected = r#"{"a\u202e":"\u001b[2J\u009b\u007f\u2028\udb40\udc41\n","b":"Zoë 🦀"}"#;
        assert_eq!(escaped, expected);
        assert_eq!(serde_json::from_str::<Value>(&escaped).unwrap(), value);
    }

    #[test]
    fn nouns_agree_with_their_count() {
        assert_eq!(counted(0, "problem"), "0 problems");
        assert_eq!(counted(1, "problem"), "1 problem");
        assert_eq!(counted(2, "event stream"), "2 event streams");
    }

    proptest! {
        /// J8: escaping preserves every value.
        #[test]
        fn the_value_survives(text in any::<String>(), name in any::<String>()) {
            let value = json!({ name: [text] });
            let escaped = escaped_json(&serde_json::to_string_pretty(&value).unwrap());
            prop_assert!(!escaped.chars().any(|character| character != '\n' && EscapedText::escapes(character)));
            prop_assert_eq!(serde_json::from_str::<Value>(&escaped).unwrap(), value);
        }
    }
}
