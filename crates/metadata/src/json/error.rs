//! [`DocumentError`]: why a JSON document is invalid.

use crate::identifier::{IssuerError, ResourceUriError};

/// Why a JSON document from a peer is invalid.
///
/// The error names the invalid member. It never contains a value from the document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// The document is not JSON in UTF-8, is nested deeper than 127 levels, or has trailing data.
    #[error("the document is not JSON")]
    NotJson,
    /// The JSON value is not an object.
    #[error("the document is not a JSON object")]
    NotAnObject,
    /// The top-level object has a duplicate member.
    #[error("the document has a duplicate member")]
    DuplicateMember,
    /// A required member is missing.
    #[error("`{member}` is missing")]
    Missing {
        /// The name of the member.
        member: &'static str,
    },
    /// A member that must not be empty is empty.
    #[error("`{member}` is empty")]
    Empty {
        /// The name of the member.
        member: &'static str,
    },
    /// A member has the wrong JSON type.
    #[error("`{member}` is not {expected}")]
    WrongType {
        /// The name of the member.
        member: &'static str,
        /// The expected type.
        expected: &'static str,
    },
    /// A numeric date is not a number, is negative or is later than the year 9999.
    #[error("`{member}` is not a date")]
    Date {
        /// The name of the member.
        member: &'static str,
    },
    /// A member is not an absolute `http` or `https` URL without a fragment.
    #[error("`{member}` is not an absolute URL")]
    NotAUrl {
        /// The name of the member.
        member: &'static str,
    },
    /// A member is not an issuer identifier.
    #[error("`{member}` is not an issuer identifier: {reason}")]
    Issuer {
        /// The name of the member.
        member: &'static str,
        /// The cause.
        reason: IssuerError,
    },
    /// `resource` is not a resource identifier.
    #[error("`resource` is not a resource identifier: {reason}")]
    Resource {
        /// The cause.
        reason: ResourceUriError,
    },
    /// A member has a character or syntax that its definition does not allow.
    #[error("`{member}` is not well formed")]
    Malformed {
        /// The name of the member.
        member: &'static str,
    },
}

impl DocumentError {
    /// Returns a stable code for logs and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotJson => "document.not_json",
            Self::NotAnObject => "document.not_an_object",
            Self::DuplicateMember => "document.duplicate_member",
            Self::Missing { .. } => "document.member_missing",
            Self::Empty { .. } => "document.member_empty",
            Self::WrongType { .. } => "document.member_type",
            Self::Date { .. } => "document.member_date",
            Self::NotAUrl { .. } => "document.member_url",
            Self::Issuer { .. } => "document.member_issuer",
            Self::Resource { .. } => "document.resource",
            Self::Malformed { .. } => "document.member_malformed",
        }
    }
}
