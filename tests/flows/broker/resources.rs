//! Several resources behind one application at the provider, and scopes that a client requests
//! later.

use portcullis_scenarios::{BrokerClient, BrokerServer, McpSession, ProviderKind, TokenPair};

/// M5, TK4: each resource has an audience of its own. A token of one is rejected at the other, also
/// after a refresh.
#[tokio::test]
async fn a_token_is_for_one_resource() {
    let server = BrokerServer::start(ProviderKind::Google).await;
    let client = BrokerClient::register(&server).await;
    let mcp = client.sign_in(&server, "alice").await;
    let other = client.sign_in_for(&server, "alice", "/other", "").await;
    assert_eq!(mcp.claims()["aud"], server.url("/mcp").as_str());
    assert_eq!(other.claims()["aud"], server.url("/other").as_str());

    let refreshed = TokenPair::parse(&client.refresh(&server, &mcp.refresh).await);
    for (own, foreign, token) in [
        ("/mcp", "/other", &mcp),
        ("/other", "/mcp", &other),
        ("/mcp", "/other", &refreshed),
    ] {
        McpSession::open_at(&server, own, &token.access).await;
        let rejected = McpSession::initialize(&server, foreign, &token.access).await;
        assert_eq!(rejected.status, 401, "{rejected:?}");
        assert_eq!(rejected.challenge("error"), Some("invalid_token"));
    }
}

/// A 403 names the missing scopes, and the token of a new authorization with them is accepted in
/// the same session. The first grant stays as it was.
#[tokio::test]
async fn a_client_gets_more_scopes_later() {
    let server = BrokerServer::start(ProviderKind::Entra).await;
    let client = BrokerClient::register(&server).await;
    let tokens = client.sign_in(&server, "alice").await;
    let session = McpSession::open(&server, &tokens.access).await;
    let denied = session.call(&server, &tokens.access, "admin_list").await;
    assert_eq!(denied.status, 403, "{denied:?}");
    assert_eq!(denied.challenge("error"), Some("insufficient_scope"));
    let scope = denied.challenge("scope").unwrap();

    let more = client.sign_in_for(&server, "alice", "/mcp", scope).await;
    let called = session.call(&server, &more.access, "admin_list").await;
    assert_eq!(called.status, 200, "{called:?}");
    let refreshed = TokenPair::parse(&client.refresh(&server, &more.refresh).await);
    let called = session.call(&server, &refreshed.access, "admin_list").await;
    assert_eq!(called.status, 200, "{called:?}");

    let refreshed = TokenPair::parse(&client.refresh(&server, &tokens.refresh).await);
    let denied = session.call(&server, &refreshed.access, "admin_list").await;
    assert_eq!(denied.status, 403, "{denied:?}");
}
