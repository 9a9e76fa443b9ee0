//! [`TestIssuer`]: an issuer that signs any token.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use portcullis_jose::{Algorithm, SigningKey};
use portcullis_metadata::{Clock, Issuer};
use serde_json::json;
use url::Url;

use crate::{clock::ManualClock, keys::signing_key, token::TokenBuilder};

/// An issuer that signs any token.
///
/// Different issuers have different keys with the same `kid` (`rs256-0`, after a rotation
/// `rs256-1`). Values of the same issuer share their keys within a process.
pub struct TestIssuer {
    issuer: Issuer,
    algorithm: Algorithm,
    generation: AtomicUsize,
    resource: String,
    clock: Arc<dyn Clock>,
}

impl TestIssuer {
    /// The default audience of tokens. See [`with_resource`](Self::with_resource).
    pub const RESOURCE: &'static str = "https://mcp.example.com/mcp";

    /// Creates an issuer with an RS256 key. Its tokens are for [`RESOURCE`](Self::RESOURCE) and
    /// valid at [`ManualClock::START`].
    pub fn new(issuer: &str) -> Self {
        Self {
            issuer: Issuer::parse(issuer).expect("a valid issuer identifier"),
            algorithm: Algorithm::Rs256,
            generation: AtomicUsize::new(0),
            resource: Self::RESOURCE.to_owned(),
            clock: Arc::new(ManualClock::new()),
        }
    }

    /// Signs with another algorithm. Generating ES256 keys is much faster than generating RSA keys.
    #[must_use]
    pub fn with_algorithm(mut self, algorithm: Algorithm) -> Self {
        self.algorithm = algorithm;
        self
    }

    /// Issues tokens for another resource.
    #[must_use]
    pub fn with_resource(mut self, resource: &str) -> Self {
        self.resource = resource.to_owned();
        self
    }

    /// Issues tokens at the time of this clock when [`token`](Self::token) is called.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Returns the issuer.
    pub fn issuer(&self) -> &Issuer {
        &self.issuer
    }

    /// Returns the current signing key.
    pub fn key(&self) -> Arc<SigningKey> {
        signing_key(
            self.issuer.as_str(),
            self.algorithm,
            self.generation.load(Ordering::SeqCst),
        )
    }

    /// Returns another key of this issuer, for another algorithm. [`jwks_json`](Self::jwks_json)
    /// does not publish it.
    pub fn key_for(&self, algorithm: Algorithm) -> Arc<SigningKey> {
        signing_key(
            self.issuer.as_str(),
            algorithm,
            self.generation.load(Ordering::SeqCst),
        )
    }

    /// Replaces the signing key. The old key is no longer published.
    pub fn rotate(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
    }

    /// Starts a valid token: this issuer, the resource as audience, subject `alice`, client
    /// `test-client`, issued now and valid for 300 s.
    pub fn token(&self) -> TokenBuilder {
        TokenBuilder::new(
            self.issuer.as_str(),
            &self.resource,
            self.clock.now().as_secs(),
            self.key(),
        )
    }

    /// Returns the published JWK set. It contains only the current key.
    pub fn jwks_json(&self) -> String {
        Self::jwks_of(&[&self.key()])
    }

    /// Returns a JWK set with the given keys.
    pub fn jwks_of(keys: &[&SigningKey]) -> String {
        json!({ "keys": keys.iter().map(|key| key.public_jwk()).collect::<Vec<_>>() }).to_string()
    }

    /// Returns the URL of an endpoint, such as `jwks` or `introspect`: its name below the issuer.
    pub fn endpoint(&self, name: &str) -> Url {
        let base = self.issuer.as_str().trim_end_matches('/');
        Url::parse(&format!("{base}/{name}")).expect("a valid endpoint name")
    }

    /// Returns the URL of the issuer's metadata (RFC 8414 section 3.1).
    pub fn metadata_url(&self) -> Url {
        let path = self.issuer.url().path().trim_end_matches('/');
        let mut url = self.issuer.url().clone();
        url.set_path(&format!("/.well-known/oauth-authorization-server{path}"));
        url
    }

    /// Returns the authorization server metadata, with the endpoints `authorize`, `token`,
    /// `register`, `introspect`, `revoke` and `jwks`.
    pub fn metadata_json(&self) -> String {
        json!({
            "issuer": self.issuer.as_str(),
            "authorization_endpoint": self.endpoint("authorize").as_str(),
            "token_endpoint": self.endpoint("token").as_str(),
            "registration_endpoint": self.endpoint("register").as_str(),
            "introspection_endpoint": self.endpoint("introspect").as_str(),
            "revocation_endpoint": self.endpoint("revoke").as_str(),
            "jwks_uri": self.endpoint("jwks").as_str(),
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
            "introspection_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        })
        .to_string()
    }
}

impl fmt::Debug for TestIssuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestIssuer")
            .field("issuer", &self.issuer)
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}
