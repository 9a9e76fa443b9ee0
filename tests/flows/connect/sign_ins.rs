//! Sign-ins and tokens of `portcullis connect`.

use portcullis_scenarios::{Portcullis, ReservedPort, Scratch, Upstream};
use serde_json::json;

use super::{Bridge, assert_silent_success, demo};
use crate::idp::Idp;

/// Counts the entries of a credential store whose file names have this prefix.
fn entries(store: &Scratch, prefix: &str) -> usize {
    let names = std::fs::read_dir(store.as_str())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter(|name| name.starts_with(prefix) && name.ends_with(".json"))
        .count()
}

/// A client that supports only standard input and output uses a protected server. Instances that
/// start concurrently sign in once, and the end of the input ends the session.
#[tokio::test]
async fn instances_sign_in_once_and_are_served() {
    let ((demo, url), store) = (demo().await, Scratch::path_for("store"));
    let arguments = ["--auto-consent", "--store", store.as_str()];
    let mut bridges: Vec<_> = (0..3)
        .map(|_| Bridge::start(&url, &arguments, &[]))
        .collect();
    for bridge in &mut bridges {
        assert_eq!(
            bridge.initialize().await["result"]["protocolVersion"],
            "2025-11-25"
        );
    }
    assert_eq!(entries(&store, "token"), 1);
    assert_eq!(entries(&store, "client"), 1);

    for bridge in &mut bridges {
        let call = bridge
            .request(
                1,
                "tools/call",
                json!({ "name": "add", "arguments": { "a": 1, "b": 2 } }),
            )
            .await;
        assert_eq!(call["result"]["content"][0]["text"], "3", "{call}");
    }
    for bridge in bridges {
        assert_silent_success(&bridge.close().await);
    }
    let log = demo.stop().await.stderr;
    assert_eq!(
        log.matches(r#""session.reason":"deleted""#).count(),
        3,
        "{log}"
    );
}

/// I10: a token in the environment replaces the sign-in. An invalid token causes an error, and is
/// not printed.
#[tokio::test]
async fn a_token_in_the_environment() {
    let ((_demo, url), store) = (demo().await, Scratch::path_for("store"));
    let login =
        Portcullis::run(&["login", &url, "--auto-consent", "--store", store.as_str()]).await;
    assert_eq!(login.code, Some(0), "{login:?}");
    let token = Portcullis::run(&["token", &url, "--store", store.as_str()])
        .await
        .stdout
        .trim()
        .to_owned();
    let header = ["--header", "Authorization: Bearer ${MY_TOKEN}"];
    for (arguments, environment) in [
        (&[][..], [("PORTCULLIS_TOKEN", token.as_str())]),
        (&header[..], [("MY_TOKEN", token.as_str())]),
    ] {
        let mut bridge = Bridge::start(&url, arguments, &environment);
        assert!(bridge.initialize().await["result"].is_object());
        assert!(!bridge.close().await.stderr.contains(&token));
    }
    for (arguments, environment) in [
        (&[][..], [("PORTCULLIS_TOKEN", "wrong-token")]),
        (&header[..], [("MY_TOKEN", "wrong-token")]),
    ] {
        let mut bridge = Bridge::start(&url, arguments, &environment);
        let response = bridge.initialize().await;
        assert_eq!(
            response["error"]["data"]["reason"], "mcp.unauthorized",
            "{response}"
        );
        let log = bridge.close().await.stderr;
        assert!(log.contains("mcp.unauthorized"), "{log}");
        assert!(!log.contains("wrong-token"), "{log}");
    }
}

/// E7, I6: the user signs in elsewhere as another client, with the scopes that a call needs. The
/// session belongs to the first client and is unknown for the second. The bridge opens another
/// session, and the call succeeds.
#[tokio::test]
async fn a_token_of_another_client_opens_another_session() {
    let clients = ["first", "second"].map(|id| {
        format!("[[client]]\nid = \"{id}\"\nredirect_uris = [\"http://127.0.0.1/callback\"]\n")
    });
    let clients = Scratch::file("clients.toml", &clients.concat());
    let idp = [
        "--auto-consent",
        "--scope",
        "mcp:tools",
        "--scope",
        "mcp:admin",
        "--clients",
        clients.as_str(),
    ];
    let idp = Idp::start(&idp).await;

    let upstream = Upstream::start().await;
    // Clients compare the resource with the URL that they requested, so the address must be known
    // before the start.
    let port = ReservedPort::new();
    let address = port.address();
    let _gateway = Portcullis::serve(&format!(
        r#"
        listen = "{address}"
        base_url = "http://{address}"

        [[issuer]]
        issuer = "{issuer}"

        [[resource]]
        endpoint = "/mcp"
        upstream = {setting}
        required_scopes = ["mcp:tools"]
        scopes_supported = ["mcp:tools", "mcp:admin"]

        [[resource.rule]]
        method = "tools/call"
        name = "admin_*"
        scopes = ["mcp:admin"]
        "#,
        issuer = idp.issuer,
        setting = upstream.setting(),
    ))
    .await;

    let url = format!("http://{address}/mcp");
    let store = Scratch::path_for("store");
    let as_client = |id: &'static str| {
        [
            "--auto-consent",
            "--client-id",
            id,
            "--store",
            store.as_str(),
            "--scope",
        ]
    };
    let mut bridge = Bridge::start(
        &url,
        &[&as_client("first")[..], &["mcp:tools"]].concat(),
        &[],
    );
    bridge.initialize().await;
    bridge
        .request(1, "resources/subscribe", json!({ "uri": "a:1" }))
        .await;
    let login = [
        &["login", &url][..],
        &as_client("second"),
        &["mcp:tools mcp:admin"],
    ]
    .concat();
    let login = Portcullis::run(&login).await;
    assert_eq!(login.code, Some(0), "{login:?}");

    let response = bridge
        .request(
            2,
            "tools/call",
            json!({ "name": "admin_x", "arguments": {} }),
        )
        .await;
    assert_eq!(response["result"]["name"], "admin_x", "{response}");
    let finished = bridge.close().await;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(finished.stdout, "", "{finished:?}");
    assert_eq!(finished.stderr.lines().count(), 1, "{finished:?}");
    assert!(
        finished
            .stderr
            .contains("the session is lost; opening another one"),
        "{finished:?}"
    );

    let methods: Vec<_> = upstream
        .recorded()
        .iter()
        .filter_map(|request| request.message_method())
        .collect();
    let expected = [
        "initialize",
        "notifications/initialized",
        "resources/subscribe",
    ];
    assert_eq!(
        methods,
        [&expected[..], &expected, &["tools/call"]].concat()
    );
}
