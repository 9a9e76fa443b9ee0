//! Attacks on the listener for administrators: wrong tokens, web pages, hosts, and requests that
//! are too large.

use std::{
    fs,
    io::Read as _,
    os::unix::{
        fs::{PermissionsExt as _, chown},
        process::CommandExt as _,
    },
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use portcullis_scenarios::{Administration, Deployment, Portcullis, Request, Scratch, TIMEOUT};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    time::timeout,
};

fn list() -> Request {
    Request::new("GET", "/v1/sessions")
}

fn code(answer: &(u16, Value)) -> (u16, &str) {
    (
        answer.0,
        answer.1["error"]["code"].as_str().unwrap_or_default(),
    )
}

/// E12, J2: without the exact token nothing is listed or ended, and no answer or log line has a
/// token.
#[tokio::test]
async fn wrong_tokens() {
    let administration = Administration::default();
    let deployment = administration.of(Deployment::builder(), "").start().await;
    let token = deployment.good_token();
    deployment.open_session(&token).await;
    let admin = Administration::TOKEN;
    for (request, expected) in [
        (list(), (401, "admin.token_missing")),
        (
            list().header("Authorization", admin),
            (401, "admin.token_missing"),
        ),
        (
            list().header("Authorization", format!("Basic {admin}")),
            (401, "admin.token_missing"),
        ),
        (
            list().header("Cookie", format!("token={admin}")),
            (401, "admin.token_missing"),
        ),
        (
            Request::new("GET", &format!("/v1/sessions?access_token={admin}")),
            (401, "admin.token_missing"),
        ),
        (list().bearer(&token), (401, "admin.token_invalid")),
        (list().bearer(&admin[1..]), (401, "admin.token_invalid")),
        (
            list().bearer(&format!("{admin}x")),
            (401, "admin.token_invalid"),
        ),
        (
            list().bearer(&admin.to_uppercase()),
            (401, "admin.token_invalid"),
        ),
        (
            list().bearer(admin).bearer(admin),
            (401, "admin.token_invalid"),
        ),
        (
            Request::post(
                "/v1/sessions/end",
                json!({ "subject": "alice" }).to_string(),
            ),
            (401, "admin.token_missing"),
        ),
        (
            Request::new("GET", "/nothing"),
            (401, "admin.token_missing"),
        ),
    ] {
        let answer = administration.send(request).await;
        assert_eq!(code(&answer), expected);
        assert!(!answer.1.to_string().contains(admin), "{}", answer.1);
    }
    assert_eq!(administration.sessions("").await["total"], 1);

    // The deployment's own endpoint knows nothing of administrators.
    let answer = deployment.send(list().bearer(admin)).await;
    assert_eq!(answer.status, 404);
    let finished = deployment.portcullis.stop().await;
    assert!(!finished.stderr.contains(admin));
}

/// F3: web pages reach nothing, even with the token, and neither does another name for this
/// machine.
#[tokio::test]
async fn web_pages() {
    let administration = Administration::default();
    let _deployment = administration.of(Deployment::builder(), "").start().await;
    let admin = Administration::TOKEN;
    let with_host = |host: &str| {
        Request::without_host("GET", "/v1/sessions")
            .header("Host", host)
            .bearer(admin)
    };
    for (request, expected) in [
        (
            list().bearer(admin).header("Origin", "http://127.0.0.1"),
            (403, "origin.not_allowed"),
        ),
        (
            list().bearer(admin).header("Origin", "null"),
            (403, "origin.not_allowed"),
        ),
        (
            Request::new("OPTIONS", "/v1/sessions/end").header("Origin", "https://evil.example"),
            (403, "origin.not_allowed"),
        ),
        (with_host("evil.example"), (403, "host.not_allowed")),
        (
            with_host("localhost.evil.example"),
            (403, "host.not_allowed"),
        ),
        (
            with_host("127.0.0.1, evil.example"),
            (400, "host.malformed"),
        ),
        (
            Request::new("GET", "http://evil.example/v1/sessions").bearer(admin),
            (403, "host.disagrees"),
        ),
    ] {
        assert_eq!(code(&administration.send(request).await), expected);
    }
}

