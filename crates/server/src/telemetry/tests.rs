//! Text of other parties is escaped in log lines.

use std::{
    io::Write,
    sync::{Arc, Mutex},
};

use portcullis_metadata::EscapedText;
use serde_json::Value;
use tracing::subscriber;

use super::*;

/// One character of each deceptive class: C0, DEL, C1, separators, direction, invisible, tags.
const DECEPTIVE: &str = "a\u{1b}[2J\u{7}\n\r\u{7f}\u{85}\u{9b}31m\u{2028}\u{2029}\u{202e}\u{2066}\u{61c}\u{200b}\u{ad}\u{3164}\u{feff}\u{e0041}\"\\z";

#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the line of an event that has the text in its message, in fields of each type, and in its span.
fn line_of(format: LogFormat, is_terminal: bool, text: &'static str) -> String {
    let buffer = Buffer::default();
    let writer = buffer.clone();
    let layer = lines(format, move || writer.clone(), is_terminal);
    let error = io::Error::other(text);
    subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        let _span = tracing::info_span!("request", path = text).entered();
        tracing::warn!(shown = %text, quoted = text, printed = ?text, error = &error as &dyn std::error::Error, number = 7, "message: {text}");
    });
    let line = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
    line.strip_suffix('\n').expect("a whole line").to_owned()
}

/// J8: a JSON line has no deceptive character and keeps the logged values.
#[test]
fn json_lines_are_escaped() {
    let line = line_of(LogFormat::Json, false, DECEPTIVE);
    assert!(!line.contains(EscapedText::escapes), "{line:?}");
    let value: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(value["quoted"], DECEPTIVE);
    assert_eq!(value["shown"], DECEPTIVE);
    assert_eq!(value["message"], format!("message: {DECEPTIVE}"));
    assert_eq!(value["span"]["path"], Value::from(DECEPTIVE));
    assert_eq!(value["number"], Value::from(7));
}

/// J8: a line for people has no deceptive character, and on a terminal only its own colours.
#[test]
fn lines_for_people_are_escaped() {
    let line = line_of(LogFormat::Human, false, DECEPTIVE);
    assert!(!line.contains(EscapedText::escapes), "{line:?}");
    let escaped = EscapedText(DECEPTIVE).to_string();
    assert!(line.contains(&format!("message: {escaped} shown={escaped} quoted=\"a\\u{{1b}}[2J")), "{line}");
    assert!(line.contains(" number=7"), "{line}");

    let coloured = line_of(LogFormat::Human, true, DECEPTIVE);
    assert!(coloured.contains("\u{1b}[3mnumber\u{1b}[0m\u{1b}[2m=\u{1b}[0m7"), "{coloured:?}");
    let mut plain = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        let (number, after) = after.split_once('m').expect("a colour");
        assert!(number.bytes().all(|byte| byte.is_ascii_digit()), "{number:?}");
        rest = after;
    }
    plain.push_str(rest);
    assert_eq!(plain[24..], line[24..], "the lines differ only in colours and time");
}

/// J8: other characters are unchanged.
#[test]
fn visible_text_is_unchanged() {
    for format in [LogFormat::Human, LogFormat::Json] {
        assert!(line_of(format, false, "Zoë, 日本語, العربية").contains("message: Zoë, 日本語, العربية"));
    }
}

/// Lines have colours on a terminal only, and not with `NO_COLOR`.
#[test]
fn colours_can_be_switched_off() {
    assert!(is_coloured(true, None));
    assert!(is_coloured(true, Some("".as_ref())));
    assert!(!is_coloured(true, Some("1".as_ref())));
    assert!(!is_coloured(true, Some("0".as_ref())));
    assert!(!is_coloured(false, None));
}
