//! `portcullis connect`, started over pipes as a client starts it.

mod sign_ins;

use std::{
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
};

use portcullis_scenarios::{
    Finished, Portcullis, Process, Scratch, Signal, TIMEOUT, Upstream, limited_command,
    portcullis_command, portcullis_program,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{ChildStderr, ChildStdin, ChildStdout},
    time::timeout,
};

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
        Self::spawn(command)
    }

    /// As [`start`](Self::start), with a limit of resources, which is an argument of `ulimit`.
    pub(crate) fn start_limited(url: &str, arguments: &[&str], limit: &str) -> Self {
        let mut command = limited_command(limit);
        command.args(["connect", url]).args(arguments);
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> Self {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = Process::start("the bridge", &mut command).unwrap();
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
    // The stream of the server's messages can be requested once more at the same time.
    let last = recorded.iter().rfind(|request| request.method != "GET");
    assert_eq!(last.unwrap().method, "DELETE");
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
