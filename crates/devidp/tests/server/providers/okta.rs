//! The imitation of Okta: its metadata, its registration endpoint and its claims.

use super::*;

/// K1: Okta: a fixed audience, scopes as an array, and a registration endpoint that needs an API
/// token.
#[tokio::test]
async fn okta_renames_claims() {
    let server = start(Provider::Okta, |_| {}).await;
    let locations = [
        "/oauth2/default/.well-known/oauth-authorization-server",
        "/oauth2/default/.well-known/openid-configuration",
    ];
    let document = metadata(&server, &locations).await;
    assert_eq!(
        document["registration_endpoint"],
        format!("{}/register", server.issuer)
    );
    assert!(
        !document["scopes_supported"]
            .as_array()
            .unwrap()
            .contains(&json!("mcp:tools"))
    );

    let body = json!({ "redirect_uris": [REDIRECT] }).to_string();
    let rejected = server
        .send(Method::POST, &path(&server, "register"), &[JSON], &body)
        .await;
    assert_eq!(rejected.status, StatusCode::UNAUTHORIZED);
    assert_eq!(rejected.json()["errorCode"], "E0000011");

    let tokens = sign_in(&server, &[("scope", "mcp:tools"), ("resource", RESOURCE)]).await;
    let payload = claims(&tokens.text("access_token"));
    assert_eq!(payload["aud"], "api://default");
    assert_eq!(payload["scp"], json!(["mcp:tools"]));
    assert_eq!(payload["cid"], "web");
    assert_eq!(payload["uid"], "alice");
    assert_eq!(payload["ver"], 1);

    absent(&payload, &["scope", "azp", "client_id", "typ"]);
    let token = tokens.text("access_token");
    assert_eq!(introspect(&server, &token).await["active"], true);
    let revoked = post(
        &server,
        "revoke",
        &[],
        &with_secret(&[("client_id", "web"), ("token", &token)]),
    )
    .await;
    assert_eq!(revoked.status, StatusCode::OK);
    assert_eq!(introspect(&server, &token).await["active"], false);
}
