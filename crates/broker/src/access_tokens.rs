//! [`AccessTokens`]: issues and recognizes access tokens (RFC 9068).

use std::{sync::Arc, time::Duration};

use portcullis_authorization_server::{
    ErrorCode, ErrorResponse, IssuedToken, TokenVerifier, random_secret,
};
use portcullis_jose::{AlgorithmSet, CompactJws, KeySet};
use portcullis_metadata::{AccessToken, AccessTokenClaims, Clock, Issuer, Scopes, UnixTime};
use portcullis_reason_codes::ReasonCodes;
use serde_json::{Map, Value, json};

use crate::{
    BrokerSettings,
    keys::{ALGORITHM, BrokerKeys},
    records::{GrantRecord, GrantTerms, SignInRecord},
    store::sealed_records::Current,
};

/// The `typ` of access tokens (RFC 9068 section 2.1).
const TYPE: &str = "at+jwt";
/// The least length of a presented token that is read, in bytes: tokens of an earlier configuration
/// can be longer than those of this one.
const MIN_READ: usize = 16 * 1024;
/// The maximum length of an issued token in bytes. The form of a revocation or an introspection has
/// space for it.
const MAX_ISSUED: usize = 24 * 1024;
/// What a token has beside its payload at most, in bytes: header, signature and two dots.
const MAX_FRAME: usize = 256;

/// Issues and recognizes access tokens.
pub(crate) struct AccessTokens {
    issuer: Issuer,
    keys: Arc<BrokerKeys>,
    verifying: KeySet,
    lifetime: Duration,
    /// The maximum length of an issued token in bytes.
    max_issued: usize,
    clock: Arc<dyn Clock>,
}

/// An access token, and for how long it is valid.
pub(crate) struct NewAccessToken {
    pub(crate) token: AccessToken,
    pub(crate) lifetime: Duration,
}

/// The access token of a user would be longer than `limits.max_token`, because of what `claims` of
/// `[broker]` copies into it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, ReasonCodes)]
#[error(
    "it would be longer than {max} bytes; of what `claims` of [broker] copies into it, `{longest}` is longest: remove it, let the \
     provider send fewer values, or raise limits.max_token"
)]
#[code = "broker.token_too_large"]
pub(crate) struct TokenTooLarge {
    max: usize,
    /// The mapped claim with the longest value. Empty if no claim is mapped.
    longest: Box<str>,
}

/// What an access token says.
struct Contents<'a> {
    id: &'a str,
    grant_id: &'a str,
    terms: &'a GrantTerms,
    sign_in: &'a SignInRecord,
    scopes: &'a Scopes,
    issued: UnixTime,
    expires: UnixTime,
}

impl TokenTooLarge {
    /// Logs that no token is issued, and returns what the client learns.
    pub(crate) fn refusal(&self) -> ErrorResponse {
        tracing::warn!(
            error.code = self.code(),
            "an access token is not issued: {self}"
        );
        ErrorResponse::new(
            ErrorCode::ServerError,
            "the access token of this user would be too long; tell the operator of this server",
        )
    }
}

impl AccessTokens {
    /// Returns `None` if the public keys cannot be imported.
    pub(crate) fn new(
        settings: &BrokerSettings,
        keys: Arc<BrokerKeys>,
        clock: Arc<dyn Clock>,
    ) -> Option<Self> {
        let algorithms: AlgorithmSet = [ALGORITHM].into_iter().collect();
        let (verifying, _) = KeySet::from_jwks(&keys.public_keys(), algorithms).ok()?;
        Some(Self {
            issuer: settings.issuer.clone(),
            keys,
            verifying,
            lifetime: settings.lifetimes.access_token,
            max_issued: settings.max_token.min(MAX_ISSUED),
            clock,
        })
    }

    /// Issues an access token of a grant with some of its scopes (RFC 9068 section 2.2). It expires
    /// no later than the grant. `sid` is the grant, so that all of its tokens end with it.
    pub(crate) fn issue(
        &self,
        grant_id: &str,
        grant: &Current<GrantRecord>,
        sign_in: &SignInRecord,
        scopes: &Scopes,
    ) -> Result<NewAccessToken, ErrorResponse> {
        let issued = self.clock.now();
        let expires = issued.saturating_add(self.lifetime).min(grant.expires);
        let id = random_secret(16)?;
        let contents = Contents {
            id: id.secret(),
            grant_id,
            terms: &grant.value.terms,
            sign_in,
            scopes,
            issued,
            expires,
        };
        let payload = self.payload(&contents).map_err(|error| error.refusal())?;
        let failed = ErrorResponse::new(ErrorCode::ServerError, "the token could not be signed");
        let key = self.keys.signing().ok_or(failed)?;
        let token = key.sign(TYPE, payload.as_bytes()).map_err(|error| {
            tracing::error!(error = %error, "an access token cannot be signed");
            failed
        })?;
        Ok(NewAccessToken {
            token: AccessToken::new(token),
            lifetime: expires.saturating_duration_since(issued),
        })
    }

    /// Checks that [`issue`](Self::issue) would not refuse a token of these terms for its length.
    pub(crate) fn check_size(
        &self,
        grant_id: &str,
        terms: &GrantTerms,
        sign_in: &SignInRecord,
        scopes: &Scopes,
    ) -> Result<(), TokenTooLarge> {
        let now = self.clock.now();
        let contents = Contents {
            // Identifiers of grants and of tokens have the same length.
            id: grant_id,
            grant_id,
            terms,
            sign_in,
            scopes,
            issued: now,
            expires: now,
        };
        self.payload(&contents).map(drop)
    }

    fn payload(&self, contents: &Contents<'_>) -> Result<String, TokenTooLarge> {
        let terms = contents.terms;
        // Mapped claims come first, so that they replace no other claim.
        let mut claims: Map<String, Value> = contents.sign_in.claims.clone();
        let own = [
            ("iss", json!(self.issuer.as_str())),
            ("sub", json!(terms.subject)),
            ("aud", json!(terms.audience)),
            ("client_id", json!(terms.client_id)),
            ("scope", json!(contents.scopes.as_str())),
            ("sid", json!(contents.grant_id)),
            ("jti", json!(contents.id)),
            ("iat", json!(contents.issued.as_secs())),
            ("exp", json!(contents.expires.as_secs())),
            ("auth_time", json!(terms.auth_time)),
        ];
        claims.extend(own.map(|(name, value)| (name.to_owned(), value)));
        let payload = Value::Object(claims).to_string();
        // Base64 makes four characters of three bytes.
        if payload.len().div_ceil(3).saturating_mul(4) + MAX_FRAME <= self.max_issued {
            return Ok(payload);
        }
        let mapped = contents.sign_in.claims.iter();
        Err(TokenTooLarge {
            max: self.max_issued,
            longest: mapped
                .max_by_key(|(_, value)| value.to_string().len())
                .map_or_else(Box::default, |(name, _)| name.as_str().into()),
        })
    }
}

impl TokenVerifier for AccessTokens {
    fn verify(&self, token: &str) -> Option<IssuedToken> {
        let token = CompactJws::parse(token, self.max_issued.max(MIN_READ)).ok()?;
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
