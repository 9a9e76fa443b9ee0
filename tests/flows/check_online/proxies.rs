//! A proxy in front of the server: on its port, and at the address that clients use.

use portcullis_scenarios::{Peer, PeerRequest, Portcullis, ReservedPort, Upstream};
use serde_json::json;

use super::{Setup, issuer, status};

/// J9: a proxy that has the port is told from the server behind it by its `Server` header.
#[tokio::test]
async fn a_proxy_on_the_port() {
    let server = issuer(|_| None).await;
    let upstream = Upstream::start().await;
    let proxy = |passes: bool| {
        Peer::start(move |request: &PeerRequest| {
            let mut response = request.json(json!({
                "resource": format!("{}/mcp", request.base),
                "authorization_servers": ["https://auth.example.com"],
            }));
            if !passes {
                response = status(502, "Bad Gateway");
            }
            response
                .headers_mut()
                .insert("server", "nginx/1.26".parse().unwrap());
            Some(response)
        })
    };
    for (passes, words) in [
        (
            true,
            "a proxy (nginx/1.26), which passes requests to Portcullis",
        ),
        (false, "(nginx/1.26)"),
    ] {
        let proxy = proxy(passes).await;
        let base_url = proxy.url("");
        let address = base_url.trim_start_matches("http://");
        let top = format!("listen = \"{address}\"\nbase_url = \"{base_url}\"\n");
        let setup = Setup::new(&server.url(""), &upstream.setting()).top(&top);
        let fix = "trusted_proxies = [\"127.0.0.1\"]";
        let words = [words, "another program listens", "--trusted-proxy", fix];
        setup.assert_cause("a proxy", "listener.port", &words).await;
    }
}

/// J9: while the server runs, the address that clients use is tested, and not only the listener.
#[tokio::test]
async fn the_address_of_clients() {
    const RULE: &str = "public_address.reachable";
    let server = issuer(|_| None).await;
    let upstream = Upstream::start().await;
    let port = ReservedPort::new();
    let address = port.address();
    let setup = |base_url: &str| {
        Setup::new(&server.url(""), &upstream.setting()).top(&format!(
            "listen = \"{address}\"\nbase_url = \"{base_url}\"\ntrusted_proxies = [\"127.0.0.1\"]\n"
        ))
    };
    let closed = ReservedPort::new();
    let without_proxy = setup(&format!("http://{}", closed.address()));
    let (finished, report) = without_proxy.json().await;
    assert_eq!(finished.code, Some(0), "{:#}", report["online"]);
    let steps = report["online"].to_string();
    assert!(
        steps.contains(RULE) && steps.contains("portcullis doctor"),
        "{steps}"
    );

    let running = Portcullis::serve(&without_proxy.text()).await;
    without_proxy
        .assert_cause(
            "no proxy",
            RULE,
            &["cannot be requested", "start the proxy"],
        )
        .await;
    drop(running);

    let elsewhere = Peer::start(|_| Some(status(404, "not here"))).await;
    let misdirected = setup(&elsewhere.url(""));
    let running = Portcullis::serve(&misdirected.text()).await;
    let words = ["404", "let the proxy pass", &address.to_string()];
    misdirected
        .assert_cause("another server", RULE, &words)
        .await;
    drop(running);

    let proxy = Peer::start(|request: &PeerRequest| {
        Some(request.json(json!({
            "resource": format!("{}/mcp", request.base),
            "authorization_servers": ["https://auth.example.com"],
        })))
    })
    .await;
    let sound = setup(&proxy.url(""));
    let _running = Portcullis::serve(&sound.text()).await;
    sound.assert_sound("through the proxy").await;
}
