//! A resource that names another authorization server, to get the secret of a pre-registered
//! client.

use std::{
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use portcullis_scenarios::{Finished, Peer, Portcullis, Scratch};
use serde_json::{Value, json};

/// A user of a pre-registered client, the server that it belongs to, and the server of an attacker.
struct Setting {
    /// The resource, and the authorization server that it names first.
    peer: Peer,
    attacker: Peer,
    is_compromised: Arc<AtomicBool>,
    state: Scratch,
    secret: Scratch,
}

impl Setting {
    async fn start() -> Self {
        let attacker = Peer::start(|_| None).await;
        let is_compromised = Arc::new(AtomicBool::new(false));
        let (is_now, base) = (Arc::clone(&is_compromised), attacker.url(""));
        let peer = Peer::start(move |request| {
            let is_answered =
                request.is_for_resource_metadata("/mcp") && is_now.load(Ordering::Relaxed);
            is_answered.then(|| {
                let resource = format!("{}/mcp", request.base);
                request.json(json!({ "resource": resource, "authorization_servers": [base] }))
            })
        })
        .await;
        let (state, secret) = (
            Scratch::path_for("state"),
            Scratch::file("secret", "the-secret"),
        );
        Self {
            peer,
            attacker,
            is_compromised,
            state,
            secret,
        }
    }

    /// Runs a command with the client and its secret.
    async fn run_client(&self, arguments: &[&str], more: &[&str]) -> Finished {
        let client = [
            "--auto-consent",
            "--client-id",
            "me",
            "--client-secret-file",
            self.secret.as_str(),
        ];
        let environment = [("XDG_STATE_HOME", self.state.as_str())];
        Portcullis::run_with(&[arguments, &client, more].concat(), &environment).await
    }

    /// Asserts that the command named both servers and the option, and that the attacker got
    /// nothing.
    fn assert_refused(&self, refused: &Finished) {
        let (known, named) = (self.peer.url(""), self.attacker.url(""));
        for words in [
            "the client me belongs to",
            &known,
            &format!("give --authorization-server {named}"),
        ] {
            assert!(refused.stderr.contains(words), "{words}: {refused:?}");
        }
        for path in ["/authorize", "/token", "/register"] {
            assert!(
                self.attacker.requests(path).is_empty(),
                "{path}: {refused:?}"
            );
        }
    }
}

/// Sends `initialize` through a bridge and returns the response.
async fn initialize(arguments: &[&str], environment: &[(&str, &str)]) -> Value {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {} });
    let finished = Portcullis::run_bridge(arguments, environment, &message).await;
    serde_json::from_str(finished.stdout.trim()).unwrap_or_else(|_| panic!("{finished:?}"))
}

/// The identifier under which mcp-remote stores the credentials for a URL: its MD5.
fn session_id(url: &str) -> String {
    let file = Scratch::file("url", url);
    let output = Command::new("md5sum").arg(file.as_str()).output().unwrap();
    String::from_utf8(output.stdout)
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .to_owned()
}

/// H3: the secret of a pre-registered client, its code and its verifier stay at the authorization
/// server at which it was used first, also in later processes. `--authorization-server` permits
/// another one.
#[tokio::test]
async fn a_client_stays_at_its_server() {
    let setting = Setting::start().await;
    let url = setting.peer.url("/mcp");
    // `call` stores no token, so that nothing but the binding remains.
    let first = setting.run_client(&["call", &url, "tools/list"], &[]).await;
    assert_eq!(first.code, Some(0), "{first:?}");
    setting.is_compromised.store(true, Ordering::Relaxed);
    for arguments in [&["call", &url, "tools/list"][..], &["login", &url]] {
        let refused = setting.run_client(arguments, &[]).await;
        assert_eq!(refused.code, Some(1), "{refused:?}");
        setting.assert_refused(&refused);
    }

    let named = setting.attacker.url("");
    let moved = setting
        .run_client(&["login", &url], &["--authorization-server", &named])
        .await;
    assert_eq!(moved.code, Some(0), "{moved:?}");
    let later = setting.run_client(&["login", &url], &[]).await;
    assert_eq!(
        later.code,
        Some(0),
        "the new server is remembered: {later:?}"
    );
}

