//! The ends of grants: at the provider, by the client, and by misuse.

use portcullis_scenarios::{
    BrokerClient, BrokerServer, Browser, EventStream, McpSession, ProviderKind, TokenPair,
};

use super::assert_token_error;

/// A signed-in user with a session and an open event stream.
struct SignedIn {
    tokens: TokenPair,
    session: McpSession,
    stream: EventStream,
}

impl SignedIn {
    async fn new(server: &BrokerServer, client: &BrokerClient, user: &str) -> Self {
        Self::with(server, client.sign_in(server, user).await).await
    }

    async fn with(server: &BrokerServer, tokens: TokenPair) -> Self {
        let session = McpSession::open(server, &tokens.access).await;
        let stream = session.listen(server, &tokens.access).await;
        Self {
            tokens,
            session,
            stream,
        }
    }

    /// Asserts that the stream ends, and that neither token is accepted.
    async fn assert_ended(mut self, server: &BrokerServer, client: &BrokerClient) {
        self.stream.assert_ended().await;
        let rejected = self.session.call(server, &self.tokens.access, "add").await;
        assert_eq!(rejected.status, 401, "{rejected:?}");
        let refused = client.refresh(server, &self.tokens.refresh).await;
        assert_token_error(&refused, 400, "invalid_grant");
    }

    /// Asserts that the stream is open and that both tokens are accepted.
    async fn assert_active(&mut self, server: &BrokerServer, client: &BrokerClient) {
        self.stream.assert_open().await;
        let access = &self.tokens.access;
        self.session.assert_usable(server, access).await;
        TokenPair::parse(&client.refresh(server, &self.tokens.refresh).await);
    }
}

/// M4, US5: a back-channel logout at the provider ends the tokens and streams of its user at once,
/// and no others.
#[tokio::test]
async fn a_logout_at_the_provider_acts_at_once() {
    let kinds = [
        ProviderKind::Oidc,
        ProviderKind::Entra,
        ProviderKind::Okta,
        ProviderKind::Auth0,
        ProviderKind::Keycloak,
        ProviderKind::Cognito,
    ];
    for kind in kinds {
        let server = BrokerServer::start(kind).await;
        let client = BrokerClient::register(&server).await;
        let alice = SignedIn::new(&server, &client, "alice").await;
        let mut bob = SignedIn::new(&server, &client, "bob").await;
        let sessions = server.idp.control.log_out("alice").await;
        assert_eq!(sessions.unwrap(), 1, "{kind:?}");
        alice.assert_ended(&server, &client).await;
        bob.assert_active(&server, &client).await;
    }
}

/// M9: a client that signs out, by either token, ends its grant at once, and no other grant of the
/// same user.
#[tokio::test]
async fn a_sign_out_acts_at_once() {
    let server = BrokerServer::start(ProviderKind::Oidc).await;
    let client = BrokerClient::register(&server).await;
    let revoked = SignedIn::new(&server, &client, "alice").await;
    let mut other = SignedIn::new(&server, &client, "alice").await;
    client.revoke(&server, &revoked.tokens.refresh).await;
    revoked.assert_ended(&server, &client).await;
    other.assert_active(&server, &client).await;
}

/// M8, TK2: a code that is used twice gives no second token, and ends what the first one gave.
#[tokio::test]
async fn a_code_that_is_used_twice_ends_its_grant() {
    let server = BrokerServer::start(ProviderKind::Oidc).await;
    let client = BrokerClient::register(&server).await;
    let authorization = client.authorization(&server, "/mcp", "");
    let location = Browser::default().sign_in(&authorization, "alice").await;
    let code = BrokerClient::code(&server, &location).await;
    let tokens = TokenPair::parse(&client.exchange(&server, &code).await);
    let alice = SignedIn::with(&server, tokens).await;
    let replayed = client.exchange(&server, &code).await;
    assert_token_error(&replayed, 400, "invalid_grant");
    alice.assert_ended(&server, &client).await;
}

/// M8, RF2: a used refresh token gets the same successor again while `refresh_reuse` lasts.
#[tokio::test]
async fn a_repeated_refresh_gets_the_same_token() {
    let server = BrokerServer::start(ProviderKind::Oidc).await;
    let client = BrokerClient::register(&server).await;
    let tokens = client.sign_in(&server, "alice").await;
    let first = TokenPair::parse(&client.refresh(&server, &tokens.refresh).await);
    let again = TokenPair::parse(&client.refresh(&server, &tokens.refresh).await);
    assert_eq!(first.refresh, again.refresh);
    let session = McpSession::open(&server, &again.access).await;
    session.assert_usable(&server, &first.access).await;
}
