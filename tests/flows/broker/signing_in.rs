//! Sign-ins at every provider.

use portcullis_scenarios::{
    BrokerClient, BrokerServer, Browser, McpSession, Peer, ProviderKind, Request, TokenPair,
};
use serde_json::json;

use super::assert_token_error;

/// M1: a client registers, a user signs in, and the tokens of the code and of the refresh are
/// accepted in the same session.
#[tokio::test]
async fn users_sign_in_at_every_provider() {
    for kind in ProviderKind::ALL {
        let server = BrokerServer::start(kind).await;
        let client = BrokerClient::register(&server).await;
        let tokens = client.sign_in(&server, "alice").await;
        let claims = tokens.claims();
        assert_eq!(claims["iss"], server.issuer(), "{kind:?}");
        assert_eq!(claims["aud"], server.url("/mcp").as_str(), "{kind:?}");
        assert_eq!(claims["client_id"], *client.id, "{kind:?}");
        assert_eq!(claims["scope"], "mcp:tools", "{kind:?}");

        let session = McpSession::open(&server, &tokens.access).await;
        session.assert_usable(&server, &tokens.access).await;
        let refreshed = client.refresh(&server, &tokens.refresh).await;
        let refreshed = TokenPair::parse(&refreshed);
        assert_ne!(refreshed.refresh, tokens.refresh, "{kind:?}");
        assert_eq!(refreshed.claims()["sub"], claims["sub"], "{kind:?}");
        session.assert_usable(&server, &refreshed.access).await;
    }
}

/// M11: the same user at two sign-ins is one `sub`; another user is another one, and cannot use the
/// session of the first.
#[tokio::test]
async fn users_are_told_apart_at_every_provider() {
    for kind in ProviderKind::ALL {
        let server = BrokerServer::start(kind).await;
        let client = BrokerClient::register(&server).await;
        let alice = client.sign_in(&server, "alice").await;
        let again = client.sign_in(&server, "alice").await;
        let bob = client.sign_in(&server, "bob").await;
        assert_eq!(alice.claims()["sub"], again.claims()["sub"], "{kind:?}");
        assert_ne!(alice.claims()["sub"], bob.claims()["sub"], "{kind:?}");
        assert_ne!(alice.claims()["sid"], again.claims()["sid"], "{kind:?}");

        let session = McpSession::open(&server, &alice.access).await;
        session.assert_usable(&server, &again.access).await;
        let foreign = session.call(&server, &bob.access, "add").await;
        foreign.assert_no_session();
    }
}

/// A user whom `allow` does not admit gets `access_denied`, and no code.
#[tokio::test]
async fn users_who_are_not_allowed_get_no_code() {
    for kind in [ProviderKind::Google, ProviderKind::GitHub] {
        let server = BrokerServer::start(kind).await;
        let client = BrokerClient::register(&server).await;
        let authorization = client.authorization(&server, "/mcp", "");
        let location = Browser::default().sign_in(&authorization, "mallory").await;
        let parameter = |name| BrokerClient::parameter(&location, name);
        assert_eq!(parameter("error").as_deref(), Some("access_denied"));
        assert_eq!(parameter("iss").as_deref(), Some(server.issuer()));
        assert_eq!(parameter("code"), None, "{kind:?}");
    }
}

/// M2: a user who denies gets back to the client with `access_denied`: at the broker as well as at
/// the provider.
#[tokio::test]
async fn users_can_deny() {
    let server = BrokerServer::start(ProviderKind::Oidc).await;
    let client = BrokerClient::register(&server).await;
    let authorization = client.authorization(&server, "/mcp", "");
    let mut browser = Browser::default();
    let page = browser.open(&authorization).await;
    let denied = browser.decide(&authorization, &page, "deny").await;
    assert!(denied.text().contains("error=access_denied"), "{denied:?}");

    let page = browser.open(&authorization).await;
    let provider = browser.approve(&authorization, &page).await;
    let denied = browser.answer_provider(&provider, "alice", "deny").await;
    let callback = denied.header("location").unwrap().parse().unwrap();
    let location = browser.return_from_provider(&callback).await;
    let error = BrokerClient::parameter(&location, "error");
    assert_eq!(error.as_deref(), Some("access_denied"), "{location}");
}

