//! The sign-in at GitHub.

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use portcullis_discovery::FetchResponse;
use portcullis_metadata::Secret;
use serde_json::{Value, json};

use crate::{
    OmittedClaim, ProviderError, ProviderKind, ProviderSettingsError,
    testing::{CLIENT, Fixture, VERIFIER, parameter, tokens},
};

const TOKEN: &str = "https://github.com/login/oauth/access_token";
const USER: &str = "https://api.github.com/user";

fn fixture() -> Fixture {
    with_scopes(&[])
}

fn with_scopes(scopes: &[&str]) -> Fixture {
    let fixture = Fixture::with(ProviderKind::GitHub, "https://github.com", |settings| {
        settings.scopes = scopes.iter().map(|scope| Box::from(*scope)).collect();
    });
    answer(
        &fixture,
        json!({ "access_token": "gho_1", "token_type": "bearer", "scope": "" }),
    );
    let user =
        json!({ "id": 583231, "login": "octocat", "name": "Octo", "email": null, "type": "User" });
    fixture.network.serve(USER, 200, user.to_string());
    fixture
}

fn answer(fixture: &Fixture, body: Value) {
    fixture.network.serve(TOKEN, 200, body.to_string());
}

fn page(number: usize) -> String {
    format!("{USER}/orgs?per_page=30&page={number}")
}

fn organizations(count: usize) -> String {
    let organization = |id| json!({ "login": format!("org-{id}"), "id": id });
    json!((1..=count).map(organization).collect::<Vec<_>>()).to_string()
}

#[tokio::test]
async fn the_authorization_request_has_pkce_and_no_nonce() {
    let url = fixture().authorization_url().await;
    assert!(
        url.as_str()
            .starts_with("https://github.com/login/oauth/authorize?")
    );
    assert_eq!(
        parameter(&url, "code_challenge_method").as_deref(),
        Some("S256")
    );
    assert_eq!(parameter(&url, "client_id").as_deref(), Some(CLIENT));
    assert_eq!(parameter(&url, "nonce"), None);
    assert_eq!(parameter(&url, "scope"), None);
    let url = with_scopes(&["read:org"]).authorization_url().await;
    assert_eq!(parameter(&url, "scope").as_deref(), Some("read:org"));
}

/// PR4: the subject comes from the number of the account, so that a renamed user stays the same and
/// another one with the old login does not become it.
#[tokio::test]
async fn a_user_is_identified_by_number() {
    let fixture = fixture();
    let identity = fixture.sign_in().await.unwrap();
    let token = url::Url::parse(TOKEN).unwrap();
    assert_eq!(
        fixture.sent(&token, "code_verifier").as_deref(),
        Some(VERIFIER)
    );
    let request = fixture.last_request(&token);
    assert_eq!(request.headers[header::ACCEPT], "application/json");
    let request = fixture.last_request(&url::Url::parse(USER).unwrap());
    assert_eq!(request.headers[header::AUTHORIZATION], "Bearer gho_1");
    assert!(request.headers.contains_key(header::USER_AGENT));
    assert_eq!(&*identity.provider_subject, "583231");
    assert_eq!(identity.claim("id").unwrap(), Some(&json!(583231)));
    assert_eq!(identity.claims["login"], "octocat");
    assert_eq!(identity.claims["name"], "Octo");
    assert!(!identity.claims.contains_key("email"));
    assert!(!identity.claims.contains_key("orgs"));

    let subject_of = |body: Value| {
        fixture.network.serve(USER, 200, body.to_string());
        fixture.sign_in()
    };
    let renamed = subject_of(json!({ "id": 583231, "login": "renamed" }))
        .await
        .unwrap();
    assert_eq!(renamed.subject, identity.subject);
    let squatter = subject_of(json!({ "id": 9, "login": "octocat" }))
        .await
        .unwrap();
    assert_ne!(squatter.subject, identity.subject);
}

