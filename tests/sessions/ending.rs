//! The end of sessions: by DELETE, by the upstream and by a restart.

use portcullis_scenarios::{Deployment, Recorded, Request, Upstream, call};
use serde_json::json;

fn post(token: &str, session: &str) -> Request {
    Request::post(Deployment::ENDPOINT, call(2, "echo", &json!({}))).bearer(token).session(session)
}

/// E9: DELETE is forwarded with the upstream's identifier and ends the session. For the next DELETE it is unknown.
#[tokio::test]
async fn by_delete() {
    let deployment = Deployment::start().await;
    let token = deployment.good_token();
    let (session, other) = (deployment.open_session(&token).await, deployment.open_session(&token).await);
    let delete = || Request::new("DELETE", Deployment::ENDPOINT).bearer(&token).session(&session);
    let answer = deployment.send(delete()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let seen = deployment.upstream.last();
    assert_eq!(seen.method, http::Method::DELETE);
    assert!(seen.header("mcp-session-id").unwrap().starts_with("backend-"));
    assert_eq!(seen.target, "/backend");

    let before = deployment.upstream.count();
    for _ in 0..2 {
        let answer = deployment.send(delete()).await;
        assert_eq!((answer.status, answer.text().as_str()), (400, "Invalid or missing session ID"), "{answer:?}");
        deployment.portcullis.assert_denied(&answer, "session.ended").await;
    }
    deployment.send(post(&token, &session)).await.assert_no_session();
    assert_eq!(deployment.upstream.count(), before, "a request reached the upstream");
    assert_eq!(deployment.send(post(&token, &other)).await.status, 200, "other sessions go on");
}

/// E9: the session ends even if the upstream does not support DELETE.
#[tokio::test]
async fn by_delete_at_a_backend_without_it() {
    for theirs in [405, 404] {
        let script = move |request: &Recorded| {
            (request.method == http::Method::DELETE).then(|| Upstream::answer(theirs, &[], ""))
        };
        let deployment = Deployment::builder().upstream(Upstream::scripted(script).await).start().await;
        let token = deployment.good_token();
        let session = deployment.open_session(&token).await;
        let answer =
            deployment.send(Request::new("DELETE", Deployment::ENDPOINT).bearer(&token).session(&session)).await;
        assert_eq!(answer.status, 204, "{answer:?}");
        deployment.send(post(&token, &session)).await.assert_no_session();
    }
}

/// E9: a DELETE ends the session even if the upstream fails. The DELETE to the upstream is then repeated.
#[tokio::test]
async fn by_delete_at_a_backend_that_fails() {
    for theirs in [500, 503, 403] {
        let script = move |request: &Recorded| {
            (request.method == http::Method::DELETE).then(|| Upstream::answer(theirs, &[], "no"))
        };
        let deployment = Deployment::builder().upstream(Upstream::scripted(script).await).start().await;
        let token = deployment.good_token();
        let session = deployment.open_session(&token).await;
        let before = deployment.upstream.count();
        let answer =
            deployment.send(Request::new("DELETE", Deployment::ENDPOINT).bearer(&token).session(&session)).await;
        assert_eq!((answer.status, answer.body.len()), (204, 0), "{answer:?}");
        deployment.send(post(&token, &session)).await.assert_no_session();
        deployment.upstream.reached(before + 2).await;
        let seen = deployment.upstream.recorded().split_off(before);
        assert!(seen.iter().all(|seen| seen.method == http::Method::DELETE), "{seen:?}");
        assert_eq!(seen[0].header("mcp-session-id"), seen[1].header("mcp-session-id"));
    }
}

/// E9: the upstream's 404 for the identifier ends the session. The end of a GET stream and other statuses do not.
#[tokio::test]
async fn by_the_backend() {
    let script = |request: &Recorded| match request.message_method().as_deref() {
        Some("forgotten") => Some(Upstream::answer(404, &[("content-type", "application/json")], "{}")),
        Some("failing") => Some(Upstream::answer(500, &[], "no")),
        Some("forbidden") => Some(Upstream::answer(403, &[], "no")),
        _ => None,
    };
    let deployment = Deployment::builder().upstream(Upstream::scripted(script).await).start().await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let send = async |method: &str| {
        let body = call(2, method, &json!({}));
        deployment.send(Request::post(Deployment::ENDPOINT, body).bearer(&token).session(&session)).await
    };
    let get = || {
        Request::new("GET", Deployment::ENDPOINT).header("Accept", "text/event-stream").bearer(&token).session(&session)
    };
    assert_eq!(deployment.send(get()).await.status, 200);
    assert_eq!(send("failing").await.status, 500);
    assert_eq!(send("forbidden").await.status, 403);
    assert_eq!(send("echo").await.status, 200, "the session continues");
    assert_eq!(send("forgotten").await.status, 404, "the backend's answer is passed on");
    send("echo").await.assert_no_session();
    assert_eq!(deployment.send(get()).await.status, 400);
}

/// E5: identifiers from before a restart are unknown.
#[tokio::test]
async fn by_a_restart() {
    let deployment = Deployment::start().await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let restarted = Deployment::start().await;
    restarted.send(post(&restarted.good_token(), &session)).await.assert_no_session();
    assert_eq!(deployment.send(post(&token, &session)).await.status, 200);
}
