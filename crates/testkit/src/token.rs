//! [`TokenBuilder`]: builds valid and malicious tokens.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use portcullis_jose::SigningKey;
use serde_json::{Map, Value, json};

use crate::hostile;

/// Builds a token. Every claim and every byte can be changed before it is signed.
/// [`TestIssuer::token`] starts one that is valid.
///
/// ```
/// use portcullis_testkit::TestIssuer;
///
/// let issuer = TestIssuer::new("https://issuer.example");
/// let valid = issuer.token().scope("mcp:tools").sign();
/// let expired = issuer.token().expires_in(-60).sign();
/// let confused = issuer.token().hmac_with_public_key();
/// ```
///
/// [`TestIssuer::token`]: crate::TestIssuer::token
#[derive(Clone, Debug)]
pub struct TokenBuilder {
    pub(crate) key: Arc<SigningKey>,
    header: Map<String, Value>,
    claims: Map<String, Value>,
    raw_header: Option<Vec<u8>>,
    raw_payload: Option<Vec<u8>>,
    now: u64,
}

impl TokenBuilder {
    /// Starts a valid token of an issuer for a resource. `now` is the time of issue in seconds.
    pub(crate) fn new(issuer: &str, resource: &str, now: u64, key: Arc<SigningKey>) -> Self {
        let builder = Self {
            header: Map::new(),
            claims: Map::new(),
            raw_header: None,
            raw_payload: None,
            now,
            key: Arc::clone(&key),
        };
        builder
            .header("typ", "at+jwt")
            .signed_by(key)
            .claim("iss", issuer)
            .claim("aud", resource)
            .claim("sub", "alice")
            .claim("client_id", "test-client")
            .claim("iat", now)
            .claim("jti", format!("test-{}", next_number()))
            .expires_in(300)
    }

    /// Sets any claim.
    #[must_use]
    pub fn claim(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.claims.insert(name.to_owned(), value.into());
        self
    }

    /// Removes a claim.
    #[must_use]
    pub fn without(mut self, claim: &str) -> Self {
        self.claims.remove(claim);
        self
    }

    /// Sets `iss`.
    #[must_use]
    pub fn issuer(self, issuer: &str) -> Self {
        self.claim("iss", issuer)
    }

    /// Sets `aud` to a string or an array.
    #[must_use]
    pub fn audience(self, audience: impl Into<Value>) -> Self {
        self.claim("aud", audience)
    }

    /// Sets `sub`.
    #[must_use]
    pub fn subject(self, subject: &str) -> Self {
        self.claim("sub", subject)
    }

    /// Sets `client_id`.
    #[must_use]
    pub fn client_id(self, client: &str) -> Self {
        self.claim("client_id", client)
    }

    /// Sets `scope` to names separated by spaces.
    #[must_use]
    pub fn scope(self, scope: &str) -> Self {
        self.claim("scope", scope)
    }

    /// Sets `exp` relative to the builder's start, in seconds. Negative values are in the past.
    #[must_use]
    pub fn expires_in(self, seconds: i64) -> Self {
        let at = self.now.saturating_add_signed(seconds);
        self.claim("exp", at)
    }

    /// Sets `iat` relative to the builder's start, in seconds. Negative values are in the past.
    #[must_use]
    pub fn issued_in(self, seconds: i64) -> Self {
        let at = self.now.saturating_add_signed(seconds);
        self.claim("iat", at)
    }

    /// Sets `nbf` relative to the builder's start, in seconds. Negative values are in the past.
    #[must_use]
    pub fn not_before_in(self, seconds: i64) -> Self {
        let at = self.now.saturating_add_signed(seconds);
        self.claim("nbf", at)
    }

    /// Replaces the whole payload.
    #[must_use]
    pub fn raw_payload(mut self, payload: impl Into<Vec<u8>>) -> Self {
        self.raw_payload = Some(payload.into());
        self
    }

    /// Sets any header member.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.header.insert(name.to_owned(), value.into());
        self
    }

    /// Removes a header member.
    #[must_use]
    pub fn without_header(mut self, name: &str) -> Self {
        self.header.remove(name);
        self
    }

    /// Sets the header's `typ`. Defaults to `at+jwt`.
    #[must_use]
    pub fn typ(self, typ: &str) -> Self {
        self.header("typ", typ)
    }

    /// Sets the header's `kid`. The signing key does not change.
    #[must_use]
    pub fn kid(self, kid: &str) -> Self {
        self.header("kid", kid)
    }

    /// Sets the header's `alg`. The signing algorithm does not change.
    #[must_use]
    pub fn alg(self, alg: &str) -> Self {
        self.header("alg", alg)
    }

    /// Replaces the whole header.
    #[must_use]
    pub fn raw_header(mut self, header: impl Into<Vec<u8>>) -> Self {
        self.raw_header = Some(header.into());
        self
    }

    /// Signs with another key and sets its `kid` and `alg`.
    #[must_use]
    pub fn signed_by(mut self, key: Arc<SigningKey>) -> Self {
        self.key = key;
        let kid = self.key.kid().to_owned();
        let alg = self.key.algorithm().as_str();
        self.header("kid", kid).header("alg", alg)
    }

    /// Returns the signed token.
    pub fn sign(&self) -> String {
        let (header, payload) = self.parts();
        self.key
            .dangerous_sign_with_header(&header, &payload)
            .expect("the test key signs")
    }

    /// Returns the token with the `alg` `none`, which may have any letter case, and an empty
    /// signature.
    pub fn unsigned(&self, none: &str) -> String {
        let (header, payload) = self.clone().alg(none).parts();
        hostile::unsigned_token(&header, &payload)
    }

    /// Returns the token signed with HS256 for each encoding of the public key as the secret
    /// ([`public_key_forms`](crate::public_key_forms)). This is the algorithm confusion attack (RFC
    /// 8725 section 2.1).
    pub fn hmac_with_public_key(&self) -> Vec<String> {
        let (header, payload) = self.clone().alg("HS256").parts();
        let forms = hostile::public_key_forms(&self.key);
        forms
            .iter()
            .map(|secret| hostile::hmac_token(secret, &header, &payload))
            .collect()
    }

    /// Returns the token signed with an attacker's key, which the header contains as `jwk`.
    pub fn self_signed(&self, attacker: &Arc<SigningKey>) -> String {
        let kid = self.key.kid();
        self.clone()
            .signed_by(Arc::clone(attacker))
            .kid(kid)
            .header("jwk", attacker.public_jwk())
            .sign()
    }

    /// Returns the bytes of the header and of the payload.
    fn parts(&self) -> (Vec<u8>, Vec<u8>) {
        let bytes = |raw: &Option<Vec<u8>>, members: &Map<String, Value>| {
            raw.clone()
                .unwrap_or_else(|| json!(members).to_string().into_bytes())
        };
        (
            bytes(&self.raw_header, &self.header),
            bytes(&self.raw_payload, &self.claims),
        )
    }
}

/// Returns a number that makes each `jti` unique within the process.
fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
mod tests;
