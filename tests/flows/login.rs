//! `portcullis login`, `token`, `call` and `logout`, which share one credential store.

use std::{fs, os::unix::fs::PermissionsExt as _};

use portcullis_scenarios::{Finished, Portcullis, Scratch};

/// A demo that consents automatically, and a credential store.
struct Fixture {
    demo: Portcullis,
    url: String,
    store: Scratch,
}

impl Fixture {
    async fn start() -> Self {
        let listen = [
            "--listen",
            "127.0.0.1:0",
            "--idp-listen",
            "127.0.0.1:0",
            "--auto-consent",
        ];
        let demo = Portcullis::start(&[&["demo"][..], &listen].concat()).await;
        let url = format!("http://{}/mcp", demo.address());
        Self {
            demo,
            url,
            store: Scratch::path_for("store"),
        }
    }

    async fn run(&self, command: &str, more: &[&str]) -> Finished {
        let arguments = [
            &[command, self.url.as_str()][..],
            more,
            &["--store", self.store.as_str()],
        ]
        .concat();
        Portcullis::run(&arguments).await
    }
}

/// I7, I9: `token` and `call` use the token of a login until the logout, which revokes it.
#[tokio::test]
async fn one_login_for_all_commands() {
    let fixture = Fixture::start().await;
    let before = fixture.run("token", &[]).await;
    assert_eq!(before.code, Some(1), "{before:?}");
    assert!(
        before
            .stderr
            .contains(&format!("run `portcullis login {}`", fixture.url)),
        "{before:?}"
    );

    let login = fixture.run("login", &["--auto-consent"]).await;
    assert_eq!(login.code, Some(0), "{login:?}");
    assert_eq!(login.stdout, "", "{login:?}");
    assert!(login.stderr.contains("scopes      mcp:tools"), "{login:?}");

    let token = fixture.run("token", &[]).await;
    let text = token.stdout.trim().to_owned();
    assert_eq!(token.code, Some(0), "{token:?}");
    assert_eq!(text.split('.').count(), 3, "{token:?}");
    assert!(
        !login.stderr.contains(&text),
        "only `token` prints the token"
    );

    let call = fixture
        .run("call", &["tools/call", r#"{"name":"whoami"}"#])
        .await;
    assert!(call.stdout.contains("alice"), "{call:?}");
    let explained = Portcullis::run_with_input(&["explain-token", &fixture.url], &text).await;
    assert_eq!(explained.code, Some(0), "{explained:?}");
    assert!(
        explained.stdout.contains("it accepts the request"),
        "{explained:?}"
    );

    let logout = fixture.run("logout", &[]).await;
    assert!(logout.stderr.contains("revoked"), "{logout:?}");
    assert_eq!(fixture.run("token", &[]).await.code, Some(1));
    assert!(
        fixture
            .run("logout", &[])
            .await
            .stderr
            .contains("there was no token")
    );
    assert!(!fixture.demo.log().contains(&text));
}

/// I7: the redirect is received while a browser runs in the terminal.
#[tokio::test]
async fn a_browser_in_the_terminal() {
    let fixture = Fixture::start().await;
    let browser = Scratch::folder("browser");
    // The name is that of a text browser. It follows redirects, and does not end by itself.
    let program = browser.path().join("w3m");
    fs::write(
        &program,
        "#!/bin/sh\nexec > /dev/null 2>&1\ncurl --silent --location \"$1\"\nexec sleep 60\n",
    )
    .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    let login = Portcullis::run_with(
        &["login", &fixture.url, "--store", fixture.store.as_str()],
        &[("BROWSER", program.to_str().unwrap())],
    )
    .await;
    assert_eq!(login.code, Some(0), "{login:?}");
    assert!(login.stderr.contains("signed in to"), "{login:?}");
}

/// I10: a token in the environment replaces the sign-in.
#[tokio::test]
async fn a_token_in_the_environment() {
    let fixture = Fixture::start().await;
    fixture.run("login", &["--auto-consent"]).await;
    let token = fixture.run("token", &[]).await.stdout.trim().to_owned();
    let with = async |token: &str, arguments: &[&str]| {
        Portcullis::run_with(arguments, &[("PORTCULLIS_TOKEN", token)]).await
    };
    let url = fixture.url.as_str();
    assert_eq!(
        with(&token, &["call", url, "tools/list"]).await.code,
        Some(0)
    );
    assert_eq!(with(&token, &["token", url]).await.stdout.trim(), token);

    let rejected = with("wrong", &["call", url, "tools/list"]).await;
    assert_eq!(rejected.code, Some(1), "{rejected:?}");
    assert_eq!(rejected.stderr.lines().count(), 1, "{rejected:?}");
    assert_eq!(with(&token, &["login", url]).await.code, Some(1));
    for logout in [
        &["logout", url, "--store", fixture.store.as_str()][..],
        &["logout", "--all"],
    ] {
        let refused = with(&token, logout).await;
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(
            refused.stderr.contains("PORTCULLIS_TOKEN is set"),
            "{refused:?}"
        );
    }
    assert_eq!(
        fixture.run("token", &[]).await.stdout.trim(),
        token,
        "it is kept"
    );
    assert!(
        with("", &["token", url])
            .await
            .stderr
            .contains("PORTCULLIS_TOKEN is empty")
    );
}

/// H3: an authorization server that the resource does not list is not used. Each invalid setting
/// causes an error of one line.
#[tokio::test]
async fn invalid_settings_cause_one_line() {
    let fixture = Fixture::start().await;
    for (settings, words) in [
        (&["--client-id", "unknown"][..], "status 400"),
        (
            &["--client-id", "x", "--client-secret-file", "/nowhere"],
            "the file /nowhere cannot be read",
        ),
        (
            &["--authorization-server", "https://other.example"],
            "does not list the authorization server",
        ),
        (&["--scope", "a\"b"], "--scope"),
        (
            &["--client-metadata-url", "http://example.com/"],
            "not an https URL",
        ),
    ] {
        let login = fixture
            .run("login", &[settings, &["--auto-consent"]].concat())
            .await;
        assert_eq!(login.code, Some(1), "{settings:?} {login:?}");
        assert_eq!(login.stderr.lines().count(), 1, "{settings:?} {login:?}");
        assert!(login.stderr.contains(words), "{settings:?} {login:?}");
    }
}

/// H1: `client-document` prints a valid client ID metadata document. Its URL must be an https URL
/// with a path.
#[tokio::test]
async fn the_client_id_metadata_document() {
    let url = "https://client.example/portcullis.json";
    let printed = Portcullis::run(&["client-document", url]).await;
    assert_eq!(printed.code, Some(0), "{printed:?}");
    let document: serde_json::Value = serde_json::from_str(&printed.stdout).unwrap();
    assert_eq!(document["client_id"], url);
    assert_eq!(
        document["redirect_uris"],
        serde_json::json!(["http://127.0.0.1/callback"])
    );
    assert_eq!(document["token_endpoint_auth_method"], "none");
    for wrong in [
        "http://client.example/a",
        "https://client.example",
        "nothing",
    ] {
        let rejected = Portcullis::run(&["client-document", wrong]).await;
        assert_eq!(rejected.code, Some(1), "{rejected:?}");
        assert_eq!(rejected.stderr.lines().count(), 1, "{rejected:?}");
    }
}
