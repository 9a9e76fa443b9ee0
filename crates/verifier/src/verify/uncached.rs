//! The verification of a token without the cache: it selects the issuer, then verifies the
//! signature, introspects the token, or both.

use std::{borrow::Cow, sync::Arc, time::Duration};

use portcullis_jose::{CompactJws, JoseError};
use portcullis_metadata::{
    AccessToken, ClaimsError, Now, UnixTime, UnverifiedClaims, unverified_issuer,
};

use serde_json::Value;

use super::{
    Verifier, opaque_token,
    rejection_log::{self, Claimed},
};
use crate::{
    cache::KeyState,
    claims::{ValidResponse, token_type, validate_response, validation},
    error::VerifyError,
    issuer::TrustedIssuer,
    principal::Principal,
    settings::{IssuerSettings, Validation},
    time::Deadline,
};

/// How long an introspected token is valid if the response has no `exp`.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(30);
/// The `retry_after` while revocations may be missing.
const RETRY_AFTER_INCOMPLETE: Duration = Duration::from_secs(1);

/// A token and the issuer that verifies it.
struct Routed<'a> {
    token: &'a AccessToken,
    issuer: &'a Arc<TrustedIssuer>,
    /// The position of the issuer in the verifier's list.
    position: usize,
    /// The time at which verification started.
    now: Now,
}

/// A verified token, not cached yet.
pub(super) struct Verified {
    pub(super) principal: Principal,
    /// The issuer, and its key generation before the signature was checked.
    pub(super) keys: KeyState,
    /// The number of the introspection, if the token was introspected.
    pub(super) introspection: Option<u64>,
}

impl Routed<'_> {
    fn verified(&self, principal: Principal, generation: u64) -> Verified {
        Verified {
            principal,
            keys: KeyState {
                issuer: self.position,
                generation,
            },
            introspection: None,
        }
    }

    /// Checks the `typ` of the token's header, which is `None` for an opaque token.
    fn check_header_type(&self, typ: Option<&str>) -> Result<(), VerifyError> {
        token_type::check_header_type(typ, self.issuer.settings().require_at_jwt)
    }
}

impl Verifier {
    /// Verifies a token at the time `now`, without the cache. Fails if the token is rejected, or if
    /// it cannot be verified now. A rejection is logged, except that of a malformed token.
    pub(super) async fn verify_without_cache(
        &self,
        token: &AccessToken,
        now: Now,
    ) -> Result<Verified, VerifyError> {
        match CompactJws::parse(token.secret(), self.settings.max_token_bytes) {
            Ok(jws) => self.verify_jws(token, &jws, now).await,
            Err(error) => self.verify_opaque(token, error, now).await,
        }
    }

    /// Verifies a JWS with the issuer that it names. The claim only selects the issuer.
    async fn verify_jws(
        &self,
        token: &AccessToken,
        jws: &CompactJws<'_>,
        now: Now,
    ) -> Result<Verified, VerifyError> {
        let claims = UnverifiedClaims::parse(jws.unverified_payload());
        // What `introspect` rejects, it logs itself.
        let log_rejected = |error: &VerifyError| {
            rejection_log::log(self, error, || Claimed::of_token(claims.as_ref().ok()))
        };
        let (position, issuer) = self.select_issuer(jws, &claims).inspect_err(log_rejected)?;
        let routed = Routed {
            token,
            issuer,
            position,
            now,
        };
        let mut deadline = Deadline::default();
        match &issuer.settings().validation {
            Validation::Introspection(_) => {
                routed
                    .check_header_type(jws.header().typ())
                    .inspect_err(log_rejected)?;
                self.introspect_only(&routed).await
            }
            Validation::Jwt => self
                .verify_signed(&routed, jws, &claims, &mut deadline)
                .await
                .inspect_err(log_rejected),
            Validation::JwtAndIntrospection(_) => {
                let signed = self
                    .verify_signed(&routed, jws, &claims, &mut deadline)
                    .await
                    .inspect_err(log_rejected)?;
                self.introspect_signed(&routed, signed, &mut deadline).await
            }
        }
    }

    /// Returns the issuer that a JWS names, and its position, even if other claims are malformed.
    pub(super) fn select_issuer(
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
        issuers
            .find(|(_, issuer)| issuer.issuer().as_str() == claimed)
            .ok_or(VerifyError::IssuerUnknown)
    }

