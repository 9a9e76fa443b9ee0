//! The browser of a guide's reader, as a subcommand of this program.

use portcullis_scenarios::Browser;
use url::Url;

/// The user who signs in.
const USER: &str = "alice";

/// The maximum number of pages and redirects of one sign-in.
const MAX_PAGES: usize = 20;

/// Opens a URL and follows redirects. Approves the client on the consent page of a broker, and
/// signs in as `alice` on the page of the development server. Other pages end the visit: a client
/// that waits for its redirect then says so.
pub(crate) async fn visit(url: &Url) -> anyhow::Result<()> {
    let mut browser = Browser::default();
    let mut url = url.clone();
    for _ in 0..MAX_PAGES {
        let page = browser.open(&url).await;
        url = if let Some(location) = page.header("location") {
            url.join(location)?
        } else if page.text().contains("action=\"/oauth/consent\"") {
            browser.approve(&url, &page).await
        } else if page.text().contains("name=\"ticket\"") {
            browser.sign_in_at_provider(&url, USER).await
        } else {
            return Ok(());
        };
    }
    Ok(())
}
