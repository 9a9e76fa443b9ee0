//! The end of sessions, by DELETE and by the upstream, and identifiers of another server.

use portcullis_scenarios::{Deployment, RecordedRequest, Request, Upstream, call_message};
use serde_json::json;

/// E9: DELETE is forwarded with the upstream's identifier and ends the session. For the next DELETE
/// it is unknown.
#[tokio::test]
async fn by_delete() {
    let deployment = Deployment::start().await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let other = deployment.open_session(&token).await;
    let delete = || Request::delete(Deployment::ENDPOINT, &token, &session);
    let response = deployment.send(delete()).await;
    assert_eq!(response.status, 200, "{response:?}");

    let seen = deployment.upstream.last();
    assert_eq!(seen.method, http::Method::DELETE);
    assert!(
        seen.header("mcp-session-id")
            .unwrap()
            .starts_with("backend-")
    );
    assert_eq!(seen.target, "/backend");

    let before = deployment.upstream.count();
    for _ in 0..2 {
        let response = deployment.send(delete()).await;
        assert_eq!(response.status, 400, "{response:?}");
        assert_eq!(
            response.text().as_str(),
            "Invalid or missing session ID",
            "{response:?}"
        );
        deployment
            .portcullis
            .assert_denied(&response, "session.ended")
            .await;
    }
    deployment.echo(&token, &session).await.assert_no_session();
    assert_eq!(
        deployment.upstream.count(),
        before,
        "a request reached the upstream"
    );
    assert_eq!(
        deployment.echo(&token, &other).await.status,
        200,
        "other sessions continue"
    );
}

/// E9: the session ends even if the upstream does not support DELETE.
#[tokio::test]
async fn by_delete_at_an_upstream_without_it() {
    for status in [405, 404] {
        let script = move |request: &RecordedRequest| {
            (request.method == http::Method::DELETE).then(|| Upstream::response(status, &[], ""))
        };
        let deployment = Deployment::builder()
            .upstream(Upstream::scripted(script).await)
            .start()
            .await;
        let token = deployment.good_token();
        let session = deployment.open_session(&token).await;
        let response = deployment.delete_session(&token, &session).await;
        assert_eq!(response.status, 204, "{response:?}");
        deployment.echo(&token, &session).await.assert_no_session();
    }
}

/// E9: a DELETE ends the session even if the upstream fails. The DELETE to the upstream is then
/// repeated.
#[tokio::test]
async fn by_delete_at_an_upstream_that_fails() {
    for status in [500, 503, 403] {
        let script = move |request: &RecordedRequest| {
            (request.method == http::Method::DELETE).then(|| Upstream::response(status, &[], "no"))
        };
        let deployment = Deployment::builder()
            .upstream(Upstream::scripted(script).await)
            .start()
            .await;
        let token = deployment.good_token();
        let session = deployment.open_session(&token).await;
        let before = deployment.upstream.count();
        let response = deployment.delete_session(&token, &session).await;
        assert_eq!(response.status, 204, "{response:?}");
        assert_eq!(response.body.len(), 0, "{response:?}");
        deployment.echo(&token, &session).await.assert_no_session();
        deployment.upstream.wait_for_requests(before + 2).await;
        let seen = deployment.upstream.recorded().split_off(before);
        assert!(
            seen.iter().all(|seen| seen.method == http::Method::DELETE),
            "{seen:?}"
        );
        assert_eq!(
            seen[0].header("mcp-session-id"),
            seen[1].header("mcp-session-id")
        );
    }
}

/// E9: the upstream's 404 for the identifier ends the session. The end of a GET stream and other
/// statuses do not.
#[tokio::test]
async fn by_the_upstream() {
    let script = |request: &RecordedRequest| match request.message_method().as_deref() {
        Some("forgotten") => Some(Upstream::response(
            404,
            &[("content-type", "application/json")],
            "{}",
        )),
        Some("failing") => Some(Upstream::response(500, &[], "no")),
        Some("forbidden") => Some(Upstream::response(403, &[], "no")),
        _ => None,
    };
    let deployment = Deployment::builder()
        .upstream(Upstream::scripted(script).await)
        .start()
        .await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let send = async |method: &str| {
        let body = call_message(2, method, &json!({}));
        deployment
            .send(
                Request::post(Deployment::ENDPOINT, body)
                    .bearer(&token)
                    .session(&session),
            )
            .await
    };
    let get = || Request::listen(Deployment::ENDPOINT, &token, &session);
    assert_eq!(deployment.send(get()).await.status, 200);
    assert_eq!(send("failing").await.status, 500);
    assert_eq!(send("forbidden").await.status, 403);
    assert_eq!(send("echo").await.status, 200, "the session continues");
    assert_eq!(
        send("forgotten").await.status,
        404,
        "the upstream's response is forwarded"
    );

    send("echo").await.assert_ended_session();
    assert_eq!(deployment.send(get()).await.status, 404);
}

/// E5: an identifier of another server is unknown.
#[tokio::test]
async fn not_at_another_server() {
    let deployment = Deployment::start().await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let other = Deployment::start().await;
    other
        .echo(&other.good_token(), &session)
        .await
        .assert_no_session();
    assert_eq!(deployment.echo(&token, &session).await.status, 200);
}
