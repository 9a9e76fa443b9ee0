//! `check --online`: the first cause of broken set-ups, and no finding for sound ones.

mod in_front;
mod issuers;
mod proxies;
mod upstreams;

use http::{Response, header};
use portcullis_scenarios::{
    BrokerIdp, Finished, Peer, PeerRequest, PeerResponse, Portcullis, ReservedPort, Scratch,
    Upstream,
};
use portcullis_testkit::TestIssuer;
use rcgen::generate_simple_self_signed;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// An authorization server with keys and an introspection endpoint. `script` replaces responses.
async fn issuer(
    script: impl Fn(&PeerRequest) -> Option<PeerResponse> + Send + Sync + 'static,
) -> Peer {
    let keys = TestIssuer::new("https://keys.example").jwks_json();
    Peer::start(move |request| {
        script(request).or_else(|| match request.path.as_str() {
            "/jwks" => Some(request.json(&keys)),
            "/introspect" => Some(introspected(request)),
            _ if request.is_for_server_metadata() => Some(request.json(metadata(request))),
            _ => None,
        })
    })
    .await
}

fn metadata(request: &PeerRequest) -> Value {
    let mut metadata = request.server_metadata();
    metadata["jwks_uri"] = json!(format!("{}/jwks", request.base));
    metadata["introspection_endpoint"] = json!(format!("{}/introspect", request.base));
    metadata["scopes_supported"] = json!(["openid", "mcp:tools"]);
    metadata
}

/// Accepts the client `me` with its secret in the form.
fn introspected(request: &PeerRequest) -> PeerResponse {
    match request.form().get("client_secret").map(String::as_str) {
        Some("hunter2") => request.json(json!({ "active": false })),
        _ => status(401, json!({ "error": "invalid_client" }).to_string()),
    }
}

fn status(status: u16, body: impl Into<String>) -> PeerResponse {
    Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, "application/json")
        .body(body.into())
        .unwrap()
}

/// The metadata with another member, or without it (null).
fn with_member(request: &PeerRequest, member: &str, value: Value) -> Option<PeerResponse> {
    request.is_for_server_metadata().then(|| {
        let mut metadata = metadata(request);
        match value {
            Value::Null => drop(metadata.as_object_mut().unwrap().remove(member)),
            value => metadata[member] = value,
        }
        request.json(metadata)
    })
}

struct Setup {
    top: String,
    /// The table of the issuer, or those of the broker.
    issuer: String,
    resource: String,
}

impl Setup {
    fn new(issuer: &str, upstream: &str) -> Self {
        Self {
            top: "listen = \"127.0.0.1:0\"\nbase_url = \"http://127.0.0.1:3000\"\n".to_owned(),
            issuer: format!("[[issuer]]\nissuer = \"{issuer}\"\n"),
            resource: format!(
                "endpoint = \"/mcp\"\nrequired_scopes = [\"mcp:tools\"]\nupstream = {upstream}\n"
            ),
        }
    }

    /// With a broker in front of this provider, and no other issuer.
    fn with_broker(idp: &BrokerIdp, upstream: &str) -> Self {
        Self {
            issuer: format!("[broker]\n{}", idp.table()),
            ..Self::new("", upstream)
        }
    }

    fn top(mut self, lines: &str) -> Self {
        lines.clone_into(&mut self.top);
        self
    }

    fn issuer(mut self, lines: &str) -> Self {
        self.issuer += lines;
        self
    }

    fn resource(mut self, lines: &str) -> Self {
        self.resource += lines;
        self
    }

    fn text(&self) -> String {
        let Self {
            top,
            issuer,
            resource,
        } = self;
        format!("{top}\n{issuer}\n[[resource]]\n{resource}")
    }

    async fn run(&self, more: &[&str]) -> Finished {
        let file = Scratch::file("online.toml", &self.text());
        let arguments = [&["check", "--online", "--config", file.as_str()][..], more].concat();
        Portcullis::run_with(
            &arguments,
            &[("SECRET", "hunter2"), ("WRONG_SECRET", "wrong")],
        )
        .await
    }

    async fn json(&self) -> (Finished, Value) {
        let finished = self.run(&["--json"]).await;
        let report =
            serde_json::from_str(&finished.stdout).unwrap_or_else(|_| panic!("{finished:?}"));
        (finished, report)
    }

    /// The set-up has no problem and no warning.
    async fn assert_sound(&self, case: &str) {
        let (finished, report) = self.json().await;
        let summary = &report["online"]["summary"];
        assert_eq!(summary["problems"], 0, "{case}: {:#}", report["online"]);
        assert_eq!(summary["warnings"], 0, "{case}: {:#}", report["online"]);
        assert_eq!(finished.code, Some(0), "{case}");
        assert_eq!(
            report["warnings"].as_array().map(Vec::len),
            Some(0),
            "{case}"
        );
    }

