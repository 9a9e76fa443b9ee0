//! Escapes and shortens text of a peer for display.

use portcullis_metadata::{EscapedText, syntax::url_without_secrets};
use url::Url;

/// The maximum number of characters that are shown.
const SHOWN: usize = 200;

/// A peer's text as [`EscapedText`], at most [`SHOWN`] characters of it.
pub(crate) fn quoted(text: &str) -> String {
    shortened(text, SHOWN)
}

/// Like [`quoted`], for longer text such as a header.
pub(crate) fn line(text: &str) -> String {
    shortened(text, 10 * SHOWN)
}

fn shortened(text: &str, max: usize) -> String {
    let mut shown = EscapedText::first(text, max).to_string();
    if text.chars().nth(max).is_some() {
        shown.push('…');
    }
    shown
}

/// A URL without query, fragment and user information.
pub(crate) fn url(url: &Url) -> String {
    quoted(url_without_secrets(url).as_str())
}

/// The text of a URL that may be malformed, without query, fragment and user information, each
/// replaced by `…`. What precedes the last `@`, except the scheme and its slashes, counts as user
/// information.
pub(crate) fn malformed_url(text: &str) -> String {
    let is_of_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let after_scheme = text
        .trim_start_matches(is_of_scheme)
        .strip_prefix(':')
        .map(|rest| rest.trim_start_matches(['/', '\\']))
        .unwrap_or(text);
    let scheme = &text[..text.len() - after_scheme.len()];
    let (user, rest) = match after_scheme.rsplit_once('@') {
        Some((_, rest)) => ("…@", rest),
        None => ("", after_scheme),
    };
    match rest.find(['?', '#']) {
        Some(at) => quoted(&format!("{scheme}{user}{}…", &rest[..=at])),
        None => quoted(&format!("{scheme}{user}{rest}")),
    }
}

/// Several texts of a peer, separated by commas.
pub(crate) fn list<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut shown = String::new();
    for text in texts {
        if shown.len() > SHOWN {
            shown.push_str(", …");
            break;
        }
        if !shown.is_empty() {
            shown.push_str(", ");
        }
        shown.push_str(&quoted(text));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J8: a terminal sees neither controls nor characters that are invisible.
    #[test]
    fn a_terminal_sees_no_control_character() {
        for shown in [quoted, line] {
            assert_eq!(
                shown("a\u{1b}[2Jb\r\n\u{202e}c"),
                "a\\u{1b}[2Jb\\u{d}\\u{a}\\u{202e}c"
            );
            assert_eq!(
                shown("\u{ad}\u{3164}\u{e0041}"),
                "\\u{ad}\\u{3164}\\u{e0041}"
            );
            assert_eq!(shown("Zoë"), "Zoë");
        }
    }

    #[test]
    fn long_texts_are_cut() {
        for (shown, max) in [(quoted as fn(&str) -> String, SHOWN), (line, 10 * SHOWN)] {
            assert_eq!(shown(&"x".repeat(max)), "x".repeat(max));
            assert_eq!(shown(&"x".repeat(10_000)), format!("{}…", "x".repeat(max)));
        }
        let many: Vec<_> = std::iter::repeat_n("scope", 1000).collect();
        assert!(list(many).len() < SHOWN + 20);
    }

    #[test]
    fn urls_lose_query_and_user() {
        let shown = url(&Url::parse("https://u:p@mcp.example.com/mcp?token=x#y").unwrap());
        assert_eq!(shown, "https://mcp.example.com/mcp");
    }

    /// J2: the text of a malformed URL shows its mistake, and neither credentials nor a query.
    #[test]
    fn malformed_urls_lose_query_and_user() {
        for (text, shown) in [
            ("https:/a.example/token", "https:/a.example/token"),
            (
                "https:/a.example/token?key=hunter2",
                "https:/a.example/token?…",
            ),
            ("https:/a.example/#hunter2", "https:/a.example/#…"),
            ("https:\\\\me:hunter2@a.example", "https:\\\\…@a.example"),
            ("https:me:hunt/er?2@a.example/b", "https:…@a.example/b"),
            ("me:hunter2@a.example", "me:…@a.example"),
            ("a.example/?hunter2", "a.example/?…"),
            ("/mcp", "/mcp"),
            ("", ""),
        ] {
            assert_eq!(malformed_url(text), shown, "{text}");
        }
    }
}
