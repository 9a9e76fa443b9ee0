use std::fmt;

use http::StatusCode;
use portcullis_metadata::{DocumentError, EscapedText, Issuer};

use crate::FetchError;

/// Why the chain broke. URLs in it have neither query nor user information.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoveryError {
    /// No place has the document.
    #[error("no metadata found: {0}")]
    NotFound(Attempts),
    /// A fetch failed, or its URL was refused.
    #[error("cannot fetch {url}")]
    Fetch {
        /// The URL.
        url: String,
        /// What failed.
        #[source]
        error: FetchError,
    },
    /// A place answered with a 5xx status.
    #[error("{url} answered {status}")]
    ServerError {
        /// The URL.
        url: String,
        /// The status.
        status: StatusCode,
    },
    /// A place has a JSON document that is not the metadata it should be.
    #[error("the document at {url} is unusable")]
    Document {
        /// The URL.
        url: String,
        /// What is wrong with it.
        #[source]
        error: DocumentError,
    },
    /// The metadata is about another resource than the one asked for.
    #[error("the metadata is for the resource {found}, not for {asked}")]
    ResourceMismatch {
        /// The URL asked for.
        asked: String,
        /// The document's `resource`.
        found: String,
    },
    /// The metadata is of another issuer than the one asked for.
    #[error("the metadata is of the issuer {found}, not of {asked}")]
    IssuerMismatch {
        /// The issuer asked for.
        asked: Issuer,
        /// The document's `issuer`.
        found: Issuer,
    },
    /// The authorization server's metadata names an endpoint that is neither `https`, nor `http` to loopback where the
    /// policy allows loopback. Nothing of the metadata is used.
    #[error("the metadata of the issuer {issuer} names an insecure {}: {url}; an endpoint must be https", EscapedText::first(.member, MAX_MEMBER))]
    InsecureEndpoint {
        /// The issuer.
        issuer: Issuer,
        /// The member of the document that names the endpoint, as the document has it.
        member: String,
        /// The endpoint.
        url: String,
    },
}

/// How many characters of a member's name are shown.
const MAX_MEMBER: usize = 64;

impl DiscoveryError {
    /// The stable code, for logs and metrics.
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

/// The places that were tried in vain, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attempts(Vec<Attempt>);

/// One place that was tried in vain.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// Its URL, or what stood in the place of one.
    pub place: String,
    /// What came of it.
    pub outcome: AttemptOutcome,
}

/// What came of a place that was tried in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AttemptOutcome {
    /// It answered with this status.
    #[error("status {0}")]
    Status(StatusCode),
    /// It answered with something that is not JSON.
    #[error("not JSON")]
    NotJson,
    /// It is no absolute URL.
    #[error("not an absolute URL")]
    NotAUrl,
}

impl Attempts {
    pub(super) fn add(&mut self, place: String, outcome: AttemptOutcome) {
        self.0.push(Attempt { place, outcome });
    }

    /// The attempts, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Attempt> {
        self.0.iter()
    }
}

impl fmt::Display for Attempts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Attempt { place, outcome }) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{place} ({outcome})")?;
        }
        Ok(())
    }
}
