//! Event streams that end when the authorization of their request does.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use portcullis_scenarios::{
    Deployment, DeploymentBuilder, EventStreams, Request, Scratch, Upstream, audit_records,
    call_message, modern_request,
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

const EXACT: &str = "leeway = \"0s\"";

async fn ended_as(deployment: &Deployment, code: &str) -> Value {
    deployment
        .portcullis
        .logged(code, |line| line["stream.code"] == code)
        .await
}

/// L3: a stream ends when its token expires, after the current event. The client's next request
/// gets 401. Log and audit trail have the reason.
#[tokio::test]
async fn with_an_expiring_token() {
    let streams = EventStreams::default();
    let trail = Scratch::path_for("audit.jsonl");
    let deployment = Deployment::builder()
        .issuer(EXACT)
        .upstream(streams.upstream().await)
        .tables(format!(
            "[audit]\ntarget = {{ file = \"{}\" }}",
            trail.as_str()
        ))
        .start()
        .await;
    let token = deployment.token().expires_in(5).sign();
    let session = deployment.open_session(&token).await;
    let mut idle = streams.listen(&deployment, &token, &session).await;
    let mut busy = streams.listen(&deployment, &token, &session).await;
    busy.assert_forwarded("id: 7\r\ndata: {\"begun\"").await;
    idle.assert_ended().await;

    let line = ended_as(&deployment, "stream.token_expired").await;
    assert!(line["request.id"].is_string(), "{line}");
    assert_eq!(line["session"].as_str().unwrap().len(), 16, "{line}");

    busy.assert_forwarded(":true}\r\n").await;
    busy.events
        .send("\r\ndata: {\"next\":1}\r\n\r\n".into())
        .unwrap();
    assert_eq!(
        busy.connection.chunk().await.as_deref(),
        Some(&b"\r\n"[..]),
        "only the end of the event"
    );
    busy.assert_ended().await;

    let again = deployment
        .send(Request::listen(Deployment::ENDPOINT, &token, &session).header("Last-Event-ID", "7"))
        .await;
    assert_eq!(
        again.assert_unauthorized(),
        Some("invalid_token"),
        "{again:?}"
    );
    let records = audit_records(trail.path(), |record| record["event"] == "stream.ended").await;
    let record = records
        .iter()
        .find(|record| record["event"] == "stream.ended")
        .unwrap();
    assert_eq!(record["stream.code"], "stream.token_expired", "{record}");
    assert_eq!(record["resource"], json!(Deployment::RESOURCE));
    assert_eq!(record["principal.subject"], "alice");
    assert_eq!(record["session"], line["session"], "{record}");
    assert!(!deployment.portcullis.log().contains(&session));
    assert!(!deployment.portcullis.log().contains(&token));
}

/// L3: streams continue while their owner uses the session with a newer token that has at least the
/// same scopes. A token with fewer scopes, or of another owner, does not keep them open.
#[tokio::test]
async fn with_newer_tokens() {
    let streams = EventStreams::default();
    let deployment = Deployment::builder()
        .issuer(EXACT)
        .upstream(streams.upstream().await)
        .start()
        .await;
    let short = |scope: &str| deployment.token().scope(scope).expires_in(6).sign();
    let narrow = short("mcp:tools");
    let wide = short("mcp:tools mcp:admin");
    let session = deployment.open_session(&narrow).await;
    let mut kept = streams.listen(&deployment, &narrow, &session).await;
    let mut too_wide = streams.listen(&deployment, &wide, &session).await;
    let theirs = deployment.open_session(&narrow).await;
    let mut not_used = streams.listen(&deployment, &narrow, &theirs).await;

    assert_eq!(
        deployment
            .echo(&deployment.token().expires_in(60).sign(), &session)
            .await
            .status,
        200
    );
    let mallory = deployment.token().subject("mallory").expires_in(60).sign();
    assert_eq!(deployment.echo(&mallory, &theirs).await.status, 400);
    too_wide.assert_ended().await;
    not_used.assert_ended().await;

    // Longer than two sweeps.
    sleep(Duration::from_millis(1200)).await;
    kept.assert_open().await;
}

/// Returns a call of a tool whose response is a stream, in the revision without sessions.
fn modern_call() -> Request {
    let params = json!({ "name": "slow" });
    modern_request(Deployment::ENDPOINT, "tools/call", &params).header("Mcp-Name", "slow")
}

