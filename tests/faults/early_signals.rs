//! Signals that arrive while the server starts.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use portcullis_scenarios::{Scratch, Signal, TIMEOUT, portcullis_command, portcullis_program};
use rustix::{
    io::Errno,
    process::{Pid, kill_process},
};
use tokio::{
    io::AsyncWriteExt as _,
    net::unix::pipe,
    time::{sleep, timeout},
};

const CONFIGURATION: &str = r#"
    listen = "127.0.0.1:0"
    base_url = "http://127.0.0.1:3000"
    state_dir = "off"

    [[issuer]]
    issuer = "https://auth.example.com"

    [[resource]]
    endpoint = "/mcp"
    upstream = { http = "http://127.0.0.1:9/mcp" }

    [audit]
    target = "stdout"
"#;

/// F4, J4: SIGTERM and SIGINT end the server in order as soon as the process runs, also before it
/// listens. SIGHUP does not end it.
#[tokio::test]
async fn signals_during_the_start() {
    for signals in [
        &[Signal::TERM][..],
        &[Signal::INT],
        &[Signal::HUP, Signal::TERM],
    ] {
        let file = Scratch::path_for("portcullis.toml");
        assert!(
            Command::new("mkfifo")
                .arg(file.as_str())
                .status()
                .unwrap()
                .success()
        );
        let mut command = tokio::process::Command::from(portcullis_command(portcullis_program()));
        command.args(["--log-format", "json", "serve", "--config", file.as_str()]);
        command
            .kill_on_drop(true)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = command.spawn().unwrap();

        // The server waits for its configuration. A reload reads a file, which does not block.
        let mut pipe = timeout(TIMEOUT, open_when_read(file.path())).await.unwrap();
        let replacement = Scratch::file("replacement.toml", CONFIGURATION);
        fs::rename(replacement.path(), file.path()).unwrap();
        let process = Pid::from_raw(child.id().unwrap().cast_signed()).unwrap();
        for signal in signals {
            kill_process(process, *signal).unwrap();
        }
        pipe.write_all(CONFIGURATION.as_bytes()).await.unwrap();
        drop(pipe);

        let output = timeout(TIMEOUT, child.wait_with_output())
            .await
            .unwrap()
            .unwrap();
        let log = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{signals:?}: {log}");
        let records = String::from_utf8_lossy(&output.stdout);
        assert!(
            records
                .lines()
                .next()
                .is_some_and(|record| record.contains("audit.started")),
            "{signals:?}: {records}"
        );
        assert!(
            records
                .lines()
                .last()
                .is_some_and(|record| record.contains("audit.stopped")),
            "{signals:?}: {records}"
        );
    }
}

/// J4: SIGTERM ends `connect` also while it is blocked in a read of a file that never ends.
#[tokio::test]
async fn a_signal_while_connect_is_blocked() {
    let file = Scratch::path_for("client-secret");
    assert!(
        Command::new("mkfifo")
            .arg(file.as_str())
            .status()
            .unwrap()
            .success()
    );
    let store = Scratch::path_for("store");
    let mut command = tokio::process::Command::from(portcullis_command(portcullis_program()));
    command.args([
        "connect",
        "http://127.0.0.1:9/mcp",
        "--client-id",
        "me",
        "--client-secret-file",
        file.as_str(),
    ]);
    command.args(["--auto-consent", "--store", store.as_str()]);
    command
        .kill_on_drop(true)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();

    let _pipe = timeout(TIMEOUT, open_when_read(file.path())).await.unwrap();
    kill_process(
        Pid::from_raw(child.id().unwrap().cast_signed()).unwrap(),
        Signal::TERM,
    )
    .unwrap();
    let status = timeout(TIMEOUT, child.wait()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(143));
}

/// Opens a named pipe for writing when a process has opened it for reading.
async fn open_when_read(path: &Path) -> pipe::Sender {
    loop {
        match pipe::OpenOptions::new().open_sender(path) {
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NXIO) => {
                sleep(Duration::from_millis(5)).await
            }
            opened => return opened.unwrap(),
        }
    }
}