/// M7, CO2: another browser cannot finish the sign-in that this one approved. Afterwards this one
/// still can, and once only.
#[tokio::test]
async fn a_sign_in_is_finished_once_and_in_its_browser() {
    let server = BrokerServer::start(ProviderKind::Oidc).await;
    let client = BrokerClient::register(&server).await;
    let authorization = client.authorization(&server, "/mcp", "");
    let mut browser = Browser::default();
    let page = browser.open(&authorization).await;
    let provider = browser.approve(&authorization, &page).await;
    let callback = browser.sign_in_at_provider(&provider, "alice").await;

    let foreign = Browser::default().open(&callback).await;
    assert_eq!(foreign.status, 400, "{foreign:?}");
    assert_eq!(foreign.header("location"), None);
    let location = browser.return_from_provider(&callback).await;
    let code = BrokerClient::code(&server, &location).await;
    let again = browser.open(&callback).await;
    assert_eq!(again.status, 400, "{again:?}");
    TokenPair::parse(&client.exchange(&server, &code).await);
}

/// M5: the challenge leads to the metadata of the broker, which is the same at all well-known
/// paths.
#[tokio::test]
async fn clients_find_the_broker() {
    let server = BrokerServer::start(ProviderKind::Oidc).await;
    let get = async |path: &str| {
        Request::new("GET", path)
            .send(server.program().address())
            .await
    };
    let challenged = McpSession::initialize(&server, "/mcp", "not-a-token").await;
    assert_eq!(challenged.status, 401, "{challenged:?}");
    let metadata = server.url("/.well-known/oauth-protected-resource/mcp");
    assert_eq!(
        challenged.challenge("resource_metadata"),
        Some(metadata.as_str())
    );
    let resource = get(metadata.path()).await.json();
    assert_eq!(resource["authorization_servers"][0], server.issuer());
    for path in [
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
        "/.well-known/oauth-authorization-server/mcp",
        "/.well-known/openid-configuration/mcp",
    ] {
        let metadata = get(path).await.json();
        assert_eq!(metadata["issuer"], server.issuer(), "{path}");
        assert_eq!(
            metadata["client_id_metadata_document_supported"], true,
            "{path}"
        );
        assert_eq!(
            metadata["registration_endpoint"],
            server.url("/oauth/register").as_str()
        );
    }
    assert_eq!(get("/oauth/unknown").await.status, 404);
}

/// M6: a client that is identified by its metadata document needs no registration. Beside a broker
/// on loopback, the document can be there, too.
#[tokio::test]
async fn a_client_with_a_document_signs_in() {
    let server = BrokerServer::start(ProviderKind::Oidc).await;
    let host = Peer::start(|request| {
        (request.path == "/client.json").then(|| {
            request.json(json!({
                "client_id": request.base.clone() + "/client.json",
                "client_name": "Scenario",
                "redirect_uris": [BrokerClient::REDIRECT_URI],
                "token_endpoint_auth_method": "none",
            }))
        })
    })
    .await;
    let client = BrokerClient::with_id(host.url("/client.json"));
    let tokens = client.sign_in(&server, "alice").await;
    assert_eq!(tokens.claims()["client_id"], *client.id);
    let tokens = TokenPair::parse(&client.refresh(&server, &tokens.refresh).await);
    McpSession::open(&server, &tokens.access).await;
    let authorization = client.authorization(&server, "/mcp", "");
    let page = Browser::default().open(&authorization).await;
    assert!(page.text().contains("127.0.0.1"), "{page:?}");
    assert_eq!(host.requests("/client.json").len(), 1);

    let unknown = BrokerClient::with_id(host.url("/other.json"));
    let authorization = unknown.authorization(&server, "/mcp", "");
    let page = Browser::default().open(&authorization).await;
    assert_eq!(page.status, 400, "{page:?}");
}

/// A client that the broker does not know gets 401 at the token endpoint, so that it registers
/// again, and a page in the browser.
#[tokio::test]
async fn unknown_clients_learn_it() {
    let server = BrokerServer::start(ProviderKind::Oidc).await;
    let mut client = BrokerClient::register(&server).await;
    client.id.push('x');
    let refused = client.refresh(&server, "any").await;
    assert_token_error(&refused, 401, "invalid_client");
    let authorization = client.authorization(&server, "/mcp", "");
    let page = Browser::default().open(&authorization).await;
    assert_eq!(page.status, 400, "{page:?}");
    assert_eq!(page.header("location"), None);
}
