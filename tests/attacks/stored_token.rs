//! Servers that try to get a stored token of another path of their origin.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt as _, chown},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use http::{Method, Response};
use parking_lot::Mutex;
use portcullis_scenarios::{
    ChannelBody, Finished, Peer, Portcullis, Scratch, Upstream, in_terminal, portcullis_command,
    portcullis_program,
};
use serde_json::{Value, json};

const EVIL: &str = "/evil/mcp";

/// A host that several parties share, and the store of a user. The party at [`EVIL`] claims the
/// whole host as its resource.
struct SharedHost {
    peer: Peer,
    store: Scratch,
}

impl SharedHost {
    /// Starts a peer that numbers its tokens. The metadata of [`EVIL`] names the whole origin as
    /// the resource.
    async fn start() -> Self {
        let issued = Arc::new(AtomicU32::new(0));
        let peer = Peer::start(move |request| {
            if request.is_for_resource_metadata(EVIL) {
                return Some(
                    request.json(request.resource_metadata(&format!("{}/", request.base))),
                );
            }
            (request.path == "/token").then(|| {
                let number = issued.fetch_add(1, Ordering::Relaxed) + 1;
                request.json(json!({
                    "access_token": format!("token-{number}"), "token_type": "Bearer", "expires_in": 3600,
                    "refresh_token": format!("refresh-{number}"),
                }))
            })
        });
        Self {
            peer: peer.await,
            store: Scratch::path_for("store"),
        }
    }

    async fn run(&self, command: &str, path: &str, more: &[&str]) -> Finished {
        let url = self.peer.url(path);
        let arguments = [
            &[command, url.as_str()][..],
            more,
            &["--auto-consent", "--store", self.store.as_str()],
        ];
        Portcullis::run(&arguments.concat()).await
    }

    /// Returns the token that `portcullis token` prints, or `None` if it reports that no stored one
    /// can be used.
    async fn token(&self, path: &str) -> Option<String> {
        let finished = self.run("token", path, &[]).await;
        if finished.code == Some(0) {
            return Some(finished.stdout.trim().to_owned());
        }
        assert!(
            finished.stderr.contains("no stored token for"),
            "{finished:?}"
        );
        None
    }

    /// Returns the `Authorization` headers that the attacker's path received.
    fn received_by_attacker(&self) -> Vec<String> {
        self.peer
            .requests(EVIL)
            .into_iter()
            .filter_map(|request| request.authorization)
            .collect()
    }
}

/// H4: no command sends the token of the host's own resource to another path that claims this
/// resource. That path gets a token of its own only if the user accepts the broader resource.
#[tokio::test]
async fn another_path_gets_no_stored_token() {
    let host = SharedHost::start().await;
    assert_eq!(host.run("login", "/", &[]).await.code, Some(0));
    assert_eq!(host.token("/").await.as_deref(), Some("token-1"));
    assert_eq!(host.token(EVIL).await, None);

    for (command, more) in [("call", &["tools/list"][..]), ("login", &[])] {
        let rejected = host.run(command, EVIL, more).await;
        assert_eq!(rejected.code, Some(1), "{rejected:?}");
        assert_eq!(rejected.stderr.lines().count(), 1, "{rejected:?}");
        assert!(
            rejected.stderr.contains("--accept-broader-resource"),
            "{rejected:?}"
        );
        assert!(
            rejected.stderr.contains(&host.peer.url(EVIL)),
            "{rejected:?}"
        );
    }
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {} });
    let url = host.peer.url(EVIL);
    let bridge = [
        "connect",
        &url,
        "--auto-consent",
        "--store",
        host.store.as_str(),
    ];
    let bridged = Portcullis::run_bridge(&bridge, &[], &message).await;
    let response: Value = serde_json::from_str(&bridged.stdout).unwrap();
    assert_eq!(
        response["error"]["data"]["reason"], "client.broader_resource",
        "{bridged:?}"
    );
    assert!(
        bridged.stderr.contains("--accept-broader-resource"),
        "{bridged:?}"
    );

    assert_eq!(host.received_by_attacker(), Vec::<String>::new());
    assert_eq!(host.peer.requests("/authorize").len(), 1);
    assert_eq!(host.peer.requests("/token").len(), 1);
    assert!(
        host.run("logout", EVIL, &[])
            .await
            .stderr
            .contains("there was no token")
    );
    assert_eq!(host.token("/").await.as_deref(), Some("token-1"));
}

