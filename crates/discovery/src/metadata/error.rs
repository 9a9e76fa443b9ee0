//! [`DiscoveryError`]: why no metadata was found.

use http::StatusCode;
use portcullis_metadata::{DocumentError, EscapedText, Issuer};

use super::attempts::Attempts;
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
    /// An endpoint in the authorization server's metadata is neither `https` nor, if the policy
    /// allows loopback, `http` with a loopback host. The metadata is not used.
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
    if earlier.is_empty() {
        String::new()
    } else {
        format!(" (before that: {earlier})")
    }
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
