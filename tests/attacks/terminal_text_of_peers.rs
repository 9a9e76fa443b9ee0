//! Deceptive text from peers that the client prints on a terminal.

use http::{Response, StatusCode, header};
use portcullis_metadata::EscapedText;
use portcullis_scenarios::{
    Finished, Peer, PeerRequest, PeerResponse, Portcullis, Scratch, in_terminal,
    portcullis_command, portcullis_program,
};
use serde_json::{Value, json};

/// Plain text with one character of each deceptive class.
const TEXT: &str = "a\u{1b}[2J\u{9b}b\u{7f}\r\n\u{85}\u{202e}c\u{2028}\u{200b}\u{ad}\u{3164}\u{2066}\u{feff}\u{e0041}d";

/// Runs a client command with a scripted peer.
async fn run(
    command: &[&str],
    script: impl Fn(&PeerRequest) -> Option<PeerResponse> + Send + Sync + 'static,
) -> Finished {
    let peer = Peer::start(script).await;
    let store = Scratch::path_for("store");
    let url = peer.url("/mcp");
    let (name, more) = command.split_first().unwrap();
    let arguments = match *name {
        "doctor" => [&["doctor", url.as_str()][..], more].concat(),
        _ => [
            &[*name, url.as_str()][..],
            more,
            &["--auto-consent", "--store", store.as_str()],
        ]
        .concat(),
    };
    let finished = Portcullis::run(&arguments).await;
    for output in [&finished.stdout, &finished.stderr] {
        assert!(
            !output.replace('\n', "").contains(EscapedText::escapes),
            "{finished:?}"
        );
    }
    finished
}

fn error(request: &PeerRequest, status: StatusCode) -> PeerResponse {
    let mut response =
        request.json(json!({ "error": "invalid_request", "error_description": TEXT }));
    *response.status_mut() = status;
    response
}

/// J8: the errors of every endpoint are printed escaped.
#[tokio::test]
async fn errors_are_escaped() {
    for path in ["/register", "/token"] {
        let finished = run(&["login"], move |request| {
            (request.path == path).then(|| error(request, StatusCode::BAD_REQUEST))
        });
        let finished = finished.await;
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert_eq!(finished.stderr.lines().count(), 1, "{finished:?}");
        assert!(
            finished
                .stderr
                .contains(r"a\u{1b}[2J\u{9b}b\u{7f}\u{d}\u{a}"),
            "{finished:?}"
        );
    }
    let rejected = run(&["call", "tools/list"], |request| {
        let message = request.message();
        (message["method"] == "tools/list" && request.authorization.is_some()).then(|| {
            let error = json!({ "code": -32000, "message": TEXT });
            request.json(json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }))
        })
    });
    let rejected = rejected.await;
    assert!(
        rejected.stderr.contains(r"-32000: a\u{1b}[2J"),
        "{rejected:?}"
    );
}

/// J8: `call` prints a bounded part of the scopes that a server requires.
#[tokio::test]
async fn long_scopes_are_shortened() {
    let finished = run(&["call", "tools/list"], |request| {
        request.authorization.as_ref()?;
        let challenge = format!(
            "Bearer error=\"insufficient_scope\", scope=\"{}\"",
            "x".repeat(10_000)
        );
        let response = Response::builder()
            .status(StatusCode::FORBIDDEN)
            .header(header::WWW_AUTHENTICATE, challenge);
        Some(response.body(String::new()).unwrap())
    });
    let finished = finished.await;
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.stderr.contains("more characters)"), "{finished:?}");
    assert!(finished.stderr.len() < 4000, "{finished:?}");
}

/// J8: `login` escapes the client identifier that the server issues.
#[tokio::test]
async fn the_output_of_login_is_escaped() {
    let finished = run(&["login"], |request| match request.path.as_str() {
        "/register" => Some(request.json(json!({ "client_id": TEXT }))),
        _ => None,
    });
    let finished = finished.await;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(finished.stderr.lines().count(), 5, "{finished:?}");
    assert!(
        finished.stderr.contains(r"to client   a\u{1b}[2J"),
        "{finished:?}"
    );
}