/// H4: after the user accepts the broader resource, the path has its own token. The two are used
/// and deleted separately.
#[tokio::test]
async fn an_accepted_path_has_its_own_token() {
    let host = SharedHost::start().await;
    host.run("login", "/", &[]).await;
    let login = host
        .run("login", EVIL, &["--accept-broader-resource"])
        .await;
    assert_eq!(login.code, Some(0), "{login:?}");
    assert_eq!(
        host.peer.requests("/authorize")[1].query["resource"],
        host.peer.url("/")
    );
    assert_eq!(host.run("call", EVIL, &["tools/list"]).await.code, Some(0));
    let received = host.received_by_attacker();
    assert!(!received.is_empty(), "the call has a token");
    assert!(
        received.iter().all(|token| token == "Bearer token-2"),
        "{received:?}"
    );
    assert_eq!(host.token(EVIL).await.as_deref(), Some("token-2"));
    assert_eq!(host.token("/").await.as_deref(), Some("token-1"));
    assert_eq!(host.token("/evil/mcp/below").await, None);

    host.run("logout", EVIL, &[]).await;
    assert_eq!(host.token(EVIL).await, None);
    assert_eq!(host.token("/").await.as_deref(), Some("token-1"));
}

/// H4: the metadata of the whole host is accepted without a question, and `login` says where the
/// token is valid. Each path still has a token of its own. `--exact-resource` accepts it nowhere.
#[tokio::test]
async fn the_metadata_of_the_whole_host_is_accepted() {
    const MCP: &str = "/mcp";
    let peer = Peer::start(|request| {
        let has_none =
            request.is_for_resource_metadata(MCP) || request.is_for_resource_metadata(EVIL);
        has_none.then(|| Response::builder().status(404).body(String::new()).unwrap())
    });
    let host = SharedHost {
        peer: peer.await,
        store: Scratch::path_for("store"),
    };
    let exact = host.run("login", MCP, &["--exact-resource"]).await;
    assert_eq!(exact.code, Some(1), "{exact:?}");
    assert!(
        exact.stderr.contains("is part of the resource"),
        "{exact:?}"
    );
    assert!(host.peer.requests("/register").is_empty());

    let login = host.run("login", MCP, &[]).await;
    assert_eq!(login.code, Some(0), "{login:?}");
    let notice = format!(
        "the token is valid for all paths of {}, not only for {}",
        host.peer.url(""),
        host.peer.url(MCP)
    );
    assert_eq!(login.stderr.matches(&notice).count(), 1, "{login:?}");
    assert_eq!(host.run("call", MCP, &["tools/list"]).await.code, Some(0));
    assert!(host.token(MCP).await.is_some());
    assert_eq!(host.token(EVIL).await, None);
    assert_eq!(host.received_by_attacker(), Vec::<String>::new());
}

/// H4: a token that was stored without its start URL, as in previous versions, is used only for its
/// resource's own URL.
#[tokio::test]
async fn a_token_of_the_previous_format_is_safe() {
    let host = SharedHost::start().await;
    host.run("login", "/", &[]).await;
    let mut changed = 0;
    for entry in std::fs::read_dir(host.store.path()).unwrap() {
        let path = entry.unwrap().path();
        // The lock files are not JSON.
        let Ok(mut record) = serde_json::from_slice::<Value>(&std::fs::read(&path).unwrap()) else {
            continue;
        };
        if record.get("access_token").is_some() {
            changed += usize::from(record.as_object_mut().unwrap().remove("start").is_some());
            std::fs::write(&path, record.to_string()).unwrap();
        }
    }
    assert_eq!(changed, 1);
    assert_eq!(host.token("/").await.as_deref(), Some("token-1"));
    assert_eq!(host.token(EVIL).await, None);
    assert_eq!(host.run("call", EVIL, &["tools/list"]).await.code, Some(1));
    assert_eq!(host.received_by_attacker(), Vec::<String>::new());
}

