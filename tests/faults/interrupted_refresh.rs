//! Client commands that end while a refresh request is on its way, at a server that rotates refresh
//! tokens.

use std::{
    io::{PipeReader, PipeWriter, Write as _, pipe},
    process::Stdio,
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
};

use http::StatusCode;
use parking_lot::Mutex;
use portcullis_scenarios::{
    Finished, Peer, Portcullis, Scratch, TIMEOUT, portcullis_command, portcullis_program,
};
use rustix::{
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    process::{Pid, Signal, kill_process},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::Child,
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    time::timeout,
};

/// A server whose first token expires at once, and that answers the refresh request when the test
/// says so.
struct Setting {
    peer: Peer,
    store: Scratch,
    /// Gets an item for each refresh request that has arrived.
    arrived: UnboundedReceiver<()>,
    release: Sender<()>,
}

impl Setting {
    async fn signed_in() -> Self {
        let (arrivals, arrived) = unbounded_channel();
        let (release, released): (Sender<()>, Receiver<()>) = channel();
        let state = Arc::new(Mutex::new((released, "refresh-1")));
        let peer = Peer::start(move |request| {
            if request.path != "/token" {
                return None;
            }
            let token = |name: &str, lifetime: u32, refresh: &str| {
                request.json(json!({
                    "access_token": name, "token_type": "Bearer", "expires_in": lifetime, "refresh_token": refresh,
                }))
            };
            let form = request.form();
            let Some(refresh) = form.get("refresh_token") else { return Some(token("first", 0, "refresh-1")) };
            let mut state = state.lock();
            if refresh != state.1 {
                let mut response = request.json(json!({ "error": "invalid_grant" }));
                *response.status_mut() = StatusCode::BAD_REQUEST;
                return Some(response);
            }
            // From here on, the refresh token is used up.
            state.1 = "refresh-2";
            arrivals.send(()).unwrap();
            // The other tasks of the runtime go on meanwhile.
            let _ = tokio::task::block_in_place(|| state.0.recv_timeout(TIMEOUT));
            Some(token("second", 300, "refresh-2"))
        })
        .await;
        let store = Scratch::path_for("store");
        let login = [
            "login",
            &peer.url("/mcp"),
            "--auto-consent",
            "--store",
            store.as_str(),
        ];
        let login = Portcullis::run(&login).await;
        assert_eq!(login.code, Some(0), "{login:?}");
        Self {
            peer,
            store,
            arrived,
            release,
        }
    }

    /// Starts a command and waits until its refresh request has arrived.
    async fn start(&mut self, command: &[&str], input: &str) -> Child {
        self.start_with_log(command, input, Stdio::piped()).await
    }

    /// As [`start`](Self::start), with this standard error.
    async fn start_with_log(&mut self, command: &[&str], input: &str, log: Stdio) -> Child {
        let (name, more) = command.split_first().unwrap();
        let mut command = tokio::process::Command::from(portcullis_command(portcullis_program()));
        command
            .args([*name, &self.peer.url("/mcp")])
            .args(more)
            .args(["--store", self.store.as_str()]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        child
            .stdin
            .as_mut()
            .unwrap()
            .write_all(input.as_bytes())
            .await
            .unwrap();
        timeout(TIMEOUT, self.arrived.recv())
            .await
            .unwrap()
            .unwrap();
        child
    }

    /// Asserts that the new token was stored.
    async fn assert_signed_in(&self) {
        let token = [
            "token",
            &self.peer.url("/mcp"),
            "--store",
            self.store.as_str(),
        ];
        let token = Portcullis::run(&token).await;
        assert_eq!(
            (token.code, token.stdout.trim()),
            (Some(0), "second"),
            "{token:?}"
        );
    }
}

fn signal(child: &Child, signal: Signal) {
    kill_process(
        Pid::from_raw(child.id().unwrap().cast_signed()).unwrap(),
        signal,
    )
    .unwrap();
}

async fn end(child: Child) -> Finished {
    timeout(TIMEOUT, child.wait_with_output())
        .await
        .unwrap()
        .unwrap()
        .into()
}

/// I5, I7: `token` and `call` store the refreshed token although a signal arrives before it, and
/// end then.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_signal_loses_no_sign_in() {
    for (command, sent, code) in [
        (&["token"][..], Signal::TERM, 143),
        (&["token"], Signal::INT, 130),
        (&["call", "tools/list", "--auto-consent"], Signal::INT, 130),
    ] {
        let mut setting = Setting::signed_in().await;
        let child = setting.start(command, "").await;
        signal(&child, sent);
        setting.release.send(()).unwrap();
        let ended = end(child).await;
        // The response can be faster than the signal.
        assert!(
            [Some(code), Some(0)].contains(&ended.code),
            "{command:?} {ended:?}"
        );
        setting.assert_signed_in().await;
    }
}

/// I5, I8: `connect` answers its client at SIGTERM and at the end of the input, and then waits for
/// the refresh.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn connect_ends_after_the_refresh() {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {} });
    for sent in [Some(Signal::TERM), Some(Signal::INT), None] {
        let mut setting = Setting::signed_in().await;
        let mut child = setting
            .start(&["connect", "--auto-consent"], &format!("{message}\n"))
            .await;
        match sent {
            Some(sent) => signal(&child, sent),
            None => drop(child.stdin.take()),
        }
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = timeout(TIMEOUT, lines.next_line())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            answer["error"]["data"]["reason"], "bridge.ended",
            "{answer}"
        );
        // Nothing but the refresh keeps the process now.
        setting.release.send(()).unwrap();
        let ended = end(child).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        setting.assert_signed_in().await;
    }
}

/// I5: the wait for a refresh ends at the second signal, and after 10 s.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_wait_for_a_refresh_is_bounded() {
    for is_repeated in [true, false] {
        let mut setting = Setting::signed_in().await;
        let child = setting.start(&["token"], "").await;
        signal(&child, Signal::TERM);
        if is_repeated {
            signal(&child, Signal::INT);
        }
        let ended = end(child).await;
        assert!([Some(143), Some(130)].contains(&ended.code), "{ended:?}");
        assert_eq!(ended.stdout, "");
        setting.release.send(()).unwrap();
    }
}

/// J4: a command whose log is a full pipe ends, although it would log that it waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_unread_log_keeps_no_command() {
    let (_unread, log) = full_pipe();
    let mut setting = Setting::signed_in().await;
    let child = setting.start_with_log(&["token"], "", log.into()).await;
    signal(&child, Signal::TERM);
    let ended = end(child).await;
    assert_eq!(ended.code, Some(143), "{ended:?}");
    setting.release.send(()).unwrap();
}

/// A pipe into which nothing can be written without waiting.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = pipe().unwrap();
    let flags = fcntl_getfl(&writer).unwrap();
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK).unwrap();
    // The last bytes one by one, so that not even a short line fits.
    for piece in [&[0; 4096][..], &[0]] {
        while writer.write(piece).is_ok() {}
    }
    fcntl_setfl(&writer, flags).unwrap();
    (reader, writer)
}
