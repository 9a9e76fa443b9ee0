use std::sync::Arc;

use portcullis_config::plan::Fingerprint;
use portcullis_verifier::TrustedIssuer;

/// An issuer and the fingerprint of its settings.
#[derive(Clone)]
pub(super) struct ConfiguredIssuer {
    pub(super) fingerprint: Fingerprint,
    pub(super) issuer: Arc<TrustedIssuer>,
}
