//! Bounded text of peers.

use std::borrow::Cow;

/// The maximum size of a text from a peer in bytes. Longer text is truncated.
pub const MAX_TEXT: usize = 256;

/// Returns the text if it has at most `max` bytes, and otherwise its first characters, of at most `max` bytes, and an ellipsis.
pub fn truncated(text: &str, max: usize) -> Cow<'_, str> {
    let kept = &text[..text.floor_char_boundary(max)];
    if kept.len() == text.len() { Cow::Borrowed(text) } else { Cow::Owned(format!("{kept}…")) }
}
