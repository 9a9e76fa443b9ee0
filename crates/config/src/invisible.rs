//! Characters that nobody sees, as they come from web pages and editors.

/// Whether a character is one without width that has no meaning in names of any language.
pub(super) fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2060}' | '\u{feff}'
    )
}
