//! `init`: writes a valid configuration from options or answers, and tests what it names.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use http::{Response, header};
use portcullis_scenarios::{
    Finished, Peer, Portcullis, ReservedPort, Scratch, Terminal, Upstream, in_terminal,
    portcullis_command, portcullis_program,
};
use serde_json::json;
use tokio::net::TcpListener;

use crate::idp::Idp;

/// An authorization server, an MCP server, a free address for the new server, and a folder for its
/// configuration.
struct Setup {
    idp: Idp,
    upstream: Upstream,
    base_url: String,
    folder: Scratch,
    _port: ReservedPort,
}

impl Setup {
    async fn start() -> Self {
        let idp = Idp::start(&["--issuer-path", "/realms/dev"]).await;
        let port = ReservedPort::new();
        let base_url = format!("http://{}", port.address());
        Self {
            idp,
            upstream: Upstream::start().await,
            base_url,
            folder: Scratch::folder("init"),
            _port: port,
        }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("portcullis.toml")
    }

    fn config(&self) -> String {
        self.file().to_str().unwrap().to_owned()
    }

    fn written(&self) -> String {
        fs::read_to_string(self.file()).unwrap()
    }

    /// Runs `init` with all required options.
    async fn run(&self, issuer: &str, more: &[&str]) -> Finished {
        let config = self.config();
        let upstream = format!("{}/mcp", self.upstream.origin());
        let required = [
            "init",
            "--config",
            &config,
            "--base-url",
            &self.base_url,
            "--upstream",
            &upstream,
            "--issuer",
            issuer,
        ];
        Portcullis::run(&[&required[..], more].concat()).await
    }

    async fn assert_valid(&self) {
        let check = Portcullis::run(&["check", "--config", &self.config()]).await;
        assert_eq!(check.code, Some(0), "{check:?}");
    }
}

/// J9: behind a local proxy, which has the address of the base URL, the server listens elsewhere.
#[tokio::test]
async fn a_local_proxy_has_the_address_of_the_base_url() {
    let setup = Setup::start().await;
    let _proxy = TcpListener::bind(setup.base_url.trim_start_matches("http://"))
        .await
        .unwrap();
    let without = setup.run(&setup.idp.issuer, &[]).await;
    assert_eq!(without.code, Some(1), "{without:?}");
    assert!(
        without.stdout.contains("another program listens"),
        "{without:?}"
    );

    let port = ReservedPort::new();
    let listen = port.address().to_string();
    let finished = setup.run(&setup.idp.issuer, &["--listen", &listen]).await;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(
        setup.written().contains(&format!(
            "listen = \"{listen}\"\n# The address of the proxy"
        )),
        "{}",
        setup.written()
    );
    let target = format!("\n  your proxy must send to {listen}\n");
    assert!(finished.stdout.contains(&target), "{finished:?}");
    setup.assert_valid().await;

    let proxy = [
        "--listen",
        &listen,
        "--trusted-proxy",
        "127.0.0.1",
        "--trusted-proxy",
        "10.0.0.0/8",
        "--force",
    ];
    let finished = setup.run(&setup.idp.issuer, &proxy).await;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let written = setup.written();
    assert!(
        written.contains("\ntrusted_proxies = [\"127.0.0.1\", \"10.0.0.0/8\"]\n"),
        "{written}"
    );
    setup.assert_valid().await;
    let wrong = setup
        .run(
            &setup.idp.issuer,
            &["--trusted-proxy", "proxy.internal", "--force"],
        )
        .await;
    assert!(
        wrong.code == Some(1) && wrong.stderr.contains("--trusted-proxy"),
        "{wrong:?}"
    );
}

