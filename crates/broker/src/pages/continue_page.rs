//! [`ContinuePage`]: takes the browser from a form to another origin.

use url::Url;

use crate::pages::{
    escaped::Ascii,
    headers::{Forms, Page},
    layout::Layout,
    redirect_target::RedirectTarget,
};

/// The page that opens a URL by itself.
///
/// It can answer a form in place of a redirect. Chromium and Safari apply `form-action` to every
/// redirect after a form: also to those of the provider and of the client, whose targets the
/// broker cannot know. This page begins a navigation of its own, to which the policy of the form
/// does not apply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ContinuePage<'a> {
    /// The URL: of the provider, or the redirect URI with the parameters of the answer.
    pub(crate) url: &'a Url,
}

impl ContinuePage<'_> {
    /// Renders the page.
    pub(crate) fn render(&self, layout: &Layout) -> Page {
        let url = Ascii(self.url.as_str());
        let target = RedirectTarget::of(self.url);
        let place = target.place();
        let place = Ascii(&place);
        let head = format!(r#"<meta http-equiv="refresh" content="0;url={url}">"#);
        let body = format!(
            r#"<h1>Continuing to {place}</h1>
<p>If nothing happens, use this link:</p>
<div class="buttons"><a class="button allow" href="{url}">Continue</a></div>"#
        );
        layout.page_with_head("Continuing", &head, &body, Forms::None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::testing;

    #[test]
    fn the_page_opens_the_url_once_and_links_it() {
        let url = Url::parse("https://login.example/authorize?a=b&c='\"d").unwrap();
        let page = testing::render(|layout| ContinuePage { url: &url }.render(layout));
        let escaped = "https://login.example/authorize?a=b&amp;c=%27%22d";
        for text in [
            format!(r#"<meta http-equiv="refresh" content="0;url={escaped}">"#),
            format!(r#"href="{escaped}""#),
            "<h1>Continuing to login.example</h1>".to_owned(),
        ] {
            assert!(page.html.contains(&text), "{text}");
        }
        assert_eq!(page.headers()["referrer-policy"], "no-referrer");
    }

    #[test]
    fn an_application_is_named_by_its_scheme() {
        let url = Url::parse("cursor://anysphere.cursor-mcp/callback?code=a").unwrap();
        let page = testing::render(|layout| ContinuePage { url: &url }.render(layout));
        assert!(
            page.html
                .contains("<h1>Continuing to cursor://anysphere.cursor-mcp</h1>")
        );
    }
}
