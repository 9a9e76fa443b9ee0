//! Addresses and ports.

use tokio::net::TcpListener;

use super::*;

/// F7: no authorization with a listener on the network needs a second setting.
#[tokio::test]
async fn auth_none_on_the_network() {
    let top = "listen = \"0.0.0.0:0\"";
    let words = [
        "resource[0].auth = \"none\"",
        "0.0.0.0",
        "/mcp",
        "dangerous_allow_unauthenticated_network",
    ];
    assert_neither_serves_nor_checks("open", &with(top, "", "auth = \"none\""), &words).await;
    let explicit = with(
        &format!("{top}\ndangerous_allow_unauthenticated_network = true"),
        "",
        "auth = \"none\"",
    );
    let file = Scratch::file("open.toml", &explicit);
    let checked = Portcullis::run(&["check", "--config", file.as_str()]).await;
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(checked.stdout.contains("warning:"), "{}", checked.stdout);
    assert!(checked.stdout.contains("anyone"), "{}", checked.stdout);
}

/// The error for a busy port names the port and the fix.
#[tokio::test]
async fn a_busy_port() {
    let holder = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = holder.local_addr().unwrap().to_string();
    let file = Scratch::file(
        "busy.toml",
        &with(
            &format!("listen = \"{address}\"\nbase_url = \"http://{address}\""),
            "",
            "",
        ),
    );
    let finished = Portcullis::run(&["serve", "--config", file.as_str()]).await;
    assert_rejected(
        "serve",
        &finished,
        &[&address, "stop the program", "--listen"],
    );
    let finished = Portcullis::run(&["demo", "--listen", &address]).await;
    assert_rejected("demo", &finished, &[&address, "--listen"]);
    let finished =
        Portcullis::run(&["demo", "--listen", "127.0.0.1:0", "--idp-listen", &address]).await;
    assert_rejected("demo, authorization server", &finished, &[&address]);
    let finished = Portcullis::run(&["idp", "--listen", &address]).await;
    assert_rejected("idp", &finished, &[&address]);
}

/// The development servers listen only on loopback.
#[tokio::test]
async fn development_servers_stay_on_loopback() {
    let finished = Portcullis::run(&["demo", "--listen", "0.0.0.0:0"]).await;
    assert_rejected("demo", &finished, &["0.0.0.0:0", "loopback", "127.0.0.1"]);
    let finished = Portcullis::run(&[
        "demo",
        "--listen",
        "127.0.0.1:0",
        "--idp-listen",
        "0.0.0.0:0",
    ])
    .await;
    assert_rejected("demo, authorization server", &finished, &["loopback"]);
    let finished = Portcullis::run(&["idp", "--listen", "0.0.0.0:0"]).await;
    assert_rejected("idp", &finished, &["loopback"]);
}
