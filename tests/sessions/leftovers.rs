//! Upstream sessions that only the gateway can end.

use std::{collections::HashSet, time::Duration};

use portcullis_scenarios::{Connection, Deployment, INITIALIZE, Request, TIMEOUT};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    time::{sleep, timeout},
};

/// E2, E9: a session that the upstream opens for a disconnected client is ended there. Its capacity
/// is reserved until then.
#[tokio::test]
async fn before_the_response_begins() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let setting = format!(
        "{{ http = \"http://{}/backend\" }}",
        listener.local_addr().unwrap()
    );
    let (respond, mut permitted) = mpsc::channel::<()>(1);
    let (record, mut recorded) = mpsc::channel::<String>(8);

    // An upstream that delays each `initialize` until the test permits the response.
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let head = head(&mut stream).await;
            let opens = head.starts_with("post");
            record.send(head).await.unwrap();
            if opens {
                permitted.recv().await.unwrap();
            }
            let response = "HTTP/1.1 200 OK\r\nmcp-session-id: theirs\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\
                          connection: close\r\n\r\n{}";
            stream.write_all(response.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
            // Unread bytes must not reset the connection before the response is read.
            let _ = stream.read_to_end(&mut Vec::new()).await;
        }
    });
    let deployment = Deployment::builder()
        .upstream_setting(setting)
        .tables("[session]\nmax_total = 1")
        .start()
        .await;
    let token = deployment.good_token();
    let mut leaving = Connection::open(deployment.portcullis.address()).await;
    leaving
        .write(
            &Request::post(Deployment::ENDPOINT, INITIALIZE)
                .bearer(&token)
                .to_bytes(),
        )
        .await;
    assert!(next(&mut recorded).await.starts_with("post /backend "));

    drop(leaving);
    deployment
        .portcullis
        .logged(
            "a client disconnected before its session was opened",
            |_| true,
        )
        .await;
    let response = deployment.try_token(&token).await;
    response.assert_rpc_error(503, -32603);
    deployment
        .portcullis
        .assert_denied(&response, "session.store_full")
        .await;

    respond.send(()).await.unwrap();
    let ended = next(&mut recorded).await;
    assert!(ended.starts_with("delete /backend "), "{ended}");
    assert!(ended.contains("\r\nmcp-session-id: theirs\r\n"), "{ended}");

    respond.send(()).await.unwrap();
    // The capacity is released right after the end.
    assert_accepted_soon(&deployment, &token).await;
}

/// Asserts that a session can be opened as soon as there is capacity again.
pub(crate) async fn assert_accepted_soon(deployment: &Deployment, token: &str) {
    let accepted = async {
        loop {
            let response = deployment.try_token(token).await;
            if response.status != 503 {
                return response;
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    let response = timeout(TIMEOUT, accepted).await.unwrap();
    assert_eq!(response.status, 200, "{response:?}");
}

/// E9: while an upstream does not respond for one session, other sessions are ended there.
#[tokio::test]
async fn while_the_upstream_is_slow() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let setting = format!(
        "{{ http = \"http://{}/backend\" }}",
        listener.local_addr().unwrap()
    );
    let (record, mut recorded) = mpsc::channel::<String>(16);

    // An upstream that fails the client's DELETE and does not respond to the repeated one.
    tokio::spawn(async move {
        let mut deleted = HashSet::new();
        let mut opened = 0;
        while let Ok((mut stream, _)) = listener.accept().await {
            let head = head(&mut stream).await;
            let status = if head.starts_with("post") {
                opened += 1;
                format!("200 OK\r\nmcp-session-id: theirs-{opened}")
            } else {
                let line = head
                    .lines()
                    .find(|line| line.starts_with("mcp-session-id"))
                    .expect("a session")
                    .to_owned();
                record.send(line.clone()).await.unwrap();
                if !deleted.insert(line) {
                    let record = record.clone();
                    tokio::spawn(async move {
                        let _ = stream.read_to_end(&mut Vec::new()).await;
                        record
                            .send("the gateway closed the connection".to_owned())
                            .await
                    });
                    continue;
                }
                "500 Internal Server Error".to_owned()
            };
            let response =
                format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            stream.write_all(response.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
            let _ = stream.read_to_end(&mut Vec::new()).await;
        }
    });
    let deployment = Deployment::builder()
        .upstream_setting(setting)
        .start()
        .await;
    let token = deployment.good_token();
    for number in 1..=3 {
        let session = deployment.open_session(&token).await;
        let delete = Request::delete(Deployment::ENDPOINT, &token, &session);
        assert_eq!(deployment.send(delete).await.status, 204);
        for _ in 0..2 {
            assert_eq!(
                next(&mut recorded).await,
                format!("mcp-session-id: theirs-{number}")
            );
        }
    }
}

/// Reads the head of a request, in lower case. The rest is left unread.
pub(crate) async fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        assert!(
            stream.read_buf(&mut head).await.is_ok_and(|read| read > 0),
            "the connection ended"
        );
    }
    String::from_utf8_lossy(&head).to_lowercase()
}

/// Receives the next event of an upstream.
pub(crate) async fn next<T>(events: &mut mpsc::Receiver<T>) -> T {
    timeout(TIMEOUT, events.recv()).await.unwrap().unwrap()
}