/// H4: in a terminal, the user is asked for confirmation. Anything other than yes means no.
#[tokio::test]
async fn a_terminal_asks_first() {
    let host = SharedHost::start().await;
    for (typed, accepted) in [("\n", false), ("n\n", false), ("y\n", true)] {
        let url = host.peer.url(EVIL);
        let store = host.store.as_str().to_owned();
        let run = move || {
            let mut login = portcullis_command(portcullis_program());
            login.args(["login", &url, "--no-browser", "--store", &store]);
            in_terminal(login, &[("[y/N]", typed)], Some("for your consent, visit")).shown
        };
        let shown = tokio::task::spawn_blocking(run).await.unwrap();
        let resource = host.peer.url("/");
        for part in [
            &host.peer.url(EVIL),
            &format!("{resource}\r\n"),
            "its other paths",
            "[y/N]",
        ] {
            assert!(shown.contains(part), "{part} {shown}");
        }
        assert_eq!(
            shown.contains("for your consent, visit"),
            accepted,
            "{shown}"
        );
        assert_eq!(
            shown.contains("--accept-broader-resource"),
            !accepted,
            "{shown}"
        );
        assert_eq!(
            host.peer.requests("/register").len(),
            usize::from(accepted),
            "{shown}"
        );
    }
}

/// J2: `status` and `list` print no query, which can hold a secret.
#[tokio::test]
async fn the_query_of_a_resource_is_not_printed() {
    const SECRET: &str = "/mcp?key=hush";
    let peer = Peer::start(|request| {
        request
            .is_for_resource_metadata("/mcp")
            .then(|| request.json(request.resource_metadata(&format!("{}{SECRET}", request.base))))
    })
    .await;
    let store = Scratch::path_for("store");
    let url = peer.url(SECRET);
    let options = ["--store", store.as_str()];
    let login = Portcullis::run(&[&["login", &url, "--auto-consent"][..], &options].concat()).await;
    assert_eq!(login.code, Some(0), "{login:?}");
    for arguments in [
        &["status", &url][..],
        &["status", &url, "--json"],
        &["list"],
        &["list", "--json"],
    ] {
        let shown = Portcullis::run(&[arguments, &options].concat()).await;
        assert_eq!(shown.code, Some(0), "{shown:?}");
        assert!(shown.stdout.contains(&peer.url("/mcp")), "{shown:?}");
        assert!(
            !shown.stdout.contains("hush") && !shown.stderr.contains("hush"),
            "{shown:?}"
        );
    }
}

/// I7: a store that other users can read or write is used by no command, and not changed. The error
/// has the fix, after which it is used.
#[tokio::test]
async fn a_store_of_others_is_refused() {
    const OTHER: u32 = 65_534;
    let peer = Peer::start(|_| None).await;
    let store = Scratch::path_for("store");
    let url = peer.url("/mcp");
    let options = ["--store", store.as_str()];
    let set_mode =
        |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    let login = Portcullis::run(&[&["login", &url, "--auto-consent"][..], &options].concat()).await;
    assert_eq!(login.code, Some(0), "{login:?}");
    assert_eq!(
        fs::metadata(store.path()).unwrap().permissions().mode() & 0o777,
        0o700
    );

    let commands = [
        &["login", &url, "--auto-consent"][..],
        &["token", &url],
        &["status", &url],
        &["list"],
        &["call", &url, "tools/list", "--auto-consent"],
        &["logout", &url],
    ];
    for mode in [0o755, 0o730, 0o703] {
        set_mode(store.path(), mode);
        let before = peer.requests("/token").len();
        for command in commands {
            let refused = Portcullis::run(&[command, &options].concat()).await;
            assert_eq!(refused.code, Some(1), "{command:?} {refused:?}");
            for text in [
                format!("(mode {mode:04o})"),
                format!("`chmod 700 {}`", store.as_str()),
            ] {
                assert!(refused.stderr.contains(&text), "{command:?} {refused:?}");
            }
        }
        assert_eq!(
            peer.requests("/token").len(),
            before,
            "nothing was requested"
        );
        assert_eq!(
            fs::metadata(store.path()).unwrap().permissions().mode() & 0o777,
            mode
        );
    }
    set_mode(store.path(), 0o700);
    // Only root can give a folder away.
    if chown(store.path(), Some(OTHER), None).is_ok() {
        for command in commands {
            let refused = Portcullis::run(&[command, &options].concat()).await;
            assert_eq!(refused.code, Some(1), "{command:?} {refused:?}");
            assert!(
                refused.stderr.contains(&format!("belongs to user {OTHER}")),
                "{command:?} {refused:?}"
            );
        }
        chown(store.path(), Some(0), None).unwrap();
    }
    let token = Portcullis::run(&[&["token", &url][..], &options].concat()).await;
    assert_eq!(token.stdout.trim(), "the-token", "{token:?}");

    let mut files = fs::read_dir(store.path())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let is_token = |name: &str| name.starts_with("token-") && name.ends_with(".json");
    let file = files
        .find(|path| is_token(path.file_name().unwrap().to_str().unwrap()))
        .unwrap();
    set_mode(&file, 0o640);
    let refused = Portcullis::run(&[&["token", &url][..], &options].concat()).await;
    let fix = format!("(mode 0640); run `chmod 600 {}`", file.display());
    assert!(
        refused.code == Some(1) && refused.stderr.contains(&fix),
        "{refused:?}"
    );
}

