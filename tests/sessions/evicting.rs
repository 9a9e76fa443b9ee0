//! Eviction of sessions at an owner's limit.

use std::{fs, sync::Arc, time::Duration};

use bytes::Bytes;
use http::Method;
use parking_lot::Mutex;
use portcullis_scenarios::{
    ChannelBody, Connection, Deployment, HttpResponse, INITIALIZE, RecordedRequest, Request,
    Scratch, Upstream,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::mpsc::{self, UnboundedSender},
    time::sleep,
};

use crate::leftovers::{assert_accepted_soon, head, next};

fn limited(max_per_owner: usize) -> String {
    format!("[session]\nmax_per_owner = {max_per_owner}")
}

fn assert_full(response: &HttpResponse) {
    response.assert_rpc_error(503, -32603);
    assert_eq!(response.header("retry-after"), Some("30"), "{response:?}");
    assert_eq!(response.count("mcp-session-id"), 0, "{response:?}");
}

/// Starts a deployment whose upstream keeps each GET stream open until its sender is dropped.
async fn streaming_deployment(
    max_per_owner: usize,
) -> (Arc<Mutex<Vec<UnboundedSender<Bytes>>>>, Deployment) {
    let streams = Arc::new(Mutex::new(Vec::new()));
    let opened = Arc::clone(&streams);
    let script = move |request: &RecordedRequest| {
        if request.method != Method::GET {
            return None;
        }
        let (sender, body) = ChannelBody::new();
        sender.send(": open\n\n".into()).unwrap();
        opened.lock().push(sender);
        Some(Upstream::streaming(
            200,
            &[("content-type", "text/event-stream")],
            body,
        ))
    };
    let upstream = Upstream::scripted(script).await;
    (
        streams,
        Deployment::builder()
            .upstream(upstream)
            .tables(limited(max_per_owner))
            .start()
            .await,
    )
}

/// Opens a stream of a session, which lasts as long as the returned connection.
async fn stream(deployment: &Deployment, token: &str, session: &str) -> Connection {
    let mut connection = Connection::open(deployment.portcullis.address()).await;
    let get = Request::listen(Deployment::ENDPOINT, token, session);
    connection.write(&get.to_bytes()).await;
    assert_eq!(connection.head().await.unwrap().status, 200);
    connection
}

/// E9, J4: a client that opens a session for each task and deletes none is never rejected. Each
/// time, the least recently used session ends, which is audited, and it is ended at the upstream.
#[tokio::test]
async fn a_session_for_each_task() {
    const TASKS: usize = 200;
    const MAX: usize = 5;
    let audit = Scratch::path_for("audit.jsonl");
    let tables = format!(
        "{}\n[audit]\ntarget = {{ file = \"{}\" }}",
        limited(MAX),
        audit.as_str()
    );
    let deployment = Deployment::builder()
        .top("state_dir = \"off\"")
        .tables(tables)
        .start()
        .await;
    let token = deployment.good_token();
    let mut sessions = Vec::new();
    for _ in 0..TASKS {
        sessions.push(deployment.open_session(&token).await);
        // Last uses are compared in milliseconds.
        sleep(Duration::from_millis(2)).await;
    }
    let (evicted, kept) = sessions.split_at(TASKS - MAX);
    for session in kept {
        assert_eq!(deployment.echo(&token, session).await.status, 200);
    }
    for session in [&evicted[0], &evicted[evicted.len() - 1]] {
        let response = deployment.echo(&token, session).await;
        response.assert_ended_session();
        deployment
            .portcullis
            .assert_denied(&response, "session.ended")
            .await;
    }

    // Each `initialize`, the five uses, and a DELETE for each evicted session.
    deployment
        .upstream
        .wait_for_requests(TASKS + MAX + evicted.len())
        .await;
    assert_eq!(deployment.upstream.count_of(&Method::DELETE), evicted.len());
    assert_eq!(deployment.portcullis.stop().await.code, Some(0));

    let records = fs::read_to_string(audit.path()).unwrap();
    let ended = |reason: &str| {
        records
            .matches(&format!("\"session.reason\":\"{reason}\""))
            .count()
    };
    assert_eq!(ended("evicted"), evicted.len());
    assert_eq!(ended("shutdown"), MAX);
}

/// E9: sessions with an open stream or a request in progress are not evicted. When all are in use,
/// new ones get 503 with `Retry-After` before anything is sent to the upstream. Other owners are
/// not affected.
#[tokio::test]
async fn sessions_in_use() {
    let (streams, deployment) = streaming_deployment(2).await;
    let alice = deployment.token().subject("alice").sign();
    let bob = deployment.token().subject("bob").sign();
    let bobs = [
        deployment.open_session(&bob).await,
        deployment.open_session(&bob).await,
    ];
    let sessions = [
        deployment.open_session(&alice).await,
        deployment.open_session(&alice).await,
    ];
    let _first = stream(&deployment, &alice, &sessions[0]).await;
    let third = deployment.open_session(&alice).await;
    deployment
        .echo(&alice, &sessions[1])
        .await
        .assert_ended_session();
    let _third = stream(&deployment, &alice, &third).await;
    deployment
        .portcullis
        .logged("session ended", |line| line["session.reason"] == "evicted")
        .await;

    let before = deployment.upstream.count();
    let response = deployment.try_token(&alice).await;
    assert_full(&response);
    deployment
        .portcullis
        .assert_denied(&response, "session.owner_full")
        .await;
    assert!(
        deployment.upstream.recorded()[before..]
            .iter()
            .all(|seen| seen.method == Method::DELETE),
        "the `initialize` reached the upstream"
    );

    for session in &bobs {
        assert_eq!(deployment.echo(&bob, session).await.status, 200);
    }
    for session in [&sessions[0], &third] {
        assert_eq!(deployment.echo(&alice, session).await.status, 200);
    }

    // After the end of its stream, the session is the next one to be evicted.
    drop(streams.lock().remove(0));
    assert_accepted_soon(&deployment, &alice).await;

    deployment
        .echo(&alice, &sessions[0])
        .await
        .assert_ended_session();
    assert_eq!(deployment.echo(&alice, &third).await.status, 200);
    for session in &bobs {
        assert_eq!(deployment.echo(&bob, session).await.status, 200);
    }
}

