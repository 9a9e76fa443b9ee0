//! [`PageText`]: a text of a report in HTML.

use std::fmt::{self, Write as _};

use portcullis_metadata::{EscapedText, HtmlText};

use crate::sent_secrets::redact;

/// The maximum number of characters of a text.
const MAX_TEXT: usize = 1000;

/// A text for HTML content. It is shortened, without the queries of URLs, deceptive characters and
/// sent secrets, and escaped.
pub(super) struct PageText<'a>(pub(super) &'a str);

impl fmt::Display for PageText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = without_queries(&redact(self.0));
        let shown = EscapedText::first(&text, MAX_TEXT).to_string();
        HtmlText(&shown).fmt(f)?;
        if text.chars().nth(MAX_TEXT).is_some() {
            f.write_char('…')?;
        }
        Ok(())
    }
}

/// Replaces what follows `?` in a word with a scheme. Malformed URLs of a server are quoted in
/// findings as they are, so that they cannot be parsed.
fn without_queries(text: &str) -> String {
    text.split_inclusive(char::is_whitespace)
        .map(|word| {
            let end = word.trim_end();
            match end.split_once('?') {
                Some((before, query)) if before.contains(':') && !query.is_empty() => {
                    format!("{before}?…{}", &word[end.len()..])
                }
                _ => word.to_owned(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J8: the text of a peer cannot become an element, an attribute or a deceptive character.
    #[test]
    fn a_text_of_a_peer_is_escaped_and_bounded() {
        for (text, expected) in [
            (
                "<script>alert('1')</script> \"&",
                "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt; &quot;&amp;",
            ),
            ("a\u{202e}b\u{1b}", r"a\u{202e}b\u{1b}"),
            ("Zoë 日本", "Zoë 日本"),
        ] {
            assert_eq!(PageText(text).to_string(), expected);
        }
        let long = PageText(&"x".repeat(100_000)).to_string();
        assert_eq!(long, format!("{}…", "x".repeat(MAX_TEXT)));
    }

    /// J8: queries can have secrets.
    #[test]
    fn urls_lose_their_queries() {
        for (text, expected) in [
            (
                "see https://a.example/b?token=x and c",
                "see https://a.example/b?… and c",
            ),
            ("https:/a.example?token=x", "https:/a.example?…"),
            ("is it? https://a.example/?", "is it? https://a.example/?"),
        ] {
            assert_eq!(PageText(text).to_string(), expected);
        }
    }
}
