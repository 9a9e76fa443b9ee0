//! GitHub: the user API, GitHub Apps and the revocation of tokens.

use http::{Method, StatusCode};
use portcullis_devidp::{Provider, UserSettings};
use serde_json::{Value, json};

use crate::{sign_in::*, support::*};

async fn start(provider: Provider, claims: Value) -> Server {
    app_server(|settings| {
        settings.provider = Some(provider);
        settings.users = vec![UserSettings {
            name: "alice".to_owned(),
            claims: claims.as_object().unwrap().clone(),
        }];
    })
    .await
}

/// Signs in as GitHub's clients do, without `response_type` and `grant_type`, and returns the token
/// response.
async fn tokens(server: &Server, scope: &str) -> Value {
    let verifier = verifier();
    let request = encoded(&[
        ("client_id", APP),
        ("redirect_uri", APP_REDIRECT),
        ("scope", scope),
        ("code_challenge", verifier.challenge()),
        ("code_challenge_method", "S256"),
    ]);
    let response = server
        .get(&format!("/login/oauth/authorize?{request}"))
        .await;
    let code = response.redirect_parameter("code").unwrap();
    exchange(
        server,
        &[("code", &code), ("code_verifier", verifier.secret())],
    )
    .await
}

async fn exchange(server: &Server, parameters: &[(&str, &str)]) -> Value {
    let credentials = app_credentials();
    let headers = [
        FORM,
        ("authorization", &*credentials),
        ("accept", "application/json"),
    ];
    let form = encoded(parameters);
    let response = server
        .send(Method::POST, "/login/oauth/access_token", &headers, &form)
        .await;
    assert_eq!(response.status, StatusCode::OK);
    serde_json::from_str(&response.body).unwrap()
}

/// Sends a request to the API, and returns its status and its JSON body.
async fn api(server: &Server, path: &str, token: &str) -> (StatusCode, Value) {
    let authorization = format!("Bearer {token}");
    let headers = [
        ("authorization", &*authorization),
        ("user-agent", "tests"),
        ("accept", "application/vnd.github+json"),
    ];
    let response = server.send(Method::GET, path, &headers, "").await;
    (
        response.status,
        serde_json::from_str(&response.body).unwrap(),
    )
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap()
}

/// K1: the user has a numeric identifier, and organizations for the scope that needs them.
#[tokio::test]
async fn the_api_says_who_the_user_is() {
    let claims = json!({ "id": 583231, "login": "octocat", "orgs": ["octo-org", "other"], "teams": ["octo-org/dev"] });
    let server = start(Provider::GitHub, claims).await;
    let granted = tokens(&server, "read:user read:org").await;
    assert_eq!(granted["scope"], "read:org,read:user");
    assert_eq!(granted.get("id_token"), None);
    let token = text(&granted, "access_token");
    for prefix in ["", "/api/v3"] {
        let (status, user) = api(&server, &format!("{prefix}/user"), token).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(user["id"], 583231);
        assert_eq!(user["login"], "octocat");
        assert_eq!(user["email"], Value::Null);
        let (_, orgs) = api(&server, &format!("{prefix}/user/orgs"), token).await;
        assert_eq!(orgs[0]["login"], "octo-org");
        assert_eq!(orgs[1]["login"], "other");
        assert!(orgs[0]["id"].is_u64());
    }
    let (_, teams) = api(&server, "/user/teams", token).await;
    assert_eq!(teams[0]["slug"], "dev");
    assert_eq!(teams[0]["organization"]["login"], "octo-org");

    let granted = tokens(&server, "user:email").await;
    let token = text(&granted, "access_token");
    let (_, emails) = api(&server, "/user/emails", token).await;
    assert_eq!(emails[0]["email"], "alice@example.com");
    assert_eq!(emails[0]["primary"], true);
    for path in ["/user/orgs", "/user/teams"] {
        let (status, _) = api(&server, path, token).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{path}");
    }
}

/// K1: a list has pages, and `Link` names the next one.
#[tokio::test]
async fn lists_have_pages() {
    let orgs: Vec<_> = (0..31).map(|n| format!("org-{n}")).collect();
    let server = start(Provider::GitHub, json!({ "orgs": orgs })).await;
    let granted = tokens(&server, "read:org").await;
    let authorization = format!("token {}", text(&granted, "access_token"));
    let headers = [("authorization", &*authorization), ("user-agent", "tests")];
    let first = server.send(Method::GET, "/user/orgs", &headers, "").await;
    let list: Vec<Value> = serde_json::from_str(&first.body).unwrap();
    assert_eq!(list.len(), 30);
    let next = first.header("link").unwrap();
    let (url, rest) = next.strip_prefix('<').unwrap().split_once('>').unwrap();
    assert_eq!(rest, "; rel=\"next\"");
    let path = url
        .strip_prefix(&format!("http://{}", server.address))
        .unwrap();
    let second = server.send(Method::GET, path, &headers, "").await;
    let list: Vec<Value> = serde_json::from_str(&second.body).unwrap();
    assert_eq!(list.len(), 1);
    assert_eq!(second.header("link"), None);
    assert_eq!(second.header("x-oauth-scopes"), Some("read:org"));
}

