//! Sign-ins on machines where no browser can be opened.

use std::{
    io::{BufRead as _, BufReader},
    process::Stdio,
};

use portcullis_scenarios::{
    Peer, Portcullis, Scratch, in_terminal, portcullis_command, portcullis_program,
};
use serde_json::Value;

use crate::connect::Bridge;

/// An environment without display and chosen browser.
const NO_DISPLAY: [(&str, &str); 4] = [
    ("DISPLAY", ""),
    ("WAYLAND_DISPLAY", ""),
    ("BROWSER", ""),
    ("WSL_INTEROP", ""),
];

/// I7: without browser and terminal, commands fail at once: in the time limit of every run, which
/// is much less than that of a sign-in. The error names the ways to sign in.
#[tokio::test]
async fn commands_fail_at_once() {
    let (peer, store) = (Peer::start(|_| None).await, Scratch::path_for("store"));
    let url = peer.url("/mcp");
    for arguments in [&["login", &url][..], &["call", &url, "tools/list"]] {
        let failed = Portcullis::run_with(
            &[arguments, &["--store", store.as_str()]].concat(),
            &NO_DISPLAY,
        )
        .await;
        assert_eq!(
            (failed.code, failed.stderr.lines().count()),
            (Some(1), 1),
            "{failed:?}"
        );
        for words in [
            "no browser can be opened",
            "--device",
            "--no-browser",
            "--auto-consent",
        ] {
            assert!(failed.stderr.contains(words), "{words}: {failed:?}");
        }
    }
    assert!(peer.requests("/token").is_empty());
}

/// I7, J9: `doctor` names its own option, and not another command.
#[tokio::test]
async fn doctor_names_its_option() {
    let (peer, store) = (Peer::start(|_| None).await, Scratch::path_for("store"));
    let url = peer.url("/mcp");
    let arguments = ["doctor", "--login", &url, "--store", store.as_str()];
    let failed = Portcullis::run_with(&arguments, &NO_DISPLAY).await;
    assert_eq!(failed.code, Some(1), "{failed:?}");
    for words in [
        "no browser can be opened",
        "    fix:  give --no-browser",
        "portcullis idp --auto-consent",
    ] {
        assert!(failed.stdout.contains(words), "{words}: {failed:?}");
    }
    assert!(!failed.stdout.contains("portcullis login"), "{failed:?}");
}

/// I7, I8: a client of `connect` gets the error at once, and not after its own time limit, which is
/// longer than that of [`Bridge`].
#[tokio::test]
async fn connect_fails_at_once() {
    for command in ["connect", "mcp-remote"] {
        let (peer, state) = (Peer::start(|_| None).await, Scratch::path_for("state"));
        let environment = [&NO_DISPLAY[..], &[("XDG_STATE_HOME", state.as_str())]].concat();
        let mut bridge = Bridge::start_command(command, &[&peer.url("/mcp")], &environment);
        let response = bridge.initialize().await;
        let error = &response["error"];
        assert_eq!(
            error["data"]["reason"],
            Value::from("interaction.no_browser"),
            "{response}"
        );
        assert!(
            error["message"]
                .as_str()
                .unwrap()
                .contains("portcullis login"),
            "{response}"
        );
        bridge.close().await;
    }
}

/// I3, I7: in a terminal, the command shows the URL and waits, and the final URL can be pasted.
#[tokio::test]
async fn a_user_in_a_terminal_can_sign_in() {
    let (peer, store) = (Peer::start(|_| None).await, Scratch::path_for("store"));
    let url = peer.url("/mcp");
    let shown = tokio::task::spawn_blocking(move || {
        let mut login = portcullis_command(portcullis_program());
        login
            .args(["login", &url, "--store", store.as_str()])
            .envs(NO_DISPLAY);
        in_terminal(
            login,
            &[("paste the final URL", "nothing\n")],
            Some("paste the whole address"),
        )
    })
    .await
    .unwrap()
    .shown;
    for words in [
        "no browser can be opened on this machine",
        "/authorize?",
        "ssh -L ",
        "login --device",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

/// I7, J9: while another command waits for its user, a second sign-in to the same server says that
/// it waits, too.
#[tokio::test]
async fn a_second_sign_in_says_what_it_waits_for() {
    let (peer, store) = (Peer::start(|_| None).await, Scratch::path_for("store"));
    let url = peer.url("/mcp");
    tokio::task::spawn_blocking(move || {
        let login = || {
            let mut login = portcullis_command(portcullis_program());
            login.args(["login", "--no-browser", &url, "--store", store.as_str()]);
            login
        };
        let mut first = login().stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(first.stderr.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("/authorize?")));
        let text = format!("waiting for another sign-in to {url}");
        let shown = in_terminal(login(), &[], Some(&text)).shown;
        first.kill().unwrap();
        first.wait().unwrap();
        assert!(shown.contains(&text), "{shown}");
    })
    .await
    .unwrap();
}
