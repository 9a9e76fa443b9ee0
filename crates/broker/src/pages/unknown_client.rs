//! [`UnknownClientPage`]: for a client whose registration no longer exists.

use portcullis_metadata::HtmlText;

use crate::pages::{
    headers::{Forms, Page},
    layout::Layout,
};

/// The page for a client that is unknown. It shows nothing from the request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnknownClientPage<'a> {
    /// The identifier of the request in the operator's logs.
    pub(crate) correlation_id: &'a str,
}

impl UnknownClientPage<'_> {
    /// Renders the page.
    pub(crate) fn render(&self, layout: &Layout) -> Page {
        let body = format!(
            r#"<h1>This server does not know your client any more</h1>
<p>The program that opened this page uses a registration that no longer exists here. It must register again:</p>
<ol>
<li>In the program, remove the saved sign-in of this server: log out, clear its authentication, or remove the server.</li>
<li>Connect to the server again. The program then opens a new page.</li>
</ol>
<p class="soft reference">If you ask for help, give this reference: <code>{}</code></p>"#,
            HtmlText(self.correlation_id)
        );
        layout.page("Unknown client", &body, Forms::None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::testing;

    #[test]
    fn the_page_names_the_remedy() {
        let page = UnknownClientPage {
            correlation_id: "01J9<b>",
        };
        let html = testing::render(|layout| page.render(layout)).html;
        assert!(html.contains("remove the saved sign-in"));
        assert!(html.contains("<code>01J9&lt;b&gt;</code>"));
    }
}
