//! Who consents: somebody with a headless Chromium, or one who fills in the forms of the same pages.

use std::sync::Arc;

use anyhow::Context as _;
use portcullis_discovery::{Fetch as _, FetchRequest, UrlPolicy};
use url::Url;

use super::{
    chromium::Chromium,
    pages::{self, Answers, Page},
    wire::Wire,
};

/// A person.
pub(super) struct Person {
    user: &'static str,
    browser: Browser,
}

enum Browser {
    Forms(Arc<Wire>),
    Chromium(Chromium),
}

/// What the person saw.
#[derive(Clone, Debug)]
pub(super) struct Visit {
    /// The texts of the pages that were opened first.
    pub(super) before: Vec<String>,
    /// The kinds of the authorization server's pages.
    pub(super) pages: Vec<Page>,
    /// The text of the page at the redirect URI, its heading first.
    pub(super) end: String,
}

impl Person {
    pub(super) fn with_forms(user: &'static str, wire: Arc<Wire>) -> Self {
        Self { user, browser: Browser::Forms(wire) }
    }

    pub(super) fn with_chromium(user: &'static str, chromium: Chromium) -> Self {
        Self { user, browser: Browser::Chromium(chromium) }
    }

    /// Opens the addresses of `before`; then visits an authorization URL, answers the pages as somebody who is signed in
    /// nowhere, and follows the redirect. The visit has a name, for pictures.
    pub(super) async fn visit(
        &self,
        name: &str,
        url: &Url,
        consents: bool,
        before: &[(&str, Url)],
    ) -> anyhow::Result<Visit> {
        let password = pages::password(self.user);
        let answers = Answers { user: self.user, password: &password, consents };
        let redirect_uri = redirect_uri(url)?;
        match &self.browser {
            Browser::Forms(wire) => {
                let mut texts = Vec::new();
                for (_, url) in before {
                    texts.push(text_at(wire, url.clone()).await?);
                }
                let arrival = pages::visit(wire, url, &redirect_uri, &answers).await?;
                Ok(Visit { before: texts, pages: arrival.pages, end: text_at(wire, arrival.location).await? })
            }
            Browser::Chromium(chromium) => {
                let seen = chromium.visit(name, url, &redirect_uri, &answers, before).await?;
                let (first, seen) = seen.split_at_checked(before.len()).context("the browser came to no end")?;
                let pages = seen.iter().filter_map(|seen| match seen.kind.as_str() {
                    "login" => Some(Page::Login),
                    "consent" => Some(Page::Consent),
                    _ => None,
                });
                let end = seen.last().context("the browser came to no end")?.text.clone();
                Ok(Visit { before: first.iter().map(|seen| seen.text.clone()).collect(), pages: pages.collect(), end })
            }
        }
    }

    /// Opens an address at the redirect URI of an authorization request, as a page that wants to fool the client makes
    /// the browser do.
    pub(super) async fn open(&self, name: &str, request: &Url, url: &Url) -> anyhow::Result<Visit> {
        match &self.browser {
            Browser::Forms(wire) => {
                Ok(Visit { before: Vec::new(), pages: Vec::new(), end: text_at(wire, url.clone()).await? })
            }
            Browser::Chromium(chromium) => {
                let answers = Answers::consents(self.user, "");
                let seen = chromium.visit(name, url, &redirect_uri(request)?, &answers, &[]).await?;
                let end = seen.last().context("the browser came to no end")?.text.clone();
                Ok(Visit { before: Vec::new(), pages: Vec::new(), end })
            }
        }
    }
}

fn redirect_uri(request: &Url) -> anyhow::Result<String> {
    pages::parameters(request).remove("redirect_uri").context("the request has no redirect_uri")
}

async fn text_at(wire: &Wire, url: Url) -> anyhow::Result<String> {
    let answer = wire.fetch(FetchRequest::get(url, UrlPolicy::Operator)).await?;
    Ok(pages::shown(&String::from_utf8_lossy(&answer.body)))
}
