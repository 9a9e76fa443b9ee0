//! Text in HTML: in ASCII, or without deceptive characters.

use std::fmt;

use portcullis_metadata::{EscapedText, HtmlText};

/// The maximum length of a client's name, in characters.
const MAX_NAME: usize = 64;

/// As [`HtmlText`]. Characters outside of visible ASCII are shown as `\u{e9}`, because hosts and
/// URLs with other letters can look like other ones.
pub(super) struct Ascii<'a>(pub(super) &'a str);

/// A name that a client chose, escaped for HTML content.
///
/// It contains no control, invisible or bidirectional character, no white space except single
/// spaces, and at most 64 characters.
pub(super) struct ClientName(String);

impl ClientName {
    /// Returns `None` if no visible character remains.
    pub(super) fn new(text: &str) -> Option<Self> {
        let mut name = String::new();
        let mut is_after_space = true;
        let mut characters = text
            .chars()
            .filter_map(|character| {
                // A line break is a space, and not removed: "Claude\nCode" is two words.
                if is_blank(character) {
                    Some(' ')
                } else {
                    (!EscapedText::escapes(character)).then_some(character)
                }
            })
            .filter(|&character| {
                let is_repeated = character == ' ' && is_after_space;
                is_after_space = character == ' ';
                !is_repeated
            });
        name.extend(characters.by_ref().take(MAX_NAME));
        name.truncate(name.trim_end().len());
        if characters.any(|character| character != ' ') {
            name.push('…');
        }
        (!name.is_empty()).then_some(Self(name))
    }
}

impl fmt::Display for ClientName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        HtmlText(&self.0).fmt(f)
    }
}

impl fmt::Display for Ascii<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|character| {
            if matches!(character, ' '..='~') {
                HtmlText(character.encode_utf8(&mut [0; 4])).fmt(f)
            } else {
                write!(f, "{}", character.escape_unicode())
            }
        })
    }
}

/// Returns whether the character is shown as an empty place.
fn is_blank(character: char) -> bool {
    // The blank pattern of Braille is not white space in Unicode.
    character.is_whitespace() || character == '\u{2800}'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Option<String> {
        ClientName::new(text).map(|name| name.to_string())
    }

    #[test]
    fn markup_is_escaped() {
        let escaped = "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;";
        let markup = r#"<a b="c" d='e'>&"#;
        assert_eq!(Ascii(markup).to_string(), escaped);
        assert_eq!(name(markup).as_deref(), Some(escaped));
    }

    #[test]
    fn a_host_with_other_letters_is_shown_in_ascii() {
        assert_eq!(Ascii("cl\u{430}ude.ai").to_string(), r"cl\u{430}ude.ai");
        assert_eq!(Ascii("a\u{202e}b\n").to_string(), r"a\u{202e}b\u{a}");
    }

    #[test]
    fn a_name_has_no_deceptive_characters() {
        for (text, expected) in [
            ("Claude Code", "Claude Code"),
            ("Zoë's 日本 🦀", "Zoë&#39;s 日本 🦀"),
            ("\u{202e}edualC\u{2066}", "edualC"),
            ("a\u{200b}\u{ad}\u{e0041}b\0\u{1b}", "ab"),
            ("<script>", "&lt;script&gt;"),
            ("  a \t\n \u{3000}\u{a0}\u{2003}\u{2800} b  ", "a b"),
            ("a \u{200b} b", "a b"),
        ] {
            assert_eq!(name(text).as_deref(), Some(expected), "{text:?}");
        }
    }

    #[test]
    fn a_name_without_visible_characters_is_none() {
        for text in ["", " ", "\u{202e}", "\u{200b} \u{3000}"] {
            assert_eq!(name(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_name_ends_after_64_characters() {
        let exact = "é".repeat(64);
        assert_eq!(name(&exact), Some(exact.clone()));
        assert_eq!(name(&format!("{exact}b")), Some(format!("{exact}…")));
        assert_eq!(name(&format!("{exact}  ")), Some(exact));
    }
}
