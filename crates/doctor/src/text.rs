//! Texts of a peer, made fit to be shown.

use url::Url;

/// How many characters of a peer's text are shown.
const SHOWN: usize = 200;

/// A peer's text without control characters, which a terminal might obey, and not longer than a line or two.
pub(crate) fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).flat_map(shown_char).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// As [`quoted`], for texts that are longer by nature.
pub(crate) fn line(text: &str) -> String {
    text.chars().take(10 * SHOWN).flat_map(shown_char).collect()
}

/// A URL without query, fragment and user information.
pub(crate) fn url(url: &Url) -> String {
    let mut shown = url.clone();
    shown.set_query(None);
    shown.set_fragment(None);
    // These fail for URLs without a host alone, which carry no user information.
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    quoted(shown.as_str())
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

/// Letters of any script stand as they are; what moves the cursor, turns the direction of the text or is not there to
/// see is written out.
fn shown_char(c: char) -> impl Iterator<Item = char> {
    let invisible = c.is_control()
        || matches!(c, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}');
    let (plain, escaped) = if invisible { (None, Some(c.escape_unicode())) } else { (Some(c), None) };
    plain.into_iter().chain(escaped.into_iter().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_sees_no_control_character() {
        assert_eq!(quoted("a\u{1b}[2Jb\r\n\u{202e}c"), "a\\u{1b}[2Jb\\u{d}\\u{a}\\u{202e}c");
        assert_eq!(quoted("Zoë"), "Zoë");
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(quoted(&"x".repeat(SHOWN)).chars().count(), SHOWN);
        assert_eq!(quoted(&"x".repeat(10_000)).chars().count(), SHOWN + 1);
        let many: Vec<_> = std::iter::repeat_n("scope", 1000).collect();
        assert!(list(many).len() < SHOWN + 20);
    }

    #[test]
    fn urls_lose_query_and_user() {
        let shown = url(&Url::parse("https://u:p@mcp.example.com/mcp?token=x#y").unwrap());
        assert_eq!(shown, "https://mcp.example.com/mcp");
    }
}