/// J9: options alone give a commented file, which `check --online` confirms and everyone can read.
#[tokio::test]
async fn options_give_a_valid_configuration() {
    let setup = Setup::start().await;
    let finished = setup.run(&setup.idp.issuer, &[]).await;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let written = setup.written();
    for line in [
        format!("base_url = \"{}\"", setup.base_url),
        format!(
            "listen = \"{}\"",
            setup.base_url.trim_start_matches("http://")
        ),
        format!("issuer = \"{}\"", setup.idp.issuer),
        "endpoint = \"/mcp\"".to_owned(),
        "required_scopes = [\"mcp:tools\"]".to_owned(),
        format!(
            "upstream = {{ http = \"{}/mcp\" }}",
            setup.upstream.origin()
        ),
    ] {
        assert!(
            written.lines().any(|other| other == line),
            "{line}\n{written}"
        );
    }
    assert!(written.starts_with("# "), "{written}");
    assert!(!written.contains("sessions ="), "{written}");
    assert_eq!(
        fs::metadata(setup.file()).unwrap().permissions().mode() & 0o777,
        0o644
    );

    for part in [
        "the port is free",
        "there are keys for RS256",
        "the upstream speaks MCP",
        "portcullis check --online",
    ] {
        assert!(finished.stdout.contains(part), "{part}: {finished:?}");
    }
    let doctor = format!("portcullis doctor {}/mcp", setup.base_url);
    assert!(finished.stdout.contains(&doctor), "{finished:?}");
    assert!(!finished.stdout.contains("your proxy"), "{finished:?}");

    let online = Portcullis::run(&["check", "--online", "--config", &setup.config()]).await;
    assert_eq!(online.code, Some(0), "{online:?}");
}

/// The issuer can be given with another slash at the end, or as a URL of its metadata.
#[tokio::test]
async fn the_exact_issuer_is_found() {
    let setup = Setup::start().await;
    let issuer = setup.idp.issuer.clone();
    let origin = issuer.strip_suffix("/realms/dev").unwrap();
    for entered in [
        format!("{issuer}/"),
        format!("{issuer}/.well-known/openid-configuration"),
        format!("{origin}/.well-known/oauth-authorization-server/realms/dev"),
        format!("{origin}/.well-known/oauth-authorization-server/realms/dev?x=y"),
    ] {
        let finished = setup.run(&entered, &["--force"]).await;
        assert_eq!(finished.code, Some(0), "{entered}: {finished:?}");
        assert!(
            finished
                .stderr
                .contains(&format!("the issuer is {issuer}\n")),
            "{entered}: {finished:?}"
        );
        assert!(
            setup
                .written()
                .contains(&format!("issuer = \"{issuer}\"\n")),
            "{}",
            setup.written()
        );
    }
}

/// A document of another host cannot choose the issuer, not even with `--force`.
#[tokio::test]
async fn an_issuer_of_another_host_is_only_proposed() {
    let setup = Setup::start().await;
    let real = setup.idp.issuer.clone();
    let other = Peer::start(move |request| {
        let metadata = json!({ "issuer": real, "authorization_endpoint": format!("{real}/authorize"),
            "token_endpoint": format!("{real}/token"), "response_types_supported": ["code"] });
        request
            .is_for_server_metadata()
            .then(|| request.json(metadata))
    });
    let finished = setup.run(&other.await.url(""), &["--force"]).await;
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(!setup.file().exists(), "{finished:?}");
    assert!(finished.stderr.contains(&setup.idp.issuer), "{finished:?}");
    assert!(finished.stderr.contains("another host"), "{finished:?}");
}

/// Without a terminal, one error names everything that is missing.
#[tokio::test]
async fn missing_options_are_named_together() {
    let folder = Scratch::folder("init");
    let config = folder.path().join("a.toml");
    let finished =
        Portcullis::run(&["init", "--config", config.to_str().unwrap(), "--scope", "a"]).await;
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert_eq!(finished.stderr.lines().count(), 1, "{finished:?}");
    assert!(
        finished.stderr.contains("--base-url, --upstream, --issuer"),
        "{finished:?}"
    );
    assert!(!config.exists());
}

