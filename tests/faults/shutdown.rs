//! Shutdown: requests in progress complete, and new connections are refused.

use std::time::{Duration, Instant};

use portcullis_scenarios::{
    ChannelBody, Connection, Deployment, Http2, INITIALIZE, Portcullis, RecordedRequest, Request,
    Signal, TIMEOUT, Upstream,
};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::mpsc::UnboundedSender,
    time::timeout,
};

/// Starts a deployment whose upstream responds when the test sends the body.
async fn slow_deployment() -> (UnboundedSender<bytes::Bytes>, Deployment) {
    let (sender, body) = ChannelBody::new();
    let body = parking_lot::Mutex::new(Some(body));
    let script = move |_: &RecordedRequest| {
        let body = body.lock().take()?;
        Some(Upstream::streaming(
            200,
            &[("content-type", "application/json")],
            body,
        ))
    };
    (
        sender,
        Deployment::builder()
            .upstream(Upstream::scripted(script).await)
            .start()
            .await,
    )
}

/// F4: a request in progress completes after SIGTERM, new connections are refused, idle ones are
/// closed, and the exit code is 0.
#[tokio::test]
async fn requests_in_progress_complete() {
    for signal in [Signal::TERM, Signal::INT] {
        let (sender, deployment) = slow_deployment().await;
        let address = deployment.portcullis.address();
        let mut idle = Connection::open(address).await;
        assert_eq!(
            idle.send(&Request::new("GET", "/healthz")).await.status,
            200
        );
        let mut idle_http2 = Http2::connect(address).await;
        assert_eq!(
            idle_http2
                .send(Http2::request("GET", "/healthz"), "")
                .await
                .unwrap()
                .status,
            200
        );
        let mut busy = Connection::open(address).await;
        busy.write(
            &Request::post(Deployment::ENDPOINT, INITIALIZE)
                .bearer(&deployment.good_token())
                .to_bytes(),
        )
        .await;
        deployment.upstream.wait_for_requests(1).await;

        deployment.portcullis.signal(signal);
        deployment
            .portcullis
            .logged("shutting down", |_| true)
            .await;
        idle.assert_closed().await;
        // The listener may close shortly after the log line.
        let refused = async {
            while TcpStream::connect(address).await.is_ok() {
                tokio::task::yield_now().await;
            }
        };
        timeout(TIMEOUT, refused).await.unwrap();
        sender.send("{\"late\":".into()).unwrap();
        sender.send("true}".into()).unwrap();
        drop(sender);
        let response = busy.response().await.unwrap();
        assert_eq!(response.status, 200, "{signal:?}: {response:?}");
        assert_eq!(
            response.text().as_str(),
            "{\"late\":true}",
            "{signal:?}: {response:?}"
        );
        assert_eq!(response.count("mcp-session-id"), 1, "{response:?}");

        let finished = deployment.portcullis.wait().await;
        assert_eq!(finished.code, Some(0), "{signal:?}: {}", finished.stderr);
        let id = response.header("x-request-id").unwrap();
        assert!(
            finished
                .stderr
                .lines()
                .any(|line| line.contains(id) && line.contains("\"request\"")),
            "its access line is written"
        );
    }
}

/// F4, J4: a request that does not complete in time is cancelled and logged. The program still ends
/// with 0.
#[tokio::test]
async fn the_timeout() {
    let (_sender, body) = ChannelBody::new();
    let body = parking_lot::Mutex::new(Some(body));
    let script =
        move |_: &RecordedRequest| Some(Upstream::streaming(200, &[], body.lock().take()?));
    let deployment = Deployment::builder()
        .upstream(Upstream::scripted(script).await)
        .top("shutdown_timeout = \"1s\"")
        .tables("[audit]\ntarget = \"stdout\"")
        .start()
        .await;
    let mut busy = Connection::open(deployment.portcullis.address()).await;
    busy.write(
        &Request::post(Deployment::ENDPOINT, INITIALIZE)
            .bearer(&deployment.good_token())
            .to_bytes(),
    )
    .await;
    deployment.upstream.wait_for_requests(1).await;
    let finished = deployment.portcullis.stop().await;
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert!(
        finished
            .stderr
            .contains("cancelling the requests that are still in progress"),
        "{}",
        finished.stderr
    );

    let decisions: Vec<_> = finished
        .stdout
        .lines()
        .filter(|line| line.contains("\"event\":\"decision\""))
        .collect();
    assert_eq!(decisions.len(), 1, "{}", finished.stdout);
    assert!(
        finished
            .stdout
            .lines()
            .last()
            .is_some_and(|line| line.contains("audit.stopped")),
        "{}",
        finished.stdout
    );
}