/// The organizations are fetched for the scope `read:org` only, over several pages.
#[tokio::test]
async fn organizations_are_claims() {
    let fixture = with_scopes(&["read:org"]);
    fixture.network.serve(page(1), 200, organizations(30));
    fixture
        .network
        .serve(page(2), 200, r#"[{"login":"last","id":99}]"#);
    let identity = fixture.sign_in().await.unwrap();
    let orgs = identity.claims["orgs"].as_array().unwrap();
    assert_eq!(orgs.len(), 31);
    assert_eq!(orgs[30], "last");
    assert_eq!(identity.claims["org_ids"][30], 99);
}

/// PR6: a rule that needs the organizations fails if there are too many.
#[tokio::test]
async fn too_many_organizations_are_left_out() {
    let fixture = with_scopes(&["read:org"]);
    for number in 1..=10 {
        fixture.network.serve(page(number), 200, organizations(30));
    }
    let identity = fixture.sign_in().await.unwrap();
    assert!(!identity.claims.contains_key("orgs"));
    assert_eq!(identity.claim("orgs"), Err(OmittedClaim));
    assert_eq!(identity.claim("/org_ids/0"), Err(OmittedClaim));
    assert!(identity.claim("login").unwrap().is_some());
}

/// Users and organizations of the wrong form are refused.
#[tokio::test]
async fn malformed_answers_are_refused() {
    let fixture = fixture();
    for body in [
        r#"{"id":"583231","login":"octocat"}"#,
        r#"{"id":0,"login":"octocat"}"#,
        r#"{"id":-1,"login":"octocat"}"#,
        r#"{"id":1.5,"login":"octocat"}"#,
        r#"{"login":"octocat"}"#,
        r#"{"id":1}"#,
        r#"{"id":1,"id":2,"login":"octocat"}"#,
        r#"{"id":1,"login":"octocat","email":5}"#,
        "[]",
        "<html>",
        "",
    ] {
        fixture.network.serve(USER, 200, body);
        let error = fixture.sign_in().await.unwrap_err();
        assert_eq!(error.code(), "provider.response_invalid", "{body}");
    }
    let fixture = with_scopes(&["read:org"]);
    for body in [
        r#"{}"#,
        r#"[{"login":5,"id":1}]"#,
        r#"[{"login":"a","id":"1"}]"#,
        "[[]]",
    ] {
        fixture.network.serve(page(1), 200, body);
        let error = fixture.sign_in().await.unwrap_err();
        assert_eq!(error.code(), "provider.response_invalid", "{body}");
    }
}

/// Errors of the token endpoint come with status 200.
#[tokio::test]
async fn errors_with_status_200_are_errors() {
    let fixture = fixture();
    for (error, code) in [
        ("bad_verification_code", "provider.sign_in_ended"),
        ("bad_refresh_token", "provider.sign_in_ended"),
        (
            "incorrect_client_credentials",
            "provider.application_rejected",
        ),
        ("redirect_uri_mismatch", "provider.application_rejected"),
        ("something_new", "provider.response_invalid"),
    ] {
        answer(
            &fixture,
            json!({ "error": error, "error_description": "text" }),
        );
        assert_eq!(fixture.redeem().await.unwrap_err().code(), code, "{error}");
    }
}

/// PR2: GitHub sends the issuer of its endpoints.
#[tokio::test]
async fn the_issuer_of_a_response_is_compared() {
    let fixture = fixture();
    for iss in [
        None,
        Some("https://github.com/login/oauth"),
        Some("https://github.com"),
    ] {
        assert!(fixture.redeem_from(iss).await.is_ok(), "{iss:?}");
    }
    for iss in [
        "https://evil.example",
        "https://github.com/login/oauth/",
        "",
    ] {
        let error = fixture.redeem_from(Some(iss)).await.unwrap_err();
        assert_eq!(error, ProviderError::IssuerMismatch, "{iss}");
    }
}

/// GitHub Apps rotate refresh tokens.
#[tokio::test]
async fn tokens_of_a_github_app_are_refreshed() {
    let fixture = fixture();
    answer(
        &fixture,
        json!({
            "access_token": "ghu_2", "expires_in": 28800, "refresh_token": "ghr_2",
            "refresh_token_expires_in": 15897600, "scope": "", "token_type": "bearer",
        }),
    );
    let response = fixture
        .provider
        .refresh(&tokens(Some("ghu_1"), Some("ghr_1")))
        .await
        .unwrap();
    assert_eq!(response.tokens().refresh_token, Some(Secret::new("ghr_2")));
    assert!(response.tokens().access_token_expires.is_some());
    let identity = fixture.provider.identify(&response, None).await.unwrap();
    assert_eq!(&*identity.provider_subject, "583231");
}

/// US4: a user of an OAuth app is checked with the stored token.
#[tokio::test]
async fn a_stored_token_shows_whether_the_user_may_sign_in() {
    let fixture = fixture();
    let stored = tokens(Some("gho_1"), None);
    let check = || fixture.provider.check_with_access_token(&stored);
    assert_eq!(&*check().await.unwrap().unwrap().provider_subject, "583231");
    for status in [401, 403, 404] {
        fixture.network.serve(USER, status, "{}");
        assert_eq!(
            check().await.unwrap_err(),
            ProviderError::SignInEnded,
            "{status}"
        );
    }
    for status in [429, 500, 503] {
        fixture.network.serve(USER, status, "{}");
        assert_eq!(
            check().await.unwrap_err().code(),
            "provider.unreachable",
            "{status}"
        );
    }
    for (name, value) in [("x-ratelimit-remaining", "0"), ("retry-after", "60")] {
        fixture.network.respond(USER, move |_| {
            let header = (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
            Ok(FetchResponse {
                status: StatusCode::FORBIDDEN,
                headers: HeaderMap::from_iter([header]),
                body: Default::default(),
                sent: Default::default(),
            })
        });
        assert_eq!(
            check().await.unwrap_err().code(),
            "provider.unreachable",
            "{name}"
        );
    }
    fixture.network.fail(USER);
    assert_eq!(check().await.unwrap_err().code(), "provider.unreachable");
    let none = fixture
        .provider
        .check_with_access_token(&tokens(None, None))
        .await;
    assert_eq!(none, Ok(None));
}

/// Revocation deletes one token, with the credentials of the application.
#[tokio::test]
async fn a_token_is_deleted() {
    let fixture = fixture();
    let url = format!("https://api.github.com/applications/{CLIENT}/token");
    fixture.network.serve(&url, 204, "");
    let stored = tokens(Some("gho_1"), None);
    fixture.provider.revoke(&stored).await.unwrap();
    let request = fixture.last_request(&url::Url::parse(&url).unwrap());
    assert_eq!(request.method, Method::DELETE);
    assert_eq!(&*request.body, br#"{"access_token":"gho_1"}"#);
    assert!(request.headers[header::AUTHORIZATION].is_sensitive());
    fixture.network.serve(&url, 401, "");
    let error = fixture.provider.revoke(&stored).await.unwrap_err();
    assert_eq!(error.code(), "provider.application_rejected");
}

/// The API belongs to the address of the server.
#[tokio::test]
async fn the_api_is_that_of_the_server() {
    for (issuer, api) in [
        ("https://github.com", "https://api.github.com/user"),
        ("https://octo.ghe.com", "https://api.octo.ghe.com/user"),
        (
            "https://git.example.org",
            "https://git.example.org/api/v3/user",
        ),
    ] {
        let fixture = Fixture::new(ProviderKind::GitHub, issuer);
        let user = json!({ "id": 1, "login": "a" }).to_string();
        fixture.network.serve(api, 200, user);
        let checked = fixture
            .provider
            .check_with_access_token(&tokens(Some("t"), None))
            .await;
        assert!(checked.unwrap().is_some(), "{issuer}");
    }
    let error = super::kinds::settings_error(ProviderKind::GitHub, "https://github.com/o", |_| ());
    assert_eq!(error, Some(ProviderSettingsError::GitHubIssuer));
}
