use http::StatusCode;
use portcullis_discovery::FetchResponse;
use url::Url;

use crate::{Finding, Rule, page, text};

/// The URLs of a search that did not have the document.
#[derive(Default)]
pub(crate) struct Search {
    failed: Vec<String>,
    /// The first URL that answered with a web page and 200.
    web_page: Option<String>,
}

impl Search {
    /// Adds a URL without the document.
    pub(crate) fn add(&mut self, url: &Url, response: &FetchResponse) {
        let shown = text::url(url);
        if is_web_page(response) && self.web_page.is_none() {
            self.web_page = Some(shown.clone());
        }
        self.failed.push(format!("{shown} ({})", outcome(response)));
    }

    /// What came before a URL at which the search ended. `None` if it was the first.
    pub(crate) fn earlier(&self, rule: Rule) -> Option<Finding> {
        let text = || {
            format!(
                "before that, no metadata document at {}",
                self.failed.join(", ")
            )
        };
        (!self.failed.is_empty()).then(|| Finding::note(rule, text()))
    }

    /// Every URL with its outcome.
    pub(crate) fn summary(&self) -> String {
        format!("no metadata document at {}", self.failed.join(", "))
    }

    /// The first URL that answered with a web page and 200.
    pub(crate) fn web_page(&self) -> Option<&str> {
        self.web_page.as_deref()
    }
}

/// Describes a response without the document.
pub(crate) fn outcome(response: &FetchResponse) -> String {
    let described = page::describe_response(response);
    if response.status == StatusCode::OK && page::WebPage::of(response).is_none() {
        format!("{described}, but not JSON")
    } else {
        described
    }
}

/// Whether a response is a web page with the status of the document, 200.
pub(crate) fn is_web_page(response: &FetchResponse) -> bool {
    response.status == StatusCode::OK && page::WebPage::of(response).is_some()
}