/// J8: a result is printed as JSON with the same value, one member per line. The notifications on
/// standard error are escaped, too.
#[tokio::test]
async fn a_result_keeps_its_value_and_is_escaped() {
    let result = json!({ "content": [{ "type": "text", "text": TEXT }], TEXT: 1 });
    let sent = result.clone();
    let notified = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": TEXT });
    let finished = run(&["call", "tools/call", r#"{"name":"x"}"#], move |request| {
        let message = request.message();
        (message["method"] == "tools/call" && request.authorization.is_some()).then(|| {
            let reply = json!({ "jsonrpc": "2.0", "id": message["id"], "result": sent });
            let response = Response::builder().header(header::CONTENT_TYPE, "text/event-stream");
            response
                .body(format!("data: {notified}\n\ndata: {reply}\n\n"))
                .unwrap()
        })
    });
    let finished = finished.await;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(
        serde_json::from_str::<Value>(&finished.stdout).unwrap(),
        result,
        "{finished:?}"
    );
    assert!(
        finished
            .stdout
            .contains(r"a\u001b[2J\u009bb\u007f\r\n\u0085\u202ec\u2028"),
        "{finished:?}"
    );
    assert!(
        finished.stderr.contains("notifications/message"),
        "{finished:?}"
    );
}

/// J8: `doctor` escapes text from documents and challenges, in text and in JSON.
#[tokio::test]
async fn the_output_of_doctor_is_escaped() {
    for (command, escaped) in [
        (&["doctor"][..], r"a\u{1b}[2J"),
        (&["doctor", "--json"], r"a\\u{1b}[2J"),
    ] {
        let finished = run(command, |request| {
            if request.is_for_resource_metadata("/mcp") {
                let mut document = request.resource_metadata(&format!("{}/mcp", request.base));
                document["scopes_supported"] = json!([TEXT]);
                return Some(request.json(document));
            }
            let mut metadata = request.server_metadata();
            metadata[format!("{TEXT}_endpoint")] = json!("http://auth.example.com/");
            request
                .is_for_server_metadata()
                .then(|| request.json(metadata))
        });
        let finished = finished.await;
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert!(
            finished.stdout.matches(escaped).count() >= 2,
            "{finished:?}"
        );
    }
}

/// J8: text from peers is escaped on the bridge's standard error.
#[tokio::test]
async fn the_output_of_connect_is_escaped() {
    let peer = Peer::start(|request| {
        (request.path == "/token").then(|| error(request, StatusCode::BAD_REQUEST))
    });
    let peer = peer.await;
    let store = Scratch::path_for("store");
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {} });
    let arguments = [
        "connect",
        &peer.url("/mcp"),
        "--auto-consent",
        "--store",
        store.as_str(),
    ];
    let finished = Portcullis::run_bridge(&arguments, &[], &message).await;
    assert!(finished.stderr.contains(r"a\u{1b}[2J"), "{finished:?}");
    assert!(
        !finished
            .stderr
            .replace('\n', "")
            .contains(EscapedText::escapes),
        "{finished:?}"
    );
}

/// J8: long scopes of a server cannot scroll a question out of the terminal: the sign-in is refused
/// without a question.
#[tokio::test]
async fn long_scopes_are_not_asked_about() {
    let scopes: Vec<String> = (0..1_000)
        .map(|number| format!("{number}{}", "x".repeat(200)))
        .collect();
    let peer = Peer::start(move |request| {
        let mut metadata = request.resource_metadata(&format!("{}/mcp", request.base));
        metadata["scopes_supported"] = json!(scopes);
        request
            .is_for_resource_metadata("/mcp")
            .then(|| request.json(metadata))
    })
    .await;
    let (url, store) = (peer.url("/mcp"), Scratch::path_for("store"));
    let run = move || {
        let mut login = portcullis_command(portcullis_program());
        login.args([
            "login",
            &url,
            "--no-browser",
            "--no-resource",
            "--store",
            store.as_str(),
        ]);
        in_terminal(login, &[], Some("--accept-unbound-token")).shown
    };
    let shown = tokio::task::spawn_blocking(run).await.unwrap();
    assert!(
        shown.contains("more characters)") && !shown.contains("[y/N]"),
        "{shown}"
    );
    assert!(shown.len() < 4000, "{} bytes", shown.len());
    assert!(peer.requests("/register").is_empty());
}
