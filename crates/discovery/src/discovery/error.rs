//! [`DiscoveryError`].

use std::fmt;

use http::StatusCode;
use portcullis_metadata::{DocumentError, EscapedText, Issuer};

use crate::fetch::{FetchError, ResponseExcerpt};

/// Why no metadata was found. URLs in errors have no query and no user information.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoveryError {
    /// No URL has the document.
    #[error("no metadata found: {0}")]
    NotFound(Attempts),
    /// A request failed or its URL is forbidden.
    #[error("cannot fetch {url}{}", before(.earlier))]
    Fetch {
        /// The URL.
        url: String,
        /// The attempts before it.
        earlier: Attempts,
        /// The cause.
        #[source]
        error: FetchError,
    },
    /// A response has a 5xx status.
    #[error("{url} answered {status} ({response}){}", before(.earlier))]
    ServerError {
        /// The URL.
        url: String,
        /// The attempts before it.
        earlier: Attempts,
        /// The status.
        status: StatusCode,
        /// An excerpt of the response.
        response: Box<ResponseExcerpt>,
    },
    /// A JSON document is not the expected metadata.
    #[error("the document at {url} is unusable")]
    Document {
        /// The URL.
        url: String,
        /// The cause.
        #[source]
        error: DocumentError,
    },
    /// The metadata is for another resource.
    #[error("the metadata is for the resource {found}, not for {requested}")]
    ResourceMismatch {
        /// The requested URL.
        requested: String,
        /// The document's `resource`.
        found: String,
    },
    /// The metadata is for another issuer.
    #[error("the metadata is for the issuer {found}, not for {requested}")]
    IssuerMismatch {
        /// The requested issuer.
        requested: Issuer,
        /// The document's `issuer`.
        found: Issuer,
    },
    /// An endpoint in the authorization server's metadata is neither `https` nor, if the policy allows loopback, `http`
    /// with a loopback host. The metadata is not used.
    #[error("the metadata of the issuer {issuer} names an insecure {}: {url}; an endpoint must be https", EscapedText::first(.member, MAX_MEMBER))]
    InsecureEndpoint {
        /// The issuer.
        issuer: Issuer,
        /// The member of the document, as written there.
        member: String,
        /// The endpoint.
        url: String,
    },
}

/// The attempts before the one that ended a search.
fn before(earlier: &Attempts) -> String {
    if earlier.0.is_empty() { String::new() } else { format!(" (before that: {earlier})") }
}

/// The maximum number of characters of a member's name in a message.
const MAX_MEMBER: usize = 64;

impl DiscoveryError {
    /// Returns a stable code for logs and metrics.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound(_) => "discovery.not_found",
            Self::Fetch { error, .. } => error.code(),
            Self::ServerError { .. } => "discovery.server_error",
            Self::Document { .. } => "discovery.document",
            Self::ResourceMismatch { .. } => "discovery.resource_mismatch",
            Self::IssuerMismatch { .. } => "discovery.issuer_mismatch",
            Self::InsecureEndpoint { .. } => "discovery.insecure_endpoint",
        }
    }
}

/// The failed attempts of a search, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attempts(Vec<Attempt>);

/// A failed attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// The URL, or a description of an invalid one.
    pub place: String,
    /// Why it failed.
    pub outcome: AttemptOutcome,
    /// The response, if there is one.
    pub response: Option<Box<ResponseExcerpt>>,
}

/// Why an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AttemptOutcome {
    /// The response has this status.
    #[error("status {0}")]
    Status(StatusCode),
    /// The response is not JSON.
    #[error("not JSON")]
    NotJson,
    /// The URL is not an absolute URL.
    #[error("not an absolute URL")]
    NotAUrl,
}

impl Attempts {
    pub(super) fn add(&mut self, place: String, outcome: AttemptOutcome, response: Option<ResponseExcerpt>) {
        self.0.push(Attempt { place, outcome, response: response.map(Box::new) });
    }

    /// Returns the attempts in order.
    pub fn iter(&self) -> impl Iterator<Item = &Attempt> {
        self.0.iter()
    }
}

impl fmt::Display for Attempts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = None;
        for (index, Attempt { place, outcome, response }) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{place} ({outcome}")?;
            match response {
                // Most servers have one page for everything that they do not have.
                Some(response) if shown == Some(response) => f.write_str(", the same response")?,
                Some(response) => write!(f, ", {response}")?,
                None => {}
            }
            f.write_str(")")?;
            shown = response.as_ref();
        }
        Ok(())
    }
}
