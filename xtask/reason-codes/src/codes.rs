use std::collections::BTreeMap;

use portcullis_identity_provider::ProviderError;
use portcullis_jose::JoseError;
use portcullis_mcp::{EnvelopeError, EraError};
use portcullis_metadata::ClaimsError;
use portcullis_session::{NotRecorded, ReservationError, ResolveError};
use portcullis_verifier::{IdTokenError, VerifyError};

/// The codes of rejected requests, ended streams and failed sign-ins, each with what it means.
pub(crate) type Codes = BTreeMap<&'static str, &'static str>;

/// The lists of the libraries.
const LISTS: &[&[(&str, &str)]] = &[
    JoseError::REASON_CODES,
    ClaimsError::REASON_CODES,
    VerifyError::REASON_CODES,
    EnvelopeError::REASON_CODES,
    EraError::REASON_CODES,
    ReservationError::REASON_CODES,
    ResolveError::REASON_CODES,
    NotRecorded::REASON_CODES,
    portcullis_gateway::REASON_CODES,
    portcullis_serve::REASON_CODES,
    ProviderError::REASON_CODES,
    IdTokenError::REASON_CODES,
];

/// Returns all codes. Of several meanings of one code, the first is taken.
pub(crate) fn codes() -> Codes {
    let lists = [
        portcullis_guard::REASON_CODES,
        portcullis_endpoint::REASON_CODES,
        portcullis_broker::REASON_CODES,
        LISTS,
    ]
    .concat();
    let mut codes = Codes::new();
    for (code, meaning) in lists.into_iter().flatten() {
        codes.entry(code).or_insert(meaning);
    }
    codes
}