/// J2: `call` does not repeat parameters that are not valid.
#[tokio::test]
async fn invalid_parameters_are_not_printed() {
    for params in ["hush", "[\"hush\"]"] {
        let called =
            Portcullis::run(&["call", "http://127.0.0.1:9/mcp", "tools/call", params]).await;
        assert_eq!(called.code, Some(1), "{called:?}");
        assert!(called.stderr.contains("PARAMS is not"), "{called:?}");
        assert!(!called.stderr.contains("hush"), "{called:?}");
    }
}

/// I9: the token is not sent to a message URL that servers or their proxies resolve to another
/// folder, however it is encoded.
#[tokio::test]
async fn a_message_url_of_another_folder_is_refused() {
    for (path, is_accepted) in [
        ("/evil/messages", true),
        ("/evil/%252e%252e/b/messages", false),
        ("/evil/..%252fb/messages", false),
        ("/evil/%25252e%25252e/b/messages", false),
        ("/evil/%2e%2e/b/messages", false),
        ("/b/messages", false),
    ] {
        let server = sse_server(path).await;
        let url = format!("{}/evil/sse", server.origin());
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {} });
        let bridge = [
            "connect",
            &url,
            "--transport",
            "sse",
            "--header",
            "Authorization: Bearer hush",
        ];
        let bridged = Portcullis::run_bridge(&bridge, &[], &message).await;
        let response: Value = serde_json::from_str(&bridged.stdout).unwrap();
        let requests = server.recorded().into_iter();
        let posts = requests.filter(|request| request.method == Method::POST);
        let posted: Vec<_> = posts.map(|request| request.target).collect();
        if is_accepted {
            assert_eq!(response["result"], json!({}), "{path} {bridged:?}");
            assert_eq!(posted, [path], "{bridged:?}");
        } else {
            let reason = &response["error"]["data"]["reason"];
            assert_eq!(reason, "mcp.no_sse_endpoint", "{path} {bridged:?}");
            assert_eq!(posted, [""; 0], "{path} {bridged:?}");
        }
    }
}

/// Starts a server of HTTP with SSE that names this path for messages, and responds to them on its
/// open stream.
async fn sse_server(path: &'static str) -> Upstream {
    let stream = Mutex::default();
    Upstream::scripted(move |request| {
        if request.method == Method::GET {
            let (events, body) = ChannelBody::new();
            let endpoint = format!("event: endpoint\ndata: {path}\n\n");
            events.send(endpoint.into()).unwrap();
            *stream.lock() = Some(events);
            let headers = [("content-type", "text/event-stream")];
            return Some(Upstream::streaming(200, &headers, body));
        }
        let response = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
        let event = format!("data: {response}\n\n");
        stream.lock().as_ref()?.send(event.into()).unwrap();
        Some(Upstream::response(202, &[], ""))
    })
    .await
}
