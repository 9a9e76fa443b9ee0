//! Probes of an introspection endpoint with a random token.

use std::sync::{Arc, atomic::Ordering};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use portcullis_metadata::AccessToken;
use tokio::sync::Notify;

use super::{IntrospectionClient, error::CallError};

/// The prefix of a probe's token, by which the issuer's operators can recognize it.
const PREFIX: &str = "portcullis-probe-";
/// The number of random bytes in a probe's token.
const RANDOM_BYTES: usize = 32;

impl IntrospectionClient {
    /// Introspects a random token to check whether the endpoint accepts this client.
    ///
    /// A rejected client is [rejected](Self::is_client_rejected) until a response has status 200.
    /// Other failures do not change that. Nothing is sent while the endpoint is unknown. Fails if
    /// there is no introspection response.
    pub(crate) async fn probe(&self) -> Result<(), CallError> {
        if !self.is_ready() {
            return Ok(());
        }
        let result = self.send(&random_token()?).await;
        match &result {
            Ok(response) if response.active => tracing::warn!(
                token.issuer = %self.issuer.issuer,
                "the introspection endpoint reports a random token as active; it may accept every token"
            ),
            Ok(_) => {}
            Err(error) => {
                self.is_client_rejected
                    .fetch_or(error.is_client_rejected(), Ordering::Relaxed);
                tracing::warn!(
                    token.issuer = %self.issuer.issuer,
                    introspection.failure = error.code(),
                    "the probe of the introspection endpoint failed: {error}"
                );
            }
        }
        result.map(drop)
    }

    /// Returns whether the endpoint rejected this client at the last probe.
    pub(crate) fn is_client_rejected(&self) -> bool {
        self.is_client_rejected.load(Ordering::Relaxed)
    }

    /// Returns the notification of rejected calls, after which a probe is due.
    ///
    /// A rejected call alone does not make the issuer unusable, because the sender of the token may
    /// be able to choose the status of the response.
    pub(crate) fn rejections(&self) -> Arc<Notify> {
        Arc::clone(&self.rejections)
    }
}

/// Returns a token that no issuer has issued.
fn random_token() -> Result<AccessToken, CallError> {
    let mut random = [0; RANDOM_BYTES];
    getrandom::fill(&mut random).map_err(|_| CallError::Random)?;
    Ok(AccessToken::new(format!(
        "{PREFIX}{}",
        BASE64_URL_SAFE_NO_PAD.encode(random)
    )))
}
