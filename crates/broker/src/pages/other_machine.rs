//! [`OtherMachinePage`]: for a client whose loopback address is on another machine.

use crate::pages::{
    escaped::Ascii,
    headers::{Forms, Page},
    layout::Layout,
    redirect_target::RedirectTarget,
};

/// The page with the URL that the user pastes into a client on another machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OtherMachinePage<'a> {
    /// The loopback redirect URI with the parameters of the answer.
    pub(crate) callback: &'a str,
    /// The redirect URI.
    pub(crate) redirect: &'a RedirectTarget,
}

impl OtherMachinePage<'_> {
    /// Renders the page.
    pub(crate) fn render(&self, layout: &Layout) -> Page {
        let place = self.redirect.place();
        let body = format!(
            r#"<h1>My client is on another machine</h1>
<p>You are signed in. The program that asked is waiting for this URL. Copy it, and paste it there.</p>
<p class="caution">Whoever gets this URL gets the access that you have just allowed. Do not send it to anybody, even if a person who helps you asks for it.</p>
<label for="url">URL for the program</label>
<textarea id="url" rows="5" readonly autocomplete="off" spellcheck="false">{callback}</textarea>
<h2>My client is on this computer</h2>
<p>Then you need not copy anything.</p>
<div class="buttons"><a class="button" href="{callback}">Continue to {place}</a></div>"#,
            callback = Ascii(self.callback),
            place = Ascii(&place),
        );
        layout.page("My client is on another machine", &body, Forms::None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::testing;

    #[test]
    fn the_url_is_shown_with_a_warning_and_linked() {
        let redirect = RedirectTarget::parse("http://127.0.0.1:4321/callback").unwrap();
        let page = OtherMachinePage {
            callback: "http://127.0.0.1:4321/callback?code=abc&state=d\"e",
            redirect: &redirect,
        };
        let page = testing::render(|layout| page.render(layout));
        let escaped = "http://127.0.0.1:4321/callback?code=abc&amp;state=d&quot;e";
        for text in [
            format!(">{escaped}</textarea>"),
            format!("href=\"{escaped}\">Continue to 127.0.0.1:4321</a>"),
            "Whoever gets this URL gets the access".to_owned(),
        ] {
            assert!(page.html.contains(&text), "{text}");
        }
        assert_eq!(page.headers()["referrer-policy"], "no-referrer");
    }
}