/// K1: the API rejects what GitHub rejects.
#[tokio::test]
async fn the_api_rejects_other_requests() {
    let server = start(Provider::GitHub, json!({})).await;
    let granted = tokens(&server, "read:user").await;
    let valid = format!("Bearer {}", text(&granted, "access_token"));
    let agent = ("user-agent", "tests");
    for (headers, status) in [
        (&[("authorization", &*valid), agent][..], StatusCode::OK),
        (&[("authorization", &*valid)], StatusCode::FORBIDDEN),
        (&[agent], StatusCode::UNAUTHORIZED),
        (
            &[("authorization", "Bearer gho_wrong"), agent],
            StatusCode::UNAUTHORIZED,
        ),
        (
            &[("authorization", "Basic YTpi"), agent],
            StatusCode::UNAUTHORIZED,
        ),
        (
            &[("authorization", &*valid), agent, ("accept", "text/html")],
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ),
    ] {
        let response = server.send(Method::GET, "/user", headers, "").await;
        assert_eq!(response.status, status, "{headers:?}");
    }
    for provider in [None, Some(Provider::Okta)] {
        let server = app_server(|settings| settings.provider = provider).await;
        let response = server.get("/user").await;
        assert_eq!(response.status, StatusCode::NOT_FOUND, "{provider:?}");
    }
}

/// K1: a GitHub App gets tokens that expire and refresh tokens that are replaced.
#[tokio::test]
async fn tokens_of_a_github_app_expire() {
    let server = start(Provider::GitHubApp, json!({ "orgs": ["octo-org"] })).await;
    let granted = tokens(&server, "read:org").await;
    assert!(text(&granted, "access_token").starts_with("ghu_"));
    assert_eq!(granted["expires_in"], 300);
    assert_eq!(granted["refresh_token_expires_in"], 24 * 60 * 60);
    assert_eq!(granted["scope"], "");
    let (status, orgs) = api(&server, "/user/orgs", text(&granted, "access_token")).await;
    assert_eq!(
        (status, &orgs[0]["login"]),
        (StatusCode::OK, &json!("octo-org"))
    );

    let first = text(&granted, "refresh_token");
    assert!(first.starts_with("ghr_"));
    let refresh = async |token: &str| {
        let request = [("grant_type", "refresh_token"), ("refresh_token", token)];
        exchange(&server, &request).await
    };
    let refreshed = refresh(first).await;
    assert!(text(&refreshed, "refresh_token").starts_with("ghr_"));
    assert_ne!(refreshed["refresh_token"], *first);
    for wrong in [first, "ghr_wrong", &first[4..]] {
        assert_eq!(
            refresh(wrong).await["error"],
            "bad_refresh_token",
            "{wrong}"
        );
    }
}

/// K1: an application revokes its own tokens, and no other client can.
#[tokio::test]
async fn an_application_revokes_its_tokens() {
    let server = start(Provider::GitHub, json!({})).await;
    let other = "Basic b3RoZXI6c2VjcmV0";
    let own = app_credentials();
    for kind in ["token", "grant"] {
        let granted = tokens(&server, "read:user").await;
        let token = text(&granted, "access_token");
        let body = json!({ "access_token": token }).to_string();
        let path = format!("/applications/{APP}/{kind}");
        let delete = async |authorization: &str, path: &str, body: &str| {
            let headers = [
                JSON,
                ("user-agent", "tests"),
                ("authorization", authorization),
            ];
            let response = server.send(Method::DELETE, path, &headers, body).await;
            response.status
        };
        assert_eq!(delete(other, &path, &body).await, StatusCode::NOT_FOUND);
        let elsewhere = format!("/applications/other/{kind}");
        assert_eq!(delete(&own, &elsewhere, &body).await, StatusCode::NOT_FOUND);
        assert_eq!(
            delete(&own, &path, "{}").await,
            StatusCode::UNPROCESSABLE_ENTITY
        );
        assert_eq!(api(&server, "/user", token).await.0, StatusCode::OK);

        assert_eq!(delete(&own, &path, &body).await, StatusCode::NO_CONTENT);
        assert_eq!(
            api(&server, "/user", token).await.0,
            StatusCode::UNAUTHORIZED
        );
        assert_eq!(delete(&own, &path, &body).await, StatusCode::NOT_FOUND);
    }
}
