//! `portcullis status`, `list`, `logout` and `token --scope`, error messages, and the debug log.

use http::{Response, header};
use portcullis_scenarios::{Peer, Portcullis, Scratch};
use serde_json::{Value, json};

/// I7: `status` and `list` show the state of stored tokens, but not the tokens.
#[tokio::test]
async fn stored_tokens_are_listed() {
    let server = Peer::start(|request| {
        (request.path == "/token").then(|| {
            request.json(json!({
                "access_token": "hush", "token_type": "Bearer", "expires_in": 600, "refresh_token": "quiet", "scope": "a",
            }))
        })
    })
    .await;
    let url = server.url("/mcp");
    let store = Scratch::path_for("store");
    let at_store = ["--store", store.as_str()];
    let run = async |arguments: &[&str]| Portcullis::run(&[arguments, &at_store].concat()).await;
    let before = run(&["status", &url]).await;
    assert_eq!(before.code, Some(1), "{before:?}");
    assert!(
        before
            .stderr
            .contains(&format!("run `portcullis login {url}`")),
        "{before:?}"
    );

    let login = run(&["login", &url, "--auto-consent", "--scope", "a b"]).await;
    assert!(login.stderr.contains("not granted: b"), "{login:?}");
    let status = run(&["status", &url]).await;
    assert_eq!(status.code, Some(0), "{status:?}");

    for part in [
        server.url(""),
        "scopes    a (not granted: b)".into(),
        store.as_str().into(),
        "refreshed automatically".into(),
    ] {
        assert!(status.stdout.contains(&part), "{part} {status:?}");
    }
    let listed = run(&["list", "--json"]).await;
    assert!(!listed.stdout.contains("hush"), "{listed:?}");
    assert!(!listed.stdout.contains("quiet"), "{listed:?}");

    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let token = &listed["tokens"][0];
    assert_eq!(token["url"], json!(url));
    assert_eq!(token["scopes"], json!(["a"]));
    assert_eq!(token["state"], "valid");
    assert_eq!(run(&["status", &server.url("/other")]).await.code, Some(1));

    let with = run(&["token", &url, "--scope", "a"]).await;
    assert_eq!(with.code, Some(0), "{with:?}");
    assert_eq!(with.stdout.trim(), "hush", "{with:?}");
    let without = run(&["token", &url, "--scope", "a b"]).await;
    assert_eq!(without.code, Some(1), "{without:?}");
    assert_eq!(without.stdout, "", "{without:?}");
    assert!(without.stderr.contains("lacks the scopes b"), "{without:?}");

    // An unreadable file is reported, and a logout removes it.
    std::fs::write(
        token["file"].as_str().unwrap(),
        r#"{"refresh_token":"quiet""#,
    )
    .unwrap();
    let listed = run(&["list"]).await;
    assert!(listed.stderr.contains("cannot be understood"), "{listed:?}");

    let logout = run(&["logout", &url]).await;
    assert_eq!(logout.code, Some(0), "{logout:?}");
    let left = std::fs::read_dir(store.as_str())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    assert!(
        left.into_iter()
            .all(|path| !std::fs::read_to_string(path).unwrap().contains("quiet"))
    );
}

/// If the revocation fails, `logout` deletes the token and reports both.
#[tokio::test]
async fn a_failed_revocation() {
    let server = Peer::start(|request| match request.path.as_str() {
        "/.well-known/oauth-authorization-server" => {
            let mut metadata = request.server_metadata();
            metadata["revocation_endpoint"] = format!("{}/revoke", request.base).into();
            Some(request.json(metadata))
        }
        "/revoke" => Some(
            Response::builder()
                .status(503)
                .body("maintenance".to_owned())
                .unwrap(),
        ),
        _ => None,
    })
    .await;
    let url = server.url("/mcp");
    let store = Scratch::path_for("store");
    Portcullis::run(&["login", &url, "--auto-consent", "--store", store.as_str()]).await;
    let logout = Portcullis::run(&["logout", &url, "--store", store.as_str()]).await;
    assert_eq!(logout.code, Some(1), "{logout:?}");
    assert!(
        logout.stderr.contains("signed out on this machine"),
        "{logout:?}"
    );
    assert!(
        logout.stderr.contains("503 Service Unavailable"),
        "{logout:?}"
    );
    assert!(logout.stderr.contains("body: maintenance"), "{logout:?}");
    assert_eq!(
        Portcullis::run(&["status", &url, "--store", store.as_str()])
            .await
            .code,
        Some(1)
    );
}

