//! Log lines: escaping of text from other parties, colors, and the filter of libraries' lines.
//!
//! The numbers of requirements, such as J8, are those of `docs/contribute/requirements.toml`.

use std::{io::Write, os::unix::ffi::OsStrExt as _, sync::Arc};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tracing::subscriber;

use super::*;

/// Characters of each class that could deceive a reader: C0 controls, DEL, C1 controls, separators,
/// controls of the writing direction, invisible characters, and a tag; then a quotation mark and a
/// backslash.
const DECEPTIVE: &str = "a\u{1b}[2J\u{7}\n\r\u{7f}\u{85}\u{9b}31m\u{2028}\u{2029}\u{202e}\u{2066}\u{61c}\u{200b}\u{ad}\u{3164}\u{feff}\u{e0041}\"\\z";
/// The same text in a line for people.
const ESCAPED: &str = r#"a\u{1b}[2J\u{7}\u{a}\u{d}\u{7f}\u{85}\u{9b}31m\u{2028}\u{2029}\u{202e}\u{2066}\u{61c}\u{200b}\u{ad}\u{3164}\u{feff}\u{e0041}"\z"#;
/// The same text in quotation marks, as `Debug` writes it.
const QUOTED: &str = r#""a\u{1b}[2J\u{7}\n\r\u{7f}\u{85}\u{9b}31m\u{2028}\u{2029}\u{202e}\u{2066}\u{61c}\u{200b}\u{ad}\u{3164}\u{feff}\u{e0041}\"\\z""#;
/// The length of the time at the start of a line for people.
const TIMESTAMP_LENGTH: usize = "2026-11-22T08:00:00.000Z".len();

#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Buffer {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().clone()).unwrap()
    }
}

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the line of an event that has the text in its message, in fields of each type, and in
/// its span.
fn line_of(format: LogFormat, is_colored: bool, text: &'static str) -> String {
    let buffer = Buffer::default();
    let writer = buffer.clone();
    let layer = lines(format, move || writer.clone(), is_colored);
    let error = io::Error::other(text);
    subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        let _span = tracing::info_span!("request", path = text).entered();
        tracing::warn!(shown = %text, quoted = text, printed = ?text, error = &error as &dyn std::error::Error, number = 7, "message: {text}");
    });
    buffer
        .text()
        .strip_suffix('\n')
        .expect("a whole line")
        .to_owned()
}

/// Returns a line without the colors of a terminal.
fn without_colors(line: &str) -> String {
    let mut plain = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        let (number, after) = after.split_once('m').expect("a color");
        assert!(
            number.bytes().all(|byte| byte.is_ascii_digit()),
            "{number:?}"
        );
        rest = after;
    }
    plain + rest
}

/// Asserts that a line has printable ASCII only: what is not comes from the text, because all other
/// parts are ASCII.
fn assert_printable(line: &str) {
    assert!(
        line.bytes().all(|byte| matches!(byte, b' '..=b'~')),
        "{line:?}"
    );
}

/// J8: a JSON line has no deceptive character and keeps the logged values.
#[test]
fn json_lines_are_escaped() {
    let line = line_of(LogFormat::Json, false, DECEPTIVE);
    assert_printable(&line);
    let value: Value = serde_json::from_str(&line).unwrap();
    for (name, expected) in [
        ("message", json!(format!("message: {DECEPTIVE}"))),
        ("shown", json!(DECEPTIVE)),
        ("quoted", json!(DECEPTIVE)),
        ("printed", json!(format!("{DECEPTIVE:?}"))),
        ("error", json!(DECEPTIVE)),
        ("number", json!(7)),
    ] {
        assert_eq!(value[name], expected, "{name}");
    }
    assert_eq!(value["span"]["path"], DECEPTIVE);
}