/// An existing file is replaced only with `--force`, and a backup is kept.
#[tokio::test]
async fn an_existing_file_is_kept() {
    let setup = Setup::start().await;
    fs::write(setup.file(), "old = true\n").unwrap();
    let rejected = setup.run(&setup.idp.issuer, &[]).await;
    assert_eq!(rejected.code, Some(1), "{rejected:?}");
    assert!(rejected.stderr.contains("--force"), "{rejected:?}");
    assert_eq!(setup.written(), "old = true\n");
    assert_eq!(setup.upstream.count(), 0);
    let replaced = setup.run(&setup.idp.issuer, &["--force"]).await;
    assert_eq!(replaced.code, Some(0), "{replaced:?}");
    let backup = setup.folder.path().join("portcullis.toml.backup-1");
    assert_eq!(fs::read_to_string(backup).unwrap(), "old = true\n");
    setup.assert_valid().await;
}

/// Problems prevent the file unless `--force` is given.
#[tokio::test]
async fn problems_need_force() {
    let setup = Setup::start().await;
    let port = ReservedPort::new();
    let closed = format!("http://{}/mcp", port.address());
    let config = setup.config();
    let issuer = setup.idp.issuer.clone();
    let arguments = [
        "init",
        "--config",
        &config,
        "--base-url",
        &setup.base_url,
        "--upstream",
        &closed,
        "--issuer",
        &issuer,
    ];
    let rejected = Portcullis::run(&arguments).await;
    assert_eq!(rejected.code, Some(1), "{rejected:?}");
    assert!(!setup.file().exists(), "{rejected:?}");
    assert!(rejected.stdout.contains("cannot connect"), "{rejected:?}");
    assert!(rejected.stderr.contains("1 problem;"), "{rejected:?}");

    let forced = Portcullis::run(&[&arguments[..], &["--force"]].concat()).await;
    assert_eq!(forced.code, Some(0), "{forced:?}");
    setup.assert_valid().await;
}

/// A port in use and an issuer without metadata are problems. Without requests, neither is noticed.
#[tokio::test]
async fn offline_makes_no_requests() {
    let mut setup = Setup::start().await;
    let occupied = TcpListener::bind("127.0.0.1:0").await.unwrap();
    setup.base_url = format!("http://{}", occupied.local_addr().unwrap());
    let port = ReservedPort::new();
    let nowhere = format!("http://{}", port.address());
    let rejected = setup.run(&nowhere, &[]).await;
    assert_eq!(rejected.code, Some(1), "{rejected:?}");
    assert!(rejected.stderr.contains("2 problems;"), "{rejected:?}");

    let requests = setup.upstream.count();
    assert!(requests > 0, "the upstream was tested");
    let written = setup.run(&nowhere, &["--offline"]).await;
    assert_eq!(written.code, Some(0), "{written:?}");
    assert_eq!(setup.upstream.count(), requests, "{written:?}");
    setup.assert_valid().await;

    let well_known = setup
        .run(
            &format!("{nowhere}/.well-known/x"),
            &["--offline", "--force"],
        )
        .await;
    assert_eq!(well_known.code, Some(1), "{well_known:?}");
    assert!(well_known.stderr.contains("--issuer"), "{well_known:?}");
}

/// The written file fits the services: no sessions, other keys, and a proxy in front.
#[tokio::test]
async fn the_file_fits_the_services() {
    let mut setup = Setup::start().await;
    setup.idp = Idp::start(&["--algorithm", "ES256", "--scope", "a", "--scope", "b"]).await;
    setup.base_url = "https://mcp.example.com".to_owned();
    setup.upstream = Upstream::scripted(|request| {
        let body = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;
        let is_initialize = request.message_method().as_deref() == Some("initialize");
        is_initialize.then(|| Upstream::response(200, &[("content-type", "application/json")], body))
    })
    .await;
    let finished = setup
        .run(
            &setup.idp.issuer,
            &["--endpoint", "/tools", "--scope", "a", "--scope", "b"],
        )
        .await;
    assert_eq!(finished.code, Some(0), "{finished:?}");

    let written = setup.written();
    for part in [
        "\nsessions = \"off\"\n",
        "\nalgorithms = [\"RS256\", \"ES256\"]\n",
        "\nendpoint = \"/tools\"\n",
        "\nrequired_scopes = [\"a\", \"b\"]\n",
        "\nlisten = \"127.0.0.1:30",
        "\n# trusted_proxies = ",
    ] {
        assert!(written.contains(part), "{part}\n{written}");
    }
    assert!(!written.contains("docs/use/keycloak.md"), "{written}");
    setup.assert_valid().await;
}

