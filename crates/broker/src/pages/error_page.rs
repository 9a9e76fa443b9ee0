//! [`ErrorPage`]: an error that is not sent to the client.

use portcullis_metadata::HtmlText;

use crate::pages::{
    headers::{Forms, Page},
    layout::Layout,
};

/// The page for an error that is not sent to the client. It has no link. Its texts are the broker's
/// own, and never those of a client or provider.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ErrorPage<'a> {
    /// What happened, as a heading.
    pub(crate) title: &'a str,
    /// Why, as a sentence.
    pub(crate) reason: &'a str,
    /// What the user can do, as a sentence.
    pub(crate) remedy: &'a str,
    /// The identifier of the request in the operator's logs.
    pub(crate) correlation_id: &'a str,
}

impl ErrorPage<'_> {
    /// Renders the page.
    pub(crate) fn render(&self, layout: &Layout) -> Page {
        let title = HtmlText(self.title).to_string();
        let body = format!(
            r#"<h1>{title}</h1>
<p>{reason}</p>
<p>{remedy}</p>
<p class="soft reference">If you ask for help, give this reference: <code>{correlation_id}</code></p>"#,
            reason = HtmlText(self.reason),
            remedy = HtmlText(self.remedy),
            correlation_id = HtmlText(self.correlation_id),
        );
        layout.page(&title, &body, Forms::None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::testing;

    #[test]
    fn an_error_shows_its_reference_and_no_link() {
        let page = ErrorPage {
            title: "Sign-in failed",
            reason: "The provider did not answer.",
            remedy: "Try again in a few minutes.",
            correlation_id: "01J9ZK2V",
        };
        let html = testing::render(|layout| page.render(layout)).html;
        for text in [
            "<h1>Sign-in failed</h1>",
            "<p>The provider did not answer.</p>",
            "<p>Try again in a few minutes.</p>",
            "<code>01J9ZK2V</code>",
        ] {
            assert!(html.contains(text), "{text}");
        }
        assert!(!html.contains("href"));
    }

    #[test]
    fn every_text_of_an_error_is_escaped() {
        let page = ErrorPage {
            title: "<script>",
            reason: "<script>",
            remedy: "<script>",
            correlation_id: "<script>",
        };
        let html = testing::render(|layout| page.render(layout)).html;
        assert!(!html.contains("<script>"));
        assert_eq!(html.matches("&lt;script&gt;").count(), 5);
    }
}
