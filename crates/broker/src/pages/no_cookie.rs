//! [`NoCookiePage`]: for a browser that kept no cookie.

use std::fmt::{self, Display};

use crate::pages::{
    escaped::Ascii,
    headers::{Forms, Page},
    layout::Layout,
};

/// The page for a browser that kept no cookie, as a browser inside of an application may do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoCookiePage<'a> {
    /// The URL that starts again, if it is known.
    pub(crate) url: Option<&'a str>,
}

impl NoCookiePage<'_> {
    /// Renders the page.
    pub(crate) fn render(&self, layout: &Layout) -> Page {
        let start = self.url.map(Start);
        let start = start.as_ref().map_or(
            &"<p>Start again in your application, and let it open your usual browser.</p>"
                as &dyn Display,
            |start| start,
        );
        let body = format!(
            r#"<h1>This browser kept no cookie</h1>
<p>You were not signed in, because the answer cannot be matched with your request. This happens in a browser window inside of another application, or if cookies are blocked.</p>
{start}"#
        );
        layout.page("This browser kept no cookie", &body, Forms::None)
    }
}

/// The field with the URL.
struct Start<'a>(&'a str);

impl Display for Start<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            r#"<p>Copy this link, and open it in your usual browser: Chrome, Edge, Firefox or Safari.</p>
<label for="url">Link</label>
<textarea id="url" rows="4" readonly autocomplete="off" spellcheck="false">{}</textarea>"#,
            Ascii(self.0)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::testing;

    #[test]
    fn the_link_can_be_copied() {
        let page = NoCookiePage {
            url: Some("https://mcp.example.com/oauth/authorize?a=b&c=d"),
        };
        let html = testing::render(|layout| page.render(layout)).html;
        assert!(html.contains(">https://mcp.example.com/oauth/authorize?a=b&amp;c=d</textarea>"));
    }

    #[test]
    fn without_a_link_the_user_starts_again() {
        let html = testing::render(|layout| NoCookiePage { url: None }.render(layout)).html;
        assert!(html.contains("Start again in your application"));
        assert!(!html.contains("<textarea"));
    }
}