/// L3: the response to a request continues after its token has expired, with and without a session,
/// while the client needs a new token for anything else. It ends at once with its session.
#[tokio::test]
async fn calls_in_progress() {
    let streams = EventStreams::default();
    let deployment = Deployment::builder()
        .issuer(EXACT)
        .upstream(streams.upstream().await)
        .start()
        .await;
    let token = deployment.token().expires_in(5).sign();
    let session = deployment.open_session(&token).await;
    let mut listening = streams.listen(&deployment, &token, &session).await;
    let call = call_message(7, "tools/call", &json!({ "name": "slow" }));
    let call = Request::post(Deployment::ENDPOINT, call)
        .bearer(&token)
        .session(&session);
    let mut in_session = streams.open(&deployment, call).await;
    let mut modern = streams
        .open(&deployment, modern_call().bearer(&token))
        .await;
    listening.assert_ended().await;
    ended_as(&deployment, "stream.token_expired").await;
    let again = deployment.echo(&token, &session).await;
    assert_eq!(again.assert_unauthorized(), Some("invalid_token"));

    // Longer than two sweeps.
    sleep(Duration::from_millis(1200)).await;
    modern
        .assert_forwarded("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n")
        .await;
    in_session.assert_open().await;
    let newer = deployment.good_token();
    let deleted = deployment.delete_session(&newer, &session).await;
    assert_eq!(deleted.status, 200, "{deleted:?}");
    in_session.assert_ended().await;
    ended_as(&deployment, "stream.session_ended").await;
    modern.assert_open().await;
}

/// L3: the response stream of a modern request ends when its own token expires, if it has no grace.
/// Other tokens of the same owner do not extend it.
#[tokio::test]
async fn without_a_session() {
    let streams = EventStreams::default();
    let deployment = Deployment::builder()
        .issuer(EXACT)
        .resource(format!("{}\nresponse_grace = \"0\"", Deployment::SCOPED))
        .upstream(streams.upstream().await)
        .start()
        .await;
    let mut short = streams
        .open(
            &deployment,
            modern_call().bearer(&deployment.token().expires_in(5).sign()),
        )
        .await;
    let mut long = streams
        .open(
            &deployment,
            modern_call().bearer(&deployment.token().expires_in(60).sign()),
        )
        .await;
    short.assert_ended().await;
    let line = ended_as(&deployment, "stream.token_expired").await;
    assert_eq!(line.get("session"), None, "{line}");
    long.assert_open().await;
}

/// An introspection endpoint with the same response for every token.
struct IntrospectionEndpoint {
    server: Upstream,
    response: Arc<Mutex<(u16, Value)>>,
}

impl IntrospectionEndpoint {
    /// Starts an endpoint that responds that tokens are active.
    async fn start() -> Self {
        let response = Arc::new(Mutex::new((200, active())));
        let script = Arc::clone(&response);
        let server = Upstream::scripted(move |_| {
            let (status, response) = &*script.lock();
            Some(Upstream::response(
                *status,
                &[("content-type", "application/json")],
                response.to_string(),
            ))
        })
        .await;
        Self { server, response }
    }

    fn set_response(&self, status: u16, response: Value) {
        *self.response.lock() = (status, response);
    }

    fn settings(&self, validate: &str, interval: u64) -> String {
        format!(
            "validate = \"{validate}\"\nclient_id = \"portcullis\"\nintrospection_cache = \"{interval}s\"\n\
             introspection_endpoint = \"{}/introspect\"",
            self.server.origin()
        )
    }

    /// Returns a deployment with `jwt+introspection` at this endpoint.
    fn deployment(&self, interval: u64) -> DeploymentBuilder {
        Deployment::builder().issuer(self.settings("jwt+introspection", interval))
    }
}

fn active() -> Value {
    json!({ "active": true, "aud": Deployment::RESOURCE, "client_id": "editor", "sub": "alice", "scope": "mcp:tools" })
}

/// L3: when an introspected token is revoked, its streams end soon, and the next request with it is
/// rejected. Each check of the token serves all its streams.
#[tokio::test]
async fn with_a_revoked_token() {
    let endpoint = IntrospectionEndpoint::start().await;
    let streams = EventStreams::default();
    let deployment = endpoint
        .deployment(1)
        .upstream(streams.upstream().await)
        .start()
        .await;
    let token = deployment.good_token();
    let opened = Instant::now();
    let session = deployment.open_session(&token).await;
    let mut open = Vec::new();
    for _ in 0..4 {
        open.push(streams.listen(&deployment, &token, &session).await);
    }
    endpoint
        .server
        .wait_for_requests(endpoint.server.count() + 4)
        .await;
    // A check is early by at most a fifth of the interval.
    let time = opened.elapsed();
    assert!(
        time >= Duration::from_millis(4 * 800),
        "4 checks in {time:?}"
    );
    for open in &mut open {
        open.assert_open().await;
    }

    endpoint.set_response(200, json!({ "active": false }));
    let revoked = Instant::now();
    for open in &mut open {
        open.assert_ended().await;
    }
    assert!(
        revoked.elapsed() < Duration::from_secs(10),
        "{:?}",
        revoked.elapsed()
    );

    ended_as(&deployment, "stream.token_inactive").await;
    let again = deployment
        .send(Request::listen(Deployment::ENDPOINT, &token, &session))
        .await;
    assert_eq!(
        again.assert_unauthorized(),
        Some("invalid_token"),
        "{again:?}"
    );
    let calls = endpoint.server.count();
    sleep(Duration::from_secs(2)).await;
    assert_eq!(
        endpoint.server.count(),
        calls,
        "a token without streams is not checked"
    );
    assert!(
        !deployment.portcullis.log().contains(&token),
        "the token is in the log"
    );
}

