//! Attacks on access tokens (TK), at the guard, at introspection and at revocation.

use std::time::Duration;

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header};
use portcullis_broker::{BrokerSettings, IntrospectionClient};
use portcullis_metadata::{Clock as _, ResourceUri, Secret};
use portcullis_verifier::RevokedTokens as _;
use serde_json::{Value, json};

use crate::{
    log::Log,
    support::{
        Browser, Client, RESOURCE, Setup, claims, error_of, form_request, json_of, param, resource,
        token_of,
    },
};

pub(super) const OTHER: &str = "https://mcp.example.com/other";

pub(super) fn introspected(settings: &mut BrokerSettings) {
    settings.resources.push(resource(OTHER));
    let client = |id: &str, uri: &str| IntrospectionClient {
        id: id.into(),
        secret: Secret::new(format!("secret of {id}")),
        resource: ResourceUri::parse(uri).unwrap(),
    };
    settings.introspection_clients = vec![client("mcp", RESOURCE), client("other", OTHER)];
}

pub(super) async fn is_active(setup: &Setup, token: &str) -> bool {
    let response = introspect(setup, "mcp", "secret of mcp", token).await;
    assert_eq!(response.status(), StatusCode::OK);
    let is_active = json_of(&response)["active"] == true;
    // The guard has the same ends.
    let claims = claims(&json!({ "access_token": token }));
    let (sid, jti) = (claims["sid"].as_str(), claims["jti"].as_str());
    assert_eq!(setup.ends.is_revoked(sid, jti), !is_active);
    is_active
}

async fn introspect(setup: &Setup, id: &str, secret: &str, token: &str) -> Response<Bytes> {
    let mut headers = HeaderMap::new();
    let credential = STANDARD.encode(format!("{id}:{}", secret.replace(' ', "+")));
    let credential = format!("Basic {credential}").parse().unwrap();
    headers.insert(header::AUTHORIZATION, credential);
    setup
        .send(form_request(
            "/oauth/introspect",
            headers,
            &[("token", token)],
        ))
        .await
}

/// TK4: an access token is one, for one resource.
#[tokio::test]
async fn an_access_token_in_another_place() {
    let setup = Setup::with(introspected);
    let client = setup.client().await;
    let tokens = setup.sign_in(&client).await;
    assert!(tokens.get("id_token").is_none());
    let token = tokens["access_token"].as_str().unwrap();
    let header = URL_SAFE_NO_PAD
        .decode(token.split('.').next().unwrap())
        .unwrap();
    let header: Value = serde_json::from_slice(&header).unwrap();
    assert_eq!(header["typ"], "at+jwt");
    assert_eq!(header["alg"], "ES256");
    let claims = claims(&tokens);
    assert_eq!(claims["aud"], RESOURCE);
    for name in [
        "iss",
        "sub",
        "client_id",
        "scope",
        "sid",
        "jti",
        "iat",
        "exp",
    ] {
        assert!(claims.get(name).is_some(), "{name}");
    }
    let lifetime = claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap();
    assert_eq!(lifetime, 3600);
    // It is neither a code nor a refresh token.
    let response = setup.refresh(&client, token).await;
    assert_eq!(error_of(&response), "invalid_grant");
    let response = setup.exchange(&client, token).await;
    assert_eq!(error_of(&response), "invalid_grant");
}

/// TK5: a token expires, and ends before that with its grant.
#[tokio::test]
async fn a_stolen_access_token() {
    let setup = Setup::with(introspected);
    let client = setup.client().await;
    let first = setup.sign_in(&client).await;
    let second = setup.sign_in(&client).await;
    let token = |tokens: &Value| tokens["access_token"].as_str().unwrap().to_owned();
    let refresh_token = first["refresh_token"].as_str().unwrap();
    let fields = [("client_id", client.id.as_str()), ("token", refresh_token)];
    let response = setup.post("/oauth/revoke", &fields).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert!(!is_active(&setup, &token(&first)).await);
    assert!(is_active(&setup, &token(&second)).await);
    setup.pass(Duration::from_secs(3600));
    let response = introspect(&setup, "mcp", "secret of mcp", &token(&second)).await;
    assert_eq!(json_of(&response), json!({ "active": false }));
}

/// TK7: introspection needs the credentials of a resource, and tells about its tokens only.
#[tokio::test]
async fn introspection_of_foreign_tokens() {
    let setup = Setup::with(introspected);
    let client = setup.client().await;
    let tokens = setup.sign_in(&client).await;
    let token = tokens["access_token"].as_str().unwrap();
    let refresh_token = tokens["refresh_token"].as_str().unwrap();
    let response = introspect(&setup, "mcp", "secret of mcp", token).await;
    assert_eq!(json_of(&response)["active"], true);
    for other in [token, refresh_token, "unknown", "a.b.c"] {
        let response = introspect(&setup, "other", "secret of other", other).await;
        assert_eq!(json_of(&response), json!({ "active": false }), "{other}");
    }
    let response = introspect(&setup, "mcp", "secret of mcp", refresh_token).await;
    assert_eq!(json_of(&response), json!({ "active": false }));
    for (id, secret) in [
        ("mcp", "wrong"),
        ("mcp", ""),
        ("mcp", "secret of other"),
        ("unknown", "secret of mcp"),
        (client.id.as_str(), ""),
    ] {
        let response = introspect(&setup, id, secret, token).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{id}");
        assert!(json_of(&response).get("active").is_none());
    }
    for fields in [
        vec![("token", token)],
        vec![("token", token), ("client_id", "mcp")],
        vec![("token", token), ("client_id", client.id.as_str())],
    ] {
        let response = setup.post("/oauth/introspect", &fields).await;
        assert!(response.status().is_client_error());
        assert!(json_of(&response).get("active").is_none());
    }
}

