//! [`Verifier`]: verifies the access tokens of one resource.

mod dropped_tokens;
mod explanation;
mod rejection_log;

use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use portcullis_jose::{CompactJws, JoseError};
use portcullis_metadata::{
    AccessToken, ClaimsError, Clock, ResourceUri, UnixTime, UnverifiedClaims, unverified_issuer,
};

use crate::{
    cache::{Cache, KeyState, Now},
    claims::{token_type, validation},
    deadline::Deadline,
    error::VerifyError,
    inactive_tokens::{InactiveTokens, IntrospectedTokens},
    introspection::{ValidResponse, opaque_token, validate_response},
    invalid_token_throttle::Throttle,
    issuer::TrustedIssuer,
    observer::VerificationObserver,
    principal::Principal,
    settings::{Validation, VerifierSettingsError},
    token_hash::TokenHash,
    verified_token::VerifiedToken,
};
pub use explanation::{RuleCheck, TokenRule};
use rejection_log::Claimed;

/// How long an introspected token is valid if the response has no `exp`.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(30);

/// The settings of a [`Verifier`], apart from its issuers.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct VerifierSettings {
    /// The resource that a token's `aud` must contain.
    pub resource: ResourceUri,
    /// The maximum length of a token in bytes. Longer tokens are rejected before they are parsed. Default: 16 KiB.
    pub max_token_bytes: usize,
    /// The maximum number of cached verified tokens; 0 disables the cache. Default: 10,000.
    pub cache_entries: usize,
    /// The generation of the resource's configuration. Cached tokens of another generation are not used. Default: 0.
    pub generation: u64,
    /// Observes verifications. Default: none.
    pub observer: Option<Arc<dyn VerificationObserver>>,
    /// Learns which tokens introspection has found inactive. Default: none. [`Verifier::drop_token`] has an effect only if it is
    /// set.
    pub inactive_tokens: Option<Arc<dyn InactiveTokens>>,
}

impl VerifierSettings {
    /// The default of [`max_token_bytes`](Self::max_token_bytes): 16 KiB.
    pub const DEFAULT_MAX_TOKEN_BYTES: usize = 16 * 1024;
    /// The default of [`cache_entries`](Self::cache_entries): 10,000.
    pub const DEFAULT_CACHE_ENTRIES: usize = 10_000;

    /// Returns the default settings for a resource.
    pub fn new(resource: ResourceUri) -> Self {
        Self {
            resource,
            max_token_bytes: Self::DEFAULT_MAX_TOKEN_BYTES,
            cache_entries: Self::DEFAULT_CACHE_ENTRIES,
            generation: 0,
            observer: None,
            inactive_tokens: None,
        }
    }
}

/// Verifies the access tokens of one resource and caches verified tokens.
///
/// The unverified `iss` of a token selects exactly one of the configured issuers. The token is then verified with that
/// issuer's keys, algorithms and settings only. An opaque token, which is any token that is not a JWS, goes to the
/// issuer with [`Validation::Introspection`], if there is one.
///
/// A verified token is cached until its `exp`, until its issuer's keys change, and for at most 5 min, or 30 s if it was
/// introspected. Rejected tokens are not cached. Scopes are not checked.
///
/// [`builder`](Self::builder) creates a verifier with the defaults of `portcullis serve`.
pub struct Verifier {
    settings: VerifierSettings,
    issuers: Vec<Arc<TrustedIssuer>>,
    /// The position of the issuer that introspects opaque tokens.
    opaque_token_issuer: Option<usize>,
    clock: Arc<dyn Clock>,
    cache: Cache,
    /// Used only if [`VerifierSettings::inactive_tokens`] is set.
    introspected: IntrospectedTokens,
}

/// A token and the issuer that verifies it.
struct Routed<'a> {
    token: &'a AccessToken,
    issuer: &'a Arc<TrustedIssuer>,
    /// The time at which verification started.
    now: Now,
}

/// A verified token's principal and the generation of its issuer's keys.
type Verified = Result<(Principal, u64), VerifyError>;