/// H3: the same for a client that authenticates itself, without a user.
#[tokio::test]
async fn a_machine_stays_at_its_server() {
    let setting = Setting::start().await;
    let url = setting.peer.url("/mcp");
    let store = setting.state.path().join("portcullis");
    let store = store.to_str().unwrap();
    let client = [
        "--client-credentials",
        "--client-id",
        "me",
        "--client-secret-file",
        setting.secret.as_str(),
    ];
    let connect = [&["connect", &url, "--store", store][..], &client].concat();
    let first = initialize(&connect, &[]).await;
    assert_eq!(first["result"]["serverInfo"]["name"], "peer", "{first}");

    // The next process has no token.
    for entry in std::fs::read_dir(store).unwrap() {
        let path = entry.unwrap().path();
        if path
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with("token-")
        {
            std::fs::remove_file(path).unwrap();
        }
    }
    setting.is_compromised.store(true, Ordering::Relaxed);
    let refused = initialize(&connect, &[]).await;
    assert_eq!(
        refused["error"]["data"]["reason"], "client.other_server",
        "{refused}"
    );
    assert!(setting.attacker.requests("/token").is_empty());
}

/// H3: `import-mcp-remote` and `mcp-remote` know the authorization server of a client that was
/// registered by hand from the files of mcp-remote, even if its token has expired.
#[tokio::test]
async fn a_client_of_mcp_remote_stays_at_its_server() {
    let setting = Setting::start().await;
    let url = setting.peer.url("/mcp");
    let files = Scratch::folder("mcp-auth");
    std::fs::create_dir(files.path().join("mcp-remote-v1")).unwrap();
    let name = format!("mcp-remote-v1/{}_tokens.json", session_id(&url));
    let token = json!({
        "access_token": "old", "token_type": "Bearer", "expires_at": 1.0, "issuer": setting.peer.url(""),
    });
    std::fs::write(files.path().join(name), token.to_string()).unwrap();
    setting.is_compromised.store(true, Ordering::Relaxed);

    let client = json!({ "client_id": "me", "client_secret": "the-secret" }).to_string();
    let options = [
        url.as_str(),
        "--client-credentials",
        "--static-oauth-client-info",
        &client,
    ];
    let arguments = [&["mcp-remote"][..], &options].concat();
    let servers = json!({ "a": { "command": "npx", "args": arguments } });
    let configuration = Scratch::file("claude.json", &json!({ "mcpServers": servers }).to_string());
    let environment = [
        ("XDG_STATE_HOME", setting.state.as_str()),
        ("MCP_REMOTE_CONFIG_DIR", files.as_str()),
    ];
    let import = ["import-mcp-remote", configuration.as_str(), "--write"];
    let imported = Portcullis::run_with(&import, &environment).await;
    assert_eq!(imported.code, Some(0), "{imported:?}");
    let text = std::fs::read_to_string(configuration.path()).unwrap();
    let written: Value = serde_json::from_str(&text).unwrap();
    let arguments = written["mcpServers"]["a"]["args"].as_array().unwrap();
    let at = arguments
        .iter()
        .position(|argument| argument == "--authorization-server")
        .unwrap();
    assert_eq!(arguments[at + 1], setting.peer.url("").as_str());

    // Another store, which knows only the files of mcp-remote.
    let other = Scratch::path_for("state");
    let environment = [
        ("XDG_STATE_HOME", other.as_str()),
        ("MCP_REMOTE_CONFIG_DIR", files.as_str()),
    ];
    let refused = initialize(&[&["mcp-remote"][..], &options].concat(), &environment).await;
    assert_eq!(
        refused["error"]["data"]["reason"], "client.other_server",
        "{refused}"
    );
    assert!(setting.attacker.requests("/token").is_empty());
}

/// H3: a command that cannot store the authorization server of the client says so, with the option
/// that keeps the client there.
#[tokio::test]
async fn a_server_that_is_not_stored_is_warned_of() {
    let setting = Setting::start().await;
    let (url, named, store) = (
        setting.peer.url("/mcp"),
        setting.peer.url(""),
        Scratch::folder("store"),
    );
    for (more, is_warned) in [
        (&[][..], true),
        (&["--authorization-server", &named], false),
    ] {
        let call = [
            &[
                "call",
                &url,
                "tools/list",
                "--auto-consent",
                "--client-id",
                "me",
            ][..],
            more,
        ]
        .concat();
        let without_folder =
            Portcullis::run_with(&call, &[("XDG_STATE_HOME", ""), ("HOME", "")]).await;
        // The effect of a full disk.
        let with_full_disk = Portcullis::run_limited(
            &[&call[..], &["--store", store.as_str()]].concat(),
            "-f 0",
            "",
        )
        .await;
        for called in [without_folder, with_full_disk] {
            assert_eq!(called.code, Some(0), "{called:?}");
            let mut warnings = called.stderr.lines().filter(|line| line.contains("WARN"));
            let warned = warnings.any(|line| line.contains("--authorization-server"));
            assert_eq!(warned, is_warned, "{called:?}");
        }
    }
}
