//! What a server with a broker knows after a restart.

use portcullis_scenarios::{
    BrokerClient, BrokerServer, Browser, McpSession, ProviderKind, TokenPair,
};

use super::assert_token_error;

/// M3: tokens, grants, sessions, registrations and started sign-ins outlive a restart.
#[tokio::test]
async fn a_restart_signs_out_no_user() {
    let mut server = BrokerServer::start(ProviderKind::Okta).await;
    let client = BrokerClient::register(&server).await;
    let tokens = client.sign_in(&server, "alice").await;
    let session = McpSession::open(&server, &tokens.access).await;
    let authorization = client.authorization(&server, "/mcp", "");
    let mut browser = Browser::default();
    let page = browser.open(&authorization).await;
    let provider = browser.approve(&authorization, &page).await;

    server.restart().await;
    session.assert_usable(&server, &tokens.access).await;
    let refreshed = TokenPair::parse(&client.refresh(&server, &tokens.refresh).await);
    session.assert_usable(&server, &refreshed.access).await;
    let callback = browser.sign_in_at_provider(&provider, "alice").await;
    let location = browser.return_from_provider(&callback).await;
    let code = BrokerClient::code(&server, &location).await;
    TokenPair::parse(&client.exchange(&server, &code).await);
    client.sign_in(&server, "alice").await;
}

/// Tokens of grants that ended stay rejected after a restart, and a used code stays used.
#[tokio::test]
async fn a_restart_revives_nothing() {
    let mut server = BrokerServer::start(ProviderKind::Oidc).await;
    let client = BrokerClient::register(&server).await;
    let tokens = client.sign_in(&server, "alice").await;
    client.revoke(&server, &tokens.refresh).await;
    let authorization = client.authorization(&server, "/mcp", "");
    let location = Browser::default().sign_in(&authorization, "alice").await;
    let code = BrokerClient::code(&server, &location).await;
    TokenPair::parse(&client.exchange(&server, &code).await);

    server.restart().await;
    let rejected = McpSession::initialize(&server, "/mcp", &tokens.access).await;
    assert_eq!(rejected.status, 401, "{rejected:?}");
    let refused = client.refresh(&server, &tokens.refresh).await;
    assert_token_error(&refused, 400, "invalid_grant");
    let replayed = client.exchange(&server, &code).await;
    assert_token_error(&replayed, 400, "invalid_grant");
}
