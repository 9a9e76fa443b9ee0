//! Signals that arrive while the server starts.

use std::{
    fs::{self, File},
    io::Write as _,
    process::{Command, Stdio},
};

use portcullis_scenarios::{Scratch, Signal, portcullis_command, portcullis_program};
use rustix::process::{Pid, kill_process};

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

/// F4, J4: SIGTERM and SIGINT end the server in order as soon as the process runs, also before it listens. SIGHUP does not end it.
#[tokio::test]
async fn signals_during_the_start() {
    for signals in [&[Signal::TERM][..], &[Signal::INT], &[Signal::HUP, Signal::TERM]] {
        let file = Scratch::path_for("portcullis.toml");
        assert!(Command::new("mkfifo").arg(file.as_str()).status().unwrap().success());
        let mut command = tokio::process::Command::from(portcullis_command(portcullis_program()));
        command.args(["--log-format", "json", "serve", "--config", file.as_str()]);
        command.kill_on_drop(true).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();

        // The pipe opens when the server begins to read it, which then waits for its text.
        let path = file.path().to_owned();
        let mut pipe =
            tokio::task::spawn_blocking(move || File::options().write(true).open(path)).await.unwrap().unwrap();
        let replacement = Scratch::file("replacement.toml", CONFIGURATION);
        fs::rename(replacement.path(), file.path()).unwrap();
        let process = Pid::from_raw(child.id().unwrap().cast_signed()).unwrap();
        for signal in signals {
            kill_process(process, *signal).unwrap();
        }
        pipe.write_all(CONFIGURATION.as_bytes()).unwrap();
        drop(pipe);

        let output =
            tokio::time::timeout(portcullis_scenarios::TIMEOUT, child.wait_with_output()).await.unwrap().unwrap();
        let log = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{signals:?}: {log}");
        let records = String::from_utf8_lossy(&output.stdout);
        assert!(
            records.lines().next().is_some_and(|record| record.contains("audit.started")),
            "{signals:?}: {records}"
        );
        assert!(
            records.lines().last().is_some_and(|record| record.contains("audit.stopped")),
            "{signals:?}: {records}"
        );
    }
}
