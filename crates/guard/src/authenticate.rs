//! Authentication: reads the bearer token and verifies it.

mod bearer;

use std::{pin::Pin, sync::Arc};

use portcullis_metadata::AccessToken;
use portcullis_verifier::{VerifiedToken, Verifier, VerifyError};
use tracing::Instrument;

pub(crate) use self::bearer::{BearerCredentials, NoBearerToken};
use crate::request_id::RequestId;

/// The verification of a token that is not cached.
pub(crate) type Verification =
    Pin<Box<dyn Future<Output = Result<VerifiedToken, VerifyError>> + Send>>;

/// Verifies a token that is not cached. Log events have the request id.
pub(crate) fn verify(
    verifier: Arc<Verifier>,
    token: AccessToken,
    request_id: &RequestId,
) -> Verification {
    let span = tracing::info_span!("authenticate", request.id = request_id.as_str());
    Box::pin(async move { verifier.verify(&token).await }.instrument(span))
}