/// E2, E9: an `initialize` request that fails for any reason ends no session.
#[tokio::test]
async fn a_failed_initialize() {
    let script = |request: &RecordedRequest| {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        body.contains("\"failing\"")
            .then(|| Upstream::response(500, &[("mcp-session-id", "theirs")], ""))
    };
    let deployment = Deployment::builder()
        .upstream(Upstream::scripted(script).await)
        .tables(limited(2))
        .start()
        .await;
    let token = deployment.good_token();
    let sessions = [
        deployment.open_session(&token).await,
        deployment.open_session(&token).await,
    ];
    let failing = INITIALIZE.replace("\"scenario\"", "\"failing\"");
    for _ in 0..5 {
        assert_eq!(
            deployment
                .send(Request::post(Deployment::ENDPOINT, failing.as_str()).bearer(&token))
                .await
                .status,
            500
        );
    }
    let batch = format!("[{INITIALIZE}]");
    for body in [
        batch.as_str(),
        "{",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":7}",
    ] {
        assert_ne!(
            deployment
                .send(Request::post(Deployment::ENDPOINT, body).bearer(&token))
                .await
                .status,
            200
        );
    }
    for session in &sessions {
        assert_eq!(deployment.echo(&token, session).await.status, 200);
    }
    assert!(!deployment.portcullis.log().contains("session ended"));
}

/// E2, E9: of concurrent `initialize` requests at the limit, each needs an unused session. If none
/// is left when the upstream responds, the request gets 503 and the upstream's session is ended.
#[tokio::test]
async fn concurrent_initializes() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let setting = format!(
        "{{ http = \"http://{}/backend\" }}",
        listener.local_addr().unwrap()
    );
    let (opened, mut initializes) = mpsc::channel::<TcpStream>(8);
    let (deleted, mut deletions) = mpsc::channel::<String>(8);

    // An upstream whose `initialize` responses the test sends, and whose streams stay open.
    tokio::spawn(async move {
        let mut streams = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let head = head(&mut stream).await;
            if head.starts_with("post") {
                opened.send(stream).await.unwrap();
            } else if head.starts_with("get") {
                let response = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n: open\n\n";
                stream.write_all(response.as_bytes()).await.unwrap();
                streams.push(stream);
            } else {
                let line = head
                    .lines()
                    .find(|line| line.starts_with("mcp-session-id"))
                    .expect("a session")
                    .to_owned();
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                    .await
                    .unwrap();
                deleted.send(line).await.unwrap();
            }
        }
    });
    let deployment = Deployment::builder()
        .upstream_setting(setting)
        .tables(limited(2))
        .start()
        .await;
    let token = deployment.good_token();
    let initialize = Request::post(Deployment::ENDPOINT, INITIALIZE).bearer(&token);
    let start = async || {
        let mut connection = Connection::open(deployment.portcullis.address()).await;
        connection.write(&initialize.to_bytes()).await;
        connection
    };
    let mut sessions = Vec::new();
    for name in ["first", "second"] {
        let mut client = start().await;
        open(next(&mut initializes).await, name).await;
        let response = client.response().await.unwrap();
        sessions.push(
            response
                .header("mcp-session-id")
                .expect("a session")
                .to_owned(),
        );
    }

    let mut waiting = Vec::new();
    for _ in 0..2 {
        let client = start().await;
        waiting.push((client, next(&mut initializes).await));
    }
    let response = deployment.send(initialize.clone()).await;
    assert_full(&response);
    assert!(deletions.try_recv().is_err(), "no session has ended yet");

    let _streams = [
        stream(&deployment, &token, &sessions[0]).await,
        stream(&deployment, &token, &sessions[1]).await,
    ];
    for (number, (mut client, upstream)) in waiting.into_iter().enumerate() {
        let name = format!("late-{number}");
        open(upstream, &name).await;
        let response = client.response().await.unwrap();
        assert_full(&response);
        assert_eq!(response.json()["id"], 1, "{response:?}");
        deployment
            .portcullis
            .assert_denied(&response, "session.owner_full")
            .await;
        assert_eq!(
            next(&mut deletions).await,
            format!("mcp-session-id: {name}")
        );
    }
}

/// Responds to an `initialize`.
async fn open(mut stream: TcpStream, session: &str) {
    let response = format!(
        "HTTP/1.1 200 OK\r\nmcp-session-id: {session}\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\
         connection: close\r\n\r\n{{}}"
    );
    stream.write_all(response.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    // Unread bytes must not reset the connection before the response is read.
    tokio::spawn(async move { stream.read_to_end(&mut Vec::new()).await });
}
