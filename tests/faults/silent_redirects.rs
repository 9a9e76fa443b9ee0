//! Silent connections to the port that receives the redirect of a sign-in.

use std::{process::Stdio, str::from_utf8};

use portcullis_scenarios::{
    Peer, Process, Request, ReservedPort, Scratch, TIMEOUT, portcullis_command, portcullis_program,
};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::TcpStream,
    process::ChildStderr,
    time::timeout,
};
use url::Url;

/// I3: silent connections of another program do not keep the browser from the redirect.
#[tokio::test]
async fn a_redirect_arrives_among_silent_connections() {
    let peer = Peer::start(|_| None).await;
    let (store, reserved) = (Scratch::path_for("store"), ReservedPort::new());
    let (url, port) = (peer.url("/mcp"), reserved.port().to_string());
    let mut command = portcullis_command(portcullis_program());
    command.args([
        "login",
        &url,
        "--no-browser",
        "--callback-port",
        &port,
        "--store",
        store.as_str(),
    ]);
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    let mut process = Process::start("login", &mut command).unwrap();
    let stderr = ChildStderr::from_std(process.take_stderr().unwrap()).unwrap();
    let mut lines = BufReader::new(stderr).lines();
    let page = loop {
        let line = timeout(TIMEOUT, lines.next_line())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        if let Ok(page) = Url::parse(&line) {
            break page;
        }
    };
    let mut silent = Vec::new();
    for _ in 0..400 {
        silent.push(TcpStream::connect(reserved.address()).await.unwrap());
    }
    let target = format!("{}?{}", page.path(), page.query().unwrap());
    let granted = Request::new("GET", &target).send(peer.address()).await;
    let redirect = Url::parse(granted.header("location").unwrap()).unwrap();
    let redirected = format!("{}?{}", redirect.path(), redirect.query().unwrap());
    let shown = Request::new("GET", &redirected)
        .send(reserved.address())
        .await;
    assert_eq!(shown.status, 200, "{:?}", from_utf8(&shown.body));
    assert!(
        timeout(TIMEOUT, process.wait())
            .await
            .unwrap()
            .unwrap()
            .success()
    );
}
