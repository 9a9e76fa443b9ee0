//! `portcullis connect`, started over pipes as a client starts it.

use std::{
    process::Stdio,
    sync::atomic::{AtomicBool, Ordering},
};

use portcullis_scenarios::{
    Finished, Portcullis, Process, ReservedPort, Scratch, Signal, TIMEOUT, Upstream,
    portcullis_command, portcullis_program,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{ChildStderr, ChildStdin, ChildStdout},
    time::timeout,
};

use crate::idp::Idp;

/// The running bridge. It is killed when dropped.
pub(crate) struct Bridge {
    process: Process,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Bridge {
    pub(crate) fn start(url: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        Self::start_command("connect", &[&[url][..], arguments].concat(), environment)
    }

    /// Starts `connect` or `mcp-remote`.
    pub(crate) fn start_command(
        name: &str,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Self {
        let mut command = portcullis_command(portcullis_program());
        command
            .arg(name)
            .args(arguments)
            .envs(environment.iter().copied());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = Process::start(name, &mut command).unwrap();
        let input = ChildStdin::from_std(process.take_stdin().unwrap()).unwrap();
        let output = ChildStdout::from_std(process.take_stdout().unwrap()).unwrap();
        Self {
            process,
            input,
            output: BufReader::new(output).lines(),
        }
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.send_line(&message.to_string()).await;
    }

    pub(crate) async fn send_line(&mut self, line: &str) {
        self.input
            .write_all(format!("{line}\n").as_bytes())
            .await
            .unwrap();
    }

    /// Reads the next line of standard output.
    pub(crate) async fn line(&mut self) -> String {
        timeout(TIMEOUT, self.output.next_line())
            .await
            .unwrap()
            .unwrap()
            .unwrap()
    }

    /// Reads the next message.
    pub(crate) async fn receive(&mut self) -> Value {
        let line = self.line().await;
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Sends a request and returns its response.
    pub(crate) async fn request(&mut self, id: i64, method: &str, params: Value) -> Value {
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await;
        let response = self.receive().await;
        assert_eq!(response["id"], id, "{response}");
        response
    }

    pub(crate) async fn initialize(&mut self) -> Value {
        let client = json!({ "name": "t", "version": "1" });
        let params =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        let response = self.request(0, "initialize", params).await;
        self.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await;
        response
    }

    /// Closes the standard input of the program and waits for its end. The result has the unread
    /// part of standard output.
    pub(crate) async fn close(self) -> Finished {
        let Self {
            process,
            input,
            output,
        } = self;
        drop(input);
        Self::wait(process, output).await
    }

    /// Sends a signal and waits for the end of the program. The result has the unread part of
    /// standard output.
    async fn end_by(self, signal: Signal) -> Finished {
        let Self {
            process,
            input: _input,
            output,
        } = self;
        process.signal(signal);
        Self::wait(process, output).await
    }

    async fn wait(mut process: Process, mut output: Lines<BufReader<ChildStdout>>) -> Finished {
        let ended = async {
            let (mut stdout, mut stderr) = (String::new(), String::new());
            while let Some(line) = output.next_line().await.unwrap() {
                stdout += &format!("{line}\n");
            }
            let mut log = ChildStderr::from_std(process.take_stderr().unwrap()).unwrap();
            log.read_to_string(&mut stderr).await.unwrap();
            Finished {
                code: process.wait().await.unwrap().code(),
                stdout,
                stderr,
            }
        };
        let finished = timeout(TIMEOUT, ended).await.unwrap();
        assert!(!finished.stderr.contains("panicked"), "{finished:?}");
        finished
    }
}

/// Starts a demo that consents automatically, and returns it with the URL of its endpoint.
pub(crate) async fn demo() -> (Portcullis, String) {
    let listen = [
        "--listen",
        "127.0.0.1:0",
        "--idp-listen",
        "127.0.0.1:0",
        "--auto-consent",
    ];
    let demo = Portcullis::start(&[&["demo"][..], &listen].concat()).await;
    let url = format!("http://{}/mcp", demo.address());
    (demo, url)
}

/// Asserts that a bridge ended with 0 and without further output.
pub(crate) fn assert_silent_success(finished: &Finished) {
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(
        format!("{}{}", finished.stdout, finished.stderr),
        "",
        "{finished:?}"
    );
}

/// Counts the entries of a credential store whose file names have this prefix.
fn entries(store: &Scratch, prefix: &str) -> usize {
    let names = std::fs::read_dir(store.as_str())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter(|name| name.starts_with(prefix) && name.ends_with(".json"))
        .count()
}

/// A client that supports only standard input and output uses a protected server. Instances that
/// start concurrently sign in once, and the end of the input ends the session.
#[tokio::test]
async fn instances_sign_in_once_and_are_served() {
    let ((demo, url), store) = (demo().await, Scratch::path_for("store"));
    let arguments = ["--auto-consent", "--store", store.as_str()];
    let mut bridges: Vec<_> = (0..3)
        .map(|_| Bridge::start(&url, &arguments, &[]))
        .collect();
    for bridge in &mut bridges {
        assert_eq!(
            bridge.initialize().await["result"]["protocolVersion"],
            "2025-11-25"
        );
    }
    assert_eq!(entries(&store, "token"), 1);
    assert_eq!(entries(&store, "client"), 1);

    for bridge in &mut bridges {
        let call = bridge
            .request(
                1,
                "tools/call",
                json!({ "name": "add", "arguments": { "a": 1, "b": 2 } }),
            )
            .await;
        assert_eq!(call["result"]["content"][0]["text"], "3", "{call}");
    }
    for bridge in bridges {
        assert_silent_success(&bridge.close().await);
    }
    let log = demo.stop().await.stderr;
    assert_eq!(
        log.matches(r#""session.reason":"deleted""#).count(),
        3,
        "{log}"
    );
}

/// E9: a signal ends the session.
#[tokio::test]
async fn a_signal_ends_the_session() {
    for signal in [Signal::TERM, Signal::INT] {
        let (demo, url) = demo().await;
        let store = Scratch::path_for("store");
        let mut bridge = Bridge::start(&url, &["--auto-consent", "--store", store.as_str()], &[]);
        bridge.initialize().await;
        let finished = bridge.end_by(signal).await;
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert_eq!(finished.stdout, "", "{finished:?}");
        assert!(
            demo.stop()
                .await
                .stderr
                .contains(r#""session.reason":"deleted""#)
        );
    }
}

/// I10: a token in the environment replaces the sign-in. An invalid token causes an error, and is
/// not printed.
#[tokio::test]
async fn a_token_in_the_environment() {
    let ((_demo, url), store) = (demo().await, Scratch::path_for("store"));
    let login =
        Portcullis::run(&["login", &url, "--auto-consent", "--store", store.as_str()]).await;
    assert_eq!(login.code, Some(0), "{login:?}");
    let token = Portcullis::run(&["token", &url, "--store", store.as_str()])
        .await
        .stdout
        .trim()
        .to_owned();
    let header = ["--header", "Authorization: Bearer ${MY_TOKEN}"];
    for (arguments, environment) in [
        (&[][..], [("PORTCULLIS_TOKEN", token.as_str())]),
        (&header[..], [("MY_TOKEN", token.as_str())]),
    ] {
        let mut bridge = Bridge::start(&url, arguments, &environment);
        assert!(bridge.initialize().await["result"].is_object());
        assert!(!bridge.close().await.stderr.contains(&token));
    }
    for (arguments, environment) in [
        (&[][..], [("PORTCULLIS_TOKEN", "wrong-token")]),
        (&header[..], [("MY_TOKEN", "wrong-token")]),
    ] {
        let mut bridge = Bridge::start(&url, arguments, &environment);
        let response = bridge.initialize().await;
        assert_eq!(
            response["error"]["data"]["reason"], "mcp.unauthorized",
            "{response}"
        );
        let log = bridge.close().await.stderr;
        assert!(log.contains("mcp.unauthorized"), "{log}");
        assert!(!log.contains("wrong-token"), "{log}");
    }
}

/// J1: the client gets an error response, and standard error has the same reason. Standard output
/// has nothing else.
#[tokio::test]
async fn failures_are_reported_to_the_client_and_the_user() {
    let mut bridge = Bridge::start(
        "http://127.0.0.1:9/mcp?secret=hush",
        &["--store", "/nowhere"],
        &[],
    );
    bridge.send(json!("garbage")).await;
    assert_eq!(bridge.receive().await["error"]["code"], -32600);
    let response = bridge.initialize().await;
    assert_eq!(
        response["error"]["data"]["reason"], "fetch.connect",
        "{response}"
    );
    let finished = bridge.close().await;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(finished.stdout, "", "{finished:?}");
    assert!(finished.stderr.contains("fetch.connect"), "{finished:?}");
    assert!(!finished.stderr.contains("hush"), "{finished:?}");
}

/// Each invalid argument causes an error of one line before anything is read.
#[tokio::test]
async fn invalid_arguments_cause_one_line() {
    let url = "http://127.0.0.1:9/mcp";
    for arguments in [
        &["connect", "http://mcp.example.com/mcp"][..],
        &["connect", "mcp"],
        &["connect", url, "--header", "nothing"],
        &["connect", url, "--header", "Content-Length: 1"],
        &[
            "connect",
            url,
            "--header",
            "A: ${THERE_IS_NO_SUCH_VARIABLE}",
        ],
        &["connect", url, "--scope", "a\"b"],
    ] {
        let run = Portcullis::run(arguments).await;
        assert_eq!(run.code, Some(1), "{run:?}");
        assert_eq!(run.stdout, "", "{run:?}");
        assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
    }
}

/// Servers without authorization work, and receive the headers of `-H`.
#[tokio::test]
async fn a_server_without_authorization() {
    let upstream = Upstream::start().await;
    let url = format!("{}/mcp", upstream.origin());
    let mut bridge = Bridge::start(&url, &["-H", "X-Team: blue"], &[]);
    assert!(bridge.initialize().await["result"].is_object());
    bridge.close().await;
    let recorded = upstream.recorded();
    assert!(
        recorded
            .iter()
            .all(|request| request.header("x-team") == Some("blue")),
        "{recorded:?}"
    );
    assert_eq!(recorded.last().unwrap().method, "DELETE");
}

/// When the client closes its end of standard output, the program ends and deletes the session.
#[tokio::test]
async fn a_client_that_has_disconnected() {
    let (demo, url) = demo().await;
    let store = Scratch::path_for("store");
    let mut bridge = Bridge::start(&url, &["--auto-consent", "--store", store.as_str()], &[]);
    bridge.initialize().await;
    let Bridge {
        mut process,
        mut input,
        output,
    } = bridge;
    drop(output);
    // The response to this is not read.
    input
        .write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n")
        .await
        .unwrap();
    assert_eq!(
        timeout(TIMEOUT, process.wait())
            .await
            .unwrap()
            .unwrap()
            .code(),
        Some(0)
    );
    assert!(
        demo.stop()
            .await
            .stderr
            .contains(r#""session.reason":"deleted""#)
    );
}

/// An interrupted stream is resumed, and a session that the server has lost is replaced by a new
/// one.
#[tokio::test]
async fn broken_streams_and_lost_sessions() {
    const EVENTS: (&str, &str) = ("content-type", "text/event-stream");
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}"#;
    let has_first = AtomicBool::new(false);
    let upstream =
        Upstream::scripted(move |request| match (request.method.as_str(), request.header("last-event-id")) {
            ("POST", _) if request.message_method().as_deref() == Some("slow") => {
                // The stream ends within an event.
                Some(Upstream::response(200, &[EVENTS], format!("id: 7\nretry: 5\ndata: {progress}\n\ndata: {{\"half")))
            }
            ("GET", Some("7")) => {
                let response = r#"{"jsonrpc":"2.0","id":1,"result":{"resumed":true}}"#;
                Some(Upstream::response(200, &[EVENTS], format!("id: 8\ndata: {response}\n\n")))
            }
            ("POST", _) if request.message_method().as_deref() == Some("lost") => {
                let is_first = request.header("mcp-session-id") == Some("first");
                is_first.then(|| Upstream::response(404, &[], "gone"))
            }
            ("POST", _) if request.message_method().as_deref() == Some("initialize") => {
                let body = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;
                let headers = [("content-type", "application/json"), ("mcp-session-id", "first")];
                let is_first = !has_first.swap(true, Ordering::Relaxed);
                is_first.then(|| Upstream::response(200, &headers, body))
            }
            ("GET", None) => Some(Upstream::response(405, &[], "")),
            _ => None,
        })
        .await;
    let mut bridge = Bridge::start(&format!("{}/mcp", upstream.origin()), &["-H", "A: b"], &[]);
    bridge.initialize().await;
    bridge
        .send(json!({ "jsonrpc": "2.0", "id": 1, "method": "slow" }))
        .await;
    assert_eq!(bridge.line().await, progress);
    assert_eq!(bridge.receive().await["result"]["resumed"], true);

    let response = bridge.request(2, "lost", json!({ "a": 1 })).await;
    assert_eq!(response["result"]["a"], 1, "{response}");
    bridge.close().await;
    let methods: Vec<_> = upstream
        .recorded()
        .iter()
        .filter_map(|request| request.message_method())
        .collect();
    assert_eq!(
        methods
            .iter()
            .filter(|method| *method == "initialize")
            .count(),
        2,
        "{methods:?}"
    );
    assert_eq!(
        methods.iter().filter(|method| *method == "lost").count(),
        2,
        "{methods:?}"
    );
}

/// E7, I6: the user signs in elsewhere as another client, with the scopes that a call needs. The
/// session belongs to the first client and is unknown for the second. The bridge opens another
/// session, and the call succeeds.
#[tokio::test]
async fn a_token_of_another_client_opens_another_session() {
    let clients = ["first", "second"].map(|id| {
        format!("[[client]]\nid = \"{id}\"\nredirect_uris = [\"http://127.0.0.1/callback\"]\n")
    });
    let clients = Scratch::file("clients.toml", &clients.concat());
    let idp = [
        "--auto-consent",
        "--scope",
        "mcp:tools",
        "--scope",
        "mcp:admin",
        "--clients",
        clients.as_str(),
    ];
    let idp = Idp::start(&idp).await;

    let upstream = Upstream::start().await;
    // Clients compare the resource with the URL that they requested, so the address must be known
    // before the start.
    let port = ReservedPort::new();
    let address = port.address();
    let _gateway = Portcullis::serve(&format!(
        r#"
        listen = "{address}"
        base_url = "http://{address}"

        [[issuer]]
        issuer = "{issuer}"

        [[resource]]
        endpoint = "/mcp"
        upstream = {setting}
        required_scopes = ["mcp:tools"]
        scopes_supported = ["mcp:tools", "mcp:admin"]

        [[resource.rule]]
        method = "tools/call"
        name = "admin_*"
        scopes = ["mcp:admin"]
        "#,
        issuer = idp.issuer,
        setting = upstream.setting(),
    ))
    .await;

    let url = format!("http://{address}/mcp");
    let store = Scratch::path_for("store");
    let as_client = |id: &'static str| {
        [
            "--auto-consent",
            "--client-id",
            id,
            "--store",
            store.as_str(),
            "--scope",
        ]
    };
    let mut bridge = Bridge::start(
        &url,
        &[&as_client("first")[..], &["mcp:tools"]].concat(),
        &[],
    );
    bridge.initialize().await;
    bridge
        .request(1, "resources/subscribe", json!({ "uri": "a:1" }))
        .await;
    let login = [
        &["login", &url][..],
        &as_client("second"),
        &["mcp:tools mcp:admin"],
    ]
    .concat();
    let login = Portcullis::run(&login).await;
    assert_eq!(login.code, Some(0), "{login:?}");

    let response = bridge
        .request(
            2,
            "tools/call",
            json!({ "name": "admin_x", "arguments": {} }),
        )
        .await;
    assert_eq!(response["result"]["name"], "admin_x", "{response}");
    let finished = bridge.close().await;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(finished.stdout, "", "{finished:?}");
    assert_eq!(finished.stderr.lines().count(), 1, "{finished:?}");
    assert!(
        finished
            .stderr
            .contains("the session is lost; opening another one"),
        "{finished:?}"
    );

    let methods: Vec<_> = upstream
        .recorded()
        .iter()
        .filter_map(|request| request.message_method())
        .collect();
    let expected = [
        "initialize",
        "notifications/initialized",
        "resources/subscribe",
    ];
    assert_eq!(
        methods,
        [&expected[..], &expected, &["tools/call"]].concat()
    );
}
