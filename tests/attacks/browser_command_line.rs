//! Another user of the machine who reads the command line of the browser during a sign-in.

use std::{fs, os::unix::fs::PermissionsExt as _, time::Duration};

use portcullis_scenarios::{
    Finished, Peer, Portcullis, Request, Scratch, TIMEOUT, portcullis_program,
};
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};
use url::Url;

/// Starts a login. Returns what its browser gets as its argument.
async fn login(peer: &Peer, store: &Scratch) -> (JoinHandle<Finished>, Url) {
    // Builds the program, which can take longer than the wait for the browser.
    portcullis_program();
    let folder = Scratch::folder("browser");
    let (written, program) = (folder.path().join("argument"), folder.path().join("w3m"));
    // The name is that of a text browser.
    let script = format!(
        "#!/bin/sh\nprintf %s \"$1\" > '{0}.new'\nmv '{0}.new' '{0}'\n",
        written.display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    let (url, store) = (peer.url("/mcp"), store.as_str().to_owned());
    let mut login = tokio::spawn(async move {
        let environment = [("BROWSER", program.to_str().unwrap())];
        Portcullis::run_with(&["login", &url, "--store", &store], &environment).await
    });
    let argument = async {
        loop {
            match fs::read_to_string(&written) {
                Ok(argument) => break argument,
                Err(_) => sleep(Duration::from_millis(10)).await,
            }
        }
    };
    let argument = tokio::select! {
        argument = timeout(TIMEOUT, argument) => argument.unwrap(),
        finished = &mut login => panic!("no browser: {finished:?}"),
    };
    (login, Url::parse(&argument).unwrap())
}

/// Requests a URL of this machine, and returns the status and the target of a redirect.
async fn get(url: &Url) -> (u16, Option<Url>) {
    let target = url.query().map_or_else(
        || url.path().to_owned(),
        |query| format!("{}?{query}", url.path()),
    );
    let response = Request::new("GET", &target)
        .send(url.socket_addrs(|| None).unwrap()[0])
        .await;
    (
        response.status,
        response
            .header("location")
            .map(|location| Url::parse(location).unwrap()),
    )
}

/// I3: the command line of the browser has neither `state` nor the challenge, and its address leads
/// to the sign-in.
#[tokio::test]
async fn the_command_line_has_no_authorization_request() {
    let (peer, store) = (Peer::start(|_| None).await, Scratch::path_for("store"));
    let (login, address) = login(&peer, &store).await;
    assert_eq!(
        (address.host_str(), address.query()),
        (Some("127.0.0.1"), None)
    );
    let (_, page) = get(&address).await;
    let page = page.unwrap();
    assert!(
        page.as_str().starts_with(&peer.url("/authorize?")) && page.as_str().contains("state="),
        "{page}"
    );
    let (_, redirect) = get(&page).await;
    assert_eq!(get(&redirect.unwrap()).await.0, 200);
    let finished = login.await.unwrap();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(
        !finished.stderr.contains("state="),
        "others may read the log of a client: {finished:?}"
    );
}

/// I3: if an attacker opens the address first, that of the browser is the second request, which
/// stops the sign-in.
#[tokio::test]
async fn a_second_request_stops_the_sign_in() {
    let (peer, store) = (Peer::start(|_| None).await, Scratch::path_for("store"));
    let (login, address) = login(&peer, &store).await;
    let (_, page) = get(&address).await;
    let (_, redirect) = get(&page.unwrap()).await;
    assert_eq!(get(&address).await, (409, None));
    let finished = login.await.unwrap();
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert_eq!(
        finished
            .stderr
            .lines()
            .filter(|line| line.contains("opened twice"))
            .count(),
        1,
        "{finished:?}"
    );
    assert!(redirect.is_some() && peer.requests("/token").is_empty());
}
