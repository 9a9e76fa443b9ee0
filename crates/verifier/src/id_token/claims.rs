//! The claims of tokens for a client, and their checks.

use portcullis_metadata::{ClaimsError, Secret, UnixTime, UnverifiedClaims};
use serde_json::{Map, Value};

use super::{ExpectedIdToken, IdToken, IdTokenError};
use crate::{error::VerifyError, settings::IssuerSettings};

/// The maximum length of `sub` (OpenID Connect Core 1.0 section 2), and of other identifiers.
const MAX_IDENTIFIER: usize = 255;

/// The claims of a token. They prove nothing before the signature is verified.
pub(super) struct SignedClaims {
    pub(super) exp: Option<UnixTime>,
    pub(super) nbf: Option<UnixTime>,
    pub(super) iat: Option<UnixTime>,
    pub(super) all: Map<String, Value>,
}

impl SignedClaims {
    /// Parses a payload. Fails if it is not a JSON object without duplicate claims, or a registered
    /// claim has the wrong type.
    pub(super) fn parse(payload: &[u8]) -> Result<Self, IdTokenError> {
        let checked = UnverifiedClaims::parse(payload)?;
        let all = serde_json::from_slice(payload).map_err(|_| ClaimsError::NotAnObject)?;
        Ok(Self {
            exp: checked.exp(),
            nbf: checked.nbf(),
            iat: checked.iat(),
            all,
        })
    }

    /// Returns a claim that is a string.
    pub(super) fn string(&self, name: &str) -> Option<&str> {
        self.all.get(name).and_then(Value::as_str)
    }

    /// Returns an identifier of 1 to 255 bytes, or `None` if the claim is missing. Fails if it is
    /// anything else.
    pub(super) fn identifier(&self, name: &str) -> Result<Option<&str>, ()> {
        match self.all.get(name) {
            None => Ok(None),
            Some(Value::String(id)) if (1..=MAX_IDENTIFIER).contains(&id.len()) => Ok(Some(id)),
            Some(_) => Err(()),
        }
    }

    /// Checks the claims of an ID token. Returns the first violation, in this order: issuer,
    /// audience, times, nonce, subject.
    pub(super) fn check_id_token(
        self,
        settings: &IssuerSettings,
        expected: &ExpectedIdToken<'_>,
        now: UnixTime,
    ) -> Result<IdToken, IdTokenError> {
        self.check_origin(settings, expected.client_id)?;
        let issued_at = self.check_times(settings, now)?;
        if let Some(nonce) = expected.nonce {
            self.check_nonce(nonce)?;
        }
        let subject = match self.identifier("sub") {
            Ok(Some(subject)) => Box::from(subject),
            Ok(None) | Err(()) => return Err(IdTokenError::SubjectInvalid),
        };
        Ok(IdToken {
            subject,
            issued_at,
            claims: self.all,
        })
    }

    /// Checks that the token is from the issuer and for the client alone.
    pub(super) fn check_origin(
        &self,
        settings: &IssuerSettings,
        client_id: &str,
    ) -> Result<(), IdTokenError> {
        if self.string("iss") != Some(settings.issuer.as_str()) {
            return Err(IdTokenError::IssuerMismatch);
        }
        let has_other_audience = match self.all.get("aud") {
            Some(Value::String(audience)) if audience == client_id => false,
            Some(Value::Array(audiences)) if audiences.iter().any(|one| one == client_id) => {
                audiences.iter().any(|one| one != client_id)
            }
            _ => return Err(IdTokenError::AudienceMismatch),
        };
        match self.all.get("azp") {
            Some(party) if party == client_id => Ok(()),
            Some(_) => Err(IdTokenError::AuthorizedPartyMismatch),
            None if has_other_audience => Err(IdTokenError::AudienceMismatch),
            None => Ok(()),
        }
    }

    /// Checks `exp`, which must be present, and the other times. Returns `iat`.
    fn check_times(
        &self,
        settings: &IssuerSettings,
        now: UnixTime,
    ) -> Result<UnixTime, VerifyError> {
        let expires = self.exp.ok_or(VerifyError::ExpiryMissing)?;
        if now >= expires.saturating_add(settings.leeway) {
            return Err(VerifyError::Expired);
        }
        self.check_not_in_future(settings, now)
    }

    /// Checks `nbf` and `iat`, and returns `iat`, which must be present.
    pub(super) fn check_not_in_future(
        &self,
        settings: &IssuerSettings,
        now: UnixTime,
    ) -> Result<UnixTime, VerifyError> {
        let latest = now.saturating_add(settings.leeway);
        if self.nbf.is_some_and(|not_before| not_before > latest) {
            return Err(VerifyError::NotYetValid);
        }
        let issued_at = self.iat.ok_or(VerifyError::IssuedAtMissing)?;
        if issued_at > latest {
            return Err(VerifyError::IssuedInFuture);
        }
        Ok(issued_at)
    }

    /// Compares `nonce` in constant time.
    fn check_nonce(&self, expected: &str) -> Result<(), IdTokenError> {
        match self.string("nonce") {
            Some(nonce) if Secret::new(nonce) == Secret::new(expected) => Ok(()),
            _ => Err(IdTokenError::NonceMismatch),
        }
    }
}

/// Checks that the header's `typ` is missing or one of these, in any case, with or without
/// `application/`.
pub(super) fn check_header_type(typ: Option<&str>, allowed: &[&str]) -> Result<(), IdTokenError> {
    const PREFIX: &str = "application/";
    let Some(typ) = typ else {
        return Ok(());
    };
    let typ = match typ.get(..PREFIX.len()) {
        Some(prefix) if prefix.eq_ignore_ascii_case(PREFIX) => &typ[PREFIX.len()..],
        _ => typ,
    };
    if allowed.iter().any(|one| one.eq_ignore_ascii_case(typ)) {
        Ok(())
    } else {
        Err(IdTokenError::TypeNotAllowed)
    }
}
