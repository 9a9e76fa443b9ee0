//! The imitation of Entra ID: its metadata, its rules for `resource` and scopes, and its claims.

use super::*;

/// K1: Entra ID: the metadata of a tenant, of `common` and of version 1.0.
#[tokio::test]
async fn the_metadata_of_entra() {
    let server = start(Provider::Entra, |_| {}).await;
    let origin = format!("http://{}", server.address);
    assert_eq!(server.issuer, format!("{origin}/{TENANT}/v2.0"));
    let own = format!("/{TENANT}/v2.0/.well-known/openid-configuration");
    let document = metadata(&server, &[&own]).await;
    absent(
        &document,
        &[
            "code_challenge_methods_supported",
            "registration_endpoint",
            "introspection_endpoint",
        ],
    );
    absent(
        &document,
        &[
            "authorization_response_iss_parameter_supported",
            "client_id_metadata_document_supported",
        ],
    );
    assert_eq!(
        document["scopes_supported"],
        json!(["openid", "profile", "email", "offline_access"])
    );

    for (location, issuer) in [
        (
            "/common/v2.0/.well-known/openid-configuration".to_owned(),
            "/{tenantid}/v2.0".to_owned(),
        ),
        (
            "/common/.well-known/openid-configuration".to_owned(),
            "/sts.windows.net/{tenantid}/".to_owned(),
        ),
        (
            format!("/{TENANT}/.well-known/openid-configuration"),
            format!("/sts.windows.net/{TENANT}/"),
        ),
        (
            format!("/sts.windows.net/{TENANT}/.well-known/openid-configuration"),
            format!("/sts.windows.net/{TENANT}/"),
        ),
    ] {
        assert_eq!(
            server.get(&location).await.json()["issuer"],
            format!("{origin}{issuer}"),
            "{location}"
        );
    }
    let registration = server
        .send(Method::POST, &path(&server, "register"), &[JSON], "{}")
        .await;
    assert_eq!(registration.error(), "access_denied");
}

/// K1: Entra ID rejects a `resource` that is not the prefix of the scopes, and scopes without the
/// prefix.
#[tokio::test]
async fn entra_rejects_resource() {
    let server = start(Provider::Entra, |_| {}).await;
    let verifier = verifier();
    let prefix = format!("api://{API}");
    let scope = format!("{prefix}/mcp:tools");
    let error = async |parameters: &[(&str, &str)]| {
        let response = authorize(&server, &verifier, parameters).await;
        assert_eq!(
            response.redirect_parameter("iss"),
            None,
            "no issuer in responses"
        );
        (
            response.redirect_parameter("error"),
            response
                .redirect_parameter("error_description")
                .unwrap_or_default(),
        )
    };
    let (code, text) = error(&[("scope", &scope), ("resource", RESOURCE)]).await;
    assert_eq!(code.as_deref(), Some("invalid_target"));
    assert!(text.starts_with("AADSTS9010010: "), "{text}");
    assert_eq!(
        error(&[("scope", &scope), ("resource", &prefix)]).await.0,
        None
    );
    assert_eq!(error(&[("scope", &scope)]).await.0, None);
    assert_eq!(
        error(&[("scope", &format!("openid {prefix}/.default"))])
            .await
            .0,
        None
    );
    assert!(
        error(&[("scope", "mcp:tools")])
            .await
            .1
            .starts_with("AADSTS650053: ")
    );
    assert!(
        error(&[("scope", "")])
            .await
            .1
            .starts_with("AADSTS900144: ")
    );

    let response = authorize(&server, &verifier, &[("scope", &scope)]).await;
    let code = response.redirect_parameter("code").unwrap();
    let request = with_secret(&token_request("web", &code, &verifier));
    let rejected = post(&server, "token", &[], &request).await;
    assert_eq!(
        rejected.error(),
        "invalid_target",
        "also at the token endpoint"
    );
}

/// K1: Entra ID: the claims of both versions, refresh requests with `scope`, and old refresh tokens
/// that stay valid.
#[tokio::test]
async fn entra_renames_claims_and_refreshes_with_scope() {
    for (provider, version, audience) in [
        (Provider::Entra, "2.0", API.to_owned()),
        (Provider::EntraV1, "1.0", format!("api://{API}")),
    ] {
        let server = start(provider, |_| {}).await;
        let scope = format!("api://{API}/mcp:tools");
        let requested = format!("{scope} offline_access");
        let tokens = sign_in(&server, &[("scope", &requested)]).await;
        assert_eq!(tokens.text("scope"), scope);
        let token = tokens.text("access_token");
        let payload = claims(&token);
        assert_eq!(payload["aud"], json!(audience));
        assert_eq!(payload["ver"], json!(version));
        assert_eq!(payload["scp"], "mcp:tools offline_access");
        assert_eq!(payload["tid"], json!(TENANT));
        absent(&payload, &["scope", "client_id", "jti", "typ"]);
        let (client, other, issuer) = if version == "2.0" {
            ("azp", "appid", server.issuer.clone())
        } else {
            (
                "appid",
                "azp",
                format!("http://{}/sts.windows.net/{TENANT}/", server.address),
            )
        };
        assert_eq!(payload[client], "web");
        assert_eq!(payload["iss"], json!(issuer));
        absent(&payload, &[other]);
        let active = introspect(&server, &token).await;
        assert_eq!(active["active"], true);
        assert_eq!(active["client_id"], "web");

        let first = tokens.text("refresh_token");
        let rejected = refresh(&server, &first, None).await;
        assert_eq!(rejected.status, StatusCode::BAD_REQUEST);
        assert_eq!(&*rejected.error(), "invalid_request");
        assert!(
            rejected
                .text("error_description")
                .starts_with("AADSTS90009: ")
        );
        let second = refresh(&server, &first, Some(&scope)).await;
        assert_ne!(second.text("refresh_token"), first);
        for token in [first, second.text("refresh_token")] {
            assert_eq!(
                refresh(&server, &token, Some(&format!("api://{API}/.default")))
                    .await
                    .status,
                StatusCode::OK
            );
        }
    }
}
