//! [`TestUser`]: a user who consents in a headless Chromium, or by submitting the forms of the
//! pages.

use std::sync::Arc;

use anyhow::Context as _;
use portcullis_discovery::{Fetch as _, FetchRequest, UrlPolicy};
use url::Url;

use super::{
    chromium::Chromium,
    pages::{self, Page, UserInput},
    recorder::Recorder,
};

/// A user with a browser.
pub(crate) struct TestUser {
    name: &'static str,
    browser: Browser,
}

enum Browser {
    Forms(Arc<Recorder>),
    Chromium(Chromium),
}

/// The pages that the user saw.
#[derive(Clone, Debug)]
pub(crate) struct Visit {
    /// The texts of the pages that were opened before.
    pub(crate) before: Vec<String>,
    /// The pages of the authorization server.
    pub(crate) pages: Vec<Page>,
    /// The text of the page at the redirect URI, its heading first.
    pub(crate) end: String,
}

impl TestUser {
    pub(crate) fn with_forms(name: &'static str, recorder: Arc<Recorder>) -> Self {
        Self {
            name,
            browser: Browser::Forms(recorder),
        }
    }

    pub(crate) fn with_chromium(name: &'static str, chromium: Chromium) -> Self {
        Self {
            name,
            browser: Browser::Chromium(chromium),
        }
    }

    /// Opens the URLs of `before`. Then opens an authorization URL without existing sessions,
    /// responds to the pages, and follows the redirect. Screenshots are named after `name`.
    pub(crate) async fn visit(
        &self,
        name: &str,
        url: &Url,
        consents: bool,
        before: &[(&str, Url)],
    ) -> anyhow::Result<Visit> {
        let password = pages::password(self.name);
        let user_input = UserInput {
            user: self.name,
            password: &password,
            consents,
        };
        let redirect_uri = redirect_uri(url)?;
        match &self.browser {
            Browser::Forms(recorder) => {
                let mut texts = Vec::new();
                for (_, url) in before {
                    texts.push(text_at(recorder, url.clone()).await?);
                }
                let arrival = pages::visit(recorder, url, &redirect_uri, &user_input).await?;
                Ok(Visit {
                    before: texts,
                    pages: arrival.pages,
                    end: text_at(recorder, arrival.location).await?,
                })
            }
            Browser::Chromium(chromium) => {
                let seen = chromium
                    .visit(name, url, &redirect_uri, &user_input, before)
                    .await?;
                let (first, seen) = seen
                    .split_at_checked(before.len())
                    .context("the browser reached no last page")?;
                let pages = seen.iter().filter_map(|seen| match seen.kind.as_str() {
                    "login" => Some(Page::Login),
                    "consent" => Some(Page::Consent),
                    "broker" => Some(Page::Broker),
                    _ => None,
                });
                let end = seen
                    .last()
                    .context("the browser reached no last page")?
                    .text
                    .clone();
                Ok(Visit {
                    before: first.iter().map(|seen| seen.text.clone()).collect(),
                    pages: pages.collect(),
                    end,
                })
            }
        }
    }

    /// Opens a URL at the redirect URI of an authorization request, as a malicious page can make
    /// the browser do.
    pub(crate) async fn open(&self, name: &str, request: &Url, url: &Url) -> anyhow::Result<Visit> {
        match &self.browser {
            Browser::Forms(recorder) => Ok(Visit {
                before: Vec::new(),
                pages: Vec::new(),
                end: text_at(recorder, url.clone()).await?,
            }),
            Browser::Chromium(chromium) => {
                let user_input = UserInput::consents(self.name, "");
                let seen = chromium
                    .visit(name, url, &redirect_uri(request)?, &user_input, &[])
                    .await?;
                let end = seen
                    .last()
                    .context("the browser reached no last page")?
                    .text
                    .clone();
                Ok(Visit {
                    before: Vec::new(),
                    pages: Vec::new(),
                    end,
                })
            }
        }
    }
}

fn redirect_uri(request: &Url) -> anyhow::Result<String> {
    pages::parameters(request)
        .remove("redirect_uri")
        .context("the request has no redirect_uri")
}

async fn text_at(recorder: &Recorder, url: Url) -> anyhow::Result<String> {
    let response = recorder
        .fetch(FetchRequest::get(url, UrlPolicy::Operator))
        .await?;
    Ok(pages::shown(&String::from_utf8_lossy(&response.body)))
}
