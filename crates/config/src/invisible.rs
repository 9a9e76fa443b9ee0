//! Invisible characters, which come with text that is copied from web pages or editors.

/// Whether a character is one without width that has no meaning in names of any language.
pub(super) fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2060}' | '\u{feff}'
    )
}
