//! State directories and audit chains that cannot be used when the server starts.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    process::{Command, Stdio},
};

use portcullis_scenarios::{
    Connection, Portcullis, Request, ReservedPort, Scratch, Signal, TIMEOUT, portcullis_command,
    portcullis_program,
};
use rustix::process::{Pid, kill_process};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStderr},
    time::timeout,
};

fn configuration(top: &str, tables: &str) -> String {
    format!(
        "listen = \"127.0.0.1:0\"\nbase_url = \"http://127.0.0.1:3000\"\n{top}\n[[resource]]\nendpoint = \"/mcp\"\nauth = \
         \"none\"\nupstream = \"demo\"\n{tables}\n"
    )
}

/// A server that is starting.
struct Starting {
    child: Child,
    log: Lines<BufReader<ChildStderr>>,
    _configuration: Scratch,
}

impl Starting {
    fn new(configuration: &str) -> Self {
        let file = Scratch::file("portcullis.toml", configuration);
        let mut command: Command = portcullis_command(portcullis_program());
        command.args(["--log-format", "json", "serve", "--config", file.as_str()]);
        let mut command = tokio::process::Command::from(command);
        let mut child = command
            .kill_on_drop(true)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = BufReader::new(child.stderr.take().unwrap()).lines();
        Self {
            child,
            log,
            _configuration: file,
        }
    }

    /// Reads the log until a line contains this text. Returns whether there is one.
    async fn logs(&mut self, text: &str) -> bool {
        let found = async {
            while let Some(line) = self.log.next_line().await.unwrap() {
                if line.contains(text) {
                    return true;
                }
            }
            false
        };
        timeout(TIMEOUT, found).await.unwrap()
    }

    async fn end(mut self) -> Option<i32> {
        let process = Pid::from_raw(self.child.id().unwrap().cast_signed()).unwrap();
        kill_process(process, Signal::TERM).unwrap();
        while timeout(TIMEOUT, self.log.next_line())
            .await
            .unwrap()
            .unwrap()
            .is_some()
        {}
        timeout(TIMEOUT, self.child.wait())
            .await
            .unwrap()
            .unwrap()
            .code()
    }
}

const WAITING: &str = "waiting for another process to release the state directory";

/// E12, J4, N4: while the process that is replaced still uses the state directory, the next one
/// waits and does not listen. Then it has the sessions, and its audit records continue the chain. A
/// signal ends the wait.
#[tokio::test]
async fn a_start_waits_for_the_former_process() {
    let state = Scratch::path_for("state");
    let audit = Scratch::path_for("audit.jsonl");
    let top = format!(
        "state_dir = \"{}\"\nshutdown_timeout = \"5m\"",
        state.as_str()
    );
    let configuration = configuration(
        &top,
        &format!("[audit]\ntarget = {{ file = \"{}\" }}", audit.as_str()),
    );
    let former = Portcullis::serve(&configuration).await;
    let mut stopped = Starting::new(&configuration);
    assert!(stopped.logs(WAITING).await);
    let mut next = Starting::new(&configuration);
    assert!(next.logs(WAITING).await);
    assert_eq!(stopped.end().await, Some(0));

    assert!(
        !fs::read_to_string(audit.path())
            .unwrap()
            .contains("audit.stopped")
    );
    former.stop().await;
    assert!(next.logs("\"message\":\"listening\"").await);
    assert_eq!(next.end().await, Some(0));
    assert_one_chain(&audit, &state).await;
}

/// Asserts that all records of a trail are one chain, whose key is in the state directory.
async fn assert_one_chain(audit: &Scratch, state: &Scratch) {
    let key = format!("{}/audit-key", state.as_str());
    let verified = Portcullis::run(&[
        "audit",
        "verify",
        "--json",
        audit.as_str(),
        "--key-file",
        &key,
    ])
    .await;
    assert_eq!(verified.code, Some(0), "{verified:?}");
    assert!(verified.stdout.contains("\"chains\": 1"), "{verified:?}");
}

