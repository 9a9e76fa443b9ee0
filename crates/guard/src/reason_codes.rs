//! [`REASON_CODES`]: the list of all reason codes of this crate.

use crate::{
    authenticate::NoBearerToken,
    authorize::ClaimDenial,
    layer::unanswered::Unanswered,
    origin::OriginRejection,
    respond::{Limit, Rejection},
};

/// The codes for which the guard rejects a request or reports its end, each with what it means, in
/// Markdown. Those of an invalid token are in
/// [`VerifyError`](portcullis_verifier::VerifyError::REASON_CODES) and in the errors that it holds.
pub const REASON_CODES: &[&[(&str, &str)]] = &[
    NoBearerToken::REASON_CODES,
    Rejection::REASON_CODES,
    Limit::REASON_CODES,
    ClaimDenial::REASON_CODES,
    OriginRejection::REASON_CODES,
    Unanswered::REASON_CODES,
];
