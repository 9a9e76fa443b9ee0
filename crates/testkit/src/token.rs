//! [`TokenBuilder`]: builds valid and malicious tokens.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use portcullis_jose::SigningKey;
use serde_json::{Map, Value, json};

use crate::hostile;

/// Builds a token. Every claim and every byte can be changed before it is signed.
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
        let (kid, alg) = (self.key.kid().to_owned(), self.key.algorithm().as_str());
        self.header("kid", kid).header("alg", alg)
    }

    /// Returns the signed token.
    pub fn sign(&self) -> String {
        let (header, payload) = self.parts();
        self.key.dangerous_sign_with_header(&header, &payload).expect("the test key signs")
    }

    /// Returns the token with the `alg` `none`, which may have any letter case, and an empty signature.
    pub fn unsigned(&self, none: &str) -> String {
        let (header, payload) = self.clone().alg(none).parts();
        hostile::unsigned_token(&header, &payload)
    }

    /// Returns the token signed with HS256 for each encoding of the public key as the secret
    /// ([`public_key_forms`](crate::public_key_forms)). This is the algorithm confusion attack (RFC 8725 section 2.1).
    pub fn hmac_with_public_key(&self) -> Vec<String> {
        let (header, payload) = self.clone().alg("HS256").parts();
        let forms = hostile::public_key_forms(&self.key);
        forms.iter().map(|secret| hostile::hmac_token(secret, &header, &payload)).collect()
    }

    /// Returns the token signed with an attacker's key, which the header contains as `jwk`.
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

/// Returns a number that makes each `jti` unique within the process.
fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use portcullis_jose::{Algorithm, AlgorithmSet, CompactJws, JoseError, KeySet};
    use portcullis_metadata::{Clock, JwkSet};
    use serde_json::{Value, json};

    use crate::{ManualClock, TestIssuer, flip_payload, flip_signature};

    const ISSUER: &str = "https://issuer.example/realms/test";

    fn verify(test_issuer: &TestIssuer, token: &str) -> Result<Value, JoseError> {
        let jwks = JwkSet::parse(test_issuer.jwks_json().as_bytes()).unwrap();
        let allowed: AlgorithmSet = Algorithm::ALL.into_iter().collect();
        let (keys, _) = KeySet::from_jwks(&jwks, allowed).unwrap();
        let compact = CompactJws::parse(token, 16 * 1024)?;
        let payload = keys.verify(&compact)?;
        Ok(serde_json::from_slice(payload.bytes()).unwrap())
    }

    fn test_issuer() -> TestIssuer {
        TestIssuer::new(ISSUER).with_algorithm(Algorithm::Es256)
    }

    #[test]
    fn a_token_is_valid_at_the_time_of_the_clock() {
        let clock = ManualClock::new();
        let test_issuer = test_issuer().with_clock(clock.clone()).with_resource("https://mcp.example.com/other");
        clock.advance(Duration::from_secs(60));
        let claims =
            verify(&test_issuer, &test_issuer.token().scope("a b").without("jti").claim("x", 1).sign()).unwrap();
        let now = clock.now().as_secs();
        assert_eq!(
            claims,
            json!({ "iss": ISSUER, "aud": "https://mcp.example.com/other", "sub": "alice", "client_id": "test-client",
                "iat": now, "exp": now + 300, "scope": "a b", "x": 1 })
        );
    }

    #[test]
    fn tokens_are_unique() {
        assert_ne!(test_issuer().token().sign(), test_issuer().token().sign());
    }

    #[test]
    fn changed_tokens_do_not_verify() {
        let test_issuer = test_issuer();
        let token = test_issuer.token();
        let valid = token.sign();
        assert_eq!(verify(&test_issuer, &flip_signature(&valid)), Err(JoseError::Signature));
        assert_eq!(verify(&test_issuer, &flip_payload(&valid)), Err(JoseError::Signature));
        assert!(verify(&test_issuer, &token.unsigned("none")).is_err());
        assert_eq!(verify(&test_issuer, &token.clone().alg("RS256").sign()), Err(JoseError::UnknownKey));
        assert_eq!(verify(&test_issuer, &token.clone().kid("other").sign()), Err(JoseError::UnknownKey));
        assert_eq!(
            verify(&test_issuer, &token.clone().header("crit", json!([])).sign()),
            Err(JoseError::UnsupportedExtension)
        );
        assert_eq!(verify(&test_issuer, &token.raw_header("{}").sign()), Err(JoseError::MalformedHeader));
    }

    #[test]
    fn public_keys_as_hmac_secrets() {
        for (test_issuer, forms) in
            [(test_issuer(), 6), (TestIssuer::new(ISSUER), 6), (test_issuer().with_algorithm(Algorithm::EdDsa), 3)]
        {
            let tokens = test_issuer.token().hmac_with_public_key();
            assert_eq!(tokens.len(), forms);
            for token in tokens {
                assert_eq!(verify(&test_issuer, &token), Err(JoseError::UnsupportedAlgorithm));
            }
        }
    }

    #[test]
    fn issuers_have_different_keys_with_the_same_kid() {
        let (test_issuer, attacker) =
            (test_issuer(), TestIssuer::new("https://other.example").with_algorithm(Algorithm::Es256));
        assert_eq!(test_issuer.key().kid(), attacker.key().kid());
        let token = test_issuer.token();
        assert_eq!(verify(&test_issuer, &token.self_signed(&attacker.key())), Err(JoseError::Signature));
        assert_eq!(verify(&test_issuer, &token.signed_by(attacker.key()).sign()), Err(JoseError::Signature));
    }

    #[test]
    fn rotation_withdraws_the_old_key() {
        let test_issuer = test_issuer();
        let old = test_issuer.token().sign();
        test_issuer.rotate();
        assert_eq!(verify(&test_issuer, &old), Err(JoseError::UnknownKey));
        assert!(verify(&test_issuer, &test_issuer.token().sign()).is_ok());
    }

    #[test]
    fn urls_of_an_issuer() {
        let test_issuer = test_issuer();
        let metadata = "https://issuer.example/.well-known/oauth-authorization-server/realms/test";
        assert_eq!(test_issuer.metadata_url().as_str(), metadata);
        assert_eq!(test_issuer.endpoint("jwks").as_str(), "https://issuer.example/realms/test/jwks");
        let without_path = TestIssuer::new("https://issuer.example");
        assert_eq!(
            without_path.metadata_url().as_str(),
            "https://issuer.example/.well-known/oauth-authorization-server"
        );
        assert_eq!(without_path.endpoint("jwks").as_str(), "https://issuer.example/jwks");
        let document =
            portcullis_metadata::AuthorizationServerMetadata::parse(test_issuer.metadata_json().as_bytes()).unwrap();
        assert_eq!(document.issuer, *test_issuer.issuer());
        assert_eq!(document.jwks_uri, Some(test_issuer.endpoint("jwks")));
    }
}
