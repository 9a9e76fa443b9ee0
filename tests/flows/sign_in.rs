//! Sign-ins at authorization servers that deviate from the MCP specification, and sign-ins without
//! a browser.

use std::{
    collections::HashMap,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use portcullis_scenarios::{
    Peer, PeerRequest, PeerResponse, Portcullis, Process, ReservedPort, Scratch, TIMEOUT,
    portcullis_command, portcullis_program,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    process::ChildStderr,
    time::timeout,
};

use crate::connect::Bridge;

/// An authorization server like that of the MCP Python SDK: it lists post and basic, and reads
/// `client_id` from the body.
fn body_only(request: &PeerRequest) -> Option<PeerResponse> {
    if request.is_for_server_metadata() {
        let mut metadata = request.server_metadata();
        metadata["token_endpoint_auth_methods_supported"] =
            json!(["client_secret_basic", "client_secret_post"]);
        return Some(request.json(metadata));
    }
    match request.path.as_str() {
        "/register" => {
            let message = request.message();
            Some(request.json(json!({
                "client_id": "me", "client_secret": "the-secret", "redirect_uris": message["redirect_uris"],
                "token_endpoint_auth_method": message["token_endpoint_auth_method"],
            })))
        }
        "/token"
            if request
                .form()
                .get("client_id")
                .is_none_or(|client_id| client_id != "me") =>
        {
            let mut response = request.json(
                json!({ "error": "invalid_client", "error_description": "Missing client_id" }),
            );
            *response.status_mut() = http::StatusCode::UNAUTHORIZED;
            Some(response)
        }
        _ => None,
    }
}

/// I4: `client_id` is always in the body, post is preferred to basic, and `--token-auth-method`
/// chooses.
#[tokio::test]
async fn a_server_that_reads_the_client_from_the_body() {
    for (options, is_basic) in [
        (&[][..], false),
        (&["--token-auth-method", "client_secret_basic"][..], true),
    ] {
        let peer = Peer::start(body_only).await;
        let store = Scratch::path_for("store");
        let url = peer.url("/mcp");
        let arguments = ["login", &url, "--auto-consent", "--store", store.as_str()];
        let login = Portcullis::run(&[&arguments[..], options].concat()).await;
        assert_eq!(login.code, Some(0), "{login:?}");
        let sent = &peer.requests("/token")[0];
        assert_eq!(sent.authorization.is_some(), is_basic);
        assert_eq!(sent.form().contains_key("client_secret"), !is_basic);
        assert_eq!(peer.requests("/token").len(), 1);
    }
    let peer = Peer::start(body_only).await;
    let doctor = Portcullis::run(&["doctor", &peer.url("/mcp"), "--json"]).await;
    assert!(
        doctor.stdout.contains("requires `client_id` in the body"),
        "{doctor:?}"
    );

    let wrong = [
        "login",
        &peer.url("/mcp"),
        "--client-id",
        "me",
        "--token-auth-method",
        "client_secret_post",
    ];
    let rejected = Portcullis::run(&wrong).await;
    assert_eq!(rejected.code, Some(1), "{rejected:?}");
    assert!(
        rejected.stderr.contains("needs --client-secret-file"),
        "{rejected:?}"
    );
}

/// I4: `client_id` in the body is omitted where the server rejects it beside `client_secret_basic`.
#[tokio::test]
async fn a_server_that_rejects_the_client_in_the_body() {
    let peer = Peer::start(|request| {
        if request.is_for_server_metadata() {
            let mut metadata = request.server_metadata();
            metadata["token_endpoint_auth_methods_supported"] = json!(["client_secret_basic"]);
            return Some(request.json(metadata));
        }
        match request.path.as_str() {
            "/register" => Some(request.json(json!({
                "client_id": "me", "client_secret": "the-secret", "redirect_uris": request.message()["redirect_uris"],
                "token_endpoint_auth_method": "client_secret_basic",
            }))),
            "/token" if request.authorization.is_none() || request.form().contains_key("client_id") => {
                let mut response = request.json(json!({ "error": "invalid_client" }));
                *response.status_mut() = http::StatusCode::UNAUTHORIZED;
                Some(response)
            }
            _ => None,
        }
    })
    .await;
    let url = peer.url("/mcp");
    let store = Scratch::path_for("store");
    let login =
        Portcullis::run(&["login", &url, "--auto-consent", "--store", store.as_str()]).await;
    assert_eq!(login.code, Some(0), "{login:?}");
    assert_eq!(peer.requests("/token").len(), 2);
}

/// I9: `login` follows a redirect within the resource, as `connect` does, and names the target of
/// any other.
#[tokio::test]
async fn a_login_at_a_server_that_redirects() {
    for (target, works) in [("/mcp/", true), ("/other", false)] {
        let peer = Peer::start(move |request| {
            (request.path == "/mcp").then(|| {
                let mut response = request.json("");
                *response.status_mut() = http::StatusCode::TEMPORARY_REDIRECT;
                response.headers_mut().insert(
                    http::header::LOCATION,
                    http::HeaderValue::from_static(target),
                );
                response
            })
        })
        .await;
        let url = peer.url("/mcp");
        let store = Scratch::path_for("store");
        let login =
            Portcullis::run(&["login", &url, "--auto-consent", "--store", store.as_str()]).await;
        assert_eq!(login.code == Some(0), works, "{login:?}");
        assert!(
            works || login.stderr.contains("/other, which is not followed"),
            "{login:?}"
        );
        assert_eq!(peer.requests("/other").len(), 0);
    }
}

/// I1: the client requests a scope in the form that the resource lists, even if the challenge names
/// the shorter form of tokens. Microsoft Entra ID requires this.
#[tokio::test]
async fn a_scope_with_a_long_form_in_requests() {
    const LONG: &str = "api://00001111-aaaa-2222-bbbb-3333cccc4444/tools";
    let peer = Peer::start(|request| {
        if request.is_for_resource_metadata("/mcp") {
            let mut metadata = request.resource_metadata(&format!("{}/mcp", request.base));
            metadata["scopes_supported"] = json!([LONG]);
            return Some(request.json(metadata));
        }
        (request.path == "/mcp" && request.authorization.is_none()).then(|| {
            let mut response = request.json("");
            *response.status_mut() = http::StatusCode::UNAUTHORIZED;
            let challenge = http::HeaderValue::from_static("Bearer scope=\"tools\"");
            response
                .headers_mut()
                .insert(http::header::WWW_AUTHENTICATE, challenge);
            response
        })
    })
    .await;
    let url = peer.url("/mcp");
    let store = Scratch::path_for("store");
    let login =
        Portcullis::run(&["login", &url, "--auto-consent", "--store", store.as_str()]).await;
    assert_eq!(login.code, Some(0), "{login:?}");
    assert_eq!(peer.requests("/authorize")[0].query["scope"], LONG);
}

/// An authorization server with the device flow. It approves its only device code.
fn with_device_flow(request: &PeerRequest) -> Option<PeerResponse> {
    let base = &request.base;
    if request.is_for_server_metadata() {
        let mut metadata = request.server_metadata();
        metadata["device_authorization_endpoint"] = json!(format!("{base}/device_authorization"));
        return Some(request.json(metadata));
    }
    let is_known = request
        .form()
        .get("device_code")
        .is_some_and(|code| code == "the-device");
    match request.path.as_str() {
        "/device_authorization" => Some(request.json(json!({
            "device_code": "the-device", "user_code": "BCDF-GHJK", "verification_uri": format!("{base}/device"),
            "expires_in": 60, "interval": 1,
        }))),
        "/token" if !is_known => Some(request.json(json!({ "error": "invalid_request" }))),
        _ => None,
    }
}

/// I8: the device flow of `login` prints the page and the user code. A server without the flow
/// causes an error.
#[tokio::test]
async fn a_login_on_another_device() {
    let peer = Peer::start(with_device_flow).await;
    let url = peer.url("/mcp");
    let store = Scratch::path_for("store");
    let login = Portcullis::run(&["login", &url, "--device", "--store", store.as_str()]).await;
    assert_eq!(login.code, Some(0), "{login:?}");
    assert!(login.stderr.contains(&peer.url("/device")), "{login:?}");
    assert!(login.stderr.contains("BCDF-GHJK"), "{login:?}");
    assert!(!login.stderr.contains("the-device"));
    assert!(peer.requests("/authorize").is_empty());

    let registered = peer.requests("/register")[0].message();
    assert!(
        registered["grant_types"]
            .to_string()
            .contains("device_code"),
        "{registered}"
    );
    let token = Portcullis::run(&["token", &url, "--store", store.as_str()]).await;
    assert_eq!(token.stdout.trim(), "the-token");

    let other = Peer::start(|_| None).await;
    let rejected = Portcullis::run(&[
        "login",
        &other.url("/mcp"),
        "--device",
        "--store",
        store.as_str(),
    ])
    .await;
    assert_eq!(rejected.code, Some(1), "{rejected:?}");
    assert!(rejected.stderr.contains("--device"), "{rejected:?}");
}

/// I8: `connect --device` and mcp-remote's `--device-code` print the page and the code to standard
/// error, and no browser opens.
#[tokio::test]
async fn connect_on_another_device() {
    for (command, option) in [("connect", "--device"), ("mcp-remote", "--device-code")] {
        let peer = Peer::start(with_device_flow).await;
        let state = Scratch::path_for("state");
        let url = peer.url("/mcp");
        let mut bridge = Bridge::start_command(
            command,
            &[&url, option],
            &[("XDG_STATE_HOME", state.as_str())],
        );
        assert!(bridge.initialize().await["result"].is_object());
        let finished = bridge.close().await;
        assert_eq!(finished.code, Some(0), "{finished:?}");
        let log = finished.stderr;
        assert!(log.contains(&peer.url("/device")), "{log}");
        assert!(log.contains("BCDF-GHJK"), "{log}");
        assert!(!log.contains("the-device"), "{log}");
        assert!(peer.requests("/authorize").is_empty());
    }
}

/// I8: the device flow at the development server, which `--auto-consent` approves.
#[tokio::test]
async fn a_login_on_another_device_at_the_development_server() {
    let listen = [
        "--listen",
        "127.0.0.1:0",
        "--idp-listen",
        "127.0.0.1:0",
        "--auto-consent",
    ];
    let demo = Portcullis::start(&[&["demo"][..], &listen].concat()).await;
    let url = format!("http://{}/mcp", demo.address());
    let store = Scratch::path_for("store");
    let login = Portcullis::run(&["login", &url, "--device", "--store", store.as_str()]).await;
    assert_eq!(login.code, Some(0), "{login:?}");
    let call = [
        "call",
        &url,
        "tools/call",
        r#"{"name":"whoami"}"#,
        "--store",
        store.as_str(),
    ];
    let call = Portcullis::run(&call).await;
    assert!(call.stdout.contains("alice"), "{call:?}");
}

/// H3: if the server has forgotten the client, the client registers again before the browser opens.
/// `--fresh` and `--forget-client` cause a new registration. `logout --all` signs out of every URL.
#[tokio::test]
async fn forgotten_registrations_are_replaced() {
    // The server knows only the client with this number.
    let known = Arc::new(AtomicUsize::new(0));
    let number = Arc::clone(&known);
    let peer = Peer::start(move |request| {
        let current = number.load(Ordering::Relaxed);
        match request.path.as_str() {
            "/register" => {
                number.store(current + 1, Ordering::Relaxed);
                let redirect_uris = request.message()["redirect_uris"].clone();
                Some(request.json(json!({ "client_id": format!("c{}", current + 1), "redirect_uris": redirect_uris })))
            }
            "/authorize" if request.query["client_id"] != format!("c{current}") => {
                let body = json!({ "error": "invalid_request", "error_description": "Client ID not found" });
                let mut response = request.json(body);
                *response.status_mut() = http::StatusCode::BAD_REQUEST;
                Some(response)
            }
            _ => None,
        }
    })
    .await;
    let url = peer.url("/mcp");
    let other = peer.url("/other");
    let store = Scratch::path_for("store");
    let run = async |arguments: &[&str]| {
        Portcullis::run(&[arguments, &["--store", store.as_str()]].concat()).await
    };
    let registrations = || peer.requests("/register").len();
    for _ in 0..2 {
        assert_eq!(run(&["login", &url, "--auto-consent"]).await.code, Some(0));
        assert_eq!(registrations(), 1);
    }
    known.fetch_add(1, Ordering::Relaxed);
    let login = run(&["login", &url, "--auto-consent"]).await;
    assert_eq!(login.code, Some(0), "{login:?}");
    assert_eq!(registrations(), 2, "{login:?}");
    assert_eq!(
        run(&["login", &url, "--auto-consent", "--fresh"])
            .await
            .code,
        Some(0)
    );
    assert_eq!(registrations(), 3);

    let logout = run(&["logout", &url, "--forget-client"]).await;
    assert_eq!(logout.code, Some(0), "{logout:?}");
    assert!(
        logout.stderr.contains("registrations deleted here: 1"),
        "{logout:?}"
    );
    assert_eq!(run(&["login", &url, "--auto-consent"]).await.code, Some(0));
    assert_eq!(registrations(), 4);
    assert_eq!(
        run(&["login", &other, "--auto-consent"]).await.code,
        Some(0)
    );

    let all = run(&["logout", "--all"]).await;
    assert_eq!(all.code, Some(0), "{all:?}");
    assert!(all.stderr.contains(&url), "{all:?}");
    assert!(all.stderr.contains(&other), "{all:?}");

    for signed_out in [&url, &other] {
        assert_eq!(run(&["token", signed_out]).await.code, Some(1));
    }
    for wrong in [&["logout"][..], &["logout", &url, "--all"]] {
        let rejected = run(wrong).await;
        assert_eq!(rejected.code, Some(1), "{rejected:?}");
        assert!(rejected.stderr.contains("--all"), "{rejected:?}");
    }
}

/// Sends `initialize` through `connect` and returns the response.
async fn initialize_through_connect(url: &str, arguments: &[&str]) -> Value {
    Bridge::start(url, arguments, &[]).initialize().await
}

/// I8, I10: `connect` uses the client credentials grant, or the token that a program prints. No
/// browser is needed.
#[tokio::test]
async fn connect_without_a_user() {
    let peer = Peer::start(|_| None).await;
    let secret = Scratch::file("secret", "the-secret");
    let store = Scratch::path_for("store");
    let client = [
        "--client-credentials",
        "--client-id",
        "me",
        "--client-secret-file",
        secret.as_str(),
    ];
    let response = initialize_through_connect(
        &peer.url("/mcp"),
        &[&client[..], &["--store", store.as_str()]].concat(),
    )
    .await;
    assert_eq!(
        response["result"]["serverInfo"]["name"], "peer",
        "{response}"
    );

    let sent = peer.requests("/token")[0].form();
    assert_eq!(sent["grant_type"].as_str(), "client_credentials");
    assert_eq!(sent["client_id"].as_str(), "me");
    assert!(peer.requests("/authorize").is_empty());
    assert!(peer.requests("/register").is_empty());

    let peer = Peer::start(|_| None).await;
    let response = initialize_through_connect(
        &peer.url("/mcp"),
        &["--token-command", "printf 'the-printed$HOME'"],
    )
    .await;
    assert_eq!(
        response["result"]["serverInfo"]["name"], "peer",
        "{response}"
    );

    let first = &peer.requests("/mcp")[0];
    assert_eq!(
        first.authorization.as_deref(),
        Some("Bearer the-printed$HOME")
    );
    assert!(peer.requests("/token").is_empty());
    let response =
        initialize_through_connect(&peer.url("/mcp"), &["--token-command", "false"]).await;
    assert!(
        response["error"].to_string().contains("--token-command"),
        "{response}"
    );
}

/// I3: a pre-registered redirect URI is requested with its host and path. A host other than
/// loopback is rejected.
#[tokio::test]
async fn a_preregistered_redirect_uri() {
    let peer = Peer::start(|_| None).await;
    let url = peer.url("/mcp");
    let reserved = ReservedPort::new();
    let port = reserved.port().to_string();
    let redirect = [
        "--callback-host",
        "localhost",
        "--callback-path",
        "/oauth/callback",
        "--callback-port",
        &port,
    ];
    let mut command = portcullis_command(portcullis_program());
    let store = Scratch::path_for("store");
    command
        .args([
            "login",
            &url,
            "--no-browser",
            "--client-id",
            "me",
            "--store",
            store.as_str(),
        ])
        .args(redirect);
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    let mut process = Process::start("login", &mut command).unwrap();
    let stderr = ChildStderr::from_std(process.take_stderr().unwrap()).unwrap();
    let mut lines = BufReader::new(stderr).lines();
    let page = loop {
        let line = timeout(TIMEOUT, lines.next_line())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        if let Ok(page) = url::Url::parse(&line) {
            break page;
        }
    };
    let query: HashMap<_, _> = page.query_pairs().into_owned().collect();
    assert_eq!(
        query["redirect_uri"],
        format!("http://localhost:{port}/oauth/callback")
    );

    let mut redirected = url::Url::parse(&query["redirect_uri"]).unwrap();
    redirected
        .query_pairs_mut()
        .append_pair("code", "c")
        .append_pair("state", &query["state"]);
    redirected
        .query_pairs_mut()
        .append_pair("iss", &peer.url(""));
    let target = format!("{}?{}", redirected.path(), redirected.query().unwrap());
    let mut stream = TcpStream::connect(reserved.address()).await.unwrap();
    stream
        .write_all(format!("GET {target} HTTP/1.1\r\n\r\n").as_bytes())
        .await
        .unwrap();
    let status = timeout(TIMEOUT, process.wait()).await.unwrap().unwrap();
    assert!(status.success());

    for (option, value, code) in [
        ("--callback-host", "0.0.0.0", 2),
        ("--callback-path", "/a?b", 1),
    ] {
        let rejected = Portcullis::run(&["login", &url, option, value]).await;
        assert_eq!(rejected.code, Some(code), "{rejected:?}");
        assert!(rejected.stderr.contains(option), "{rejected:?}");
    }
}