/// L3: the streams of an opaque token without `exp` end when the token becomes inactive, gets
/// another audience, or loses a scope.
#[tokio::test]
async fn with_an_opaque_token() {
    const TOKEN: &str = "opaque-canary";
    for (change, code) in [
        (json!({ "active": false }), "stream.token_inactive"),
        (
            json!({ "active": true, "aud": "https://other.example/mcp" }),
            "stream.token_inactive",
        ),
        (
            json!({ "active": true, "aud": Deployment::RESOURCE, "client_id": "editor", "sub": "alice", "scope": "mcp:tools" }),
            "stream.scopes_reduced",
        ),
    ] {
        let endpoint = IntrospectionEndpoint::start().await;
        let streams = EventStreams::default();
        let mut wide = active();
        wide["scope"] = json!("mcp:tools mcp:admin");
        endpoint.set_response(200, wide);
        let table = format!(
            "[[issuer]]\nissuer = \"{}\"\n{}",
            endpoint.server.origin(),
            endpoint.settings("introspection", 1)
        );
        let deployment = Deployment::builder()
            .tables(table)
            .upstream(streams.upstream().await)
            .start()
            .await;
        let session = deployment.open_session(TOKEN).await;
        let mut open = streams.listen(&deployment, TOKEN, &session).await;
        sleep(Duration::from_millis(2500)).await;
        open.assert_open().await;
        endpoint.set_response(200, change);
        open.assert_ended().await;
        ended_as(&deployment, code).await;
        assert!(
            !deployment.portcullis.log().contains("canary"),
            "the token is in the log"
        );
    }
}

/// L3: if the introspection endpoint fails, streams end after two intervals, but not after one.
#[tokio::test]
async fn with_an_issuer_that_fails() {
    let endpoint = IntrospectionEndpoint::start().await;
    let streams = EventStreams::default();
    let deployment = endpoint
        .deployment(3)
        .upstream(streams.upstream().await)
        .start()
        .await;
    let token = deployment.good_token();
    let opened = Instant::now();
    let session = deployment.open_session(&token).await;
    let mut open = streams.listen(&deployment, &token, &session).await;
    endpoint.set_response(503, json!({}));
    deployment
        .portcullis
        .logged("introspection.status", |line| {
            line["introspection.failure"] == "introspection.status"
        })
        .await;
    sleep(Duration::from_secs(1)).await;
    open.assert_open().await;
    open.assert_ended().await;

    let after = opened.elapsed();
    assert!(after >= Duration::from_secs(6), "{after:?}");
    assert!(after < Duration::from_secs(15), "{after:?}");
    ended_as(&deployment, "stream.introspection_failed").await;
}

/// L3: a single failure ends no stream. A signed token's `exp` applies even if the introspection
/// endpoint reports the token as active.
#[tokio::test]
async fn with_an_issuer_that_fails_once() {
    let endpoint = IntrospectionEndpoint::start().await;
    let streams = EventStreams::default();
    let settings = format!("{}\n{EXACT}", endpoint.settings("jwt+introspection", 2));
    let deployment = Deployment::builder()
        .issuer(settings)
        .upstream(streams.upstream().await)
        .start()
        .await;
    let short = deployment.token().expires_in(8).sign();
    let long = deployment.token().expires_in(60).sign();
    let session = deployment.open_session(&short).await;
    let mut expiring = streams.listen(&deployment, &short, &session).await;
    let other = deployment.open_session(&long).await;
    let mut open = streams.listen(&deployment, &long, &other).await;
    endpoint.set_response(503, json!({}));
    deployment
        .portcullis
        .logged("introspection.status", |line| {
            line["introspection.failure"] == "introspection.status"
        })
        .await;
    endpoint.set_response(200, active());
    expiring.assert_ended().await;

    ended_as(&deployment, "stream.token_expired").await;
    open.assert_open().await;
}
