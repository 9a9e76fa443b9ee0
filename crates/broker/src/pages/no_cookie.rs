//! [`NoCookiePage`]: for a browser that kept no cookie.

use portcullis_metadata::HtmlText;

use crate::pages::{
    headers::{Forms, Page},
    layout::Layout,
};

/// The page for a browser that kept no cookie, as a browser inside of an application may do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoCookiePage<'a> {
    /// The identifier of the request in the operator's logs.
    pub(crate) correlation_id: &'a str,
}

impl NoCookiePage<'_> {
    /// Renders the page.
    pub(crate) fn render(&self, layout: &Layout) -> Page {
        let body = format!(
            r#"<h1>This browser kept no cookie</h1>
<p>You were not signed in, because the answer cannot be matched with your request. This happens in a browser window inside of another application, or if cookies are blocked.</p>
<p>Start again in your application, and let it open your usual browser.</p>
<p class="soft reference">If you ask for help, give this reference: <code>{}</code></p>"#,
            HtmlText(self.correlation_id)
        );
        layout.page("This browser kept no cookie", &body, Forms::None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::testing;

    #[test]
    fn the_page_names_the_remedy_and_its_reference() {
        let page = NoCookiePage {
            correlation_id: "4f1e",
        };
        let html = testing::render(|layout| page.render(layout)).html;
        assert!(html.contains("Start again in your application"));
        assert!(html.contains("<code>4f1e</code>"));
    }
}