/// F4: bodies are bounded, and must be what they are said to be.
#[tokio::test]
async fn bodies() {
    let administration = Administration::default();
    let _deployment = administration.of(Deployment::builder(), "").start().await;
    let post = |body: &str| Request::post("/v1/sessions/end", body).bearer(Administration::TOKEN);
    let form = Request::new("POST", "/v1/sessions/end")
        .header("Content-Type", "text/plain")
        .bearer(Administration::TOKEN);
    let large = format!("{{\"subject\":\"{}\"}}", "x".repeat(17 << 10));
    let deep = "[".repeat(10_000);
    for (request, expected) in [
        (post(&large), (413, "admin.body_too_large")),
        (post(&deep), (400, "admin.request_invalid")),
        (post(""), (400, "admin.request_invalid")),
        (
            post("{\"subject\":\"a\",\"all\":true}"),
            (400, "admin.request_invalid"),
        ),
        (
            post("{\"subject\":[\"a\"]}"),
            (400, "admin.request_invalid"),
        ),
        (
            form.body("{\"subject\":\"a\"}"),
            (415, "admin.content_type"),
        ),
        (
            Request::new("GET", "/v1/sessions/end").bearer(Administration::TOKEN),
            (405, "admin.method_not_allowed"),
        ),
    ] {
        assert_eq!(code(&administration.send(request).await), expected);
    }
}

/// E12: a path has one method, and the response to any other names it.
#[tokio::test]
async fn wrong_methods() {
    let administration = Administration::default();
    let _deployment = administration.of(Deployment::builder(), "").start().await;
    for (path, method, wrong) in [
        ("/v1/sessions", "GET", "DELETE"),
        ("/metrics", "GET", "POST"),
        ("/v1/sessions/end", "POST", "GET"),
        ("/v1/tokens/drop", "POST", "PUT"),
    ] {
        let request = Request::new(wrong, path).bearer(Administration::TOKEN);
        let (status, head, body) = administration.respond(request).await;
        assert_eq!(status, 405, "{body}");
        let allow = format!("\r\nallow: {}\r\n", method.to_ascii_lowercase());
        assert!(head.contains(&allow), "{head}");
        assert!(body.contains("admin.method_not_allowed"), "{head}");
    }
}

/// E12, L9: clients that send nothing, or never finish a head, do not keep administrators out of
/// the unix socket.
#[tokio::test]
async fn silent_connections() {
    // 40 silent connections would last 20 s in front of the administrator's if each could stay for
    // the 10 s without a request.
    const LIMIT: Duration = Duration::from_secs(15);
    let administration = Administration::default();
    let _deployment = administration.of(Deployment::builder(), "").start().await;
    let mut held = Vec::new();
    for number in 0..40 {
        let mut stream = UnixStream::connect(administration.socket()).await.unwrap();
        if number % 2 == 0 {
            stream
                .write_all(b"GET /v1/sessions HTTP/1.1\r\nX-Slow: ")
                .await
                .unwrap();
        }
        held.push(stream);
    }
    let listed = timeout(LIMIT, administration.sessions(""))
        .await
        .expect("a response");
    assert_eq!(listed["total"], 0, "{listed}");

    for mut stream in held {
        let closed = timeout(TIMEOUT, stream.read_to_end(&mut Vec::new())).await;
        assert!(closed.is_ok(), "the connection stays open");
    }
}

/// Sends a request for the sessions on a connection that stays open, and reads the beginning of the
/// response.
async fn list_on(stream: &mut UnixStream) {
    stream
        .write_all(&list().bearer(Administration::TOKEN).to_bytes())
        .await
        .unwrap();
    let mut answer = vec![0; 4096];
    let length = timeout(TIMEOUT, stream.read(&mut answer))
        .await
        .unwrap()
        .unwrap();
    assert!(
        answer[..length].starts_with(b"HTTP/1.1 200"),
        "{}",
        String::from_utf8_lossy(&answer[..length])
    );
}

/// E12, L9: an administrator's connection stays open between requests, longer than one without a
/// token.
#[tokio::test]
async fn an_authenticated_connection_stays_open() {
    // Less than the 10 s without a request.
    const LIMIT: Duration = Duration::from_secs(8);
    let administration = Administration::default();
    let _deployment = administration.of(Deployment::builder(), "").start().await;
    let mut stream = UnixStream::connect(administration.socket()).await.unwrap();
    let mut silent = UnixStream::connect(administration.socket()).await.unwrap();
    let opened = Instant::now();
    list_on(&mut stream).await;
    // Opened later than the other, and closed after its 2 s.
    timeout(TIMEOUT, silent.read_to_end(&mut Vec::new()))
        .await
        .unwrap()
        .unwrap();
    assert!(opened.elapsed() < LIMIT, "{:?}", opened.elapsed());
    list_on(&mut stream).await;
}

