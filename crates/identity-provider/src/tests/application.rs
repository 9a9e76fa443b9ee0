//! The test of an application without a user.

use serde_json::json;

use crate::{
    ProviderError, ProviderKind,
    testing::{Fixture, REDIRECT_URI},
};

/// Only an error about the code shows that the credentials are accepted.
#[tokio::test]
async fn a_made_up_code_tests_the_credentials() {
    let fixture = Fixture::new(ProviderKind::Keycloak, "https://idp.example");
    let rejected = |cause| Err(ProviderError::ApplicationRejected(cause));
    for (status, error, expected) in [
        (400, "invalid_grant", Ok(())),
        (401, "invalid_client", rejected("invalid_client")),
        (400, "unauthorized_client", rejected("unauthorized_client")),
        (
            400,
            "redirect_uri_mismatch",
            rejected("redirect_uri_mismatch"),
        ),
        (
            503,
            "invalid_grant",
            Err(ProviderError::Unreachable("status.server_error".into())),
        ),
    ] {
        fixture.answer(status, json!({ "error": error }));
        let result = fixture.provider.check_application(REDIRECT_URI).await;
        assert_eq!(result, expected, "{status} {error}");
    }
    let token = fixture.endpoint("token");
    assert_eq!(
        fixture.sent(&token, "redirect_uri").as_deref(),
        Some(REDIRECT_URI)
    );
    assert_eq!(
        fixture.sent(&token, "code"),
        fixture.sent(&token, "code_verifier")
    );
    fixture.answer(200, json!({ "access_token": "at", "token_type": "Bearer" }));
    assert_eq!(
        fixture.provider.check_application(REDIRECT_URI).await,
        Err(ProviderError::ResponseInvalid("code.made_up"))
    );
}

/// GitHub says in its own words whether the secret or the code is wrong.
#[tokio::test]
async fn github_answers_in_its_own_words() {
    let fixture = Fixture::new(ProviderKind::GitHub, "https://github.com");
    let token = "https://github.com/login/oauth/access_token";
    for (error, is_accepted) in [
        ("bad_verification_code", true),
        ("incorrect_client_credentials", false),
    ] {
        let body = json!({ "error": error }).to_string();
        fixture.network.serve(token, 200, body);
        let result = fixture.provider.check_application(REDIRECT_URI).await;
        assert_eq!(result.is_ok(), is_accepted, "{error}: {result:?}");
    }
}

/// Each tenant of Entra has an issuer of its own, and GitHub has none.
#[tokio::test]
async fn the_issuers_are_those_of_the_tenants() {
    const TENANTS: [&str; 2] = [
        "aaaabbbb-0000-cccc-1111-dddd2222eeee",
        "bbbbcccc-1111-dddd-2222-eeee3333ffff",
    ];
    let issuer = |tenant: &str| format!("https://login.microsoftonline.com/{tenant}/v2.0");
    let entra = Fixture::with(ProviderKind::Entra, &issuer(TENANTS[0]), |settings| {
        settings.tenants = TENANTS.map(Box::from).to_vec();
    });
    let issuers = entra.provider.settings().id_token_issuers().unwrap();
    let issuers: Vec<_> = issuers
        .iter()
        .map(|settings| settings.issuer.as_str().to_owned())
        .collect();
    assert_eq!(issuers, TENANTS.map(issuer));
    let github = Fixture::new(ProviderKind::GitHub, "https://github.com");
    assert!(
        github
            .provider
            .settings()
            .id_token_issuers()
            .unwrap()
            .is_empty()
    );
}
