//! Sessions that continue in a process that did not open them.

use std::time::Duration;

use portcullis_scenarios::{Deployment, RecordedRequest, Request, Scratch, Upstream, call_message};
use serde_json::json;
use tokio::time::sleep;

const KEY: &str = "a-key-of-the-deployment-0123456789abcdef";
const OTHER_KEY: &str = "the-key-of-another-one-0123456789abcdef0";

/// Replicas that share an upstream and session keys.
struct Replicas {
    keys: Scratch,
    session_settings: String,
}

impl Replicas {
    fn new(session_settings: &str) -> Self {
        Self {
            keys: Scratch::file("session-keys", KEY),
            session_settings: session_settings.to_owned(),
        }
    }

    fn tables(&self) -> String {
        format!(
            "[session]\nended_status = 404\nkeys = [{{ file = \"{}\" }}]\n{}",
            self.keys.as_str(),
            self.session_settings
        )
    }

    async fn first(&self, upstream: Upstream) -> Deployment {
        Deployment::builder()
            .upstream(upstream)
            .tables(self.tables())
            .start()
            .await
    }

    async fn next(&self, first: &Deployment) -> Deployment {
        Deployment::builder()
            .upstream_setting(first.upstream.setting())
            .tables(self.tables())
            .start()
            .await
    }
}

fn upstream_session(deployment: &Deployment) -> String {
    deployment
        .upstream
        .last()
        .header("mcp-session-id")
        .unwrap()
        .to_owned()
}

/// E12: a replica with the same keys continues a session that another one opened: with the same
/// upstream session and revision, and only for its owner. A DELETE ends the session.
#[tokio::test]
async fn at_another_replica() {
    let replicas = Replicas::new("");
    let first = replicas.first(Upstream::start().await).await;
    let second = replicas.next(&first).await;
    let session = first.open_session(&first.good_token()).await;
    assert!(session.len() <= 512, "{session}");
    assert_eq!(first.echo(&first.good_token(), &session).await.status, 200);

    let theirs = upstream_session(&first);

    let before = first.upstream.count();
    for stranger in [
        second.token().subject("mallory").sign(),
        second.token().client_id("other").sign(),
    ] {
        second.echo(&stranger, &session).await.assert_no_session();
    }
    assert_eq!(
        first.upstream.count(),
        before,
        "a request reached the upstream"
    );

    let token = second.good_token();
    assert_eq!(second.echo(&token, &session).await.status, 200);
    assert_eq!(upstream_session(&first), theirs);
    second
        .portcullis
        .logged("session continued", |_| true)
        .await;
    let get = Request::new("GET", Deployment::ENDPOINT)
        .header("Accept", "text/event-stream")
        .bearer(&token);
    assert_eq!(second.send(get.session(&session)).await.status, 200);
    assert_eq!(
        first.echo(&first.good_token(), &session).await.status,
        200,
        "the first replica continues, too"
    );

    let delete = Request::delete(Deployment::ENDPOINT, &token, &session);
    assert_eq!(second.send(delete).await.status, 200);
    assert_eq!(upstream_session(&first), theirs);
    second
        .echo(&token, &session)
        .await
        .assert_rpc_error(404, -32000);
    let log = second.portcullis.log();
    assert!(!log.contains(&session), "an identifier is in the log");
    assert!(!log.contains(&theirs), "an identifier is in the log");
}

/// E12: a shutdown does not end sessions that the next process continues. Without shared keys and a
/// state directory, it ends them upstream.
#[tokio::test]
async fn after_a_restart() {
    for is_shared in [true, false] {
        let replicas = Replicas::new("");
        let upstream = Upstream::start().await;
        let setting = upstream.setting();
        let tables = if is_shared {
            replicas.tables()
        } else {
            String::new()
        };
        let builder = || {
            Deployment::builder()
                .top("state_dir = \"off\"")
                .tables(tables.clone())
        };
        let start = || builder().upstream_setting(setting.clone()).start();
        let deployment = start().await;
        let session = deployment.open_session(&deployment.good_token()).await;
        assert_eq!(deployment.portcullis.stop().await.code, Some(0));
        let deleted = |seen: &RecordedRequest| seen.method == http::Method::DELETE;
        assert_eq!(upstream.recorded().iter().any(deleted), !is_shared);

        let deployment = start().await;
        let response = deployment.echo(&deployment.good_token(), &session).await;
        if is_shared {
            assert_eq!(response.status, 200, "{response:?}");
            assert!(
                upstream
                    .last()
                    .header("mcp-session-id")
                    .is_some_and(|theirs| theirs.starts_with("backend-"))
            );
        } else {
            response.assert_no_session();
        }
    }
}

/// E8, E12: a token with other scopes gets the same new identifier at each replica, and each
/// replica knows it.
#[tokio::test]
async fn with_one_successor() {
    let replicas = Replicas::new("");
    let first = replicas.first(Upstream::start().await).await;
    let second = replicas.next(&first).await;
    let session = first.open_session(&first.good_token()).await;
    let wide = |deployment: &Deployment| deployment.token().scope("mcp:tools mcp:admin").sign();
    let next = async |deployment: &Deployment| {
        let response = deployment.echo(&wide(deployment), &session).await;
        assert_eq!(response.status, 200, "{response:?}");
        response.header("mcp-session-id").unwrap().to_owned()
    };
    let successor = next(&second).await;
    assert_eq!(next(&first).await, successor);

    for deployment in [&first, &second] {
        for identifier in [&session, &successor] {
            assert_eq!(
                deployment.echo(&wide(deployment), identifier).await.status,
                200
            );
        }
    }
}

