//! [`ClaimsError`]: why claims are invalid.

use portcullis_reason_codes::ReasonCodes;

/// Why a token's payload is not a valid set of access token claims. The error contains no value
/// from the token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, ReasonCodes)]
#[non_exhaustive]
pub enum ClaimsError {
    /// The payload is not a JSON object without duplicate claims.
    #[error("the payload is not a JSON object without duplicate claims")]
    #[code = "claims.not_an_object"]
    NotAnObject,
    /// A claim has the wrong JSON type. `null` is one, too.
    #[error("the claim `{claim}` has the wrong type")]
    #[code = "claims.type"]
    WrongType {
        /// The name of the claim.
        claim: &'static str,
    },
    /// A date is not a number, is negative or is later than the year 9999.
    #[error("the claim `{claim}` is not a date")]
    #[code = "claims.date"]
    Date {
        /// The name of the claim.
        claim: &'static str,
    },
    /// A scope name has a character that RFC 6749 section 3.3 does not allow.
    #[error("the claim `{claim}` has a malformed scope name")]
    #[code = "claims.scope"]
    Scope {
        /// The name of the claim.
        claim: &'static str,
    },
}
