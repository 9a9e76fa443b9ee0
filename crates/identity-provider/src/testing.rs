//! [`Fixture`]: one provider with a network and a clock that the test controls.

use std::sync::Arc;

use portcullis_discovery::FetchRequest;
use portcullis_metadata::{
    Issuer, Secret,
    authorization::{PkceChallenge, PkceVerifier},
};
use portcullis_testkit::{ManualClock, ScriptedFetch, TestIssuer, TokenBuilder, form};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use url::Url;

use crate::{
    Callback, Identity, IdentityProvider, ProviderError, ProviderKind, ProviderResponse,
    ProviderSettings, ProviderTokens, SignInRequest,
};

pub(crate) const CLIENT: &str = "client-1";
pub(crate) const SECRET: &str = "the client secret";
pub(crate) const REDIRECT_URI: &str = "https://mcp.example/oauth/callback/idp";
pub(crate) const NONCE: &str = "the-nonce";
pub(crate) const VERIFIER: &str = "a-verifier-of-at-least-43-characters-abcdefg";

pub(crate) struct Fixture {
    pub(crate) network: ScriptedFetch,
    pub(crate) clock: ManualClock,
    pub(crate) test_issuer: TestIssuer,
    pub(crate) provider: Arc<IdentityProvider>,
}

impl Fixture {
    /// Creates a provider whose metadata and keys are published.
    pub(crate) fn new(kind: ProviderKind, issuer: &str) -> Self {
        Self::with(kind, issuer, |_| ())
    }

    pub(crate) fn with(
        kind: ProviderKind,
        issuer: &str,
        change: impl FnOnce(&mut ProviderSettings),
    ) -> Self {
        let clock = ManualClock::new();
        let network = ScriptedFetch::new();
        let test_issuer = TestIssuer::new(issuer).with_clock(clock.clone());
        let mut settings = ProviderSettings::new(
            "idp",
            kind,
            Issuer::parse(issuer).unwrap(),
            CLIENT,
            Secret::new(SECRET),
        );
        change(&mut settings);
        let provider = IdentityProvider::new(
            settings,
            Arc::new(network.clone()),
            Arc::new(clock.clone()),
            Handle::current(),
        )
        .unwrap();
        let fixture = Self {
            network,
            clock,
            test_issuer,
            provider,
        };
        fixture.publish(json!({}));
        fixture
    }

    /// Publishes the keys and the metadata, with these members changed. `null` removes a member.
    pub(crate) fn publish(&self, changes: Value) {
        self.network.publish(&self.test_issuer);
        let mut metadata: Value = serde_json::from_str(&self.test_issuer.metadata_json()).unwrap();
        metadata["userinfo_endpoint"] = json!(self.endpoint("userinfo").as_str());
        for (name, value) in changes.as_object().unwrap() {
            metadata[name] = value.clone();
        }
        self.network
            .serve(self.test_issuer.metadata_url(), 200, metadata.to_string());
    }

    pub(crate) fn endpoint(&self, name: &str) -> Url {
        self.test_issuer.endpoint(name)
    }

    /// Returns a valid ID token of this provider.
    pub(crate) fn id_token(&self) -> TokenBuilder {
        self.test_issuer
            .token()
            .typ("JWT")
            .audience(CLIENT)
            .without("client_id")
            .claim("nonce", NONCE)
    }

    /// Lets the token endpoint answer with an ID token.
    pub(crate) fn answer_with(&self, id_token: &TokenBuilder) {
        self.answer(
            200,
            json!({
                "access_token": "at-1", "token_type": "Bearer", "expires_in": 3600,
                "refresh_token": "rt-1", "id_token": id_token.sign(),
            }),
        );
    }

    /// Lets the token endpoint answer with a status and a body.
    pub(crate) fn answer(&self, status: u16, body: Value) {
        self.network
            .serve(self.endpoint("token"), status, body.to_string());
    }

    pub(crate) async fn redeem(&self) -> Result<ProviderResponse, ProviderError> {
        self.redeem_from(None).await
    }

    pub(crate) async fn redeem_from(
        &self,
        iss: Option<&str>,
    ) -> Result<ProviderResponse, ProviderError> {
        let callback = Callback {
            code: "the-code",
            iss,
            redirect_uri: REDIRECT_URI,
            verifier: VERIFIER,
        };
        self.provider.redeem(&callback).await
    }

    /// Redeems a code and identifies the user.
    pub(crate) async fn sign_in(&self) -> Result<Identity, ProviderError> {
        let response = self.redeem().await?;
        self.provider.identify(&response, Some(NONCE)).await
    }

    /// Returns the error code of a sign-in with an ID token.
    pub(crate) async fn rejection(&self, id_token: &TokenBuilder) -> Option<&'static str> {
        self.answer_with(id_token);
        self.sign_in().await.err().map(|error| error.code())
    }

    pub(crate) async fn authorization_url(&self) -> Url {
        let challenge = challenge();
        let request = SignInRequest {
            redirect_uri: REDIRECT_URI,
            state: "the-state",
            nonce: NONCE,
            challenge: &challenge,
        };
        self.provider.authorization_url(&request).await.unwrap()
    }

    /// Returns a field of the last form that was sent to an endpoint.
    pub(crate) fn sent(&self, endpoint: &Url, field: &str) -> Option<String> {
        form(&self.last_request(endpoint)).remove(field)
    }

    pub(crate) fn last_request(&self, endpoint: &Url) -> FetchRequest {
        self.network.requests(endpoint).pop().unwrap()
    }
}

/// Returns a parameter of a URL.
pub(crate) fn parameter(url: &Url, name: &str) -> Option<String> {
    let mut values = url.query_pairs().filter(|(found, _)| found == name);
    let value = values.next().map(|(_, value)| value.into_owned());
    assert!(values.next().is_none(), "{name} is repeated");
    value
}

pub(crate) fn challenge() -> PkceChallenge {
    PkceVerifier::generate().unwrap().challenge()
}

/// Returns stored tokens.
pub(crate) fn tokens(access: Option<&str>, refresh: Option<&str>) -> ProviderTokens {
    ProviderTokens {
        access_token: access.map(Secret::new),
        access_token_expires: None,
        refresh_token: refresh.map(Secret::new),
    }
}