/// E9, E12: a session that continues takes capacity like a new one. At the owner's limit, the
/// owner's least recently used session ends. At the total limit, the request gets 503, and the
/// session can continue later.
#[tokio::test]
async fn within_the_limits() {
    let replicas = Replicas::new("max_per_owner = 2\nmax_total = 3");
    let first = replicas.first(Upstream::start().await).await;
    let alice = first.good_token();
    let sessions = [
        first.open_session(&alice).await,
        first.open_session(&alice).await,
    ];
    let second = replicas.next(&first).await;
    let alice = second.good_token();
    let bob = second.token().subject("bob").sign();
    for session in &sessions {
        assert_eq!(second.echo(&alice, session).await.status, 200);
        // Last uses are compared in milliseconds.
        sleep(Duration::from_millis(2)).await;
    }
    let newer = second.open_session(&alice).await;
    second
        .echo(&alice, &sessions[0])
        .await
        .assert_rpc_error(404, -32000);
    for session in [&sessions[1], &newer] {
        assert_eq!(second.echo(&alice, session).await.status, 200);
    }

    let third = replicas.next(&first).await;
    let alice = third.good_token();
    let carol = third.token().subject("carol").sign();
    let bobs = third.open_session(&bob_of(&third)).await;
    for _ in 0..2 {
        third.open_session(&carol).await;
    }
    let response = third.echo(&alice, &newer).await;
    response.assert_rpc_error(503, -32603);
    assert_eq!(response.header("retry-after"), Some("30"), "{response:?}");
    third
        .portcullis
        .assert_denied(&response, "session.store_full")
        .await;

    let delete = Request::delete(Deployment::ENDPOINT, &bob_of(&third), &bobs);
    assert_eq!(third.send(delete).await.status, 200);
    assert_eq!(third.echo(&alice, &newer).await.status, 200);
    assert_eq!(second.try_token(&bob).await.status, 200);
}

fn bob_of(deployment: &Deployment) -> String {
    deployment.token().subject("bob").sign()
}

/// E12: if the upstream's identifier is too long to be sealed, the session works, but ends with its
/// process. One warning is logged.
#[tokio::test]
async fn not_with_a_long_upstream_identifier() {
    let long = "x".repeat(292);
    let script = {
        let long = long.clone();
        move |request: &RecordedRequest| {
            let headers = [
                ("content-type", "application/json"),
                ("mcp-session-id", long.as_str()),
            ];
            let result = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}"#;
            (request.message_method().as_deref() == Some("initialize"))
                .then(|| Upstream::response(200, &headers, result))
        }
    };
    let replicas = Replicas::new("");
    let first = replicas.first(Upstream::scripted(script).await).await;
    let token = first.good_token();
    let sessions = [
        first.open_session(&token).await,
        first.open_session(&token).await,
    ];
    for session in &sessions {
        assert_eq!(first.echo(&token, session).await.status, 200);
        assert_eq!(upstream_session(&first), long);
    }
    first
        .portcullis
        .logged("its sessions end with this process", |line| {
            line["level"] == "WARN"
        })
        .await;
    assert_eq!(
        first
            .portcullis
            .log()
            .matches("its sessions end with this process")
            .count(),
        1
    );

    let second = replicas.next(&first).await;
    let before = first.upstream.count();
    second
        .echo(&second.good_token(), &sessions[0])
        .await
        .assert_rpc_error(404, -32000);
    assert_eq!(
        first.upstream.count(),
        before,
        "a request reached the upstream"
    );
}

/// E9, E12: the upstream's 404 ends a session at a replica that has not opened it.
#[tokio::test]
async fn until_the_upstream_has_forgotten_it() {
    let script = |request: &RecordedRequest| {
        let is_forgotten = request.message_method().as_deref() == Some("forgotten");
        is_forgotten.then(|| Upstream::response(404, &[("content-type", "application/json")], "{}"))
    };
    let replicas = Replicas::new("");
    let first = replicas.first(Upstream::scripted(script).await).await;
    let second = replicas.next(&first).await;
    let session = first.open_session(&first.good_token()).await;
    let token = second.good_token();
    let post = Request::post(
        Deployment::ENDPOINT,
        call_message(2, "forgotten", &json!({})),
    )
    .bearer(&token)
    .session(&session);
    assert_eq!(second.send(post).await.status, 404);
    second
        .echo(&token, &session)
        .await
        .assert_rpc_error(404, -32000);
}

/// E12: a session does not continue with another key or another upstream.
#[tokio::test]
async fn not_with_another_key_or_upstream() {
    let replicas = Replicas::new("");
    let first = replicas.first(Upstream::start().await).await;
    let session = first.open_session(&first.good_token()).await;
    let moved = Deployment::builder()
        .tables(replicas.tables())
        .start()
        .await;
    moved
        .echo(&moved.good_token(), &session)
        .await
        .assert_rpc_error(404, -32000);
    assert!(
        moved.upstream.recorded().is_empty(),
        "a request reached the other upstream"
    );
    std::fs::write(replicas.keys.path(), OTHER_KEY).unwrap();
    let other = replicas.next(&first).await;
    let before = first.upstream.count();
    other
        .echo(&other.good_token(), &session)
        .await
        .assert_no_session();
    assert_eq!(
        first.upstream.count(),
        before,
        "a request reached the upstream"
    );
}
