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

use crate::{ManualClock, TokenBuilder, keys::key_of};

/// An issuer that signs whatever a test asks for.
///
/// Two forges of different issuers have different keys under the same `kid` (`rs256-0`, after a rotation `rs256-1`).
/// Keys are made once a process and issuer.
pub struct Forge {
    issuer: Issuer,
    algorithm: Algorithm,
    generation: AtomicUsize,
    resource: String,
    clock: Arc<dyn Clock>,
}

impl Forge {
    /// The audience of tokens unless [`with_resource`](Self::with_resource) names another.
    pub const RESOURCE: &'static str = "https://mcp.example.com/mcp";

    /// An issuer with an RS256 key, whose tokens are for [`RESOURCE`](Self::RESOURCE) and good at the moment at which
    /// every [`ManualClock`] starts.
    pub fn new(issuer: &str) -> Self {
        Self {
            issuer: Issuer::parse(issuer).expect("the issuer of a forge is an issuer"),
            algorithm: Algorithm::Rs256,
            generation: AtomicUsize::new(0),
            resource: Self::RESOURCE.to_owned(),
            clock: Arc::new(ManualClock::new()),
        }
    }

    /// Signs with another algorithm. ES256 keys are far quicker to make than RSA ones.
    #[must_use]
    pub fn with_algorithm(mut self, algorithm: Algorithm) -> Self {
        self.algorithm = algorithm;
        self
    }

    /// Makes tokens for another resource.
    #[must_use]
    pub fn with_resource(mut self, resource: &str) -> Self {
        self.resource = resource.to_owned();
        self
    }

    /// Makes tokens that are good by this clock, as it stands when each is begun.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// The issuer.
    pub fn issuer(&self) -> &Issuer {
        &self.issuer
    }

    /// The key that signs now.
    pub fn key(&self) -> Arc<SigningKey> {
        key_of(self.issuer.as_str(), self.algorithm, self.generation.load(Ordering::SeqCst))
    }

    /// A further key of this issuer with another algorithm, not published by [`jwks_json`](Self::jwks_json).
    pub fn key_for(&self, algorithm: Algorithm) -> Arc<SigningKey> {
        key_of(self.issuer.as_str(), algorithm, self.generation.load(Ordering::SeqCst))
    }

    /// Goes over to a new key; the old one is published no longer.
    pub fn rotate(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
    }

    /// Begins a token that is good unless the test spoils it: this issuer, the resource as audience, subject
    /// `alice`, client `test-client`, issued now, good for 300 s.
    pub fn token(&self) -> TokenBuilder {
        TokenBuilder::new(self.issuer.as_str(), &self.resource, self.clock.unix().as_secs(), self.key())
    }

    /// The published JWK set: the present key alone.
    pub fn jwks_json(&self) -> String {
        Self::jwks_of(&[&self.key()])
    }

    /// A JWK set of any keys.
    pub fn jwks_of(keys: &[&SigningKey]) -> String {
        json!({ "keys": keys.iter().map(|key| key.public_jwk()).collect::<Vec<_>>() }).to_string()
    }

    /// The URL of an endpoint of this issuer, such as `jwks` or `introspect`: its name below the issuer.
    pub fn endpoint(&self, name: &str) -> Url {
        let base = self.issuer.as_str().trim_end_matches('/');
        Url::parse(&format!("{base}/{name}")).expect("an endpoint below an issuer is a URL")
    }

    /// Where RFC 8414 section 3.1 puts the issuer's metadata.
    pub fn metadata_url(&self) -> Url {
        let path = self.issuer.url().path().trim_end_matches('/');
        let mut url = self.issuer.url().clone();
        url.set_path(&format!("/.well-known/oauth-authorization-server{path}"));
        url
    }

    /// The authorization server metadata, with the endpoints `authorize`, `token`, `register`, `introspect`, `revoke` and `jwks`.
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

impl fmt::Debug for Forge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forge")
            .field("issuer", &self.issuer)
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}
