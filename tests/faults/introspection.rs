//! Introspection endpoints that reject this server or remove scopes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use portcullis_scenarios::{
    ChannelBody, Connection, Deployment, DeploymentBuilder, INITIALIZE, RecordedRequest, Request,
    Scratch, TIMEOUT, Upstream,
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

/// An introspection endpoint with the same response to every request.
struct Endpoint {
    server: Upstream,
    response: Arc<Mutex<(u16, Value)>>,
    secret: Scratch,
}

impl Endpoint {
    async fn start(status: u16, response: Value) -> Self {
        let response = Arc::new(Mutex::new((status, response)));
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
        Self {
            server,
            response,
            secret: Scratch::file("secret", "hush"),
        }
    }

    fn set_response(&self, status: u16, response: Value) {
        *self.response.lock() = (status, response);
    }

    /// Returns a deployment with `jwt+introspection` for its only issuer.
    fn deployment(&self) -> DeploymentBuilder {
        Deployment::builder().issuer(format!(
            "validate = \"jwt+introspection\"\nclient_id = \"portcullis\"\nclient_secret = {{ file = \"{}\" }}\n\
             introspection_endpoint = \"{}/introspect\"\nintrospection_cache = \"0s\"",
            self.secret.as_str(),
            self.server.origin()
        ))
    }
}

fn active() -> Value {
    json!({ "active": true, "aud": Deployment::RESOURCE })
}

fn active_with(scope: impl Into<Value>) -> Value {
    let mut response = active();
    response["scope"] = scope.into();
    response
}

