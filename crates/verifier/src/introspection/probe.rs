//! The test of an introspection endpoint with a random token.

use std::sync::{Arc, atomic::Ordering};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use portcullis_metadata::AccessToken;
use tokio::sync::Notify;

use super::{Introspection, error::CallError};

/// What the token of a test begins with, so that the issuer's operators can tell what it is.
const PREFIX: &str = "portcullis-probe-";
/// Random bytes in the token of a test.
const RANDOM_BYTES: usize = 32;

impl Introspection {
    /// Asks about a random token, to learn whether the endpoint accepts this client.
    ///
    /// An endpoint that rejects the client is [rejecting](Self::is_rejecting) until an answer has status 200. Any other
    /// failure says nothing about that. Nothing is sent while it is not known where to ask.
    ///
    /// # Errors
    /// When there is no introspection response.
    pub(crate) async fn probe(&self) -> Result<(), CallError> {
        if !self.is_ready() {
            return Ok(());
        }
        let outcome = self.send(&random_token()?).await;
        match &outcome {
            Ok(answer) if answer.active => tracing::warn!(
                token.issuer = %self.issuer.issuer,
                "the introspection endpoint calls a random token active; it may accept every token"
            ),
            Ok(_) => {}
            Err(error) => {
                self.rejecting.fetch_or(error.is_rejection(), Ordering::Relaxed);
                tracing::warn!(
                    token.issuer = %self.issuer.issuer,
                    introspection.failure = error.code(),
                    "the introspection endpoint failed its test with a random token: {error}"
                );
            }
        }
        outcome.map(drop)
    }

    /// Whether the endpoint rejects this client, as the last test showed.
    pub(crate) fn is_rejecting(&self) -> bool {
        self.rejecting.load(Ordering::Relaxed)
    }

    /// Notified when a call about a client's token was rejected: a test is due.
    ///
    /// The call alone does not make the issuer unusable, since a client chooses the token and so, at some endpoints, the
    /// status of the answer.
    pub(crate) fn rejections(&self) -> Arc<Notify> {
        Arc::clone(&self.rejections)
    }
}

fn random_token() -> Result<AccessToken, CallError> {
    let mut random = [0; RANDOM_BYTES];
    getrandom::fill(&mut random).map_err(|_| CallError::Random)?;
    Ok(AccessToken::new(format!("{PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(random))))
}
