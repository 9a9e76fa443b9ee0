//! A session identifier of another owner gets the response for an unknown one.

use portcullis_metadata::SystemClock;
use portcullis_scenarios::{Deployment, HttpResponse, Request, Scratch, call_message};
use portcullis_testkit::TestIssuer;
use serde_json::json;

const OTHER: &str = "https://other.example";

async fn attempts(deployment: &Deployment, token: &str, session: &str) -> [HttpResponse; 3] {
    let post = Request::post(
        Deployment::ENDPOINT,
        call_message(7, "tools/list", &json!({})),
    )
    .bearer(token)
    .session(session);
    let get = Request::listen(Deployment::ENDPOINT, token, session);
    let delete = Request::delete(Deployment::ENDPOINT, token, session);
    [
        deployment.send(post).await,
        deployment.send(get).await,
        deployment.send(delete).await,
    ]
}

/// Returns the parts of a response, without the request id and the date.
fn comparable(response: &HttpResponse) -> (u16, Vec<(String, String)>, String) {
    let headers = response
        .headers
        .iter()
        .filter(|(name, _)| name != "x-request-id" && name != "date")
        .cloned()
        .collect();
    (response.status, headers, response.text())
}

/// E7: another subject, client or issuer gets the same response as for an unknown identifier, and
/// does not affect the session.
#[tokio::test]
async fn the_same_response_as_for_an_unknown_session() {
    let other = TestIssuer::new(OTHER)
        .with_resource(Deployment::RESOURCE)
        .with_clock(SystemClock::new());
    let keys = Scratch::file("other.json", &other.jwks_json());
    let table = format!(
        "[[issuer]]\nissuer = \"{OTHER}\"\njwks_file = \"{}\"",
        keys.as_str()
    );
    let deployment = Deployment::builder().tables(table).start().await;
    let owner = deployment.token().subject("alice").client_id("one");
    let session = deployment.open_session(&owner.sign()).await;
    let before = deployment.upstream.count();

    for (case, token) in [
        (
            "another subject",
            deployment
                .token()
                .subject("mallory")
                .client_id("one")
                .sign(),
        ),
        (
            "another letter case",
            deployment.token().subject("Alice").client_id("one").sign(),
        ),
        (
            "a trailing space",
            deployment.token().subject("alice ").client_id("one").sign(),
        ),
        (
            "another client",
            deployment.token().subject("alice").client_id("two").sign(),
        ),
        (
            "no client",
            deployment
                .token()
                .subject("alice")
                .without("client_id")
                .sign(),
        ),
        (
            "the same names at another issuer",
            other
                .token()
                .scope("mcp:tools")
                .subject("alice")
                .client_id("one")
                .sign(),
        ),
    ] {
        let foreign = attempts(&deployment, &token, &session).await;
        foreign[0].assert_no_session();
        for response in &foreign[1..] {
            assert_eq!(response.status, 400, "{case}: {response:?}");
            assert_eq!(
                response.header("content-type"),
                Some("text/plain; charset=utf-8"),
                "{case}"
            );
            assert_eq!(response.text(), "Invalid or missing session ID", "{case}");
        }
        let made_up = "A".repeat(session.len());
        let unknown = attempts(&deployment, &token, &made_up).await;
        for (foreign, unknown) in foreign.iter().zip(&unknown) {
            assert_eq!(
                comparable(foreign),
                comparable(unknown),
                "{case}: the responses differ"
            );
            deployment
                .portcullis
                .assert_denied(foreign, "session.unknown")
                .await;
        }
    }
    assert_eq!(
        deployment.upstream.count(),
        before,
        "a request reached the upstream"
    );

    let response = deployment
        .send(
            Request::post(
                Deployment::ENDPOINT,
                call_message(8, "tools/list", &json!({})),
            )
            .bearer(&owner.sign())
            .session(&session),
        )
        .await;
    assert_eq!(response.status, 200, "the session continues: {response:?}");
}

/// E7: a session identifier does not replace a token: a missing or invalid token gets 401.
#[tokio::test]
async fn a_session_identifier_is_not_a_credential() {
    let deployment = Deployment::start().await;
    let session = deployment.open_session(&deployment.good_token()).await;
    let before = deployment.upstream.count();
    for method in ["POST", "GET", "DELETE"] {
        let request = Request::new(method, Deployment::ENDPOINT).session(&session);
        assert_eq!(
            deployment.send(request.clone()).await.assert_unauthorized(),
            None,
            "{method}"
        );
        let expired = request.bearer(&deployment.token().expires_in(-60).sign());
        assert_eq!(
            deployment.send(expired).await.assert_unauthorized(),
            Some("invalid_token"),
            "{method}"
        );
    }
    assert_eq!(
        deployment.upstream.count(),
        before,
        "a request reached the upstream"
    );
}

/// E7: owners with concatenated or shifted fields are different.
#[tokio::test]
async fn owners_cannot_be_confused() {
    let deployment = Deployment::start().await;
    let session = deployment
        .open_session(&deployment.token().subject("alice").client_id("bob").sign())
        .await;
    for token in [
        deployment
            .token()
            .subject("alicebob")
            .without("client_id")
            .sign(),
        deployment
            .token()
            .subject("alice\u{0}bob")
            .without("client_id")
            .sign(),
        deployment.token().subject("bob").client_id("alice").sign(),
        deployment.token().subject("").client_id("alicebob").sign(),
    ] {
        let response = attempts(&deployment, &token, &session).await;
        response[0].assert_no_session();
    }
}
