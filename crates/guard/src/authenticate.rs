use std::{pin::Pin, sync::Arc};

use portcullis_metadata::AccessToken;
use portcullis_verifier::{VerifiedToken, Verifier, VerifyError};
use tracing::Instrument;

use crate::RequestId;

/// A verification that has to wait, or compute: the only future that the guard boxes.
pub(crate) type Verification = Pin<Box<dyn Future<Output = Result<VerifiedToken, VerifyError>> + Send>>;

/// Verifies a token that the cache does not know. Log lines on the way carry the correlation id.
pub(crate) fn verify(verifier: Arc<Verifier>, token: AccessToken, request_id: &RequestId) -> Verification {
    let span = tracing::info_span!("authenticate", request.id = request_id.as_str());
    Box::pin(async move { verifier.verify(&token).await }.instrument(span))
}
