//! [`AccessTokens`]: issues and recognizes access tokens (RFC 9068).

use std::{sync::Arc, time::Duration};

use portcullis_authorization_server::{
    ErrorCode, ErrorResponse, IssuedToken, TokenVerifier, random_secret,
};
use portcullis_jose::{AlgorithmSet, CompactJws, KeySet};
use portcullis_metadata::{AccessToken, AccessTokenClaims, Clock, Issuer, Scopes};
use serde_json::{Map, Value, json};

use crate::{
    keys::{ALGORITHM, BrokerKeys},
    records::{GrantRecord, SignInRecord},
};

/// The `typ` of access tokens (RFC 9068 section 2.1).
const TYPE: &str = "at+jwt";
/// The maximum size of a presented token in bytes.
const MAX_TOKEN: usize = 16 * 1024;

/// Issues and recognizes access tokens.
pub(crate) struct AccessTokens {
    issuer: Issuer,
    keys: Arc<BrokerKeys>,
    verifying: KeySet,
    lifetime: Duration,
    clock: Arc<dyn Clock>,
}

/// An access token, and for how long it is valid.
pub(crate) struct NewAccessToken {
    pub(crate) token: AccessToken,
    pub(crate) lifetime: Duration,
}

impl AccessTokens {
    /// Returns `None` if the public keys cannot be imported.
    pub(crate) fn new(
        issuer: Issuer,
        keys: Arc<BrokerKeys>,
        lifetime: Duration,
        clock: Arc<dyn Clock>,
    ) -> Option<Self> {
        let algorithms: AlgorithmSet = [ALGORITHM].into_iter().collect();
        let (verifying, _) = KeySet::from_jwks(&keys.public_keys(), algorithms).ok()?;
        Some(Self {
            issuer,
            keys,
            verifying,
            lifetime,
            clock,
        })
    }

    /// Issues an access token of a grant with some of its scopes (RFC 9068 section 2.2). `sid` is the
    /// grant, so that all of its tokens end with it.
    pub(crate) fn issue(
        &self,
        grant_id: &str,
        grant: &GrantRecord,
        sign_in: &SignInRecord,
        scopes: &Scopes,
    ) -> Result<NewAccessToken, ErrorResponse> {
        let now = self.clock.now();
        let terms = &grant.terms;
        // Mapped claims come first, so that they replace no other claim.
        let mut claims: Map<String, Value> = sign_in.claims.clone();
        let own = [
            ("iss", json!(self.issuer.as_str())),
            ("sub", json!(terms.subject)),
            ("aud", json!(terms.audience)),
            ("client_id", json!(terms.client_id)),
            ("scope", json!(scopes.as_str())),
            ("sid", json!(grant_id)),
            ("jti", json!(random_secret(16)?.secret())),
            ("iat", json!(now.as_secs())),
            ("exp", json!(now.saturating_add(self.lifetime).as_secs())),
            ("auth_time", json!(terms.auth_time)),
        ];
        claims.extend(own.map(|(name, value)| (name.to_owned(), value)));
        let failed = ErrorResponse::new(ErrorCode::ServerError, "the token could not be signed");
        let payload = serde_json::to_vec(&claims).map_err(|_| failed)?;
        let key = self.keys.signing().ok_or(failed)?;
        let token = key.sign(TYPE, &payload).map_err(|error| {
            tracing::error!(error = %error, "an access token cannot be signed");
            failed
        })?;
        Ok(NewAccessToken {
            token: AccessToken::new(token),
            lifetime: self.lifetime,
        })
    }
}

impl TokenVerifier for AccessTokens {
    fn verify(&self, token: &str) -> Option<IssuedToken> {
        let token = CompactJws::parse(token, MAX_TOKEN).ok()?;
        token.header().typ().filter(|typ| *typ == TYPE)?;
        let payload = self.verifying.verify(&token).ok()?;
        let claims = AccessTokenClaims::parse(payload.bytes()).ok()?;
        let is_ours = claims.iss.as_deref() == Some(self.issuer.as_str());
        let is_valid = claims.exp.is_some_and(|end| self.clock.now() < end);
        (is_ours && is_valid).then(|| IssuedToken {
            id: claims.jti.as_deref().map(Box::from),
            client_id: claims.client_id.as_deref().unwrap_or_default().into(),
            grant_id: claims
                .extra
                .get("sid")
                .and_then(Value::as_str)
                .map(Box::from),
            claims,
        })
    }
}
