//! The imitation of GitHub: form-encoded responses, and errors with status 200.

use super::*;

/// K1: GitHub: form-encoded responses, errors with status 200 and other names.
#[tokio::test]
async fn github_responds_in_its_own_format() {
    let server = start(Provider::GitHub, |settings| {
        settings.scopes = portcullis_metadata::Scopes::parse("repo gist").unwrap();
    })
    .await;
    assert!(server.issuer.ends_with("/login/oauth"));

    let document = metadata(
        &server,
        &["/.well-known/oauth-authorization-server/login/oauth"],
    )
    .await;
    absent(
        &document,
        &[
            "registration_endpoint",
            "introspection_endpoint",
            "revocation_endpoint",
        ],
    );
    assert_eq!(
        document["code_challenge_methods_supported"],
        json!(["S256"])
    );

    let verifier = verifier();
    let requested = [("scope", "repo gist"), ("resource", RESOURCE)];
    let exchange = async |headers: &[(&str, &str)]| {
        let code = authorize(&server, &verifier, &requested)
            .await
            .redirect_parameter("code")
            .unwrap();
        post(
            &server,
            "token",
            headers,
            &with_secret(&token_request("web", &code, &verifier)),
        )
        .await
    };
    let form = exchange(&[]).await;
    assert_eq!(
        form.header("content-type"),
        Some("application/x-www-form-urlencoded; charset=utf-8")
    );

    let pairs: std::collections::BTreeMap<_, _> = url::form_urlencoded::parse(form.body.as_bytes())
        .into_owned()
        .collect();
    assert!(pairs["access_token"].starts_with("gho_"), "{}", form.body);
    assert_eq!(&*pairs["token_type"], "bearer", "{}", form.body);
    assert_eq!(pairs.len(), 3, "{}", form.body);
    assert_eq!(&*pairs["scope"], "gist,repo", "{}", form.body);

    let json = exchange(&[("accept", "text/html, application/json;q=0.9")]).await;
    assert_eq!(
        json.header("content-type"),
        Some("application/json; charset=utf-8")
    );
    let members: Value = serde_json::from_str(&json.body).unwrap();
    absent(&members, &["expires_in", "refresh_token"]);
    let token = members["access_token"].as_str().unwrap();
    assert_eq!(introspect(&server, token).await["active"], true);

    for (client, code, secret, error) in [
        ("web", "wrong", SECRET, "bad_verification_code"),
        ("web", "wrong", "wrong", "incorrect_client_credentials"),
        ("public", "wrong", "", "incorrect_client_credentials"),
    ] {
        let request = changed(
            &token_request(client, code, &verifier),
            "client_secret",
            secret,
        );
        let response = post(
            &server,
            "token",
            &[("accept", "application/json")],
            &request,
        )
        .await;
        let members: Value = serde_json::from_str(&response.body).unwrap();
        assert_eq!(response.status, StatusCode::OK);
        assert_eq!(members["error"], json!(error));
    }
}
