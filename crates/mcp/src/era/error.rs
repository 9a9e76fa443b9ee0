//! [`EraError`]: why a message follows no served revision.

use http::{HeaderName, StatusCode};
use portcullis_reason_codes::ReasonCodes;
use serde_json::{Value, json};

use crate::{EnvelopeError, ErrorCode, Revision, Revisions};

/// The reason why a message follows no served revision.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, ReasonCodes)]
#[non_exhaustive]
pub enum EraError {
    /// The message claims to be modern and cannot be parsed.
    #[error(transparent)]
    #[code(transparent)]
    Message(EnvelopeError),
    /// A header is missing, repeated or malformed, or contradicts the body.
    #[error("Header mismatch: {header} does not match the message")]
    #[code = "era.header_mismatch"]
    HeaderMismatch {
        /// The header.
        header: HeaderName,
    },
    /// A modern request lacks a required member of `_meta`.
    #[error("Invalid params: {key} is missing from _meta")]
    #[code = "era.meta_missing"]
    MissingMeta {
        /// The member.
        key: &'static str,
    },
    /// The revision is unknown or not served.
    #[error("Unsupported protocol version")]
    #[code = "era.version_unsupported"]
    UnsupportedVersion {
        /// The requested version, truncated to 64 characters.
        requested: String,
        /// The served revisions.
        supported: Revisions,
    },
    /// The revision that `initialize` negotiated is not served.
    #[error("Unsupported protocol version {negotiated}; this endpoint serves {supported}")]
    #[code = "era.version_negotiated"]
    NegotiatedVersion {
        /// The negotiated version, truncated to 64 characters.
        negotiated: String,
        /// The version that the client requested, truncated to 64 characters.
        requested: String,
        /// The served legacy revisions.
        supported: Revisions,
    },
    /// `initialize` as a modern request. Modern revisions have neither the method nor sessions.
    #[error("Method not found")]
    #[code = "era.modern_initialize"]
    ModernInitialize,
    /// The version header of a legacy message is repeated, malformed, or names a revision that is
    /// not served.
    #[error("Invalid or unsupported MCP-Protocol-Version")]
    #[code = "era.legacy_version"]
    LegacyVersion,
}

impl EraError {
    /// Returns the HTTP status of the response: 404 for a method that the revision does not define,
    /// else 400.
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::ModernInitialize => StatusCode::NOT_FOUND,
            _ => StatusCode::BAD_REQUEST,
        }
    }

    /// Returns the JSON-RPC error code of the response.
    pub const fn rpc_code(&self) -> ErrorCode {
        match self {
            Self::Message(error) => error.rpc_code(),
            Self::HeaderMismatch { .. } => ErrorCode::HeaderMismatch,
            Self::MissingMeta { .. } => ErrorCode::InvalidParams,
            Self::UnsupportedVersion { .. } | Self::NegotiatedVersion { .. } => {
                ErrorCode::UnsupportedProtocolVersion
            }
            Self::ModernInitialize => ErrorCode::MethodNotFound,
            Self::LegacyVersion => ErrorCode::InvalidRequest,
        }
    }

    /// Returns the `data` of the JSON-RPC error: `supported` and `requested` for an unsupported
    /// version.
    pub fn data(&self) -> Option<Value> {
        match self {
            Self::UnsupportedVersion {
                requested,
                supported,
            }
            | Self::NegotiatedVersion {
                requested,
                supported,
                ..
            } => {
                let supported: Vec<_> = supported.iter().map(Revision::as_str).collect();
                Some(json!({ "supported": supported, "requested": requested }))
            }
            _ => None,
        }
    }

    /// Returns whether the message is legacy nevertheless, so that its session is checked first.
    pub const fn is_legacy(&self) -> bool {
        matches!(self, Self::LegacyVersion)
    }

    /// Returns the error for an `initialize` that negotiated a revision that is not served.
    pub fn unsupported_negotiated(negotiated: &str, requested: &str, served: Revisions) -> Self {
        let supported = served
            .iter()
            .filter(|revision| !revision.is_modern())
            .collect();
        Self::NegotiatedVersion {
            negotiated: truncated(negotiated),
            requested: truncated(requested),
            supported,
        }
    }

    /// Replaces the `supported` revisions of an unsupported version.
    #[must_use]
    pub fn map_supported(self, map: impl FnOnce(Revisions) -> Revisions) -> Self {
        match self {
            Self::UnsupportedVersion {
                requested,
                supported,
            } => Self::UnsupportedVersion {
                requested,
                supported: map(supported),
            },
            other => other,
        }
    }

    /// Returns the error for a header that contradicts the message.
    pub(super) fn mismatch(header: HeaderName) -> Self {
        Self::HeaderMismatch { header }
    }

    /// Returns the error for a version that is not one of the served ones.
    pub(super) fn unsupported(requested: &str, supported: Revisions) -> Self {
        Self::UnsupportedVersion {
            requested: truncated(requested),
            supported,
        }
    }
}

/// Returns a version as errors quote it.
fn truncated(version: &str) -> String {
    version.chars().take(64).collect()
}
