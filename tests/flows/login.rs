//! `portcullis login`, `token`, `call` and `logout`: one store of tokens for all of them.

use portcullis_scenarios::{Finished, Portcullis, Scratch};

/// A demonstration that grants by itself, and a store of its own.
struct Machine {
    demo: Portcullis,
    url: String,
    store: Scratch,
}

impl Machine {
    async fn start() -> Self {
        let listen = ["--listen", "127.0.0.1:0", "--idp-listen", "127.0.0.1:0", "--auto-consent"];
        let demo = Portcullis::start(&[&["demo"][..], &listen].concat()).await;
        let url = format!("http://{}/mcp", demo.address());
        Self { demo, url, store: Scratch::path_for("store") }
    }

    async fn run(&self, command: &str, more: &[&str]) -> Finished {
        let arguments = [&[command, self.url.as_str()][..], more, &["--store", self.store.as_str()]].concat();
        Portcullis::run(&arguments).await
    }
}

/// I7, I9: the token of a login serves scripts and calls until the logout, which has it revoked; its file is the owner's.
#[tokio::test]
async fn one_login_serves_all() {
    let machine = Machine::start().await;
    let before = machine.run("token", &[]).await;
    assert_eq!(before.code, Some(1), "{before:?}");
    assert!(before.stderr.contains(&format!("run `portcullis login {}`", machine.url)), "{before:?}");

    let login = machine.run("login", &["--auto-consent"]).await;
    assert_eq!((login.code, login.stdout.as_str()), (Some(0), ""), "{login:?}");
    assert!(login.stderr.contains("scopes      mcp:tools"), "{login:?}");
    let token = machine.run("token", &[]).await;
    let text = token.stdout.trim().to_owned();
    assert_eq!((token.code, text.split('.').count()), (Some(0), 3), "{token:?}");
    assert!(!login.stderr.contains(&text), "the token is shown to those alone who ask for it");

    let call = machine.run("call", &["tools/call", r#"{"name":"whoami"}"#]).await;
    assert!(call.stdout.contains("alice"), "{call:?}");
    let explained = Portcullis::run_with_input(&["explain-token", &machine.url], &text).await;
    assert_eq!(explained.code, Some(0), "{explained:?}");
    assert!(explained.stdout.contains("it accepts the request"), "{explained:?}");

    let logout = machine.run("logout", &[]).await;
    assert!(logout.stderr.contains("revoked"), "{logout:?}");
    assert_eq!(machine.run("token", &[]).await.code, Some(1));
    assert!(machine.run("logout", &[]).await.stderr.contains("there was no token"));
    assert!(!machine.demo.log().contains(&text));
}

/// I10: a token in the environment takes the place of a flow.
#[tokio::test]
async fn a_token_of_the_environment() {
    let machine = Machine::start().await;
    machine.run("login", &["--auto-consent"]).await;
    let token = machine.run("token", &[]).await.stdout.trim().to_owned();
    let with = |command: &'static str, token: &str| {
        let arguments = [command, &machine.url, "tools/list"].map(str::to_owned);
        let token = token.to_owned();
        async move {
            let arguments: Vec<_> =
                arguments.iter().map(String::as_str).take(if command == "call" { 3 } else { 2 }).collect();
            Portcullis::run_with(&arguments, &[("PORTCULLIS_TOKEN", &token)]).await
        }
    };
    assert_eq!(with("call", &token).await.code, Some(0));
    assert_eq!(with("token", &token).await.stdout.trim(), token);
    let refused = with("call", "wrong").await;
    assert_eq!((refused.code, refused.stderr.lines().count()), (Some(1), 1), "{refused:?}");
    assert_eq!(with("login", &token).await.code, Some(1));
    assert!(with("token", "").await.stderr.contains("PORTCULLIS_TOKEN is empty"));
}

/// H3: an authorization server that the resource does not list is not used; each wrong setting is told in one line.
#[tokio::test]
async fn wrong_settings_are_told_in_one_line() {
    let machine = Machine::start().await;
    let cases: [&[&str]; 5] = [
        &["--auto-consent", "--client-id", "nobody"],
        &["--auto-consent", "--client-id", "x", "--client-secret-file", "/nowhere"],
        &["--auto-consent", "--authorization-server", "https://other.example"],
        &["--auto-consent", "--scope", "a\"b"],
        &["--auto-consent", "--client-metadata-url", "http://example.com/"],
    ];
    for more in cases {
        let login = machine.run("login", more).await;
        assert_eq!((login.code, login.stderr.lines().count()), (Some(1), 1), "{more:?} {login:?}");
    }
}

/// H1: the document that makes the program known by its address is one that servers take, and its address an https one.
#[tokio::test]
async fn the_clients_document_is_printed() {
    let url = "https://client.example/portcullis.json";
    let printed = Portcullis::run(&["client-document", url]).await;
    assert_eq!(printed.code, Some(0), "{printed:?}");
    let document: serde_json::Value = serde_json::from_str(&printed.stdout).unwrap();
    assert_eq!(document["client_id"], url);
    assert_eq!(document["redirect_uris"], serde_json::json!(["http://127.0.0.1/callback"]));
    assert_eq!(document["token_endpoint_auth_method"], "none");
    for wrong in ["http://client.example/a", "https://client.example", "nothing"] {
        let refused = Portcullis::run(&["client-document", wrong]).await;
        assert_eq!((refused.code, refused.stderr.lines().count()), (Some(1), 1), "{refused:?}");
    }
}
