//! [`HtmlText`]: text in an HTML page.

use std::fmt::{self, Write as _};

/// Displays text escaped for HTML content and for attribute values in quotation marks.
///
/// The characters `&`, `<`, `>`, `"` and `'` are escaped as character references (HTML Living
/// Standard, section 13.1.4). All others are unchanged, also controls and invisible ones, which
/// [`EscapedText`](crate::EscapedText) shows. The length is not limited.
///
/// Does not make a text safe in scripts, style sheets, comments, attribute values without quotation
/// marks, or as the scheme of a link.
///
/// ```
/// use portcullis_metadata::HtmlText;
///
/// assert_eq!(HtmlText("<b title='x'>").to_string(), "&lt;b title=&#39;x&#39;&gt;");
/// assert_eq!(HtmlText("Zoë, 日本").to_string(), "Zoë, 日本");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct HtmlText<'a>(pub &'a str);

impl fmt::Display for HtmlText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|character| match character {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '"' => f.write_str("&quot;"),
            '\'' => f.write_str("&#39;"),
            other => f.write_char(other),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn markup_is_escaped() {
        assert_eq!(
            HtmlText(r#"<a b="c" d='e'>&amp;"#).to_string(),
            "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;amp;"
        );
    }

    proptest! {
        /// No character remains that ends a text or a value in quotation marks, and a browser reads
        /// the original text.
        #[test]
        fn a_browser_reads_the_text(text in "[&<>\"'a-z;#0-9\u{0}-\u{2fff}]*") {
            let escaped = HtmlText(&text).to_string();
            prop_assert!(!escaped.contains(['<', '>', '"', '\'']));
            let read = escaped
                .replace("&lt;", "<")
                .replace("&gt;", ">")
                .replace("&quot;", "\"")
                .replace("&#39;", "'")
                .replace("&amp;", "&");
            prop_assert_eq!(read, text);
        }
    }
}