/// F4: SIGHUP ends neither the program nor its connections.
#[tokio::test]
async fn sighup() {
    let deployment = Deployment::start().await;
    let mut kept = Connection::open(deployment.portcullis.address()).await;
    for _ in 0..2 {
        deployment.portcullis.signal(Signal::HUP);
        assert_eq!(
            kept.send(&Request::new("GET", "/healthz")).await.status,
            200
        );
    }
    assert_eq!(deployment.portcullis.stop().await.code, Some(0));
}

/// Less than the default of `shutdown_timeout`, with a margin for a busy machine.
pub(crate) const END_TIME: Duration = Duration::from_secs(8);

/// F4: without requests, `serve` and `demo` end immediately.
#[tokio::test]
async fn without_requests() {
    let serve = Deployment::start().await.portcullis;
    let demo = Portcullis::start(&[
        "demo",
        "--listen",
        "127.0.0.1:0",
        "--idp-listen",
        "127.0.0.1:0",
    ])
    .await;
    for program in [serve, demo] {
        let started = Instant::now();
        assert_eq!(program.stop().await.code, Some(0));
        assert!(started.elapsed() < END_TIME, "{:?}", started.elapsed());
    }
}

/// E9, J4: the sessions that end with the program are audited before the trail ends, and are ended
/// at the upstream.
#[tokio::test]
async fn sessions_end() {
    const SESSIONS: usize = 50;
    let builder = Deployment::builder().top("state_dir = \"off\"");
    let deployment = builder.tables("[audit]\ntarget = \"stdout\"").start().await;
    for number in 0..SESSIONS {
        deployment
            .open_session(&deployment.token().subject(&format!("user-{number}")).sign())
            .await;
    }
    let Deployment {
        portcullis,
        upstream,
        ..
    } = deployment;
    let finished = portcullis.stop().await;
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);

    let records: Vec<Value> = finished
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let sessions = |event: &str| {
        let of_event = records.iter().filter(|record| record["event"] == event);
        let mut hashes: Vec<_> = of_event
            .map(|record| record["session"].as_str().unwrap())
            .collect();
        hashes.sort_unstable();
        hashes
    };
    assert_eq!(sessions("session.opened").len(), SESSIONS);
    assert_eq!(sessions("session.ended"), sessions("session.opened"));

    let ended = records
        .iter()
        .filter(|record| record["event"] == "session.ended");
    assert!(
        ended
            .clone()
            .all(|record| record["session.reason"] == "shutdown"),
        "{}",
        finished.stdout
    );
    assert!(
        records
            .last()
            .is_some_and(|record| record["event"] == "audit.stopped"),
        "{}",
        finished.stdout
    );
    assert_eq!(upstream.count_of(&http::Method::DELETE), SESSIONS);
}

/// E9: an upstream that does not respond delays the shutdown by at most 2 s.
#[tokio::test]
async fn sessions_end_at_a_silent_upstream() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let setting = format!(
        "{{ http = \"http://{}/backend\" }}",
        listener.local_addr().unwrap()
    );
    tokio::spawn(async move {
        let mut silent = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut start = [0; 6];
            stream.read_exact(&mut start).await.unwrap();
            if &start == b"DELETE" {
                silent.push(stream);
                continue;
            }
            let response = "HTTP/1.1 200 OK\r\nmcp-session-id: theirs\r\ncontent-type: application/json\r\n\
                          content-length: 2\r\nconnection: close\r\n\r\n{}";
            stream.write_all(response.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
            tokio::spawn(async move { stream.read_to_end(&mut Vec::new()).await });
        }
    });
    let deployment = Deployment::builder()
        .upstream_setting(setting)
        .top("shutdown_timeout = \"60s\"\nstate_dir = \"off\"")
        .start()
        .await;
    deployment.open_session(&deployment.good_token()).await;
    let started = Instant::now();
    let finished = deployment.portcullis.stop().await;
    assert!(started.elapsed() < END_TIME, "{:?}", started.elapsed());
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert!(
        finished
            .stderr
            .contains("not all sessions were ended at their upstreams in time"),
        "{}",
        finished.stderr
    );
}
