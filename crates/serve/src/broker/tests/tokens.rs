//! Tokens of the broker at its resources.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use portcullis_broker::{BrokerEvent, BrokerKeys, BrokerObserver as _, EndReason};
use portcullis_config::plan::Plan;
use portcullis_jose::{Algorithm, SigningKey};
use portcullis_metadata::{Clock as _, Issuer, SystemClock};
use portcullis_state_store::records::MemoryRecords;
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt as _, net::TcpListener, time::timeout};

use super::{
    super::observer::BrokerEvents,
    super::persistence::{BrokerPersistence, KeysOrigin},
    Received, TestServer, plan,
};

/// A server with keys with which the test can sign.
struct Signed {
    server: TestServer,
    key: SigningKey,
}

impl Signed {
    fn new() -> Self {
        Self::with(&plan(&[]))
    }

    fn with(plan: &Plan) -> Self {
        let text = BrokerKeys::generate().unwrap();
        let line = text
            .lines()
            .find(|line| line.starts_with("signing"))
            .unwrap();
        let pem = STANDARD.decode(line.rsplit(' ').next().unwrap()).unwrap();
        let pem = String::from_utf8(pem).unwrap();
        let persistence = BrokerPersistence {
            records: Arc::new(MemoryRecords::new(Arc::new(SystemClock::new()))),
            keys: KeysOrigin::Generated(Arc::new(BrokerKeys::parse(&text).unwrap())),
            keys_file: None,
            records_file: None,
            is_shared: false,
        };
        Self {
            server: TestServer::with(plan, persistence),
            key: SigningKey::from_pem_with_thumbprint(Algorithm::Es256, &pem).unwrap(),
        }
    }

    fn token(&self, typ: &str, edit: impl FnOnce(&mut Value)) -> String {
        let now = SystemClock::new().now().as_secs();
        let mut claims = json!({
            "iss": "http://127.0.0.1:3000", "sub": "user", "aud": "http://127.0.0.1:3000/mcp",
            "client_id": "client", "sid": "grant", "jti": "token", "iat": now, "exp": now + 60,
        });
        edit(&mut claims);
        self.key.sign(typ, claims.to_string().as_bytes()).unwrap()
    }

    /// Sends a token to a resource, whose upstream cannot be reached.
    async fn call(&self, path: &str, token: &str) -> Received {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}"#;
        self.post(path, token, body).await
    }

    async fn post(&self, path: &str, token: &str, body: &str) -> Received {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:3000\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
             Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.server.send(&request).await
    }
}

/// A token of the broker is accepted at its resource, until its grant or the token itself ends.
#[tokio::test]
async fn tokens_are_accepted_until_their_grant_ends() {
    let signed = Signed::new();
    let token = signed.token("at+jwt", |_| {});
    for _ in 0..2 {
        assert_eq!(signed.call("/mcp", &token).await.status(), 502);
    }
    assert_eq!(signed.call("/other", &token).await.status(), 401);
    let other = signed.token("at+jwt", |claims| claims["sid"] = "other".into());
    let process = signed.server.state.load().process().broker.clone().unwrap();
    let now = SystemClock::new().now();
    let until = now.saturating_add(Duration::from_secs(60));
    process.ends.add("grant", until, now);
    assert_eq!(signed.call("/mcp", &token).await.status(), 401);
    assert_eq!(signed.call("/mcp", &other).await.status(), 502);
    process.ends.add("token", until, now);
    assert_eq!(signed.call("/mcp", &other).await.status(), 401);
}

/// Another document that the same key signs is no access token.
#[tokio::test]
async fn only_access_tokens_are_accepted() {
    let signed = Signed::new();
    for typ in ["JWT", "logout+jwt"] {
        let token = signed.token(typ, |_| {});
        assert_eq!(signed.call("/mcp", &token).await.status(), 401, "{typ}");
    }
}

/// A reload keeps the issuer with its cached tokens, although the broker is a new one. Ends still
/// reach it.
#[tokio::test]
async fn a_reload_keeps_the_issuer() {
    let signed = Signed::new();
    let issuer = |server: &TestServer| Arc::clone(server.state.load().issuers().last().unwrap());
    let broker = |server: &TestServer| Arc::clone(server.state.load().broker().unwrap());
    let (old_issuer, old_broker) = (issuer(&signed.server), broker(&signed.server));
    signed.server.reload(&plan(&[]));
    assert!(Arc::ptr_eq(&old_broker, &broker(&signed.server)));
    signed.server.reload(&plan(&[(
        "[broker]",
        "[broker]\npage = { name = \"New\" }",
    )]));
    assert!(!Arc::ptr_eq(&old_broker, &broker(&signed.server)));
    assert!(Arc::ptr_eq(&old_issuer, &issuer(&signed.server)));
    let token = signed.token("at+jwt", |_| {});
    assert_eq!(signed.call("/mcp", &token).await.status(), 502);
    let process = signed.server.state.load().process().broker.clone().unwrap();
    let now = SystemClock::new().now();
    let until = now.saturating_add(Duration::from_secs(60));
    process.ends.add("grant", until, now);
    assert_eq!(signed.call("/mcp", &token).await.status(), 401);
}

/// Answers the first request with an event stream that does not end.
async fn streaming_upstream(listener: TcpListener) {
    let (mut stream, _) = listener.accept().await.unwrap();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: first\n\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    std::future::pending::<()>().await;
}

fn ended(grant_id: &str) -> BrokerEvent<'_> {
    BrokerEvent::GrantEnded {
        grant_id,
        owner: None,
        reason: EndReason::Revoked,
    }
}

fn end_not_stored(grant_id: &str) -> BrokerEvent<'_> {
    BrokerEvent::EndNotStored {
        grant_id,
        owner: None,
        reason: EndReason::Revoked,
    }
}

/// An event stream ends with the grant of its token, also if the end cannot be stored, and a stream
/// of another grant does not.
#[tokio::test]
async fn streams_end_with_their_grant() {
    for end in [ended, end_not_stored] {
        stream_ends_with(end).await;
    }
}

async fn stream_ends_with(end_of: fn(&str) -> BrokerEvent<'_>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    let upstream = tokio::spawn(streaming_upstream(listener));
    let signed = Signed::with(&plan(&[
        ("http://127.0.0.1:1/", &address),
        ("\"/mcp\"", "\"/mcp\"\nsessions = \"off\""),
    ]));
    let state = signed.server.state.load_full();
    let process = state.process();
    let events = BrokerEvents::new(process, Issuer::parse("http://127.0.0.1:3000").unwrap());
    let token = signed.token("at+jwt", |_| {});
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}"#;
    let end = async {
        while process.streams.is_empty() {
            tokio::task::yield_now().await;
        }
        events.observe(&end_of("other"));
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(process.streams.len(), 1);
        events.observe(&end_of("grant"));
    };
    let exchange = async { tokio::join!(signed.post("/mcp", &token, body), end).0 };
    let received = timeout(Duration::from_secs(60), exchange).await.unwrap();
    assert_eq!(received.status(), 200);
    assert_eq!(process.streams.len(), 0);
    upstream.abort();
}
