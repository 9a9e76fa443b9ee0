//! The imitation of Google: its metadata, opaque tokens, and refresh tokens on request only.

use super::*;

/// K1: Google: opaque tokens, refresh tokens on request only, and a secret for every client.
#[tokio::test]
async fn google_needs_access_type() {
    let server = start(Provider::Google, |_| {}).await;
    let locations = [
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
    ];
    let document = metadata(&server, &locations).await;
    absent(
        &document,
        &[
            "registration_endpoint",
            "introspection_endpoint",
            "client_id_metadata_document_supported",
        ],
    );
    assert_eq!(
        document["token_endpoint_auth_methods_supported"],
        json!(["client_secret_post", "client_secret_basic"])
    );

    let plain = sign_in(
        &server,
        &[
            ("scope", "mcp:tools offline_access"),
            ("resource", RESOURCE),
        ],
    )
    .await;
    absent(&plain.json(), &["refresh_token"]);
    let token = plain.text("access_token");
    assert!(token.starts_with("ya29."), "{token}");
    assert!(!token[5..].contains('.'), "{token}");

    let active = introspect(&server, &token).await;
    assert_eq!(active["active"], true);
    assert_eq!(active["sub"], "alice");
    absent(&active, &["aud"]);
    assert_eq!(
        introspect(&server, &format!("ya29.{}", "a".repeat(44))).await["active"],
        false
    );
    assert_eq!(introspect(&server, &token[5..]).await["active"], false);

    let offline = [("access_type", "offline")];
    absent(&sign_in(&server, &offline).await.json(), &["refresh_token"]);
    let consented = sign_in(
        &server,
        &[("access_type", "offline"), ("prompt", "consent")],
    )
    .await;
    let refresh_token = consented.text("refresh_token");
    let first = sign_in(
        &server,
        &[("access_type", "offline"), ("login_hint", "bob")],
    )
    .await;
    assert!(
        first.json().get("refresh_token").is_some(),
        "the first approval of this user"
    );

    for _ in 0..2 {
        let refreshed = refresh(&server, &refresh_token, None).await;
        assert_eq!(refreshed.status, StatusCode::OK);
        absent(&refreshed.json(), &["refresh_token"]);
    }

    let verifier = verifier();
    let code = authorize(&server, &verifier, &[("client_id", "public")])
        .await
        .redirect_parameter("code")
        .unwrap();
    let rejected = post(
        &server,
        "token",
        &[],
        &token_request("public", &code, &verifier),
    )
    .await;
    assert_eq!(&*rejected.error(), "invalid_request");
    assert_eq!(
        &*rejected.text("error_description"),
        "client_secret is missing."
    );
}
