use std::{fmt, sync::Arc, time::Duration};

use portcullis_jose::{Compact, JoseError};
use portcullis_metadata::{AccessToken, AccessTokenClaims, Clock, ResourceUri, UnixTime, unverified_issuer};
use tokio::time::Instant;

use crate::{
    Principal, SettingsError, TrustedIssuer, Validation, VerifiedToken, VerifyError,
    cache::{Cache, Fingerprint, KeyState, Now},
    claims, introspection, kind, shape,
};

/// How long one request waits at most, for all that is asked of an issuer on its account.
const DEADLINE: Duration = Duration::from_secs(5);
/// How long a token counts that its issuer calls active without saying until when.
const UNSAID_LIFETIME: Duration = Duration::from_secs(30);

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
/// issuer's keys, algorithms and settings alone. An opaque token, which is anything but a JWS, goes to the one issuer
/// that is asked about every token ([`Validation::Introspection`]). A verified token is remembered until its `exp`, 5 min
/// at most, 30 s where its issuer was asked about it, and until its issuer's keys change; what an issuer calls inactive is
/// not remembered. Scopes are not judged here.
pub struct Verifier {
    settings: VerifierSettings,
    issuers: Vec<Arc<TrustedIssuer>>,
    /// The place of the issuer that is asked about every token, in the list.
    introspected: Option<usize>,
    clock: Arc<dyn Clock>,
    cache: Cache,
}

/// A token on its way to the one issuer that judges it.
struct Routed<'a> {
    token: &'a AccessToken,
    /// None where it is no JWS that could be verified here.
    jws: Option<Compact<'a>>,
    position: usize,
    issuer: &'a Arc<TrustedIssuer>,
}

impl Verifier {
    /// A verifier for one resource and the issuers whose tokens it takes.
    ///
    /// # Errors
    /// When there is no issuer, or one twice, or two that opaque tokens could go to, or the machine's random generator
    /// fails.
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
        let mut introspected =
            issuers.iter().enumerate().filter(|(_, issuer)| !issuer.settings().validation.has_signature());
        let (first, second) = (introspected.next(), introspected.next());
        if let (Some((_, first)), Some((_, second))) = (first, second) {
            let (first, second) = (first.issuer().clone(), second.issuer().clone());
            return Err(SettingsError::AmbiguousIntrospection { resource: settings.resource, first, second });
        }
        let introspected = first.map(|(position, _)| position);
        let cache = Cache::new(settings.cache_entries, settings.generation).map_err(|_| SettingsError::Random)?;
        Ok(Arc::new(Self { settings, issuers, introspected, clock, cache }))
    }

    /// The resource that this verifier judges tokens for.
    pub fn resource(&self) -> &ResourceUri {
        &self.settings.resource
    }

    /// The issuers whose tokens it takes.
    pub fn issuers(&self) -> &[Arc<TrustedIssuer>] {
        &self.issuers
    }

    /// The token, if it was verified a short while ago and still counts. Neither waits nor allocates. Any bytes may be
    /// asked for: those of a token that was accepted are found, and nothing else is.
    pub fn cached(&self, token: impl AsRef<[u8]>) -> Option<VerifiedToken> {
        let token = token.as_ref();
        self.check_length(token).ok()?;
        self.recall(self.cache.fingerprint(token))
    }

    /// Verifies a token, from memory where possible.
    ///
    /// It waits for nothing but a key that is not held, and for the issuer where that is asked about its tokens, 5 s at
    /// most for all together, on a runtime with tokio's time enabled.
    ///
    /// # Errors
    /// When the token is refused, or cannot be judged since its issuer cannot be asked: see [`VerifyError`].
    pub async fn verify(&self, token: &AccessToken) -> Result<VerifiedToken, VerifyError> {
        self.check_length(token.secret().as_bytes())?;
        let fingerprint = self.cache.fingerprint(token.secret());
        if let Some(verified) = self.recall(fingerprint) {
            return Ok(verified);
        }
        let routed = self.route(token)?;
        let issuer = routed.issuer;
        let (principal, generation) = self.judge(&routed).await.inspect_err(|error| {
            tracing::debug!(token.issuer = %issuer.issuer(), deny.code = error.code(), "token refused");
        })?;
        let verified = VerifiedToken::new(principal);
        let keys = KeyState { issuer: routed.position, generation };
        self.cache.insert(fingerprint, keys, verified.clone(), issuer.remembered_for(), self.now(), self.present());
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
    fn check_length(&self, token: &[u8]) -> Result<(), JoseError> {
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

    /// A JWS goes to the issuer that it names; what is none, to the issuer that is asked about every token.
    fn route<'a>(&'a self, token: &'a AccessToken) -> Result<Routed<'a>, VerifyError> {
        match Compact::parse(token.secret(), self.settings.max_token_bytes) {
            Ok(jws) => {
                let (position, issuer) = self.pick(&jws)?;
                Ok(Routed { token, jws: Some(jws), position, issuer })
            }
            Err(error) => self
                .introspected
                .and_then(|position| Some((position, self.issuers.get(position)?)))
                .filter(|(_, issuer)| shape::may_be_shown_to(issuer.issuer(), token.secret()))
                .map(|(position, issuer)| Routed { token, jws: None, position, issuer })
                .ok_or(error.into()),
        }
    }

    /// Gives whom the token speaks for, and the generation of the keys that it was judged under.
    async fn judge(&self, routed: &Routed<'_>) -> Result<(Principal, u64), VerifyError> {
        let deadline = Instant::now() + DEADLINE;
        match (&routed.issuer.settings().validation, &routed.jws) {
            (Validation::Jwt, Some(jws)) => self.judge_signed(jws, routed.issuer, deadline).await,
            (Validation::JwtAndIntrospection(_), Some(jws)) => {
                let (signed, generation) = self.judge_signed(jws, routed.issuer, deadline).await?;
                let said = self.judge_answer(routed, deadline, |_| signed.expires).await?;
                Ok((signed.narrowed_to(&said), generation))
            }
            (Validation::Introspection(_), jws) => {
                let generation = routed.issuer.generation();
                let typ = jws.as_ref().and_then(|jws| jws.header().typ());
                kind::judge_type(typ, routed.issuer.settings().require_at_jwt)?;
                Ok((self.judge_answer(routed, deadline, |now| now.plus(UNSAID_LIFETIME)).await?, generation))
            }
            (Validation::Jwt | Validation::JwtAndIntrospection(_), None) => Err(JoseError::Malformed.into()),
        }
    }

    async fn judge_signed(
        &self,
        token: &Compact<'_>,
        issuer: &Arc<TrustedIssuer>,
        deadline: Instant,
    ) -> Result<(Principal, u64), VerifyError> {
        let (payload, generation) = issuer.verify_signature(token, deadline).await?;
        kind::judge_type(token.header().typ(), issuer.settings().require_at_jwt)?;
        let claims = AccessTokenClaims::parse(payload.bytes())?;
        let principal = claims::judge(claims, issuer.settings(), &self.settings.resource, self.clock.unix())?;
        Ok((principal, generation))
    }

    async fn judge_answer(
        &self,
        routed: &Routed<'_>,
        deadline: Instant,
        unsaid_end: impl FnOnce(UnixTime) -> UnixTime,
    ) -> Result<Principal, VerifyError> {
        let answer = Arc::unwrap_or_clone(routed.issuer.introspect(routed.token, deadline).await?);
        let now = self.clock.unix();
        introspection::judge(answer, routed.issuer.settings(), &self.settings.resource, now, unsaid_end(now))
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
