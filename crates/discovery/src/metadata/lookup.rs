//! [`Lookup`]: a URL at which a document was searched, and what is there.

use std::mem;

use http::StatusCode;
use portcullis_metadata::DocumentError;
use url::Url;

use super::{
    attempts::{AttemptOutcome, Attempts},
    error::DiscoveryError,
};
use crate::fetch::{FetchError, FetchResponse, ResponseExcerpt, shown_url};

/// A URL at which a document was searched, and what is there.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Lookup<T> {
    /// The URL.
    pub url: Url,
    /// Whether the search has no further URL.
    pub is_last: bool,
    /// The response, or why there is none.
    pub result: Result<LookupResponse<T>, FetchError>,
}

/// The response of a URL at which a document was searched.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LookupResponse<T> {
    /// What the response contains.
    pub content: LookupContent<T>,
    /// The response.
    pub response: FetchResponse,
}

/// What the response of a URL contains.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LookupContent<T> {
    /// The document. Its identifier is not compared with the requested one.
    Document(Box<T>),
    /// No document: the status is neither 200 nor 5xx, or the body is not JSON, because some
    /// servers answer every path with a page. The search continues.
    Absent,
    /// The status is 5xx. The search ends.
    ServerError,
    /// The body is JSON, and not the expected document. The search ends.
    Malformed(DocumentError),
}

impl<T> Lookup<T> {
    /// Returns whether the search ends here: there is a document, or an error that is not the
    /// absence of one.
    pub fn ends_search(&self) -> bool {
        self.is_last
            || !self
                .result
                .as_ref()
                .is_ok_and(|found| matches!(found.content, LookupContent::Absent))
    }

    /// Returns the document. Without one, adds an attempt if the search continues. Fails if there
    /// is no response, and with a 5xx status or another document.
    pub(super) fn into_document(
        self,
        attempts: &mut Attempts,
    ) -> Result<Option<T>, DiscoveryError> {
        let url = shown_url(&self.url);
        let mut earlier = || mem::take(attempts);
        let LookupResponse { content, response } = match self.result {
            Ok(found) => found,
            Err(error) => {
                return Err(DiscoveryError::Fetch {
                    url,
                    earlier: earlier(),
                    error,
                });
            }
        };
        let status = response.status;
        let excerpt = || ResponseExcerpt::new(&response.headers, &response.body, &response.sent);
        match content {
            LookupContent::Document(document) => Ok(Some(*document)),
            LookupContent::Malformed(error) => Err(DiscoveryError::Document { url, error }),
            LookupContent::ServerError => {
                let response = Box::new(excerpt());
                Err(DiscoveryError::ServerError {
                    url,
                    earlier: earlier(),
                    status,
                    response,
                })
            }
            LookupContent::Absent => {
                let is_page = status == StatusCode::OK;
                let outcome = if is_page {
                    AttemptOutcome::NotJson
                } else {
                    AttemptOutcome::Status(status)
                };
                attempts.add(url, outcome, Some(excerpt()));
                Ok(None)
            }
        }
    }
}

impl<T> LookupResponse<T> {
    /// Reads a response.
    pub(super) fn new(
        response: FetchResponse,
        parse: fn(&[u8]) -> Result<T, DocumentError>,
    ) -> Self {
        let content = if response.status.is_server_error() {
            LookupContent::ServerError
        } else if response.status != StatusCode::OK {
            LookupContent::Absent
        } else {
            match parse(&response.body) {
                Ok(document) => LookupContent::Document(Box::new(document)),
                Err(DocumentError::NotJson) => LookupContent::Absent,
                Err(error) => LookupContent::Malformed(error),
            }
        };
        Self { content, response }
    }
}