    /// Introspects a token that is not an acceptable JWS, if an issuer introspects opaque tokens.
    /// Otherwise fails with `error`, the reason why it is not a JWS.
    async fn verify_opaque(
        &self,
        token: &AccessToken,
        error: JoseError,
        now: Now,
    ) -> Result<Verified, VerifyError> {
        let selected = self
            .opaque_token_issuer
            .and_then(|position| Some((position, self.issuers.get(position)?)));
        let (position, issuer) = selected
            .filter(|(_, issuer)| opaque_token::may_be_sent_to(issuer.issuer(), token.secret()))
            .ok_or(error)?;
        let routed = Routed {
            token,
            issuer,
            position,
            now,
        };
        routed
            .check_header_type(None)
            .inspect_err(|error| rejection_log::log(self, error, Claimed::default))?;
        self.introspect_only(&routed).await
    }

    /// Verifies the signature and the claims of a token.
    async fn verify_signed(
        &self,
        routed: &Routed<'_>,
        jws: &CompactJws<'_>,
        claims: &Result<UnverifiedClaims<'_>, ClaimsError>,
        deadline: &mut Deadline,
    ) -> Result<Verified, VerifyError> {
        let claims = claims.as_ref().map_err(Clone::clone)?;
        let issuer = routed.issuer;
        let settings = routed.issuer.settings();
        let signature = issuer
            .verify_signature(jws, routed.now.monotonic, deadline)
            .await?;
        routed.check_header_type(jws.header().typ())?;
        let now = if deadline.is_set() {
            self.clock.now()
        } else {
            routed.now.unix
        };
        let payload = jws.unverified_payload();
        let resource = &self.settings.resource;
        let principal = validation::validate_signed(claims, payload, settings, resource, now)?;
        check_not_revoked(settings, &principal)?;
        signature.permit.accept();
        Ok(routed.verified(principal, signature.generation))
    }

    /// Introspects a token whose signature is verified. The response can only restrict what the
    /// token grants.
    async fn introspect_signed(
        &self,
        routed: &Routed<'_>,
        signed: Verified,
        deadline: &mut Deadline,
    ) -> Result<Verified, VerifyError> {
        let Verified {
            principal, keys, ..
        } = signed;
        let (number, response) = self
            .introspect(routed, deadline, |_| principal.expires())
            .await?;
        let principal = principal.narrowed_to(response.scopes.as_ref(), &response.principal);
        Ok(Verified {
            principal,
            keys,
            introspection: Some(number),
        })
    }

    /// Introspects a token whose signature is not verified.
    async fn introspect_only(&self, routed: &Routed<'_>) -> Result<Verified, VerifyError> {
        let generation = routed.issuer.generation();
        let default_expiry = |now: UnixTime| now.saturating_add(DEFAULT_LIFETIME);
        let (number, response) = self
            .introspect(routed, &mut Deadline::default(), default_expiry)
            .await?;
        Ok(Verified {
            introspection: Some(number),
            ..routed.verified(response.principal, generation)
        })
    }

    /// Introspects a token, validates the response, and logs a rejection. Returns the number of the
    /// introspection, too. `default_expiry` returns the expiration time for a response without
    /// `exp`, given the current time.
    async fn introspect(
        &self,
        routed: &Routed<'_>,
        deadline: &mut Deadline,
        default_expiry: impl FnOnce(UnixTime) -> UnixTime,
    ) -> Result<(u64, ValidResponse), VerifyError> {
        let number = self.record_introspection(routed.token);
        let response = routed
            .issuer
            .introspect(routed.token, number, deadline)
            .await?;
        let now = self.clock.read();
        let settings = routed.issuer.settings();
        let default_expiry = default_expiry(now.unix);
        let valid = validate_response(
            &response,
            settings,
            &self.settings.resource,
            now,
            default_expiry,
        );
        let valid = valid.inspect_err(|error| {
            rejection_log::log(self, error, || Claimed::of_response(&response));
            if matches!(error, VerifyError::Inactive) {
                self.report_inactive(routed.token);
            }
        })?;
        Ok((number, valid))
    }
}

/// Asks the issuer in this process, if it is there, whether the token was revoked. The generation
/// of the keys was read before: a revocation after this check makes the cached result invalid.
fn check_not_revoked(settings: &IssuerSettings, principal: &Principal) -> Result<(), VerifyError> {
    let Some(revoked) = &settings.revoked else {
        return Ok(());
    };
    let text = |name| principal.claim(name).and_then(Value::as_str);
    if revoked.is_revoked(text("sid"), text("jti")) {
        Err(VerifyError::Revoked)
    } else if revoked.is_complete() {
        Ok(())
    } else {
        Err(VerifyError::IssuerUnavailable {
            retry_after: RETRY_AFTER_INCOMPLETE,
        })
    }
}
