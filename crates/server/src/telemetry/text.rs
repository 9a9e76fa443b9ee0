//! Bounded text of peers, and identifiers in hexadecimal.

use std::{borrow::Cow, fmt};

/// The maximum size of a text from a peer in bytes. Longer text is truncated.
pub(crate) const MAX_TEXT: usize = 256;

/// Truncates text to at most `max` bytes. Truncated text ends with an ellipsis.
pub(crate) fn truncated(text: &str, max: usize) -> Cow<'_, str> {
    let kept = &text[..text.floor_char_boundary(max)];
    if kept.len() == text.len() { Cow::Borrowed(text) } else { Cow::Owned(format!("{kept}…")) }
}

/// Prints bytes in lower-case hexadecimal.
pub(crate) struct Hex<const N: usize>(pub(crate) [u8; N]);

impl<const N: usize> fmt::Display for Hex<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