/// E12, J4: a start that follows SIGTERM at once waits until the former process has ended, also if
/// that takes its whole delay and timeout.
#[tokio::test]
async fn an_immediate_start_after_a_slow_shutdown() {
    let state = Scratch::path_for("state");
    let audit = Scratch::path_for("audit.jsonl");
    let top = format!(
        "state_dir = \"{}\"\nshutdown_delay = \"1s\"\nshutdown_timeout = \"1s\"",
        state.as_str()
    );
    let configuration = configuration(
        &top,
        &format!("[audit]\ntarget = {{ file = \"{}\" }}", audit.as_str()),
    );
    let former = Portcullis::serve(&configuration).await;
    let mut unfinished = Connection::open(former.address()).await;
    let begun = Request::post("/mcp", "").header("Content-Length", "100");
    unfinished.write(&begun.to_bytes()).await;
    former.signal(Signal::TERM);
    let mut next = Starting::new(&configuration);
    assert!(next.logs("\"message\":\"listening\"").await);
    assert_eq!(former.wait().await.code, Some(0));
    assert_eq!(next.end().await, Some(0));
    assert_one_chain(&audit, &state).await;
}

/// A configuration with a port of its own.
fn on_one_port(port: &ReservedPort, top: &str) -> String {
    configuration(top, "").replace("127.0.0.1:0", &port.address().to_string())
}

/// E12, N4: a second server of the same configuration does not wait for the state directory: the
/// first one still listens, so that it is not ending.
#[tokio::test]
async fn a_second_server_fails_at_once() {
    let (state, port) = (Scratch::path_for("state"), ReservedPort::new());
    for more in ["", "[session]\nwithout_state = \"reject_ends\""] {
        let top = format!(
            "state_dir = \"{}\"\nshutdown_timeout = \"5m\"",
            state.as_str()
        );
        let configuration = on_one_port(&port, &top) + more;
        let first = Portcullis::serve(&configuration).await;
        let file = Scratch::file("portcullis.toml", &configuration);
        let second = Portcullis::run(&["serve", "--config", file.as_str()]).await;
        assert_eq!(second.code, Some(1), "{second:?}");
        let address = port.address().to_string();
        for word in [
            address.as_str(),
            state.as_str(),
            "probably a server with this configuration",
            "stop that one",
        ] {
            assert!(second.stderr.contains(word), "{word:?}: {second:?}");
        }
        assert!(!second.stderr.contains(WAITING), "{second:?}");
        first.stop().await;
    }
}

/// E12: a start on the same port that follows SIGTERM at once succeeds, while the former process
/// still listens for its delay, and while it has closed its listener and finishes a request.
#[tokio::test]
async fn an_immediate_start_on_the_same_port() {
    for (case, times) in [
        (
            "a delay",
            "shutdown_delay = \"2s\"\nshutdown_timeout = \"1s\"",
        ),
        ("a request", "shutdown_timeout = \"3s\""),
    ] {
        let (state, port) = (Scratch::path_for("state"), ReservedPort::new());
        let top = format!("state_dir = \"{}\"\n{times}", state.as_str());
        let configuration = on_one_port(&port, &top);
        let former = Portcullis::serve(&configuration).await;
        let mut unfinished = Connection::open(former.address()).await;
        let begun = Request::post("/mcp", "").header("Content-Length", "100");
        unfinished.write(&begun.to_bytes()).await;
        former.signal(Signal::TERM);
        let mut next = Starting::new(&configuration);
        assert!(next.logs("\"message\":\"listening\"").await, "{case}");
        assert_eq!(former.wait().await.code, Some(0), "{case}");
        assert_eq!(next.end().await, Some(0), "{case}");
    }
}