/// TK8: only the client of a token revokes it, and other strings tell nothing.
#[tokio::test]
async fn revocation_by_another_client() {
    let setup = Setup::with(introspected);
    let client = setup.client().await;
    let attacker = setup.other_client().await;
    let tokens = setup.sign_in(&client).await;
    let access_token = tokens["access_token"].as_str().unwrap();
    let refresh_token = tokens["refresh_token"].as_str().unwrap();
    let revoke = async |client: &Client, token: &str| {
        let fields = [("client_id", client.id.as_str()), ("token", token)];
        setup.post("/oauth/revoke", &fields).await
    };
    for token in [access_token, refresh_token] {
        let response = revoke(&attacker, token).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
        assert_eq!(error_of(&response), "invalid_request");
    }
    assert!(is_active(&setup, access_token).await);
    for token in ["unknown", "a.b.c", &refresh_token[1..], &access_token[..50]] {
        let response = revoke(&attacker, token).await;
        assert_eq!(response.status(), StatusCode::OK, "{token}");
    }
    let foreign = setup.provider.issuer.token().sign();
    assert_eq!(revoke(&client, &foreign).await.status(), StatusCode::OK);
    assert!(is_active(&setup, access_token).await);
    let fields = [("client_id", "unknown"), ("token", refresh_token)];
    let response = setup.post("/oauth/revoke", &fields).await;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    // An access token ends alone.
    assert_eq!(revoke(&client, access_token).await.status(), StatusCode::OK);
    assert!(!is_active(&setup, access_token).await);
    let response = setup.refresh(&client, refresh_token).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert!(!setup.events.contains("GrantEnded"));
}

/// TK4: no token is issued that is too long for its guard. The log names the mapped claim, and the
/// next refresh with fewer values succeeds with the same token.
#[tokio::test]
async fn an_access_token_that_is_too_long() {
    const MAX: usize = 2048;
    let (log, _guard) = Log::here();
    let setup = Setup::with(|settings| {
        introspected(settings);
        settings.max_token = MAX;
        for name in ["groups", "name"] {
            settings.claims.insert(name.into(), name.into());
        }
    });
    let groups = |length: usize| {
        *setup.provider.user.lock() =
            json!({ "sub": "alice", "name": "Alice", "groups": ["a".repeat(length)] });
    };
    let client = setup.client().await;
    groups(100);
    let tokens = setup.sign_in(&client).await;
    groups(MAX);
    setup.pass(setup.settings.lifetimes.recheck);
    let refused = setup.refresh(&client, &token_of(&tokens)).await;
    assert_eq!(error_of(&refused), "server_error");
    let target = Browser::new(&setup).sign_in(&client).await;
    assert_eq!(param(&target, "error").as_deref(), Some("server_error"));
    assert!(setup.events.contains("broker.token_too_large"));
    let lines = log.lines();
    let about =
        |line: &&String| line.contains("broker.token_too_large") && line.contains("`groups`");
    assert_eq!(lines.iter().filter(about).count(), 2, "{lines:?}");

    groups(100);
    setup.pass(setup.settings.lifetimes.recheck);
    let refreshed = setup.refresh(&client, &token_of(&tokens)).await;
    assert_eq!(refreshed.status(), StatusCode::OK);

    let mut longest = 0;
    for length in (600..1400).step_by(7) {
        groups(length);
        let target = Browser::new(&setup).sign_in(&client).await;
        let Some(code) = param(&target, "code") else {
            break;
        };
        let tokens = json_of(&setup.exchange(&client, &code).await);
        let token = tokens["access_token"].as_str().unwrap();
        longest = token.len();
        assert!(longest <= MAX);
        let response = introspect(&setup, "mcp", "secret of mcp", token).await;
        assert_eq!(json_of(&response)["active"], true);
    }
    assert!(longest > MAX - 100, "{longest}");
}

/// An access token expires no later than its grant.
#[tokio::test]
async fn an_access_token_that_outlives_its_grant() {
    const MINUTE: Duration = Duration::from_secs(60);
    let setup = Setup::with(|settings| {
        settings.lifetimes.grant = 70 * MINUTE;
        settings.lifetimes.refresh_reuse = 60 * MINUTE;
    });
    let client = setup.client().await;
    let tokens = setup.sign_in(&client).await;
    let begun = setup.clock.now().as_secs();
    setup.refresh(&client, &token_of(&tokens)).await;
    setup.pass(30 * MINUTE);
    // A repetition does not prolong the grant.
    let repeated = json_of(&setup.refresh(&client, &token_of(&tokens)).await);
    assert_eq!(repeated["expires_in"], 40 * 60);
    assert_eq!(claims(&repeated)["exp"], begun + 70 * 60);
}