    /// The first cause has this rule, and its text and fix have these words.
    async fn assert_cause(&self, case: &str, rule: &str, words: &[&str]) {
        let (finished, report) = self.json().await;
        let cause = &report["online"]["first_cause"];
        assert_eq!(finished.code, Some(1), "{case}: {:#}", report["online"]);
        assert_eq!(
            cause["rule"]["id"],
            json!(rule),
            "{case}: {:#}",
            report["online"]
        );
        let text = format!(
            "{} {}",
            cause["text"].as_str().unwrap(),
            cause["fix"].as_str().unwrap()
        );
        assert!(
            words.iter().all(|word| text.contains(word)),
            "{case}: {words:?}: {text}"
        );
        assert!(
            !finished.stdout.contains("hunter2"),
            "{case}: a secret is printed"
        );
        assert!(
            !finished.stderr.contains("hunter2"),
            "{case}: a secret is printed"
        );
    }
}

const INTROSPECTION: &str =
    "validate = \"introspection\"\nclient_id = \"me\"\nclient_secret = { env = \"SECRET\" }\n";

/// J9: sound set-ups have no problem and no warning.
#[tokio::test]
async fn sound_set_ups() {
    let server = issuer(|_| None).await;
    let upstream = Upstream::start().await;
    let sound = || Setup::new(&server.url(""), &upstream.setting());
    sound().assert_sound("signatures").await;
    sound()
        .issuer(INTROSPECTION)
        .assert_sound("introspection")
        .await;

    sound()
        .issuer(&INTROSPECTION.replace("\"introspection\"", "\"jwt+introspection\""))
        .assert_sound("both")
        .await;
    sound()
        .issuer(&format!("jwks_uri = \"{}\"\n", server.url("/jwks")))
        .assert_sound("keys of a URL")
        .await;
    sound()
        .resource("allowed_origins = [\"https://app.example.com\"]\n")
        .assert_sound("origins")
        .await;
    let socket = Upstream::scripted_on_unix(|_| None);
    Setup::new(&server.url(""), &socket.setting())
        .assert_sound("a socket")
        .await;
    let events = Upstream::scripted(|request| {
        let is_initialize = request.message_method().as_deref() == Some("initialize");
        let body = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-06-18\"}}\n\n";
        is_initialize
            .then(|| Upstream::response(200, &[("content-type", "text/event-stream")], body))
    });
    let events =
        Setup::new(&server.url(""), &events.await.setting()).resource("sessions = \"off\"\n");
    events
        .assert_sound("a stateless server with event streams")
        .await;

    // Every session of the checks has ended.
    let methods: Vec<_> = upstream
        .recorded()
        .iter()
        .map(|request| request.method.clone())
        .collect();
    let count = |method: &http::Method| methods.iter().filter(|other| *other == method).count();
    assert_eq!(count(&http::Method::DELETE), 5, "{methods:?}");
}

/// J9: a server without session identifiers causes a hint, and no warning.
#[tokio::test]
async fn a_stateless_upstream_is_recognized() {
    let server = issuer(|_| None).await;
    let stateless = Upstream::scripted(|request| {
        let is_initialize = request.message_method().as_deref() == Some("initialize");
        let body =
            json!({ "jsonrpc": "2.0", "id": 1, "result": { "protocolVersion": "2025-11-25" } })
                .to_string();
        is_initialize
            .then(|| Upstream::response(200, &[("content-type", "application/json")], body))
    });
    let setup = Setup::new(&server.url(""), &stateless.await.setting());
    setup.assert_sound("stateless").await;
    let finished = setup.run(&[]).await;
    assert!(
        finished
            .stdout
            .contains("sessions = \"off\" in resource[0]"),
        "{finished:?}"
    );
    assert!(
        finished.stdout.ends_with("the configuration is valid\n"),
        "{finished:?}"
    );
    assert!(finished.stderr.contains("checking issuer "), "{finished:?}");
}

/// J9: a port of another program is a problem, and that of a running server with this configuration
/// is none.
#[tokio::test]
async fn the_port() {
    let server = issuer(|_| None).await;
    let upstream = Upstream::start().await;
    let port = ReservedPort::new();
    let address = port.address();
    let setup = |top: &str| Setup::new(&server.url(""), &upstream.setting()).top(top);
    let running = setup(&format!(
        "listen = \"{address}\"\nbase_url = \"http://{address}\"\n"
    ));
    let holder = TcpListener::bind(address).await.unwrap();
    running
        .assert_cause(
            "held",
            "listener.port",
            &["another program", "choose another port"],
        )
        .await;
    drop(holder);

    let elsewhere = setup("listen = \"192.0.2.7:3000\"\nbase_url = \"https://mcp.example.com\"\n");
    elsewhere
        .assert_cause(
            "another machine",
            "listener.port",
            &["192.0.2.7", "address of this machine"],
        )
        .await;
    let server = Portcullis::serve(&running.text()).await;
    running.assert_sound("a running server").await;
    drop(server);

    let without_tokens = running.resource("auth = \"none\"\n");
    let _server = Portcullis::serve(&without_tokens.text()).await;
    let (_, report) = without_tokens.json().await;
    let port = &report["online"]["steps"][0]["findings"][0];
    assert_eq!(port["verdict"], "note", "{port}");
}