/// J8: a line for people has no deceptive character, and on a terminal only its own colors.
#[test]
fn lines_for_people_are_escaped() {
    let line = line_of(LogFormat::Human, false, DECEPTIVE);
    assert_printable(&line);
    let expected = format!(
        "  WARN request{{path={QUOTED}}}: message: {ESCAPED} shown={ESCAPED} quoted={QUOTED} printed={QUOTED} error={ESCAPED} \
         number=7"
    );
    assert_eq!(line[TIMESTAMP_LENGTH..], expected);

    let colored = line_of(LogFormat::Human, true, DECEPTIVE);
    assert!(
        colored.contains("\u{1b}[3mnumber\u{1b}[0m\u{1b}[2m=\u{1b}[0m7"),
        "{colored:?}"
    );
    assert_eq!(
        without_colors(&colored)[TIMESTAMP_LENGTH..],
        expected,
        "only colors and time differ"
    );
}

/// J8: other characters are unchanged.
#[test]
fn visible_text_is_unchanged() {
    for format in [LogFormat::Human, LogFormat::Json] {
        assert!(
            line_of(format, false, "Zoë, 日本語, العربية")
                .contains("message: Zoë, 日本語, العربية")
        );
    }
}

/// A variable that is set and is not a filter is an error, also if it is not UTF-8.
#[test]
fn the_filter_is_parsed() {
    let parse = |configured: Option<&[u8]>| filter(configured.map(OsStr::from_bytes), "warn");
    let enables = |filter: &Targets, level| filter.would_enable("portcullis_guard", &level);
    let default = parse(None).unwrap();
    assert!(enables(&default, Level::WARN) && !enables(&default, Level::INFO));
    let configured = parse(Some(b"portcullis=debug")).unwrap();
    assert!(enables(&configured, Level::DEBUG) && !enables(&configured, Level::TRACE));
    for invalid in [b"portcullis=loud".as_slice(), b"debug\xff"] {
        let error = parse(Some(invalid)).unwrap_err().to_string();
        assert_eq!(
            error,
            "PORTCULLIS_LOG is not a log filter; try `info` or `portcullis=debug`"
        );
    }
}

/// A word in place of a level, with which nothing would be logged, is an error.
#[test]
fn an_unknown_level_is_named() {
    let parse = |configured: &str| filter(Some(configured.as_ref()), "warn");
    for (configured, word) in [
        ("verbose", "verbose"),
        ("information", "information"),
        ("WARNING", "WARNING"),
        ("trace=1", "trace"),
        ("hyper=debug,verbose", "verbose"),
        ("a\nb", "a\nb"),
    ] {
        assert_eq!(
            parse(configured).unwrap_err().to_string(),
            format!(
                "PORTCULLIS_LOG has the unknown level {word:?}; write error, warn, info, debug, trace or off"
            ),
            "{configured}"
        );
    }
    for configured in [
        "WARN",
        "off",
        "4",
        "info,hyper",
        "portcullis",
        "portcullis_guard=debug",
        "hyper=error",
    ] {
        assert!(parse(configured).is_ok(), "{configured}");
    }
}

/// Lines have colors on a terminal only, and not with `NO_COLOR`.
#[test]
fn colors_can_be_switched_off() {
    assert!(is_colored(true, None));
    assert!(is_colored(true, Some("".as_ref())));
    assert!(!is_colored(true, Some("1".as_ref())));
    assert!(!is_colored(true, Some("0".as_ref())));
    assert!(!is_colored(false, None));
}

/// J2: libraries log errors only, because their other lines can contain tokens. Every crate of this
/// workspace may log all.
#[test]
fn libraries_log_errors_only() {
    let buffer = Buffer::default();
    let writer = buffer.clone();
    let layer =
        lines(LogFormat::Json, move || writer.clone(), false).with_filter(filter_fn(is_allowed));
    subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        tracing::trace!(target: "portcullis_guard::layer", number = 1);
        tracing::debug!(target: "portcullis", number = 2);
        tracing::error!(target: "hyper::proto", number = 3);
        tracing::warn!(target: "hyper::proto", number = 4);
        tracing::info!(target: "rustls", number = 5);
        tracing::trace!(target: "h2::codec", number = 6);
    });
    let text = buffer.text();
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    assert_eq!(
        lines
            .map(|line| line["number"].as_u64().unwrap())
            .collect::<Vec<_>>(),
        [1, 2, 3]
    );
}