/// Waits until readiness has this status, and returns its report of the only issuer.
async fn readiness(deployment: &Deployment, status: u16) -> Value {
    let reached = async {
        loop {
            let ready = deployment.send(Request::new("GET", "/readyz")).await;
            if ready.status == status {
                return ready.json()["resources"][0]["issuers"][0].clone();
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(TIMEOUT, reached).await.unwrap_or_else(|_| {
        panic!(
            "/readyz does not return {status}:\n{}",
            deployment.portcullis.log()
        )
    })
}

/// D6: an endpoint that rejects this server's credentials is detected at startup, without a token:
/// the issuer is not usable, and the log names the fix. When the endpoint accepts them, the issuer
/// becomes usable without a restart. When it rejects them again, the next request detects it.
#[tokio::test]
async fn rejected_credentials() {
    let endpoint = Endpoint::start(401, json!({ "error": "invalid_client" })).await;
    let deployment = endpoint.deployment().start().await;
    let code = "introspection.client_rejected";
    let issuer = readiness(&deployment, 503).await;
    assert_eq!(issuer["usable"], false, "{issuer}");
    assert_eq!(issuer["reason"], json!(code), "{issuer}");

    let line = deployment
        .portcullis
        .logged(code, |line| line["introspection.failure"] == code)
        .await;
    let message = line["message"].as_str().unwrap();
    assert!(
        message.contains("`client_id`, `client_secret`"),
        "{message}"
    );
    assert!(message.contains("status 401"), "{message}");
    assert_eq!(deployment.portcullis.log().matches("hush").count(), 0);

    let probe = endpoint.server.last();
    let body = String::from_utf8(probe.body.to_vec()).unwrap();
    assert!(body.contains("token=portcullis-probe-"), "{body}");
    assert!(body.contains("client_secret=hush"), "{body}");
    assert!(!deployment.portcullis.log().contains("portcullis-probe-"));

    endpoint.set_response(200, json!({ "active": false }));
    assert_eq!(readiness(&deployment, 200).await["usable"], true);

    endpoint.set_response(400, json!({ "error": "invalid_client" }));
    let response = deployment.try_token(&deployment.good_token()).await;
    assert_eq!(response.assert_unauthorized(), None, "{response:?}");
    assert_eq!(readiness(&deployment, 503).await["reason"], code);

    endpoint.set_response(200, active());
    deployment
        .assert_accepted("accepted again", &deployment.good_token())
        .await;
    readiness(&deployment, 200).await;
}

/// D6: an empty `scope` removes all scopes of a signed token, an absent one removes none, and
/// `null` makes the response invalid.
#[tokio::test]
async fn removed_scopes() {
    let endpoint = Endpoint::start(200, active()).await;
    let deployment = endpoint.deployment().start().await;
    for (response, status) in [
        (active(), 200),
        (active_with(""), 403),
        (active_with("mcp:tools"), 200),
        (active_with("mcp:admin"), 403),
        (active_with(json!([])), 403),
        (active_with(Value::Null), 401),
        (active_with(7), 401),
    ] {
        endpoint.set_response(200, response.clone());
        let got = deployment.try_token(&deployment.good_token()).await;
        assert_eq!(got.status, status, "{response}: {got:?}");
        if status == 403 {
            assert!(
                got.header("www-authenticate")
                    .unwrap()
                    .contains("insufficient_scope"),
                "{got:?}"
            );
        }
    }
}

/// D4, F4: the number of requests that wait for a slow endpoint is bounded, also if each has
/// another token. Cached tokens are accepted meanwhile. What the waiting requests hold is little
/// more than their heads.
#[tokio::test]
async fn waiting_requests() {
    const WAITING: usize = 512;
    const REFUSED: usize = 40;
    const PADDING: usize = 12 << 10;
    let senders = Arc::new(Mutex::new(Vec::new()));
    let open = Arc::clone(&senders);
    let is_slow = Arc::new(AtomicBool::new(false));
    let hangs = Arc::clone(&is_slow);
    let endpoint = Upstream::scripted(move |_: &RecordedRequest| {
        const JSON: (&str, &str) = ("content-type", "application/json");
        if !hangs.load(Ordering::Relaxed) {
            return Some(Upstream::response(200, &[JSON], active().to_string()));
        }
        let (sender, body) = ChannelBody::new();
        open.lock().push(sender);
        Some(Upstream::streaming(200, &[JSON], body))
    })
    .await;
    let secret = Scratch::file("secret", "hush");
    let deployment = Deployment::builder()
        .issuer(format!(
            "validate = \"jwt+introspection\"\nclient_id = \"portcullis\"\nclient_secret = {{ file = \"{}\" }}\n\
             introspection_endpoint = \"{}/introspect\"",
            secret.as_str(),
            endpoint.origin()
        ))
        .start()
        .await;
    let cached = deployment.good_token();
    deployment.assert_accepted("cached", &cached).await;
    is_slow.store(true, Ordering::Relaxed);

    let slow = deployment.token().subject("bob").sign();
    let before = deployment.portcullis.resident();
    let request = Request::post(Deployment::ENDPOINT, INITIALIZE)
        .bearer(&slow)
        .header("X-Long", "x".repeat(PADDING))
        .to_bytes();
    let started = Instant::now();
    let mut connections = Vec::new();
    for _ in 0..WAITING + REFUSED {
        let mut connection = Connection::open_as_new_client(deployment.portcullis.address()).await;
        connection.write(&request).await;
        connections.push(connection);
    }
    deployment.assert_accepted("meanwhile", &cached).await;
    let each = deployment.portcullis.resident().saturating_sub(before) / WAITING;
    assert!(each < PADDING + (32 << 10), "{each} bytes each");

    let mut refused = 0;
    for mut connection in connections {
        let response = connection.response().await.expect("a response");
        assert_eq!(response.status, 401, "{response:?}");
        if response.header("retry-after") == Some("1") {
            deployment
                .portcullis
                .assert_denied(&response, "issuer.introspection_busy")
                .await;
            refused += 1;
        } else {
            deployment
                .portcullis
                .assert_denied(&response, "issuer.unavailable")
                .await;
        }
    }
    // A call lasts 5 s. On a slow machine, requests come later than that, and wait for another one.
    let calls = senders.lock().len();
    let waited = WAITING + REFUSED - refused;
    assert!(
        waited <= calls * WAITING,
        "{waited} requests waited for {calls} calls"
    );
    assert!(refused <= REFUSED, "{refused} requests were refused");
    let most_calls = started.elapsed().as_secs() / 5 + 1;
    assert!(calls as u64 <= most_calls, "{calls} calls of the endpoint");
}
