//! The imitation of Auth0: `audience`, opaque tokens and its claims.

use super::*;

/// K1: Auth0: `audience` selects the API. Without it, the token is opaque.
#[tokio::test]
async fn auth0_needs_an_audience() {
    let server = start(Provider::Auth0, |_| {}).await;
    assert_eq!(server.issuer, format!("http://{}/", server.address));
    let locations = [
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
    ];
    metadata(&server, &locations).await;
    let opaque = sign_in(&server, &[("resource", RESOURCE)])
        .await
        .text("access_token");
    assert!(!opaque.contains('.'), "{opaque}");
    assert_eq!(introspect(&server, &opaque).await["active"], true);

    let tokens = sign_in(
        &server,
        &[
            ("audience", RESOURCE),
            ("scope", "mcp:tools offline_access"),
        ],
    )
    .await;
    let payload = claims(&tokens.text("access_token"));
    assert_eq!(payload["aud"], json!(RESOURCE));
    assert_eq!(payload["permissions"], json!(["mcp:tools"]));
    assert_eq!(payload["azp"], "web");
    assert_eq!(payload["iss"], json!(server.issuer));

    absent(&payload, &["client_id"]);
    let body = json!({ "redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none" });
    assert_eq!(
        server.register_with(&body).await.status,
        StatusCode::CREATED
    );

    let tenant = start(Provider::Auth0, |settings| {
        settings.default_resource = Some(ResourceUri::parse(RESOURCE).unwrap());
    })
    .await;
    let long = authorize(&tenant, &verifier(), &[("audience", &"a".repeat(601))]).await;
    assert_eq!(
        long.redirect_parameter("error").as_deref(),
        Some("invalid_target"),
        "not the default audience"
    );
    let token = sign_in(&tenant, &[]).await.text("access_token");
    assert_eq!(
        claims(&token)["aud"],
        RESOURCE,
        "the tenant's default audience"
    );
}
