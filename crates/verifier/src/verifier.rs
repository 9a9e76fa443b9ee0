use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use portcullis_jose::{CompactJws, JoseError};
use portcullis_metadata::{
    AccessToken, ClaimsError, Clock, IntrospectionResponse, ResourceUri, UnixTime, UnverifiedClaims, unverified_issuer,
};

use crate::{
    Principal, TrustedIssuer, Validation, VerifiedToken, VerifierSettingsError, VerifyError,
    cache::{Cache, Fingerprint, KeyState, Now},
    claims,
    deadline::Deadline,
    introspection, kind,
    lane::Lane,
    shape,
};

/// How long a token counts that its issuer calls active without saying until when.
const UNSAID_LIFETIME: Duration = Duration::from_secs(30);

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
    /// The default of [`max_token_bytes`](Self::max_token_bytes).
    pub const DEFAULT_MAX_TOKEN_BYTES: usize = 16 * 1024;
    /// The default of [`cache_entries`](Self::cache_entries).
    pub const DEFAULT_CACHE_ENTRIES: usize = 10_000;

    /// The defaults, for this resource.
    pub fn new(resource: ResourceUri) -> Self {
        Self {
            resource,
            max_token_bytes: Self::DEFAULT_MAX_TOKEN_BYTES,
            cache_entries: Self::DEFAULT_CACHE_ENTRIES,
            generation: 0,
        }
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
    issuer: &'a Arc<TrustedIssuer>,
    /// When it came.
    now: Now,
}

