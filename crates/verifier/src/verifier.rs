use std::{fmt, sync::Arc};

use portcullis_jose::{Compact, JoseError};
use portcullis_metadata::{AccessToken, AccessTokenClaims, Clock, ResourceUri, unverified_issuer};

use crate::{
    Principal, SettingsError, TrustedIssuer, VerifiedToken, VerifyError,
    cache::{Cache, Fingerprint, KeyState, Now},
    claims, kind,
};

/// What a [`Verifier`] is made of, beside its issuers.
#[derive(Clone, Debug)]
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

/// Verifies the access tokens of one resource, and remembers for a short while which ones it has verified.
///
/// A token's unverified `iss` picks exactly one of the configured issuers; then everything is judged with that
/// issuer's keys, algorithms and settings alone. A verified token is remembered until its `exp`, 5 min at most, and
/// until its issuer's keys change. Scopes are not judged here.
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
        if issuers.is_empty() {
            return Err(SettingsError::NoIssuer { resource: settings.resource });
        }
        for (position, issuer) in issuers.iter().map(|issuer| issuer.issuer()).enumerate() {
            if issuers[..position].iter().any(|earlier| earlier.issuer() == issuer) {
                return Err(SettingsError::DuplicateIssuer { resource: settings.resource, issuer: issuer.clone() });
            }
        }
        let cache = Cache::new(settings.cache_entries, settings.generation).map_err(|_| SettingsError::Random)?;
        Ok(Arc::new(Self { settings, issuers, clock, cache }))
    }

    /// The resource that this verifier judges tokens for.
    pub fn resource(&self) -> &ResourceUri {
        &self.settings.resource
    }

    /// The issuers whose tokens it takes.
    pub fn issuers(&self) -> &[Arc<TrustedIssuer>] {
        &self.issuers
    }

    /// The token, if it was verified a short while ago and still counts. Neither waits nor allocates.
    pub fn cached(&self, token: &str) -> Option<VerifiedToken> {
        self.check_length(token).ok()?;
        self.recall(self.cache.fingerprint(token))
    }

    /// Verifies a token, from memory where possible.
    ///
    /// It waits for nothing but a key that is not held, 5 s at most, on a runtime with tokio's time enabled.
    ///
    /// # Errors
    /// When the token is refused, or cannot be judged since its issuer cannot be asked: see [`VerifyError`].
    pub async fn verify(&self, token: &AccessToken) -> Result<VerifiedToken, VerifyError> {
        let token = token.secret();
        self.check_length(token)?;
        let fingerprint = self.cache.fingerprint(token);
        if let Some(verified) = self.recall(fingerprint) {
            return Ok(verified);
        }
        let compact = Compact::parse(token, self.settings.max_token_bytes)?;
        let (position, issuer) = self.pick(&compact)?;
        let (principal, generation) = self.judge(&compact, issuer).await.inspect_err(|error| {
            tracing::debug!(token.issuer = %issuer.issuer(), deny.code = error.code(), "token refused");
        })?;
        let verified = VerifiedToken::new(principal);
        let keys = KeyState { issuer: position, generation };
        self.cache.insert(fingerprint, keys, verified.clone(), self.now(), self.present());
        Ok(verified)
    }

    /// Forgets the remembered tokens that no longer count, and says how many those were. They never count as
    /// verified either way; a timer that calls this once a minute frees their memory in quiet times too.
    pub fn sweep(&self) -> usize {
        self.cache.sweep(self.now(), self.present())
    }

    /// How many tokens are remembered, expired ones included until they are asked for, pushed out or swept.
    pub fn remembered(&self) -> usize {
        self.cache.len()
    }

    /// Hashing a token costs time too: one that is too long is not even looked up.
    fn check_length(&self, token: &str) -> Result<(), JoseError> {
        let limit = self.settings.max_token_bytes;
        if token.len() > limit { Err(JoseError::TooLarge { limit }) } else { Ok(()) }
    }

    fn recall(&self, fingerprint: Fingerprint) -> Option<VerifiedToken> {
        self.cache.get(fingerprint, self.now(), self.present())
    }

    /// The one issuer that the token claims to be from. Nothing of the claim is believed: it says whose keys to try.
    fn pick(&self, token: &Compact<'_>) -> Result<(usize, &Arc<TrustedIssuer>), VerifyError> {
        let claimed = unverified_issuer(token.unverified_payload())?.ok_or(VerifyError::IssuerMissing)?;
        self.issuers
            .iter()
            .enumerate()
            .find(|(_, issuer)| issuer.issuer().as_str() == claimed)
            .ok_or(VerifyError::IssuerUnknown)
    }

    async fn judge(&self, token: &Compact<'_>, issuer: &Arc<TrustedIssuer>) -> Result<(Principal, u64), VerifyError> {
        let (payload, generation) = issuer.verify_signature(token).await?;
        kind::judge_type(token.header().typ(), issuer.settings().require_at_jwt)?;
        let claims = AccessTokenClaims::parse(payload.bytes())?;
        let principal = claims::judge(claims, issuer.settings(), &self.settings.resource, self.clock.unix())?;
        Ok((principal, generation))
    }

    fn now(&self) -> Now {
        Now { unix: self.clock.unix(), monotonic: self.clock.monotonic() }
    }

    /// Reads the present key generation of an issuer, by its place in the list.
    fn present(&self) -> impl Fn(usize) -> Option<u64> {
        |issuer| self.issuers.get(issuer).map(|issuer| issuer.generation())
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier")
            .field("settings", &self.settings)
            .field("issuers", &self.issuers)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
