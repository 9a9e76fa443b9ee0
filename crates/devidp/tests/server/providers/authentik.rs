//! The imitation of Authentik: its metadata, its audience and its claims.

use super::*;

/// K1: Authentik: the audience is the client without a scope mapping, and clients cannot register.
#[tokio::test]
async fn authentik_sets_the_client_as_audience() {
    let server = start(Provider::Authentik, |_| {}).await;
    assert!(
        server.issuer.ends_with("/application/o/mcp/"),
        "{}",
        server.issuer
    );
    let document = metadata(
        &server,
        &["/application/o/mcp/.well-known/openid-configuration"],
    )
    .await;
    absent(
        &document,
        &[
            "registration_endpoint",
            "client_id_metadata_document_supported",
        ],
    );
    absent(
        &document,
        &["authorization_response_iss_parameter_supported"],
    );
    assert!(
        document["scopes_supported"]
            .as_array()
            .unwrap()
            .contains(&json!("mcp:tools")),
        "{document}"
    );
    let registration = server
        .send(Method::POST, &path(&server, "register"), &[JSON], "{}")
        .await;
    assert_eq!(registration.error(), "access_denied");

    let verifier = verifier();
    let response = authorize(&server, &verifier, &[("resource", RESOURCE)]).await;
    assert!(response.redirect_parameter("code").is_some());
    assert_eq!(response.redirect_parameter("iss"), None);
    let token = sign_in(&server, &[("resource", RESOURCE)])
        .await
        .text("access_token");
    let payload = claims(&token);
    assert_eq!(payload["aud"], "web");
    assert_eq!(payload["azp"], "web");
    assert_eq!(payload["iss"], *server.issuer);
    assert_eq!(payload["scope"], "mcp:tools");
    absent(&payload, &["client_id", "jti", "typ"]);
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

    let mapped = start(Provider::Authentik, |settings| {
        settings.default_resource = Some(ResourceUri::parse(RESOURCE).unwrap());
    })
    .await;
    let token = sign_in(&mapped, &[("scope", "mcp:tools offline_access")]).await;
    assert_eq!(claims(&token.text("access_token"))["aud"], RESOURCE);
    assert!(token.json().get("refresh_token").is_some());
}
