//! The imitation of Keycloak: its rules for `resource` and registrations, and its claims.

use super::*;

/// K1: Keycloak: `resource` is ignored, and registrations with unknown members or scopes are
/// rejected.
#[tokio::test]
async fn keycloak_ignores_resource() {
    let server = start(Provider::Keycloak, |_| {}).await;
    let locations = [
        "/.well-known/oauth-authorization-server/realms/mcp",
        "/realms/mcp/.well-known/oauth-authorization-server",
        "/realms/mcp/.well-known/openid-configuration",
    ];
    let document = metadata(&server, &locations).await;
    assert_eq!(
        document["code_challenge_methods_supported"],
        json!(["plain", "S256"])
    );
    assert!(
        !document["token_endpoint_auth_methods_supported"]
            .as_array()
            .unwrap()
            .contains(&json!("none"))
    );

    let verifier = verifier();
    let response = authorize(&server, &verifier, &[("resource", RESOURCE)]).await;
    assert!(response.redirect_parameter("session_state").is_some());
    assert!(response.redirect_parameter("iss").is_some());

    let twice = format!("resource={}", "http%3A%2F%2F127.0.0.1%3A1%2F");
    let request = encoded(&authorization_request("web", verifier.challenge()));
    let duplicated = server
        .get(&format!("{}?{request}&{twice}", path(&server, "authorize")))
        .await;
    assert_eq!(
        duplicated.redirect_parameter("error").as_deref(),
        Some("invalid_request")
    );
    assert_eq!(
        duplicated
            .redirect_parameter("error_description")
            .as_deref(),
        Some("duplicated parameter")
    );

    let tokens = sign_in(&server, &[("resource", RESOURCE)]).await;
    assert!(
        tokens.json().get("refresh_token").is_some(),
        "without offline_access"
    );
    let payload = claims(&tokens.text("access_token"));
    absent(&payload, &["aud", "client_id"]);
    assert_eq!(payload["azp"], "web");
    assert_eq!(payload["preferred_username"], "alice");

    let register = async |extra: Value| {
        let mut body = json!({ "redirect_uris": [REDIRECT] });
        body.as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        server
            .send(
                Method::POST,
                &path(&server, "register"),
                &[JSON],
                &body.to_string(),
            )
            .await
    };
    assert_eq!(
        register(json!({ "scope": "mcp:tools offline_access" }))
            .await
            .status,
        StatusCode::CREATED
    );

    let unknown = register(json!({ "resource": RESOURCE })).await;
    assert_eq!(unknown.status, StatusCode::BAD_REQUEST);
    let openid = register(json!({ "scope": "openid mcp:tools" })).await;
    assert_eq!(openid.status, StatusCode::FORBIDDEN);
    assert_eq!(&*openid.error(), "insufficient_scope");
}
