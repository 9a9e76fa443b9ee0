//! [`AccessTokenClaims`]: the claims of an access token.

use serde_json::{Map, Value};

use crate::{
    claims::{error::ClaimsError, unverified::UnverifiedClaims},
    identifier::{Audience, Scopes},
    time::UnixTime,
};

/// The claims of a JWT access token (RFC 9068 section 2.2, RFC 7519 section 4.1), as owned values.
///
/// A claim that is missing is `None`. No claim is required here. [`parse`](Self::parse) checks
/// types only: the caller verifies the signature first, and then checks the dates, the issuer and
/// the audience.
///
/// ```
/// use portcullis_metadata::{AccessTokenClaims, UnixTime};
///
/// let payload = br#"{"iss":"https://as.example","exp":1700000000,"scope":"read write","groups":["staff"]}"#;
/// let claims = AccessTokenClaims::parse(payload)?;
/// assert_eq!(claims.exp, Some(UnixTime::from_secs(1_700_000_000)));
/// assert!(claims.scope.contains("write"));
/// assert_eq!(claims.extra["groups"][0], "staff");
/// # Ok::<(), portcullis_metadata::ClaimsError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct AccessTokenClaims {
    /// The issuer.
    pub iss: Option<String>,
    /// The subject.
    pub sub: Option<String>,
    /// The audience: the resources for which the token was issued. Entries that are not strings are
    /// dropped.
    pub aud: Option<Audience>,
    /// The expiration time.
    pub exp: Option<UnixTime>,
    /// The time before which the token is not valid.
    pub nbf: Option<UnixTime>,
    /// The time of issue.
    pub iat: Option<UnixTime>,
    /// The granted scopes, from `scope` or, if it is missing, from `scp`. The claim is a string of
    /// names that are separated by spaces, or an array of names. Empty if both claims are missing.
    pub scope: Scopes,
    /// The client to which the token was issued.
    pub client_id: Option<String>,
    /// The authorized party: the client in tokens of OpenID providers.
    pub azp: Option<String>,
    /// The token identifier.
    pub jti: Option<String>,
    /// The token type as a claim. This is not the `typ` of the JWS header.
    pub typ: Option<String>,
    /// The confirmation claim, which binds the token to a key (RFC 7800). It is not checked.
    pub cnf: Option<Value>,
    /// All other claims, unchanged. If the token has both `scope` and `scp`, `scp` is among them.
    pub extra: Map<String, Value>,
}

/// The claims that [`UnverifiedClaims`] parses into a field, apart from the scopes.
const PARSED_CLAIMS: [&str; 10] = [
    "iss",
    "sub",
    "aud",
    "exp",
    "nbf",
    "iat",
    "client_id",
    "azp",
    "jti",
    "typ",
];

impl AccessTokenClaims {
    /// Parses the decoded payload of a token.
    ///
    /// # Errors
    /// Fails if the payload is not a JSON object or has a duplicate claim, or if a claim with a
    /// field has the wrong type, is not a valid date, or contains a malformed scope name. `null`
    /// has the wrong type for every claim with a field except `cnf`.
    pub fn parse(payload: &[u8]) -> Result<Self, ClaimsError> {
        let claims = UnverifiedClaims::parse(payload)?;
        let scope = claims.scopes()?;
        let mut extra: Map<String, Value> =
            serde_json::from_slice(payload).map_err(|_| ClaimsError::NotAnObject)?;
        extra.retain(|name, _| !PARSED_CLAIMS.contains(&name.as_str()));
        // If both claims exist, `scp` is an unknown claim and stays in `extra`.
        if extra.remove("scope").is_none() {
            extra.remove("scp");
        }
        let owned = |value: Option<&str>| value.map(str::to_owned);
        Ok(Self {
            aud: claims.audience().map(Audience::new),
            iss: owned(claims.iss()),
            sub: owned(claims.sub()),
            exp: claims.exp(),
            nbf: claims.nbf(),
            iat: claims.iat(),
            scope,
            client_id: owned(claims.client_id()),
            azp: owned(claims.azp()),
            jti: owned(claims.jti()),
            typ: owned(claims.typ()),
            cnf: extra.remove("cnf"),
            extra,
        })
    }
}