/// Errors of `login` and `call` show status, content type and body of the response.
#[tokio::test]
async fn errors_show_the_response() {
    let server = Peer::start(|request| {
        (request.path == "/mcp").then(|| {
            let page = Response::builder()
                .status(403)
                .header(header::CONTENT_TYPE, "text/html");
            page.body("<title>Blocked</title>".to_owned()).unwrap()
        })
    })
    .await;
    let store = Scratch::path_for("store");
    for arguments in [&["login", "--auto-consent"][..], &["call"]] {
        let url = server.url("/mcp");
        let method: &[&str] = if arguments[0] == "call" {
            &["tools/list"]
        } else {
            &[]
        };
        let finished = Portcullis::run(
            &[
                arguments,
                &[url.as_str()],
                method,
                &["--store", store.as_str()],
            ]
            .concat(),
        )
        .await;
        assert_eq!(finished.code, Some(1), "{finished:?}");
        for part in ["403 Forbidden", "content type text/html", "body: Blocked"] {
            assert!(finished.stderr.contains(part), "{part} {finished:?}");
        }
    }
}

/// If a busy server, or one that cannot validate the token, sends `Retry-After`, the error of
/// `call` says when to try again, and `call` starts no sign-in.
#[tokio::test]
async fn errors_say_when_to_try_again() {
    for (status, body) in [
        (401, ""),
        (
            429,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"Too many requests"}}"#,
        ),
        (429, "busy"),
    ] {
        let server = Peer::start(move |request| {
            (request.path == "/mcp" && request.authorization.is_some()).then(|| {
                let content_type = if body.starts_with('{') {
                    "application/json"
                } else {
                    "text/plain"
                };
                let response = Response::builder()
                    .status(status)
                    .header(header::RETRY_AFTER, "12");
                response
                    .header(header::CONTENT_TYPE, content_type)
                    .body(body.to_owned())
                    .unwrap()
            })
        })
        .await;
        let (url, store) = (server.url("/mcp"), Scratch::path_for("store"));
        let arguments = [
            "call",
            &url,
            "tools/list",
            "--auto-consent",
            "--store",
            store.as_str(),
        ];
        let finished = Portcullis::run(&arguments).await;
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert!(
            finished
                .stderr
                .trim_end()
                .ends_with("; the server asks to try again in 12 s"),
            "{finished:?}"
        );
        assert_eq!(server.requests("/token").len(), 1);
    }
}

/// G6: `SSL_CERT_FILE` that is empty or names a missing file is an error that names the variable
/// and the fix.
#[tokio::test]
async fn an_unusable_certificate_variable() {
    for (value, reason) in [
        ("", "SSL_CERT_FILE is empty"),
        (
            "/no/such/file.pem",
            "/no/such/file.pem, which cannot be read",
        ),
    ] {
        let arguments = ["login", "https://127.0.0.1:1/mcp", "--auto-consent"];
        let login = Portcullis::run_with(&arguments, &[("SSL_CERT_FILE", value)]).await;
        assert_eq!(login.code, Some(1), "{login:?}");
        assert!(login.stderr.contains(reason), "{login:?}");
        assert!(login.stderr.contains("unset SSL_CERT_FILE"), "{login:?}");
    }
}

/// J2: the debug log has every request of the sign-in, and no secret.
#[tokio::test]
async fn the_debug_log_has_every_request() {
    let server = Peer::start(|_| None).await;
    let url = server.url("/mcp?key=hidden");
    let store = Scratch::path_for("store");
    let arguments = ["login", &url, "--auto-consent", "--store", store.as_str()];
    let login = Portcullis::run_with(&arguments, &[("PORTCULLIS_LOG", "debug")]).await;
    let log = login.stderr;
    assert_eq!(login.code, Some(0), "{log}");

    for path in [
        "/mcp",
        "/.well-known/oauth-authorization-server",
        "/register",
        "/authorize",
        "/token",
    ] {
        let line = log
            .lines()
            .find(|line| line.contains(&format!("url=\"{}\"", server.url(path))));
        assert!(
            line.is_some_and(|line| line.contains("status=") && line.contains("milliseconds=")),
            "{path} {log}"
        );
    }
    let token = Portcullis::run(&["token", &url, "--store", store.as_str()]).await;
    for secret in ["hidden", "code=", "state=", token.stdout.trim()] {
        assert!(!secret.is_empty(), "{secret} {log}");
        assert!(!log.contains(secret), "{secret} {log}");
    }
}
