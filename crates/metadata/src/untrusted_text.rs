//! [`EscapedText`]: displays text from other parties without deceptive characters.

use std::fmt::{self, Write as _};

/// Displays text from another party and escapes every character that could deceive the reader.
///
/// These characters are escaped in the form `\u{1b}`: C0 and C1 controls, which a terminal may
/// interpret; line and paragraph separators; controls of the writing direction; and invisible
/// characters (Unicode's `Default_Ignorable_Code_Point`). All other characters, including letters
/// of any script, are unchanged.
///
/// The length is not limited, and letters that look alike are not distinguished.
///
/// ```
/// use portcullis_metadata::EscapedText;
///
/// assert_eq!(EscapedText("a\u{1b}[2Jb\n").to_string(), r"a\u{1b}[2Jb\u{a}");
/// assert_eq!(EscapedText("Zoë, 日本").to_string(), "Zoë, 日本");
/// ```
#[derive(Clone, Copy)]
pub struct EscapedText<'a>(pub &'a str);

impl<'a> EscapedText<'a> {
    /// The first `characters` characters of a text. An escaped character counts as one.
    pub fn first(text: &'a str, characters: usize) -> Self {
        let end = text
            .char_indices()
            .nth(characters)
            .map_or(text.len(), |(position, _)| position);
        Self(text.get(..end).unwrap_or(text))
    }

    /// Returns whether a character is escaped.
    pub fn escapes(character: char) -> bool {
        character.is_control() || is_separator(character) || is_ignorable(character)
    }

    /// Splits a text at its first escaped character: what precedes it, the character, and what
    /// follows it. Returns `None` if no character is escaped.
    pub fn split_at_escape(text: &str) -> Option<(&str, char, &str)> {
        // Log lines consist of printable ASCII, which is checked many bytes at once because no byte
        // ends the loop early.
        let is_printable_ascii = text
            .bytes()
            .fold(true, |all, byte| all & matches!(byte, b' '..=b'~'));
        let position = if is_printable_ascii {
            None
        } else {
            text.find(Self::escapes)
        };
        let (before, from) = text.split_at(position?);
        let mut after = from.chars();
        Some((before, after.next()?, after.as_str()))
    }
}

impl fmt::Display for EscapedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some((before, character, after)) = Self::split_at_escape(rest) {
            f.write_str(before)?;
            write!(f, "{}", character.escape_unicode())?;
            rest = after;
        }
        f.write_str(rest)
    }
}

/// Writes the escaped text in quotation marks.
impl fmt::Debug for EscapedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        fmt::Display::fmt(self, f)?;
        f.write_char('"')
    }
}

/// Returns whether the character is a line or paragraph separator.
fn is_separator(character: char) -> bool {
    matches!(character, '\u{2028}' | '\u{2029}')
}

/// Returns whether the character has the property `Default_Ignorable_Code_Point` in Unicode 17 or
/// is an interlinear annotation character. The property includes every control of the writing
/// direction.
fn is_ignorable(character: char) -> bool {
    matches!(
        character,
        '\u{AD}'
            | '\u{34F}'
            | '\u{61C}'
            | '\u{115F}'..='\u{1160}'
            | '\u{17B4}'..='\u{17B5}'
            | '\u{180B}'..='\u{180F}'
            | '\u{200B}'..='\u{200F}'
            | '\u{202A}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}'
            | '\u{3164}'
            | '\u{FE00}'..='\u{FE0F}'
            | '\u{FEFF}'
            | '\u{FFA0}'
            | '\u{FFF0}'..='\u{FFFB}'
            | '\u{1BCA0}'..='\u{1BCA3}'
            | '\u{1D173}'..='\u{1D17A}'
            | '\u{E0000}'..='\u{E0FFF}'
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// J8: each class of deceptive characters is escaped.
    #[test]
    fn deceptive_characters_are_escaped() {
        for character in [
            '\0',
            '\t',
            '\n',
            '\r',
            '\u{1b}',
            '\u{7f}',
            '\u{85}',
            '\u{9b}',
            '\u{ad}',
            '\u{61c}',
            '\u{200b}',
            '\u{200e}',
            '\u{2028}',
            '\u{2029}',
            '\u{202e}',
            '\u{2066}',
            '\u{2069}',
            '\u{3164}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{e0041}',
        ] {
            let escaped = EscapedText(&format!("a{character}b")).to_string();
            assert_eq!(escaped, format!("a\\u{{{:x}}}b", u32::from(character)));
        }
    }

    /// J8: letters, marks, emoji and spaces are unchanged.
    #[test]
    fn visible_text_is_unchanged() {
        for text in [
            "",
            "plain text",
            "Zoë",
            "日本語",
            "العربية",
            "e\u{301}",
            "🦀",
            r"C:\u{1b}",
        ] {
            assert_eq!(EscapedText(text).to_string(), text);
        }
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        for (characters, expected) in [
            (0, ""),
            (1, "日"),
            (2, r"日\u{1b}"),
            (3, r"日\u{1b}c"),
            (4, r"日\u{1b}c"),
        ] {
            assert_eq!(
                EscapedText::first("日\u{1b}c", characters).to_string(),
                expected
            );
        }
    }

    proptest! {
        /// J8: the output contains no character that must be escaped.
        #[test]
        fn no_deceptive_character_remains(text in any::<String>()) {
            prop_assert!(!EscapedText(&text).to_string().contains(EscapedText::escapes));
        }
    }
}
