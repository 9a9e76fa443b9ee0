//! A web page that uses the development authorization server to send requests to the servers of
//! this machine.

use std::process::Stdio;

use portcullis_metadata::authorization::PkceVerifier;
use portcullis_scenarios::{
    Peer, Process, Request, TIMEOUT, portcullis_command, portcullis_program,
};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::ChildStdout,
    time::timeout,
};
use url::Url;

/// K1: a client document at a loopback URL is fetched for a navigation and for programs, and not
/// for the scripts, images and frames of a page.
#[tokio::test]
async fn a_page_cannot_cause_loopback_requests() {
    let documents = Peer::start(|request| {
        (request.path == "/client.json").then(|| {
            request.json(json!({
                "client_id": format!("{}/client.json", request.base), "client_name": "Local",
                "redirect_uris": ["http://127.0.0.1:4321/callback"], "token_endpoint_auth_method": "none",
            }))
        })
    })
    .await;
    let mut command = portcullis_command(portcullis_program());
    command
        .args(["idp", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut process = Process::start("idp", &mut command).unwrap();
    let stdout = ChildStdout::from_std(process.take_stdout().unwrap()).unwrap();
    let mut lines = BufReader::new(stdout).lines();
    let line = timeout(TIMEOUT, lines.next_line())
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    let issuer = Url::parse(
        line.strip_prefix("development authorization server: ")
            .unwrap(),
    )
    .unwrap();

    let mut page = issuer.join("/authorize").unwrap();
    page.query_pairs_mut()
        .append_pair("client_id", &documents.url("/client.json"))
        .append_pair("response_type", "code")
        .append_pair("redirect_uri", "http://127.0.0.1:4321/callback")
        .append_pair(
            "code_challenge",
            PkceVerifier::generate().unwrap().challenge().as_str(),
        )
        .append_pair("code_challenge_method", "S256");
    let target = format!("{}?{}", page.path(), page.query().unwrap());
    let address = issuer.socket_addrs(|| None).unwrap()[0];
    let open = async |modes: &[&str]| {
        let request = modes
            .iter()
            .fold(Request::new("GET", &target), |request, mode| {
                request.header("Sec-Fetch-Mode", mode)
            });
        request.send(address).await.status
    };
    for modes in [
        &["no-cors"][..],
        &["cors"],
        &["same-origin"],
        &["websocket"],
        &["navigate", "no-cors"],
    ] {
        assert_eq!(open(modes).await, 400, "{modes:?}");
        assert!(documents.requests("/client.json").is_empty(), "{modes:?}");
    }
    // Without a scope or a resource, the answer can be an error for the client. The client is known
    // in any case.
    assert_ne!(open(&["navigate"]).await, 400);
    assert_ne!(open(&[]).await, 400);
    assert_eq!(documents.requests("/client.json").len(), 1);
}