/// J9: the summary counts the warnings of the configuration.
#[tokio::test]
async fn warnings_of_the_configuration_are_counted() {
    let server = issuer(|_| None).await;
    let upstream = Upstream::start().await;
    let mut setup = Setup::new(&server.url(""), &upstream.setting());
    setup.resource = setup.resource.replace("mcp:tools", "admin");
    let finished = setup.run(&[]).await;
    let warnings = finished
        .stdout
        .lines()
        .filter(|line| line.trim_start().starts_with("warning"))
        .count();
    assert!(finished.stdout.contains("catch-all scope"), "{finished:?}");
    let counted = match warnings {
        1 => "1 warning,".to_owned(),
        more => format!("{more} warnings,"),
    };
    assert!(finished.stdout.contains(&counted), "{finished:?}");
}

/// J9: a running server with TLS is recognized by its resource at `/`. Its certificate is for the
/// name of the base URL.
#[tokio::test]
async fn a_running_server_with_tls() {
    let server = issuer(|_| None).await;
    let upstream = Upstream::start().await;
    let certified = generate_simple_self_signed(["mcp.example.com".to_owned()]).unwrap();
    let certificates = Scratch::file("cert.pem", &certified.cert.pem());
    let key = Scratch::file("key.pem", &certified.signing_key.serialize_pem());
    let port = ReservedPort::new();
    let address = port.address();
    let mut setup = Setup::new(&server.url(""), &upstream.setting()).top(&format!(
        "listen = \"{address}\"\nbase_url = \"https://mcp.example.com\"\ntls = {{ certificates = {:?}, key = {:?} }}\n",
        certificates.as_str(),
        key.as_str()
    ));
    setup.resource = setup.resource.replace("/mcp", "/");
    let _server = Portcullis::serve(&setup.text()).await;
    let (finished, report) = setup.json().await;

    // The configuration itself has warnings.
    assert_eq!(finished.code, Some(0), "{:#}", report["online"]);
    assert_eq!(
        report["online"]["first_cause"],
        Value::Null,
        "{:#}",
        report["online"]
    );
    setup.resource = setup.resource.replace("\"/\"", "\"/other\"");
    assert_other(&setup, "which serves /").await;
    setup = setup.top(&format!(
        "listen = \"{address}\"\nbase_url = \"https://other.example.com\"\n"
    ));
    assert_other(&setup, "which serves /").await;
}

/// J9: Portcullis with an earlier configuration is not another program: a reload can replace it.
#[tokio::test]
async fn a_running_server_with_another_configuration() {
    let (server, upstream) = (issuer(|_| None).await, Upstream::start().await);
    let port = ReservedPort::new();
    let address = port.address();
    let mut setup = Setup::new(&server.url(""), &upstream.setting()).top(&format!(
        "listen = \"{address}\"\nbase_url = \"http://{address}\"\n"
    ));
    let _server = Portcullis::serve(&setup.text()).await;
    setup.resource = setup
        .resource
        .replace("/mcp\"\nrequired", "/later\"\nrequired");
    assert_other(&setup, "which serves /mcp").await;
    setup = setup.top(&format!(
        "listen = \"{address}\"\nbase_url = \"https://other.example.com\"\n"
    ));
    assert_other(&setup, "which serves another host than base_url").await;
}

/// The port is in use by Portcullis with another configuration, which is a warning.
async fn assert_other(setup: &Setup, served: &str) {
    let (finished, report) = setup.json().await;
    assert_eq!(finished.code, Some(0), "{:#}", report["online"]);
    let findings = report["online"]["steps"][0]["findings"].as_array().unwrap();
    let port = findings
        .iter()
        .find(|finding| finding["rule"]["id"] == "listener.port")
        .unwrap();
    assert_eq!(port["verdict"], "warning", "{port}");
    let text = port["text"].as_str().unwrap();
    assert!(
        text.contains("Portcullis with another configuration") && text.ends_with(served),
        "{port}"
    );
    assert!(
        port["fix"]
            .as_str()
            .unwrap()
            .contains("reload or restart it"),
        "{port}"
    );
}