impl Verifier {
    /// Creates a verifier for one resource and its issuers. See [`builder`](Self::builder) for a simpler way.
    ///
    /// # Errors
    /// Fails if there is no issuer, an issuer is given twice, two issuers introspect all their tokens, or the random
    /// number generator fails.
    pub fn new(
        settings: VerifierSettings,
        issuers: Vec<Arc<TrustedIssuer>>,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>, VerifierSettingsError> {
        if issuers.is_empty() {
            return Err(VerifierSettingsError::NoIssuer { resource: settings.resource });
        }
        for (position, issuer) in issuers.iter().map(|issuer| issuer.issuer()).enumerate() {
            if issuers[..position].iter().any(|earlier| earlier.issuer() == issuer) {
                let (resource, issuer) = (settings.resource, issuer.clone());
                return Err(VerifierSettingsError::DuplicateIssuer { resource, issuer });
            }
        }
        let mut introspecting =
            issuers.iter().enumerate().filter(|(_, issuer)| !issuer.settings().validation.verifies_signature());
        let (first, second) = (introspecting.next(), introspecting.next());
        if let (Some((_, first)), Some((_, second))) = (first, second) {
            let (first, second) = (first.issuer().clone(), second.issuer().clone());
            return Err(VerifierSettingsError::AmbiguousIntrospection { resource: settings.resource, first, second });
        }
        let opaque_token_issuer = first.map(|(position, _)| position);
        let cache =
            Cache::new(settings.cache_entries, settings.generation).map_err(|_| VerifierSettingsError::Random)?;
        let introspected = IntrospectedTokens::default();
        Ok(Arc::new(Self { settings, issuers, opaque_token_issuer, clock, cache, introspected }))
    }

    /// Returns the resource whose tokens are verified.
    pub fn resource(&self) -> &ResourceUri {
        &self.settings.resource
    }

    /// Returns the issuers whose tokens are accepted.
    pub fn issuers(&self) -> &[Arc<TrustedIssuer>] {
        &self.issuers
    }

    pub(crate) fn token_hash(&self, token: &AccessToken) -> TokenHash {
        self.cache.hash(token.secret())
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Returns a cached token that is still valid. It neither waits nor allocates. `token` can be any bytes, for
    /// example an unchecked header value.
    pub fn cached(&self, token: impl AsRef<[u8]>) -> Option<VerifiedToken> {
        let token = token.as_ref();
        self.check_length(token).ok()?;
        self.cached_by_hash(self.cache.hash(token), self.now())
    }

    fn cached_by_hash(&self, hash: TokenHash, now: Now) -> Option<VerifiedToken> {
        let verified = self.cache.get(hash, now, self.generations())?;
        Throttle::record_served(now.monotonic);
        if let Some(observer) = &self.settings.observer {
            observer.cached();
        }
        Some(verified)
    }

    /// Verifies a token, or returns it from the cache.
    ///
    /// It waits only for an unknown key, for introspection and for the throttle below, for at most 5 s in total. The
    /// runtime must have tokio's time enabled.
    ///
    /// The throttle protects requests with cached tokens from floods of invalid ones: while a thread serves cached
    /// tokens, tokens that are rejected after their signature was computed take at most a tenth of its time. Up to 1024
    /// tokens wait per thread. Outside a runtime no token waits.
    ///
    /// # Errors
    /// Fails if the token is rejected, or if it cannot be verified now ([`VerifyError::is_unavailable`]).
    pub async fn verify(&self, token: &AccessToken) -> Result<VerifiedToken, VerifyError> {
        self.check_length(token.secret().as_bytes())?;
        let (hash, now) = (self.cache.hash(token.secret()), self.now());
        if let Some(verified) = self.cached_by_hash(hash, now) {
            return Ok(verified);
        }
        self.verify_uncached(token, hash, now).await
    }

    /// Verifies a token without the cache and updates the cache. A rejected token is removed from it.
    ///
    /// # Errors
    /// As [`verify`](Self::verify).
    pub(crate) async fn verify_again(&self, token: &AccessToken) -> Result<VerifiedToken, VerifyError> {
        let hash = self.cache.hash(token.secret());
        let verified = self.verify_uncached(token, hash, self.now()).await;
        if verified.as_ref().is_err_and(|error| !error.is_unavailable()) {
            self.cache.remove(hash);
        }
        verified
    }

    async fn verify_uncached(
        &self,
        token: &AccessToken,
        hash: TokenHash,
        now: Now,
    ) -> Result<VerifiedToken, VerifyError> {
        let verified = match CompactJws::parse(token.secret(), self.settings.max_token_bytes) {
            Ok(jws) => self.verify_jws(token, &jws, now).await,
            Err(error) => self.verify_opaque(token, error, now).await,
        };
        if let Some(observer) = &self.settings.observer {
            observer.verified(self.clock.monotonic().saturating_sub(now.monotonic));
        }
        let (principal, keys) = verified?;
        let verified = VerifiedToken::new(principal);
        if verified.principal().is_introspected() && self.was_dropped(token) {
            return Ok(verified);
        }
        let max_lifetime = self.issuers.get(keys.issuer).map_or(Duration::ZERO, |issuer| issuer.cache_lifetime());
        self.cache.insert(hash, keys, verified.clone(), max_lifetime, now, self.generations());
        Ok(verified)
    }

    /// Removes cached tokens that are no longer valid and returns their number. They are never returned, but take
    /// memory until they are removed; call this about once a minute.
    pub fn sweep(&self) -> usize {
        self.cache.sweep(self.now(), self.generations())
    }

    /// Returns the number of cached tokens. Expired tokens count until they are looked up, evicted or swept.
    pub fn cached_tokens(&self) -> usize {
        self.cache.len()
    }

    /// Checks the length before the token is hashed.
    fn check_length(&self, token: &[u8]) -> Result<(), JoseError> {
        let limit = self.settings.max_token_bytes;
        if token.len() > limit { Err(JoseError::TooLarge { limit }) } else { Ok(()) }
    }

    /// Verifies a JWS with the issuer that it names. The claim only selects the keys.
    async fn verify_jws(
        &self,
        token: &AccessToken,
        jws: &CompactJws<'_>,
        now: Now,
    ) -> Result<(Principal, KeyState), VerifyError> {
        let claims = UnverifiedClaims::parse(jws.unverified_payload());
        // What `introspect` rejects, it logs itself.
        let log_rejected =
            |error: &VerifyError| rejection_log::log(self, error, || Claimed::of_token(claims.as_ref().ok()));
        let (position, issuer) = self.select_issuer(jws, &claims).inspect_err(log_rejected)?;
        let (routed, mut deadline) = (Routed { token, issuer, now }, Deadline::default());
        let (principal, generation) = match &issuer.settings().validation {
            Validation::Introspection(_) => {
                check_header_type(&routed, jws.header().typ()).inspect_err(log_rejected)?;
                self.introspect_only(&routed).await?
            }
            Validation::Jwt => {
                self.verify_signed(&routed, jws, &claims, &mut deadline).await.inspect_err(log_rejected)?
            }
            Validation::JwtAndIntrospection(_) => {
                let signed =
                    self.verify_signed(&routed, jws, &claims, &mut deadline).await.inspect_err(log_rejected)?;
                self.introspect_signed(&routed, signed, &mut deadline).await?
            }
        };
        Ok((principal, KeyState { issuer: position, generation }))
    }

    /// Returns the issuer that a JWS names, and its position, even if other claims are malformed.
    fn select_issuer(
        &self,
        jws: &CompactJws<'_>,
        claims: &Result<UnverifiedClaims<'_>, ClaimsError>,
    ) -> Result<(usize, &Arc<TrustedIssuer>), VerifyError> {
        let claimed = match claims {
            Ok(claims) => claims.iss().map(Cow::Borrowed),
            Err(_) => unverified_issuer(jws.unverified_payload())?.map(Cow::Owned),
        };
        let claimed = claimed.ok_or(VerifyError::IssuerMissing)?;
        let mut issuers = self.issuers.iter().enumerate();
        issuers.find(|(_, issuer)| issuer.issuer().as_str() == claimed).ok_or(VerifyError::IssuerUnknown)
    }

    /// Introspects a token that is not an acceptable JWS, if an issuer introspects opaque tokens.
    async fn verify_opaque(
        &self,
        token: &AccessToken,
        error: JoseError,
        now: Now,
    ) -> Result<(Principal, KeyState), VerifyError> {
        let selected = self.opaque_token_issuer.and_then(|position| Some((position, self.issuers.get(position)?)));
        let (position, issuer) = selected
            .filter(|(_, issuer)| opaque_token::may_be_sent_to(issuer.issuer(), token.secret()))
            .ok_or(error)?;
        let routed = Routed { token, issuer, now };
        check_header_type(&routed, None).inspect_err(|error| rejection_log::log(self, error, Claimed::default))?;
        let (principal, generation) = self.introspect_only(&routed).await?;
        Ok((principal, KeyState { issuer: position, generation }))
    }

    /// Verifies the signature and the claims of a token.
    async fn verify_signed(
        &self,
        routed: &Routed<'_>,
        jws: &CompactJws<'_>,
        claims: &Result<UnverifiedClaims<'_>, ClaimsError>,
        deadline: &mut Deadline,
    ) -> Verified {
        let claims = claims.as_ref().map_err(Clone::clone)?;
        let (issuer, settings) = (routed.issuer, routed.issuer.settings());
        let signature = issuer.verify_signature(jws, routed.now.monotonic, deadline).await?;
        check_header_type(routed, jws.header().typ())?;
        let now = if deadline.is_set() { self.clock.now() } else { routed.now.unix };
        let (payload, resource) = (jws.unverified_payload(), &self.settings.resource);
        let principal = validation::validate_signed(claims, payload, settings, resource, now)?;
        signature.permit.accept();
        Ok((principal, signature.generation))
    }

    /// Introspects a token whose signature is verified.
    async fn introspect_signed(
        &self,
        routed: &Routed<'_>,
        (signed, generation): (Principal, u64),
        deadline: &mut Deadline,
    ) -> Verified {
        let response = self.introspect(routed, deadline, |_| signed.expires()).await?;
        Ok((signed.narrowed_to(response.scopes.as_ref(), &response.principal), generation))
    }

    async fn introspect_only(&self, routed: &Routed<'_>) -> Verified {
        let generation = routed.issuer.generation();
        let default_expiry = |now: UnixTime| now.saturating_add(DEFAULT_LIFETIME);
        let response = self.introspect(routed, &mut Deadline::default(), default_expiry).await?;
        Ok((response.principal, generation))
    }

    /// Introspects a token, validates the response, and logs a rejection. `default_expiry` returns the expiration time
    /// for a response without `exp`, given the current time.
    async fn introspect(
        &self,
        routed: &Routed<'_>,
        deadline: &mut Deadline,
        default_expiry: impl FnOnce(UnixTime) -> UnixTime,
    ) -> Result<ValidResponse, VerifyError> {
        self.note_introspection(routed.token);
        let response = routed.issuer.introspect(routed.token, deadline).await?;
        let (now, settings) = (self.now(), routed.issuer.settings());
        let default_expiry = default_expiry(now.unix);
        validate_response(&response, settings, &self.settings.resource, now, default_expiry).inspect_err(|error| {
            rejection_log::log(self, error, || Claimed::of_response(&response));
            if matches!(error, VerifyError::Inactive) {
                self.report_inactive(routed.token);
            }
        })
    }

    fn now(&self) -> Now {
        Now { unix: self.clock.now(), monotonic: self.clock.monotonic() }
    }

    /// Returns a function that returns the current key generation of an issuer by its position.
    fn generations(&self) -> impl Fn(usize) -> Option<u64> {
        |issuer| self.issuers.get(issuer).map(|issuer| issuer.generation())
    }
}

/// Checks the `typ` of a token's header, which is `None` for an opaque token.
fn check_header_type(routed: &Routed<'_>, typ: Option<&str>) -> Result<(), VerifyError> {
    token_type::check_header_type(typ, routed.issuer.settings().require_at_jwt)
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
