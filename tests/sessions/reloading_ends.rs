//! Sessions that a changed configuration ends, even if they are late, in no table, or their end
//! cannot be written.

use std::sync::Arc;

use http::Method;
use parking_lot::Mutex;
use portcullis_scenarios::{
    AuthorizationServer, ChannelBody, INITIALIZE, RecordedRequest, ReloadableServer, Request,
    Signal, Upstream,
};

const ANSWER: &str =
    r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;

/// J10, E9: a session that a late response opens at the former upstream is ended there, and the new
/// upstream is sent nothing.
#[tokio::test]
async fn a_late_session_of_a_former_upstream() {
    let held = Arc::new(Mutex::new(None));
    let holding = Arc::clone(&held);
    let former = Upstream::scripted(move |request: &RecordedRequest| {
        (request.message_method().as_deref() == Some("initialize")).then(|| {
            let (sender, body) = ChannelBody::new();
            *holding.lock() = Some(sender);
            let headers = [
                ("content-type", "application/json"),
                ("mcp-session-id", "late"),
            ];
            Upstream::streaming(200, &headers, body)
        })
    })
    .await;
    let new = Upstream::start().await;
    let newest = Upstream::start().await;
    let reloading = ReloadableServer::start(former, "").await;
    let token = reloading.token(ReloadableServer::MCP);
    let address = reloading.portcullis.address();
    let opening = Request::post("/mcp", INITIALIZE).bearer(&token);
    let opening = tokio::spawn(async move { opening.send(address).await });
    reloading.upstream.wait_for_requests(1).await;
    let setting = reloading.upstream.setting();
    for upstream in [&new, &newest] {
        let line = reloading.reload(&[(&setting, &upstream.setting())]).await;
        assert_eq!(line["level"], "INFO", "{line}");
    }
    let sender = held.lock().take().unwrap();
    sender.send(ANSWER.into()).unwrap();
    drop(sender);
    let answer = opening.await.unwrap();
    let session = answer.header("mcp-session-id").unwrap();
    reloading.upstream.wait_for_requests(2).await;
    let deleted = reloading.upstream.last();
    assert_eq!(deleted.method, Method::DELETE);
    assert_eq!(deleted.header("mcp-session-id"), Some("late"));

    reloading
        .call("/mcp", &token, session)
        .await
        .assert_ended_session();
    assert_eq!(new.count(), 0);
    assert_eq!(newest.count(), 0);
    assert_eq!(reloading.upstream.count(), 2);
}

/// J10, E12: the sessions of an issuer that is removed from one resource end there, even those in
/// no table, and stay ended when it is added again. Those at the other resource continue.
#[tokio::test]
async fn an_issuer_removed_from_one_resource() {
    let second = AuthorizationServer::start(ReloadableServer::MCP);
    let table = format!(
        "[[issuer]]\nissuer = \"{}\"",
        second.test_issuer().issuer().as_str()
    );
    let reloading = ReloadableServer::start(Upstream::start().await, &table).await;
    let token = |resource: &str| {
        second
            .test_issuer()
            .token()
            .audience(resource)
            .scope("mcp:tools")
            .sign()
    };
    let mcp = token(ReloadableServer::MCP);
    let other = token(ReloadableServer::OTHER);
    let ended = reloading.open_session("/mcp", &mcp).await;
    let kept = reloading.open_session("/other", &other).await;
    let reloading = reloading.restart().await;
    let first = format!(
        "\"/mcp\"\nissuers = [\"{}\"]",
        reloading.issuer.test_issuer().issuer().as_str()
    );
    let line = reloading.reload(&[("\"/mcp\"", &first)]).await;
    assert_eq!(line["level"], "INFO", "{line}");
    assert_eq!(line["sessions.ended"], 0, "{line}");
    assert_eq!(reloading.call("/mcp", &mcp, &ended).await.status, 401);

    reloading.reload(&[]).await;
    reloading
        .call("/mcp", &mcp, &ended)
        .await
        .assert_ended_session();
    assert_eq!(reloading.call("/other", &other, &kept).await.status, 200);
    let reloading = reloading.restart().await;
    reloading
        .call("/mcp", &mcp, &ended)
        .await
        .assert_ended_session();
    let reopened = reloading.open_session("/mcp", &mcp).await;
    assert_eq!(reloading.call("/mcp", &mcp, &reopened).await.status, 200);
}

/// J10, E12: if the state directory cannot be written, a DELETE is answered 503, and the log and
/// the audit trail say that a removed resource's end is not recorded. In this process, the end
/// still applies.
#[tokio::test]
async fn an_end_that_cannot_be_recorded() {
    let reloading = ReloadableServer::start_limited(
        Upstream::start().await,
        "[audit]\ntarget = \"stdout\"",
        Some("-f 1"),
    )
    .await;
    let token = reloading.token(ReloadableServer::OTHER);
    let kept = reloading.open_session("/other", &token).await;
    let mut statuses = Vec::new();
    while statuses.last() != Some(&503) {
        assert!(statuses.len() < 100, "{statuses:?}");
        let session = reloading.open_session("/other", &token).await;
        let delete = Request::new("DELETE", "/other")
            .bearer(&token)
            .session(&session);
        statuses.push(reloading.send(delete).await.status);
    }
    assert_eq!(statuses[0], 200, "{statuses:?}");

    let line = reloading.reload(&[(reloading.other_resource(), "")]).await;
    assert_eq!(line["level"], "INFO", "{line}");
    let warning = reloading
        .portcullis
        .logged("session.end_not_recorded", |line| {
            line["ends.unrecorded"].is_number()
        })
        .await;
    assert_eq!(warning["level"], "WARN", "{warning}");
    assert_eq!(warning["ends.unrecorded"], 1, "{warning}");

    reloading.reload(&[]).await;
    reloading
        .call("/other", &token, &kept)
        .await
        .assert_ended_session();
    reloading.portcullis.signal(Signal::TERM);
    let audit = reloading.portcullis.wait().await.stdout;
    assert!(
        audit.contains("\"event\":\"session.end_not_recorded\",\"ends.unrecorded\":1"),
        "{audit}"
    );
}
