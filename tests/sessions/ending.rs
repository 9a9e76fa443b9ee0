//! How sessions end.

use portcullis_scenarios::{Recorded, Request, Site, Upstream, call};
use serde_json::json;

fn post(token: &str, session: &str) -> Request {
    Request::post(Site::ENDPOINT, call(2, "echo", &json!({}))).bearer(token).session(session)
}

/// E9: DELETE is passed on with the backend's identifier and ends the session; the next DELETE knows nothing of it.
#[tokio::test]
async fn by_delete() {
    let site = Site::start().await;
    let token = site.good_token();
    let (session, other) = (site.open_session(&token).await, site.open_session(&token).await);
    let delete = || Request::new("DELETE", Site::ENDPOINT).bearer(&token).session(&session);
    let answer = site.send(delete()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let seen = site.upstream.last();
    assert_eq!(seen.method, http::Method::DELETE);
    assert!(seen.header("mcp-session-id").unwrap().starts_with("backend-"));
    assert_eq!(seen.target, "/backend");

    let before = site.upstream.count();
    for _ in 0..2 {
        let answer = site.send(delete()).await;
        assert_eq!((answer.status, answer.text().as_str()), (400, "Invalid or missing session ID"), "{answer:?}");
        site.portcullis.assert_denied(&answer, "session.ended").await;
    }
    site.send(post(&token, &session)).await.assert_no_session();
    assert_eq!(site.upstream.count(), before, "a request reached the upstream");
    assert_eq!(site.send(post(&token, &other)).await.status, 200, "other sessions go on");
}

/// E9: a backend that lets no client end sessions does not keep ours from ending.
#[tokio::test]
async fn by_delete_at_a_backend_without_it() {
    for theirs in [405, 404] {
        let script = move |request: &Recorded| {
            (request.method == http::Method::DELETE).then(|| Upstream::answer(theirs, &[], ""))
        };
        let site = Site::builder().upstream(Upstream::scripted(script).await).start().await;
        let token = site.good_token();
        let session = site.open_session(&token).await;
        let answer = site.send(Request::new("DELETE", Site::ENDPOINT).bearer(&token).session(&session)).await;
        assert_eq!(answer.status, 204, "{answer:?}");
        site.send(post(&token, &session)).await.assert_no_session();
    }
}

/// E9: a DELETE ends the session whatever happens to it behind the gateway; a backend that failed is asked again.
#[tokio::test]
async fn by_delete_at_a_backend_that_fails() {
    for theirs in [500, 503, 403] {
        let script = move |request: &Recorded| {
            (request.method == http::Method::DELETE).then(|| Upstream::answer(theirs, &[], "no"))
        };
        let site = Site::builder().upstream(Upstream::scripted(script).await).start().await;
        let token = site.good_token();
        let session = site.open_session(&token).await;
        let before = site.upstream.count();
        let answer = site.send(Request::new("DELETE", Site::ENDPOINT).bearer(&token).session(&session)).await;
        assert_eq!((answer.status, answer.body.len()), (204, 0), "{answer:?}");
        site.send(post(&token, &session)).await.assert_no_session();
        site.upstream.reached(before + 2).await;
        let seen = site.upstream.recorded().split_off(before);
        assert!(seen.iter().all(|seen| seen.method == http::Method::DELETE), "{seen:?}");
        assert_eq!(seen[0].header("mcp-session-id"), seen[1].header("mcp-session-id"));
    }
}

/// E9: the backend's 404 to the identifier ends the session; the end of a GET stream does not, and no other status.
#[tokio::test]
async fn by_the_backend() {
    let script = |request: &Recorded| match request.message_method().as_deref() {
        Some("forgotten") => Some(Upstream::answer(404, &[("content-type", "application/json")], "{}")),
        Some("failing") => Some(Upstream::answer(500, &[], "no")),
        Some("forbidden") => Some(Upstream::answer(403, &[], "no")),
        _ => None,
    };
    let site = Site::builder().upstream(Upstream::scripted(script).await).start().await;
    let token = site.good_token();
    let session = site.open_session(&token).await;
    let send = async |method: &str| {
        let body = call(2, method, &json!({}));
        site.send(Request::post(Site::ENDPOINT, body).bearer(&token).session(&session)).await
    };
    let get =
        || Request::new("GET", Site::ENDPOINT).header("Accept", "text/event-stream").bearer(&token).session(&session);
    assert_eq!(site.send(get()).await.status, 200);
    assert_eq!(send("failing").await.status, 500);
    assert_eq!(send("forbidden").await.status, 403);
    assert_eq!(send("echo").await.status, 200, "the session goes on");
    assert_eq!(send("forgotten").await.status, 404, "the backend's answer is passed on");
    send("echo").await.assert_no_session();
    assert_eq!(site.send(get()).await.status, 400);
}

/// E5: identifiers of before a restart are unknown ones.
#[tokio::test]
async fn by_a_restart() {
    let site = Site::start().await;
    let token = site.good_token();
    let session = site.open_session(&token).await;
    let restarted = Site::start().await;
    restarted.send(post(&restarted.good_token(), &session)).await.assert_no_session();
    assert_eq!(site.send(post(&token, &session)).await.status, 200);
}
