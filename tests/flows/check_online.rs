//! `check --online`: the first cause of broken set-ups, and no finding for sound ones.

use http::{Response, header};
use portcullis_scenarios::{Finished, Peer, PeerRequest, PeerResponse, Portcullis, RawUpstream, Scratch, Upstream};
use portcullis_testkit::TestIssuer;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// An authorization server with keys and an introspection endpoint. `script` replaces responses.
async fn issuer(script: impl Fn(&PeerRequest) -> Option<PeerResponse> + Send + Sync + 'static) -> Peer {
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
    Response::builder().status(status).header(header::CONTENT_TYPE, "application/json").body(body.into()).unwrap()
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
    issuer: String,
    resource: String,
}

impl Setup {
    fn new(issuer: &str, upstream: &str) -> Self {
        Self {
            top: "listen = \"127.0.0.1:0\"\nbase_url = \"http://127.0.0.1:3000\"\n".to_owned(),
            issuer: format!("issuer = \"{issuer}\"\n"),
            resource: format!("endpoint = \"/mcp\"\nrequired_scopes = [\"mcp:tools\"]\nupstream = {upstream}\n"),
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

    async fn run(&self, more: &[&str]) -> Finished {
        let Self { top, issuer, resource } = self;
        let file = Scratch::file("online.toml", &format!("{top}\n[[issuer]]\n{issuer}\n[[resource]]\n{resource}"));
        let arguments = [&["check", "--online", "--config", file.as_str()][..], more].concat();
        Portcullis::run_with(&arguments, &[("SECRET", "hunter2"), ("WRONG_SECRET", "wrong")]).await
    }

    async fn json(&self) -> (Finished, Value) {
        let finished = self.run(&["--json"]).await;
        let report = serde_json::from_str(&finished.stdout).unwrap_or_else(|_| panic!("{finished:?}"));
        (finished, report)
    }

    /// The set-up has no problem and no warning.
    async fn assert_sound(&self, case: &str) {
        let (finished, report) = self.json().await;
        let summary = &report["online"]["summary"];
        assert_eq!(
            (&summary["problems"], &summary["warnings"]),
            (&json!(0), &json!(0)),
            "{case}: {:#}",
            report["online"]
        );
        assert_eq!((finished.code, report["warnings"].as_array().map(Vec::len)), (Some(0), Some(0)), "{case}");
    }

    /// The first cause has this rule, and its text and fix have these words.
    async fn assert_cause(&self, case: &str, rule: &str, words: &[&str]) {
        let (finished, report) = self.json().await;
        let cause = &report["online"]["first_cause"];
        assert_eq!((finished.code, &cause["rule"]["id"]), (Some(1), &json!(rule)), "{case}: {:#}", report["online"]);
        let text = format!("{} {}", cause["text"].as_str().unwrap(), cause["fix"].as_str().unwrap());
        assert!(words.iter().all(|word| text.contains(word)), "{case}: {words:?}: {text}");
        assert!(
            !finished.stdout.contains("hunter2") && !finished.stderr.contains("hunter2"),
            "{case}: a secret is printed"
        );
    }
}

const INTROSPECTION: &str = "validate = \"introspection\"\nclient_id = \"me\"\nclient_secret = { env = \"SECRET\" }\n";

/// J9: sound set-ups have no problem and no warning.
#[tokio::test]
async fn sound_set_ups() {
    let (server, upstream) = (issuer(|_| None).await, Upstream::start().await);
    let sound = || Setup::new(&server.url(""), &upstream.setting());
    sound().assert_sound("signatures").await;
    sound().issuer(INTROSPECTION).assert_sound("introspection").await;
    sound().issuer(&INTROSPECTION.replace("\"introspection\"", "\"jwt+introspection\"")).assert_sound("both").await;
    sound().issuer(&format!("jwks_uri = \"{}\"\n", server.url("/jwks"))).assert_sound("keys of a URL").await;
    sound().resource("allowed_origins = [\"https://app.example.com\"]\n").assert_sound("origins").await;
    let socket = Upstream::scripted_on_unix(|_| None);
    Setup::new(&server.url(""), &socket.setting()).assert_sound("a socket").await;
    let events = Upstream::scripted(|request| {
        let is_initialize = request.message_method().as_deref() == Some("initialize");
        let body =
            "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-06-18\"}}\n\n";
        is_initialize.then(|| Upstream::response(200, &[("content-type", "text/event-stream")], body))
    });
    let events = Setup::new(&server.url(""), &events.await.setting()).resource("sessions = \"off\"\n");
    events.assert_sound("a stateless server with event streams").await;
    // Every session of the checks has ended.
    let methods: Vec<_> = upstream.recorded().iter().map(|request| request.method.clone()).collect();
    let count = |method: &http::Method| methods.iter().filter(|other| *other == method).count();
    assert_eq!(count(&http::Method::DELETE), 5, "{methods:?}");
}

/// J9: a server without session identifiers causes a hint, and no warning.
#[tokio::test]
async fn a_stateless_upstream_is_recognized() {
    let server = issuer(|_| None).await;
    let stateless = Upstream::scripted(|request| {
        let is_initialize = request.message_method().as_deref() == Some("initialize");
        let body = json!({ "jsonrpc": "2.0", "id": 1, "result": { "protocolVersion": "2025-11-25" } }).to_string();
        is_initialize.then(|| Upstream::response(200, &[("content-type", "application/json")], body))
    });
    let setup = Setup::new(&server.url(""), &stateless.await.setting());
    setup.assert_sound("stateless").await;
    let finished = setup.run(&[]).await;
    assert!(finished.stdout.contains("sessions = \"off\" in resource[0]"), "{finished:?}");
    assert!(finished.stdout.ends_with("the configuration is valid\n"), "{finished:?}");
    assert!(finished.stderr.contains("checking issuer "), "{finished:?}");
}

/// J9: the first cause of a broken issuer is named, with the fix.
#[tokio::test]
async fn broken_issuers() {
    let upstream = Upstream::start().await;
    let setting = upstream.setting();
    let at = |server: &Peer| Setup::new(&server.url(""), &setting);
    let sound = issuer(|_| None).await;

    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    Setup::new(&format!("http://{gone}"), &setting)
        .assert_cause("gone", "connection.reachable", &["cannot connect", "start"])
        .await;
    let setup = Setup::new("https://issuer.invalid", &setting);
    setup.assert_cause("no such host", "connection.reachable", &["resolved", "issuer.invalid"]).await;
    let setup = Setup::new(&format!("https://{}", sound.address()), &setting);
    setup.assert_cause("no TLS", "connection.tls", &["TLS"]).await;
    let setup = Setup::new(&sound.url("/"), &setting);
    let exact = format!("write issuer[0].issuer = \"{}\"", sound.url(""));
    setup.assert_cause("a trailing slash", "issuer.identity", &[&exact, "exactly"]).await;
    let setup = Setup::new(&sound.url("/realms/prod"), &setting);
    setup.assert_cause("another path", "issuer.found", &["/realms/prod", &exact]).await;

    for (case, member, value, more, rule, words) in [
        ("http behind a proxy", "issuer", json!("https://127.0.0.1:1"), "", "issuer.identity", &["public address"][..]),
        (
            "another host",
            "issuer",
            json!("https://keycloak:8443"),
            "",
            "issuer.identity",
            &["https://keycloak:8443", "if tokens"],
        ),
        (
            "insecure",
            "token_endpoint",
            json!("http://keycloak:8080/t"),
            "",
            "issuer.endpoints",
            &["token_endpoint", "https"],
        ),
        ("no keys", "jwks_uri", Value::Null, "", "keys.found", &["no jwks_uri", "set jwks_uri of issuer[0]"]),
        ("keys elsewhere", "jwks_uri", json!("https://keys.invalid/"), "", "connection.reachable", &["keys.invalid"]),
        (
            "no introspection",
            "introspection_endpoint",
            Value::Null,
            INTROSPECTION,
            "introspection.found",
            &["validate = \"jwt\""],
        ),
    ] {
        let value = value.clone();
        let server = issuer(move |request| with_member(request, member, value.clone())).await;
        at(&server).issuer(more).assert_cause(case, rule, words).await;
    }

    for (case, path, response, more, rule, words) in [
        ("a failing server", "", status(503, ""), "", "issuer.found", &["503", "log"][..]),
        ("no keys yet", "/jwks", status(404, ""), "", "keys.found", &["404", "jwks_uri"]),
        (
            "a web page",
            "/jwks",
            status(200, "<html><title>Sign in</title>"),
            "",
            "keys.document",
            &["web page", "Sign in"],
        ),
        ("an empty set", "/jwks", status(200, "{\"keys\":[]}"), "", "keys.usable", &["HS256", "introspection"]),
        ("a broken endpoint", "/introspect", status(500, ""), INTROSPECTION, "introspection.response", &["500"]),
        (
            "all tokens",
            "/introspect",
            status(200, "{\"active\":true}"),
            INTROSPECTION,
            "introspection.response",
            &["made-up"],
        ),
        (
            "a page",
            "/introspect",
            status(200, "<html>"),
            INTROSPECTION,
            "introspection.response",
            &["introspection_endpoint"],
        ),
    ] {
        let (status, body) = (response.status().as_u16(), response.into_body());
        let server = issuer(move |request| {
            let is_meant = request.path == path || (path.is_empty() && request.path.starts_with("/.well-known"));
            is_meant.then(|| self::status(status, body.clone()))
        });
        at(&server.await).issuer(more).assert_cause(case, rule, words).await;
    }

    let other = at(&sound).issuer("algorithms = [\"ES256\"]\n");
    other.assert_cause("algorithms", "keys.usable", &["no key is for ES256", "algorithms = [\"RS256\"]"]).await;
    let wrong = INTROSPECTION.replace("\"SECRET\"", "\"WRONG_SECRET\"");
    let setup = at(&sound).issuer(&wrong);
    setup
        .assert_cause("a wrong secret", "introspection.client", &["invalid_client", "client_secret of issuer[0]"])
        .await;
    let basic = issuer(|request| {
        let is_basic = request.authorization.as_deref().is_some_and(|value| value.starts_with("Basic "));
        (request.path == "/introspect" && is_basic).then(|| request.json(json!({ "active": false }))).or_else(|| {
            (request.path == "/introspect").then(|| status(401, json!({ "error": "invalid_client" }).to_string()))
        })
    });
    let setup = at(&basic.await).issuer(INTROSPECTION);
    setup.assert_cause("basic", "introspection.client", &["introspection_auth = \"basic\""]).await;
    for (case, date) in
        [("a clock ahead", "Sun, 06 Nov 2044 08:49:37 GMT"), ("behind", "Sun, 06 Nov 1994 08:49:37 GMT")]
    {
        let server = issuer(move |request| {
            let mut response = with_member(request, "x", json!(1))?;
            response.headers_mut().insert(header::DATE, header::HeaderValue::from_static(date));
            Some(response)
        });
        at(&server.await).assert_cause(case, "clock.difference", &["NTP"]).await;
    }
    let setup = at(&sound).resource("scopes_supported = [\"mcp:tools\", \"mcp:missing\"]\n");
    let (finished, report) = setup.json().await;
    assert_eq!((finished.code, &report["online"]["summary"]["warnings"]), (Some(0), &json!(1)), "{report:#}");
    assert_eq!(setup.run(&["--deny-warnings"]).await.code, Some(2));
}

/// J9: the first cause of a broken upstream is named, with the fix.
#[tokio::test]
async fn broken_upstreams() {
    const JSON: (&str, &str) = ("content-type", "application/json");
    let server = issuer(|_| None).await;
    let to = |upstream: &str| Setup::new(&server.url(""), &format!("{{ http = \"{upstream}\" }}"));

    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    to(&format!("http://{gone}/mcp")).assert_cause("gone", "upstream.reachable", &["cannot connect", "start"]).await;
    to("http://mcp.invalid/mcp").assert_cause("no host", "upstream.reachable", &["mcp.invalid", "resolved"]).await;
    let socket = Setup::new(&server.url(""), "{ unix = \"/nowhere/socket\" }");
    socket.assert_cause("no socket", "upstream.reachable", &["socket", "correct the path"]).await;
    let raw = RawUpstream::start("SSH-2.0-OpenSSH_9.6\r\n").await;
    to(&raw.url()).assert_cause("no HTTP", "upstream.reachable", &["no HTTP response", "https://"]).await;

    let sound = Upstream::start().await;
    let tls = sound.origin().replace("http:", "https:");
    to(&format!("{tls}/mcp")).assert_cause("no TLS", "upstream.tls", &["does not speak TLS", "http = \"http://"]).await;

    for (case, status, headers, body, rule, words) in [
        (
            "a redirect",
            307,
            &[("location", "/mcp/")][..],
            "",
            "upstream.redirect",
            &["307", "/mcp/\" } in resource[0]"][..],
        ),
        (
            "its own authorization",
            401,
            &[("www-authenticate", "Bearer")],
            "",
            "upstream.authorization",
            &["switch off"],
        ),
        ("another host", 421, &[], "Invalid Host header", "upstream.host", &["allowed hosts"]),
        ("a host that is blocked", 403, &[], "Invalid host header: 127.0.0.1", "upstream.host", &["allowed hosts"]),
        ("forbidden", 403, &[], "", "upstream.authorization", &["admit this machine"]),
        ("a failure", 500, &[], "", "upstream.mcp", &["500", "log of the MCP server"]),
        ("TLS on this port", 400, &[], "The plain HTTP request was sent to HTTPS port", "upstream.tls", &["https://"]),
        (
            "a web page",
            200,
            &[("content-type", "text/html")],
            "<html><title>Home</title>",
            "upstream.mcp",
            &["Home", "whole URL"],
        ),
        (
            "an error",
            200,
            &[JSON],
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no"}}"#,
            "upstream.mcp",
            &["-32603: no"],
        ),
        (
            "an old revision",
            200,
            &[JSON],
            r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05"}}"#,
            "upstream.revision",
            &["2024-11-05", "update the SDK"],
        ),
    ] {
        let upstream = Upstream::scripted(move |_| Some(Upstream::response(status, headers, body))).await;
        to(&format!("{}/mcp", upstream.origin())).assert_cause(case, rule, words).await;
    }

    let at_mcp =
        Upstream::scripted(|request| (request.target != "/mcp").then(|| Upstream::response(404, &[], "Not Found")))
            .await;
    let fix = format!("http = \"{}/mcp\"", at_mcp.origin());
    to(&at_mcp.origin()).assert_cause("no path", "upstream.mcp", &["404", &fix]).await;
    let sse = Upstream::scripted(|request| {
        Some(match request.target.as_str() {
            "/sse" => Upstream::response(
                200,
                &[("content-type", "text/event-stream")],
                "event: endpoint\ndata: /messages\n\n",
            ),
            _ => Upstream::response(405, &[], ""),
        })
    });
    to(&format!("{}/mcp", sse.await.origin()))
        .assert_cause("SSE", "upstream.mcp", &["2024-11-05", "Streamable HTTP"])
        .await;
    let strict = Upstream::scripted(|request| {
        let has_session = request.header("mcp-session-id").is_some();
        let is_first = request.message_method().as_deref() == Some("initialize");
        (!has_session && !is_first).then(|| Upstream::response(400, &[], "no session"))
    });
    let setup = Setup::new(&server.url(""), &strict.await.setting()).resource("sessions = \"off\"\n");
    setup.assert_cause("sessions that are switched off", "upstream.sessions", &["remove sessions"]).await;
    let setup = Setup::new(&server.url(""), &sound.setting()).resource("revisions = [\"2025-06-18\"]\n");
    setup
        .assert_cause("a revision that is not served", "upstream.revision", &["add \"2025-11-25\" to revisions"])
        .await;
}

/// J9: a port of another program is a problem, and that of a running server with this configuration is none.
#[tokio::test]
async fn the_port() {
    let (server, upstream) = (issuer(|_| None).await, Upstream::start().await);
    let holder = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = holder.local_addr().unwrap();
    let top = |address| format!("listen = \"{address}\"\nbase_url = \"http://{address}\"\n");
    let setup = |address| Setup::new(&server.url(""), &upstream.setting()).top(&top(address));
    setup(address).assert_cause("held", "listener.port", &["another program", "choose another port"]).await;
    let elsewhere = "192.0.2.7:3000".parse().unwrap();
    let setup_elsewhere = setup(elsewhere).top("listen = \"192.0.2.7:3000\"\nbase_url = \"https://mcp.example.com\"\n");
    setup_elsewhere.assert_cause("another machine", "listener.port", &["192.0.2.7", "address of this machine"]).await;
    drop(holder);

    let running = setup(address);
    let configuration = format!("{}\n[[issuer]]\n{}\n[[resource]]\n{}", running.top, running.issuer, running.resource);
    let _server = Portcullis::serve(&configuration).await;
    running.assert_sound("a running server").await;
}