/// Runs `init` in a terminal that gives these answers.
async fn terminal(arguments: Vec<String>, answers: Vec<(&'static str, String)>) -> Terminal {
    let run = move || {
        let mut command = portcullis_command(portcullis_program());
        command.arg("init").args(arguments);
        let answers: Vec<_> = answers
            .iter()
            .map(|(question, answer)| (*question, answer.as_str()))
            .collect();
        in_terminal(command, &answers, None)
    };
    tokio::task::spawn_blocking(run).await.unwrap()
}

/// J8: a terminal asks each question with its default. The issuer that a protected upstream names
/// is proposed, and its text cannot control the terminal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminal_asks_for_what_is_missing() {
    let setup = Setup::start().await;
    let issuer = setup.idp.issuer.clone();
    let named = issuer.clone();
    let protected = Peer::start(move |request| match request.path.as_str() {
        "/.well-known/oauth-protected-resource/mcp" => {
            Some(request.json(json!({ "resource": "https://elsewhere.example/mcp", "authorization_servers": [named] })))
        }
        "/mcp" => Some(
            Response::builder()
                .status(401)
                .header(header::WWW_AUTHENTICATE, "Bearer")
                .header(header::CONTENT_TYPE, "text/plain")
                .body("\u{1b}[2J no token".to_owned())
                .unwrap(),
        ),
        _ => None,
    })
    .await;
    let upstream = protected.url("/mcp");
    let arguments = vec!["--config".to_owned(), setup.config()];
    let answers = vec![
        (
            "[http://127.0.0.1:3000]: ",
            "http://mcp.example.com\n".to_owned(),
        ),
        ("neither https nor http", String::new()),
        ("[http://127.0.0.1:3000]: ", format!("{}\n", setup.base_url)),
        ("[http://127.0.0.1:8000/mcp]: ", format!("{upstream}\n")),
        ("Keep this answer? [y/N] ", "y\n".to_owned()),
        ("[/mcp]: ", "\n".to_owned()),
        ("[mcp:tools]: ", "\n".to_owned()),
        (
            "its issuer, or the URL of its metadata [http://127.0.0.1:",
            "\n".to_owned(),
        ),
    ];
    let Terminal { shown, code } = terminal(arguments, answers).await;
    assert_eq!(code, Some(0), "{shown}");
    assert!(
        shown.contains(&format!("names as its authorization server: {issuer}")),
        "{shown}"
    );
    assert!(!shown.contains("\u{1b}[2J"), "{shown:?}");

    let written = setup.written();
    assert!(
        written.contains(&format!("issuer = \"{issuer}\"")),
        "{written}"
    );
    assert!(written.contains(&upstream), "{written}");
    setup.assert_valid().await;
}

/// Ctrl-D ends the questions and writes nothing. An existing file is replaced only after
/// confirmation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminal_can_stop() {
    let folder = Scratch::folder("init");
    let config = folder.path().join("portcullis.toml");
    let arguments = || {
        vec![
            "--offline".to_owned(),
            "--config".to_owned(),
            config.to_str().unwrap().to_owned(),
        ]
    };
    let stopped = terminal(
        arguments(),
        vec![("[http://127.0.0.1:3000]: ", "\u{4}".to_owned())],
    )
    .await;
    assert_eq!(stopped.code, Some(1), "{stopped:?}");
    assert!(stopped.shown.contains("nothing is written"), "{stopped:?}");
    assert!(!config.exists());
    fs::write(&config, "old").unwrap();
    let kept = terminal(arguments(), vec![("[y/N] ", "\n".to_owned())]).await;
    assert_eq!(kept.code, Some(1), "{kept:?}");
    assert!(kept.shown.contains("is unchanged"), "{kept:?}");
    assert_eq!(fs::read_to_string(&config).unwrap(), "old");
}
