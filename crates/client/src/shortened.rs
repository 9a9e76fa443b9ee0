//! [`Shortened`]: a value of a server, in a message.

use std::fmt::{self, Display};

/// Displays at most the first 512 characters of a value, and how many more it has. A server chooses
/// its scopes and client identifiers, and can choose them to push everything else out of a
/// terminal.
///
/// Does not escape the text: [`EscapedText`](portcullis_metadata::EscapedText) does.
///
/// ```
/// use portcullis_client::Shortened;
///
/// assert_eq!(Shortened("files:read").to_string(), "files:read");
/// let long = "x".repeat(515);
/// assert!(Shortened(long).to_string().ends_with("x… (3 more characters)"));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Shortened<T>(pub T);

/// The number of characters that are shown.
const MAX_SHOWN: usize = 512;

impl<T: Display> Display for Shortened<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        let end = text.char_indices().nth(MAX_SHOWN).map(|(end, _)| end);
        match end.and_then(|end| text.split_at_checked(end)) {
            None => f.write_str(&text),
            Some((shown, rest)) => write!(f, "{shown}… ({} more characters)", rest.chars().count()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_shortened() {
        let longest = "é".repeat(MAX_SHOWN);
        assert_eq!(Shortened(&longest).to_string(), longest);
        assert_eq!(
            Shortened(format!("{longest}abc")).to_string(),
            format!("{longest}… (3 more characters)")
        );
    }
}
