//! `login`, `call` and `connect` at the broker, with a user in a scripted browser.

use std::{fs, os::unix::fs::PermissionsExt as _, time::Duration};

use portcullis_scenarios::{
    BrokerServer, Browser, Finished, INITIALIZE, Portcullis, ProviderKind, Request, Scratch,
    TIMEOUT,
};
use serde_json::json;
use tokio::time::{sleep, timeout};
use url::Url;

use crate::connect::Bridge;

/// The browser program of the client's machine, which leaves each URL to the test.
struct BrowserProgram {
    folder: Scratch,
    path: String,
}

impl BrowserProgram {
    fn new() -> Self {
        let folder = Scratch::folder("browser");
        let program = folder.path().join("browser");
        let script = "#!/bin/sh\nprintf '%s' \"$1\" > \"$0.part\" && mv \"$0.part\" \"$0.url\"\n";
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        Self {
            path: program.to_str().unwrap().to_owned(),
            folder,
        }
    }

    /// Waits until the client opens the browser, and signs the user in there. Returns the text of
    /// the last page, which is the client's.
    async fn sign_in(&self, user: &str) -> String {
        let file = self.folder.path().join("browser.url");
        let opened = async {
            loop {
                if let Ok(url) = fs::read_to_string(&file) {
                    break url;
                }
                sleep(Duration::from_millis(10)).await;
            }
        };
        let opened = timeout(TIMEOUT, opened).await.unwrap();
        fs::remove_file(&file).unwrap();
        let mut browser = Browser::default();
        let opened = browser.open(&Url::parse(&opened).unwrap()).await;
        let authorization = Url::parse(opened.header("location").unwrap()).unwrap();
        let location = browser.sign_in(&authorization, user).await;
        browser.open(&location).await.text()
    }
}

/// A client with its store.
struct Client {
    browser: BrowserProgram,
    store: Scratch,
    url: String,
}

impl Client {
    fn new(server: &BrokerServer) -> Self {
        Self {
            browser: BrowserProgram::new(),
            store: Scratch::path_for("store"),
            url: server.url("/mcp").to_string(),
        }
    }

    async fn run(&self, command: &str, more: &[&str]) -> Finished {
        let store = ["--store", self.store.as_str()];
        let arguments = [&[command, self.url.as_str()][..], more, &store].concat();
        Portcullis::run_with(&arguments, &[("BROWSER", &self.browser.path)]).await
    }

    /// Runs a command during which the user signs in.
    async fn run_with_sign_in(&self, command: &str, more: &[&str]) -> Finished {
        let (finished, page) = tokio::join!(self.run(command, more), self.browser.sign_in("alice"));
        assert!(page.contains("close this window"), "{page}");
        assert_eq!(finished.code, Some(0), "{finished:?}");
        finished
    }
}

/// `login` registers, signs the user in, and `call` and `token` use its token. `logout` revokes it
/// at the broker.
#[tokio::test]
async fn a_login_serves_all_commands() {
    let server = BrokerServer::start(ProviderKind::Google).await;
    let client = Client::new(&server);
    let login = client.run_with_sign_in("login", &[]).await;
    assert!(login.stderr.contains("mcp:tools"), "{login:?}");
    let call = client
        .run("call", &["tools/call", r#"{"name":"add"}"#])
        .await;
    assert_eq!(call.code, Some(0), "{call:?}");
    assert!(call.stdout.contains("add"), "{call:?}");

    let token = client.run("token", &[]).await;
    let token = token.stdout.trim().to_owned();
    let listed = async || {
        Request::post("/mcp", INITIALIZE)
            .bearer(&token)
            .send(server.program().address())
            .await
            .status
    };
    assert_eq!(listed().await, 200);
    let logout = client.run("logout", &[]).await;
    assert!(logout.stderr.contains("revoked"), "{logout:?}");
    assert_eq!(listed().await, 401);
    assert!(!server.program().log().contains(&token));
}

/// `call` without an earlier login signs the user in.
#[tokio::test]
async fn a_call_signs_in() {
    let server = BrokerServer::start(ProviderKind::GitHub).await;
    let client = Client::new(&server);
    let call = client
        .run_with_sign_in("call", &["tools/call", r#"{"name":"add"}"#])
        .await;
    assert!(call.stdout.contains("add"), "{call:?}");
}

/// `connect` signs the user in when the first message needs it.
#[tokio::test]
async fn connect_signs_in() {
    let server = BrokerServer::start(ProviderKind::Okta).await;
    let client = Client::new(&server);
    let mut bridge = Bridge::start(
        &client.url,
        &["--store", client.store.as_str()],
        &[("BROWSER", &client.browser.path)],
    );
    let (initialized, page) = tokio::join!(bridge.initialize(), client.browser.sign_in("alice"));
    assert!(initialized["result"].is_object(), "{initialized}");
    assert!(page.contains("close this window"), "{page}");
    let params = json!({ "name": "add", "arguments": {} });
    let called = bridge.request(1, "tools/call", params).await;
    assert_eq!(called["result"]["name"], "add", "{called}");
    assert_eq!(bridge.close().await.code, Some(0));
}
