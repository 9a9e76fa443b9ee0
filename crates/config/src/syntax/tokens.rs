//! [`Tokens`]: the marks and strings of a file, found without a parser because the file is invalid
//! or not parsed yet.

/// A part of a file outside of comments.
pub(super) enum Token {
    /// A character outside of strings.
    Mark(char),
    /// A string. The last part if it is not closed.
    Text {
        delimiter: &'static str,
        /// The position after it, if it is closed.
        end: Option<usize>,
    },
}

impl Token {
    /// Whether it is a string that can have several lines.
    pub(super) fn has_lines(&self) -> bool {
        matches!(self, Self::Text { delimiter, .. } if delimiter.len() == 3)
    }
}

/// The parts of a file, each with its position.
pub(super) struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self { text, at: 0 }
    }
}

impl Iterator for Tokens<'_> {
    type Item = (usize, Token);

    fn next(&mut self) -> Option<Self::Item> {
        let mut rest = &self.text[self.at..];
        if rest.starts_with('#') {
            self.at += rest.find('\n').unwrap_or(rest.len());
            rest = &self.text[self.at..];
        }
        let start = self.at;
        let first = rest.chars().next()?;
        if !matches!(first, '"' | '\'') {
            self.at += first.len_utf8();
            return Some((start, Token::Mark(first)));
        }
        let (delimiter, length) = string_length(rest);
        let end = length.map(|length| start + length);
        self.at = end.unwrap_or(self.text.len());
        Some((start, Token::Text { delimiter, end }))
    }
}

/// Returns the delimiter of the string at the start of a text, and the length of the string with
/// its delimiters if it is closed (TOML 1.0, section String).
fn string_length(text: &str) -> (&'static str, Option<usize>) {
    let delimiters = ["\"\"\"", "'''", "\"", "'"];
    let delimiter = delimiters.iter().find(|mark| text.starts_with(**mark));
    let delimiter = *delimiter.unwrap_or(&"\"");
    let mut is_escaped = false;
    for (position, character) in text.char_indices().skip(delimiter.len()) {
        if is_escaped {
            is_escaped = false;
        } else if character == '\\' && delimiter.starts_with('"') {
            is_escaped = true;
        } else if character == '\n' && delimiter.len() == 1 {
            break;
        } else if text[position..].starts_with(delimiter) {
            let end = position + delimiter.len();
            // A text of several lines can end with one or two quotes of its own.
            let quotes = text[end..]
                .bytes()
                .take_while(|b| delimiter.as_bytes()[0] == *b);
            let own = if delimiter.len() == 3 {
                quotes.take(2).count()
            } else {
                0
            };
            return (delimiter, Some(end + own));
        }
    }
    (delimiter, None)
}
