//! [`ApplicationWarnings`]: warnings about an application that its provider rejects.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use portcullis_identity_provider::ProviderError;

/// The time between two warnings about one provider.
const INTERVAL: Duration = Duration::from_secs(60);

/// When the last warning about each provider was logged, by the monotonic clock.
#[derive(Debug, Default)]
pub(crate) struct ApplicationWarnings(Mutex<HashMap<Box<str>, Duration>>);

impl ApplicationWarnings {
    /// Logs that a provider rejects the application, and what to correct. Within a minute of the
    /// last warning about the same provider, logs only a line with the reference of what the user
    /// sees, if there is one, because every sign-in fails.
    ///
    /// `now` is the time by the monotonic clock.
    pub(crate) fn warn(
        &self,
        provider: &str,
        error: &ProviderError,
        redirect_uri: &str,
        reference: Option<&str>,
        now: Duration,
    ) {
        let mut last = self.0.lock();
        if let Some(last) = last.get(provider)
            && now < last.saturating_add(INTERVAL)
        {
            if reference.is_some() {
                tracing::info!(
                    provider.name = provider,
                    error.code = error.code(),
                    page.reference = reference,
                    "a sign-in failed: {error}"
                );
            }
            return;
        }
        last.insert(provider.into(), now);
        drop(last);
        let cause = error.cause().unwrap_or_default();
        tracing::warn!(
            provider.name = provider,
            error.code = error.code(),
            error.cause = cause,
            provider.redirect_uri = redirect_uri,
            page.reference = reference,
            "the identity provider rejects the application of [[broker.provider]] {provider:?}, so that no user can sign in: {}",
            fix(cause)
        );
    }
}

fn fix(cause: &str) -> &'static str {
    match cause {
        "invalid_client" | "incorrect_client_credentials" | "revocation.status" => {
            "correct its client_id and client_secret; the secret may have expired"
        }
        "unauthorized_client" => {
            "correct its client_id and client_secret, and allow authorization codes for the application at the provider"
        }
        "redirect_uri_mismatch" => "register provider.redirect_uri at the provider, byte for byte",
        "invalid_scope" => "correct its scopes, or allow them for the application at the provider",
        "application_suspended" => "see the application at the provider, which has suspended it",
        _ => "compare its client_id, client_secret and scopes with the application at the provider",
    }
}