/// Whom a token speaks for, and the state of its issuer's keys that it was judged under.
type Judged = Result<(Principal, KeyState), VerifyError>;

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
    ) -> Result<Arc<Self>, VerifierSettingsError> {
        if issuers.is_empty() {
            return Err(VerifierSettingsError::NoIssuer { resource: settings.resource });
        }
        for (position, issuer) in issuers.iter().map(|issuer| issuer.issuer()).enumerate() {
            if issuers[..position].iter().any(|earlier| earlier.issuer() == issuer) {
                return Err(VerifierSettingsError::DuplicateIssuer {
                    resource: settings.resource,
                    issuer: issuer.clone(),
                });
            }
        }
        let mut introspected =
            issuers.iter().enumerate().filter(|(_, issuer)| !issuer.settings().validation.verifies_signature());
        let (first, second) = (introspected.next(), introspected.next());
        if let (Some((_, first)), Some((_, second))) = (first, second) {
            let (first, second) = (first.issuer().clone(), second.issuer().clone());
            return Err(VerifierSettingsError::AmbiguousIntrospection { resource: settings.resource, first, second });
        }
        let introspected = first.map(|(position, _)| position);
        let cache =
            Cache::new(settings.cache_entries, settings.generation).map_err(|_| VerifierSettingsError::Random)?;
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

    pub(crate) fn max_token_bytes(&self) -> usize {
        self.settings.max_token_bytes
    }

    pub(crate) fn fingerprint(&self, token: &AccessToken) -> Fingerprint {
        self.cache.fingerprint(token.secret())
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// The token, if it was verified a short while ago and still counts. Neither waits nor allocates. Any bytes may be
    /// asked for: those of a token that was accepted are found, and nothing else is.
    pub fn cached(&self, token: impl AsRef<[u8]>) -> Option<VerifiedToken> {
        let token = token.as_ref();
        self.check_length(token).ok()?;
        self.remembered_as(self.cache.fingerprint(token), self.now())
    }

    fn remembered_as(&self, fingerprint: Fingerprint, now: Now) -> Option<VerifiedToken> {
        let verified = self.cache.get(fingerprint, now, self.present())?;
        Lane::note_served(now.monotonic);
        Some(verified)
    }

    /// Verifies a token, from memory where possible.
    ///
    /// It waits for nothing but a key that is not held, for the issuer where that is asked about its tokens, and for
    /// its turn, 5 s at most for all together, on a runtime with tokio's time enabled.
    ///
    /// A turn is waited for only where the thread has been busy with invalid tokens: as long as it serves remembered
    /// ones, tokens that are refused after their signature was verified take no more than a tenth of its time, whoever
    /// sends them, and 1024 tokens wait. Outside a runtime nobody waits.
    ///
    /// # Errors
    /// When the token is refused, or cannot be judged since its issuer cannot be asked: see [`VerifyError`].
    pub async fn verify(&self, token: &AccessToken) -> Result<VerifiedToken, VerifyError> {
        self.check_length(token.secret().as_bytes())?;
        let (fingerprint, now) = (self.cache.fingerprint(token.secret()), self.now());
        if let Some(verified) = self.remembered_as(fingerprint, now) {
            return Ok(verified);
        }
        self.verify_unremembered(token, fingerprint, now).await
    }

    /// Verifies a token again, without regard to what is remembered of it, and remembers the outcome: a token that is
    /// refused is forgotten, so that the next request with it is refused as well.
    ///
    /// # Errors
    /// As [`verify`](Self::verify).
    pub(crate) async fn verify_again(&self, token: &AccessToken) -> Result<VerifiedToken, VerifyError> {
        let fingerprint = self.cache.fingerprint(token.secret());
        let verified = self.verify_unremembered(token, fingerprint, self.now()).await;
        if verified.as_ref().is_err_and(|error| !error.is_unavailable()) {
            self.cache.remove(fingerprint);
        }
        verified
    }

    async fn verify_unremembered(
        &self,
        token: &AccessToken,
        fingerprint: Fingerprint,
        now: Now,
    ) -> Result<VerifiedToken, VerifyError> {
        let (principal, keys) = match CompactJws::parse(token.secret(), self.settings.max_token_bytes) {
            Ok(jws) => self.judge_jws(token, &jws, now).await?,
            Err(error) => self.judge_opaque(token, error, now).await?,
        };
        let verified = VerifiedToken::new(principal);
        let longest = self.issuers.get(keys.issuer).map_or(Duration::ZERO, |issuer| issuer.cache_lifetime());
        self.cache.insert(fingerprint, keys, verified.clone(), longest, now, self.present());
        Ok(verified)
    }

    /// Forgets the remembered tokens that no longer count, and says how many those were. They never count as
    /// verified either way; a timer that calls this once a minute frees their memory in quiet times too.
    pub fn sweep(&self) -> usize {
        self.cache.sweep(self.now(), self.present())
    }

    /// How many tokens are remembered, expired ones included until they are asked for, pushed out or swept.
    pub fn cached_tokens(&self) -> usize {
        self.cache.len()
    }

    /// Hashing a token costs time too: one that is too long is not even looked up.
    fn check_length(&self, token: &[u8]) -> Result<(), JoseError> {
        let limit = self.settings.max_token_bytes;
        if token.len() > limit { Err(JoseError::TooLarge { limit }) } else { Ok(()) }
    }

    /// A JWS goes to the issuer that it names, and to no other. Nothing of the claim is believed: it says whose keys to
    /// try.
    async fn judge_jws(&self, token: &AccessToken, jws: &CompactJws<'_>, now: Now) -> Judged {
        let claims = UnverifiedClaims::parse(jws.unverified_payload());
        let (position, issuer) = self.pick(jws, &claims)?;
        let routed = Routed { token, issuer, now };
        let judged = match &issuer.settings().validation {
            Validation::Introspection(_) => self.ask_about_jws(&routed, jws).await,
            Validation::Jwt => self.judge_signed(&routed, jws, read(&claims)?, &mut Deadline::default()).await,
            Validation::JwtAndIntrospection(_) => self.judge_signed_and_ask(&routed, jws, read(&claims)?).await,
        };
        let (principal, generation) = judged.inspect_err(|error| refused(issuer, error))?;
        Ok((principal, KeyState { issuer: position, generation }))
    }

    /// The one issuer that a JWS claims to be from, also where its other claims are malformed.
    fn pick(
        &self,
        jws: &CompactJws<'_>,
        claims: &Result<UnverifiedClaims<'_>, ClaimsError>,
    ) -> Result<(usize, &Arc<TrustedIssuer>), VerifyError> {
        let claimed = match claims {
            Ok(claims) => claims.iss().map(Cow::Borrowed),
            Err(_) => unverified_issuer(jws.unverified_payload())?.map(Cow::Owned),
        };
        let claimed = claimed.ok_or(VerifyError::IssuerMissing)?;
        let mut known = self.issuers.iter().enumerate();
        known.find(|(_, issuer)| issuer.issuer().as_str() == claimed).ok_or(VerifyError::IssuerUnknown)
    }

    /// What is no JWS that could be verified here goes to the issuer that is asked about every token.
    async fn judge_opaque(&self, token: &AccessToken, error: JoseError, now: Now) -> Judged {
        let asked = self.introspected.and_then(|position| Some((position, self.issuers.get(position)?)));
        let (position, issuer) =
            asked.filter(|(_, issuer)| shape::may_be_shown_to(issuer.issuer(), token.secret())).ok_or(error)?;
        let judged = self.ask_about_opaque(&Routed { token, issuer, now }).await;
        let (principal, generation) = judged.inspect_err(|error| refused(issuer, error))?;
        Ok((principal, KeyState { issuer: position, generation }))
    }

    /// Judges a token by signature and claims, and gives whom it speaks for without its claims, and the generation of
    /// the keys.
    async fn judge_signed(
        &self,
        routed: &Routed<'_>,
        jws: &CompactJws<'_>,
        claims: &UnverifiedClaims<'_>,
        deadline: &mut Deadline,
    ) -> Result<(Principal, u64), VerifyError> {
        let (issuer, settings) = (routed.issuer, routed.issuer.settings());
        let signed = issuer.verify_signature(jws, routed.now.monotonic, deadline).await?;
        kind::judge_type(jws.header().typ(), settings.require_at_jwt)?;
        let now = if deadline.is_set() { self.clock.now() } else { routed.now.unix };
        let principal = claims::judge_token(claims, jws.unverified_payload(), settings, &self.settings.resource, now)?;
        signed.turn.accept();
        Ok((principal, signed.generation))
    }

    async fn judge_signed_and_ask(
        &self,
        routed: &Routed<'_>,
        jws: &CompactJws<'_>,
        claims: &UnverifiedClaims<'_>,
    ) -> Result<(Principal, u64), VerifyError> {
        let mut deadline = Deadline::default();
        let (signed, generation) = self.judge_signed(routed, jws, claims, &mut deadline).await?;
        let (answer, answered) = self.ask(routed, &mut deadline, |_| signed.expires()).await?;
        Ok((signed.narrowed_to(answer.scope.as_ref(), &answered), generation))
    }

    async fn ask_about_jws(&self, routed: &Routed<'_>, jws: &CompactJws<'_>) -> Result<(Principal, u64), VerifyError> {
        kind::judge_type(jws.header().typ(), routed.issuer.settings().require_at_jwt)?;
        self.ask_alone(routed).await
    }

    async fn ask_about_opaque(&self, routed: &Routed<'_>) -> Result<(Principal, u64), VerifyError> {
        kind::judge_type(None, routed.issuer.settings().require_at_jwt)?;
        self.ask_alone(routed).await
    }

    async fn ask_alone(&self, routed: &Routed<'_>) -> Result<(Principal, u64), VerifyError> {
        let generation = routed.issuer.generation();
        let unsaid_end = |now: UnixTime| now.saturating_add(UNSAID_LIFETIME);
        let (_, principal) = self.ask(routed, &mut Deadline::default(), unsaid_end).await?;
        Ok((principal, generation))
    }

    async fn ask(
        &self,
        routed: &Routed<'_>,
        deadline: &mut Deadline,
        unsaid_end: impl FnOnce(UnixTime) -> UnixTime,
    ) -> Result<(Arc<IntrospectionResponse>, Principal), VerifyError> {
        let answer = routed.issuer.introspect(routed.token, deadline).await?;
        let (now, settings) = (self.now(), routed.issuer.settings());
        let unsaid_end = unsaid_end(now.unix);
        let principal = introspection::judge(&answer, settings, &self.settings.resource, now, unsaid_end)?;
        Ok((answer, principal))
    }

    fn now(&self) -> Now {
        Now { unix: self.clock.now(), monotonic: self.clock.monotonic() }
    }

    /// Reads the present key generation of an issuer, by its place in the list.
    fn present(&self) -> impl Fn(usize) -> Option<u64> {
        |issuer| self.issuers.get(issuer).map(|issuer| issuer.generation())
    }
}

fn read<'a, 'p>(
    claims: &'a Result<UnverifiedClaims<'p>, ClaimsError>,
) -> Result<&'a UnverifiedClaims<'p>, VerifyError> {
    claims.as_ref().map_err(|error| error.clone().into())
}

fn refused(issuer: &TrustedIssuer, error: &VerifyError) {
    tracing::debug!(token.issuer = %issuer.issuer(), deny.code = error.code(), "token refused");
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
