use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use portcullis_jose::SigningKey;
use serde_json::{Map, Value, json};

use crate::hostile;

/// A token in the making: every claim and every byte can be changed before it is signed.
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

    /// Takes a claim off.
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

    /// Sets `aud`: a string, or an array.
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

    /// Sets `scope`, names separated by spaces.
    #[must_use]
    pub fn scope(self, scope: &str) -> Self {
        self.claim("scope", scope)
    }

    /// Sets `exp` to this many seconds after the token was begun; before it when negative.
    #[must_use]
    pub fn expires_in(self, seconds: i64) -> Self {
        let at = self.now.saturating_add_signed(seconds);
        self.claim("exp", at)
    }

    /// Sets `iat` to this many seconds after the token was begun; before it when negative.
    #[must_use]
    pub fn issued_in(self, seconds: i64) -> Self {
        let at = self.now.saturating_add_signed(seconds);
        self.claim("iat", at)
    }

    /// Sets `nbf` to this many seconds after the token was begun; before it when negative.
    #[must_use]
    pub fn not_before_in(self, seconds: i64) -> Self {
        let at = self.now.saturating_add_signed(seconds);
        self.claim("nbf", at)
    }

    /// Takes these bytes as the payload, in place of all claims.
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

    /// Takes a header member off.
    #[must_use]
    pub fn without_header(mut self, name: &str) -> Self {
        self.header.remove(name);
        self
    }

    /// Sets the header's `typ`, `at+jwt` by default.
    #[must_use]
    pub fn typ(self, typ: &str) -> Self {
        self.header("typ", typ)
    }

    /// Sets the header's `kid`; the key stays.
    #[must_use]
    pub fn kid(self, kid: &str) -> Self {
        self.header("kid", kid)
    }

    /// Sets the header's `alg`; the key goes on signing with its own.
    #[must_use]
    pub fn alg(self, alg: &str) -> Self {
        self.header("alg", alg)
    }

    /// Takes these bytes as the header, in place of all its members.
    #[must_use]
    pub fn raw_header(mut self, header: impl Into<Vec<u8>>) -> Self {
        self.raw_header = Some(header.into());
        self
    }

    /// Signs with another key, and names its `kid` and `alg`.
    #[must_use]
    pub fn signed_by(mut self, key: Arc<SigningKey>) -> Self {
        self.key = key;
        let (kid, alg) = (self.key.kid().to_owned(), self.key.algorithm().as_str());
        self.header("kid", kid).header("alg", alg)
    }

    /// The token.
    pub fn sign(&self) -> String {
        let (header, payload) = self.parts();
        self.key.dangerous_sign_with_header(&header, &payload).expect("the test key signs")
    }

    /// The same token unsigned, its `alg` some spelling of `none`, its signature empty.
    pub fn unsigned(&self, none: &str) -> String {
        let (header, payload) = self.clone().alg(none).parts();
        hostile::unsigned_token(&header, &payload)
    }

    /// The same token under HS256, keyed by each form of the public key that an attacker can get hold of
    /// ([`public_key_forms`](crate::public_key_forms)): the algorithm confusion attack (RFC 8725 section 2.1).
    pub fn hmac_with_public_key(&self) -> Vec<String> {
        let (header, payload) = self.clone().alg("HS256").parts();
        let forms = hostile::public_key_forms(&self.key);
        forms.iter().map(|secret| hostile::hmac_token(secret, &header, &payload)).collect()
    }

    /// The same token signed by somebody else's key, which its header brings along as `jwk`.
    pub fn self_signed(&self, attacker: &Arc<SigningKey>) -> String {
        let kid = self.key.kid();
        self.clone().signed_by(Arc::clone(attacker)).kid(kid).header("jwk", attacker.public_jwk()).sign()
    }

    fn parts(&self) -> (Vec<u8>, Vec<u8>) {
        let bytes = |raw: &Option<Vec<u8>>, members: &Map<String, Value>| {
            raw.clone().unwrap_or_else(|| json!(members).to_string().into_bytes())
        };
        (bytes(&self.raw_header, &self.header), bytes(&self.raw_payload, &self.claims))
    }
}

/// Tokens of one process differ in `jti`, whatever the clock says.
fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