/// E12, L9: administrators who do not use their connections do not keep another one out until these
/// have been idle for 10 s.
#[tokio::test]
async fn idle_administrators() {
    const MAX_CONNECTIONS: usize = 16;
    const LIMIT: Duration = Duration::from_secs(7);
    let administration = Administration::default();
    let _deployment = administration.of(Deployment::builder(), "").start().await;
    let mut idle = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        let mut stream = UnixStream::connect(administration.socket()).await.unwrap();
        list_on(&mut stream).await;
        idle.push(stream);
    }
    let listed = timeout(LIMIT, administration.sessions(""))
        .await
        .expect("a place");
    assert_eq!(listed["total"], 0, "{listed}");
}

/// E12, J2: the token is not sent to another user's process at the unix socket, unless the folders
/// of the socket are that user's alone. Only root can start such a process; other users check their
/// own.
#[tokio::test]
async fn the_socket_of_another_user() {
    const OTHER: u32 = 65_534;
    // Listens, prints a line, and prints what it receives.
    const LISTENER: &str = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); \
                            print('listening', flush=True); c, _ = s.accept(); print(c.recv(65536).decode(), flush=True)";
    let token = Scratch::file("admin-token", Administration::TOKEN);
    let folder = Scratch::folder("of-another");
    let is_root = chown(folder.path(), Some(OTHER), Some(OTHER)).is_ok();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let socket = folder.path().join("admin.sock");
    let mut python = Command::new("python3");
    python
        .args(["-c", LISTENER])
        .arg(&socket)
        .stdout(Stdio::piped());
    if is_root {
        python.uid(OTHER).gid(OTHER);
    }
    let mut listener = python.spawn().unwrap();
    let mut output = listener.stdout.take().unwrap();
    let mut started = [0; "listening\n".len()];
    output.read_exact(&mut started).unwrap();

    let socket = socket.to_str().unwrap();
    let finished = Portcullis::run(&[
        "admin",
        "sessions",
        "--socket",
        socket,
        "--token-file",
        token.as_str(),
    ])
    .await;
    listener.kill().ok();
    listener.wait().unwrap();
    let mut received = String::new();
    output.read_to_string(&mut received).unwrap();
    assert_eq!(finished.code, Some(1), "{finished:?}");
    // The temporary folder above is writable for everyone, so that the path is not the other user's
    // alone.
    assert_eq!(
        received.contains(Administration::TOKEN),
        !is_root,
        "{finished:?}"
    );
    assert_eq!(
        finished.stderr.contains("the token was not sent"),
        is_root,
        "{finished:?}"
    );
}

/// F8, J6: a listener that would expose the token does not start, and neither does one with a token
/// that can be guessed.
#[tokio::test]
async fn unsafe_settings() {
    let token = Scratch::file("admin-token", Administration::TOKEN);
    let short = Scratch::file("admin-token", "hunter2");
    let socket = Scratch::file("admin.sock", "precious");
    let from = |file: &Scratch| format!("token = {{ file = \"{}\" }}", file.as_str());
    let at = |listen: &str, token: &str| format!("listen = \"{listen}\"\n{token}");
    for (table, message) in [
        (
            at("0.0.0.0:0", &from(&token)),
            "not on loopback and has no TLS",
        ),
        (at("127.0.0.1:0", &from(&short)), "fewer than 32 characters"),
        (at("127.0.0.1:0", ""), "PORTCULLIS_ADMIN_TOKEN is not set"),
        (
            at(
                "127.0.0.1:0",
                &format!("token = \"{}\"", Administration::TOKEN),
            ),
            "not written into the configuration",
        ),
        (
            at(&format!("unix:{}", socket.as_str()), &from(&token)),
            "not a socket",
        ),
    ] {
        let configuration = format!(
            "listen = \"127.0.0.1:0\"\nbase_url = \"http://127.0.0.1:3000\"\n[[resource]]\nendpoint = \"/mcp\"\nauth = \"none\"\n\
             upstream = \"demo\"\n[admin]\n{table}"
        );
        let file = Scratch::file("portcullis.toml", &configuration);
        let finished = Portcullis::run(&["serve", "--config", file.as_str()]).await;
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert!(finished.stderr.contains(message), "{message}: {finished:?}");
        assert!(!finished.stderr.contains("hunter2"), "{finished:?}");
        assert!(
            !finished.stderr.contains(Administration::TOKEN),
            "{finished:?}"
        );
    }
}
