//! Text from other parties, made safe to show to people.

use std::fmt::{self, Write as _};

/// Displays text from another party with every character escaped that could deceive the reader.
///
/// Escaped, as `\u{1b}`, are C0 and C1 controls (a terminal may obey them), line and paragraph separators, controls of
/// the writing direction, and characters that are not visible (Unicode's `Default_Ignorable_Code_Point`). All other
/// characters, letters of any script included, are written unchanged.
///
/// It does not limit the length, and it does not tell apart letters that look alike.
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
    /// The first characters of a text, so many at most. An escaped character counts as one.
    pub fn first(text: &'a str, characters: usize) -> Self {
        let end = text.char_indices().nth(characters).map_or(text.len(), |(position, _)| position);
        Self(text.get(..end).unwrap_or(text))
    }

    /// Whether a character is written escaped.
    pub fn escapes(character: char) -> bool {
        character.is_control() || is_separator(character) || is_ignorable(character)
    }
}

impl fmt::Display for EscapedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(position) = rest.find(Self::escapes) {
            let (plain, escaped) = rest.split_at(position);
            f.write_str(plain)?;
            let mut characters = escaped.chars();
            if let Some(character) = characters.next() {
                write!(f, "{}", character.escape_unicode())?;
            }
            rest = characters.as_str();
        }
        f.write_str(rest)
    }
}

/// Escaped, and in quotation marks.
impl fmt::Debug for EscapedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        fmt::Display::fmt(self, f)?;
        f.write_char('"')
    }
}

/// Line and paragraph separators.
fn is_separator(character: char) -> bool {
    matches!(character, '\u{2028}' | '\u{2029}')
}

/// `Default_Ignorable_Code_Point` of Unicode 17, and the interlinear annotation characters. It includes every control of
/// the writing direction except U+061C, which is listed on its own.
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

    /// J8: letters, marks, emoji and spaces are left as they are.
    #[test]
    fn visible_text_is_unchanged() {
        for text in ["", "plain text", "Zoë", "日本語", "العربية", "e\u{301}", "🦀", r"C:\u{1b}"] {
            assert_eq!(EscapedText(text).to_string(), text);
        }
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        for (characters, expected) in [(0, ""), (1, "日"), (2, r"日\u{1b}"), (3, r"日\u{1b}c"), (4, r"日\u{1b}c")] {
            assert_eq!(EscapedText::first("日\u{1b}c", characters).to_string(), expected);
        }
    }

    proptest! {
        /// J8: nothing that is escaped remains in the output.
        #[test]
        fn no_deceptive_character_remains(text in any::<String>()) {
            prop_assert!(!EscapedText(&text).to_string().contains(EscapedText::escapes));
        }
    }
}