/// Asserts that `serve` fails with one line that has these words, and that `check` does, too, if it
/// can know.
async fn assert_refused(case: &str, configuration: &str, words: &[&str], checks: bool) {
    let file = Scratch::file("portcullis.toml", configuration);
    for command in ["serve", "check"] {
        let finished = Portcullis::run(&[command, "--config", file.as_str()]).await;
        if command == "check" && !checks {
            assert_eq!(finished.code, Some(0), "{case}: {finished:?}");
            continue;
        }
        assert_eq!(finished.code, Some(1), "{command}, {case}: {finished:?}");
        assert!(
            !finished.stderr.contains("listening"),
            "{command}, {case}: {finished:?}"
        );
        for word in words {
            assert!(
                finished.stderr.contains(word),
                "{command}, {case}: {word:?} is missing: {}",
                finished.stderr
            );
        }
    }
}

/// E12, N4: a state directory that cannot be used prevents the start, with the reason and the fix.
#[tokio::test]
async fn an_unusable_directory_prevents_the_start() {
    let state = Scratch::path_for("state");
    let file = Scratch::file("state", "");
    let with = |directory: &Scratch| {
        configuration(
            &format!(
                "state_dir = \"{}\"\nshutdown_timeout = \"1s\"",
                directory.as_str()
            ),
            "",
        )
    };
    let fix = "session.without_state = \"reject_ends\"";
    let running = Portcullis::serve(&with(&state)).await;
    let words = [
        "state_dir",
        state.as_str(),
        "in use by another process",
        fix,
        "state.in_use",
    ];
    assert_refused("in use", &with(&state), &words, false).await;
    running.stop().await;
    assert_refused(
        "a file",
        &with(&file),
        &[
            "portcullis.toml:3: state_dir: ",
            file.as_str(),
            fix,
            "state.io",
        ],
        true,
    )
    .await;

    let ends = state.path().join("session-ends");
    let intact = fs::read_to_string(&ends).unwrap();
    for (text, code) in [
        ("another format".to_owned(), "state.format"),
        (
            format!(
                "{intact}damaged\n{}\n",
                "AwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
            ),
            "state.damaged",
        ),
    ] {
        fs::write(&ends, text).unwrap();
        assert_refused(
            code,
            &with(&state),
            &["session-ends", "move it away", fix, code],
            true,
        )
        .await;
    }
    fs::write(&ends, intact).unwrap();
    let keys = state.path().join("session-keys");
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o644)).unwrap();
    assert_refused(
        "keys",
        &with(&state),
        &["session-keys", "chmod 600", fix, "state.exposed"],
        true,
    )
    .await;
}

/// J4, N4: records that cannot be chained prevent the start, unless the operator chose otherwise.
#[tokio::test]
async fn an_unusable_chain_prevents_the_start() {
    let state = Scratch::folder("state");
    let audit = Scratch::file("audit.jsonl", "{\"event\":\"decision\"}\n");
    let top = format!("state_dir = \"{}\"", state.as_str());
    let with = |more: &str| {
        configuration(
            &top,
            &format!(
                "[audit]\ntarget = {{ file = \"{}\" }}\n{more}",
                audit.as_str()
            ),
        )
    };
    let fix = "audit.without_chain = \"write\"";
    let words = ["audit.target", audit.as_str(), "move the file away", fix];
    assert_refused("records without a chain", &with(""), &words, true).await;
    let permitted = Portcullis::serve(&with("without_chain = \"write\"")).await;
    permitted
        .logged("a new chain of audit records begins", |line| {
            line["level"] == "WARN"
        })
        .await;
    permitted.stop().await;

    fs::write(audit.path(), "").unwrap();
    let key = state.path().join("audit-key");
    fs::write(&key, "short").unwrap();
    assert_refused(
        "an unusable key",
        &with(""),
        &["audit.key", "audit-key", "fewer than 32", fix],
        true,
    )
    .await;
    let permitted = Portcullis::serve(&with("without_chain = \"write\"")).await;
    permitted
        .logged("audit records are not chained", |line| {
            line["level"] == "WARN"
        })
        .await;
    permitted.stop().await;
}
