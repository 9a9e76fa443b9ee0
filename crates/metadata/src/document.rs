use crate::{IssuerError, ResourceUriError};

/// Why a JSON document of a peer is not what it should be.
///
/// It names the member at fault and never repeats what the peer wrote.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// The bytes are not JSON in UTF-8, are nested deeper than 128 levels, or go on after the value.
    #[error("the document is not JSON")]
    NotJson,
    /// The JSON value is no object.
    #[error("the document is not a JSON object")]
    NotAnObject,
    /// A member of the top level is there twice.
    #[error("the document has a member twice")]
    DuplicateMember,
    /// A required member is not there.
    #[error("`{member}` is missing")]
    Missing {
        /// The member at fault.
        member: &'static str,
    },
    /// A member that must say something is empty.
    #[error("`{member}` is empty")]
    Empty {
        /// The member at fault.
        member: &'static str,
    },
    /// A member has another JSON type than it should.
    #[error("`{member}` is not {expected}")]
    WrongType {
        /// The member at fault.
        member: &'static str,
        /// What it should be.
        expected: &'static str,
    },
    /// A number that should be a date is negative, not finite or later than the year 9999.
    #[error("`{member}` is not a date")]
    Date {
        /// The member at fault.
        member: &'static str,
    },
    /// A member that should be an absolute `http` or `https` URL without a fragment is not.
    #[error("`{member}` is not an absolute URL")]
    NotAUrl {
        /// The member at fault.
        member: &'static str,
    },
    /// A member that should be an issuer identifier is not.
    #[error("`{member}` is not an issuer identifier: {reason}")]
    Issuer {
        /// The member at fault.
        member: &'static str,
        /// What is wrong with it.
        reason: IssuerError,
    },
    /// `resource` is not a resource identifier.
    #[error("`resource` is not a resource identifier: {reason}")]
    Resource {
        /// What is wrong with it.
        reason: ResourceUriError,
    },
    /// A member has a character or form that its definition does not allow.
    #[error("`{member}` is not well formed")]
    Malformed {
        /// The member at fault.
        member: &'static str,
    },
}

impl DocumentError {
    /// A stable code for logs and tests.
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
