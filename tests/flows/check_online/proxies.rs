//! A proxy in front of the server: on its port, and at the address that clients use.

use portcullis_scenarios::{
    BrokerIdp, Peer, PeerRequest, PeerResponse, Portcullis, PrivateAuthority, ProviderKind,
    ReservedPort, Scratch, Upstream,
};
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

const RULE: &str = "public_address.reachable";

/// J9: while the server runs, the address that clients use is tested, and not only the listener.
#[tokio::test]
async fn the_address_of_clients() {
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
    let words = ["404 Not Found", "let the proxy pass", &address.to_string()];
    misdirected
        .assert_cause("another server", RULE, &words)
        .await;
    drop(running);

    let proxy = Peer::start(|request: &PeerRequest| Some(metadata_of_mcp(request))).await;
    let sound = setup(&proxy.url(""));
    let _running = Portcullis::serve(&sound.text()).await;
    sound.assert_sound("through the proxy").await;
}

/// J9: so is that of a server whose only authorization server is its broker, whose metadata must
/// arrive, too.
#[tokio::test]
async fn the_address_of_a_broker() {
    let upstream = Upstream::start().await;
    let state = Scratch::folder("broker-state");
    let port = ReservedPort::new();
    let address = port.address();
    let setup = async |base_url: &str| {
        let idp = BrokerIdp::start(ProviderKind::Oidc, base_url).await;
        let setup = Setup::with_broker(&idp, &upstream.setting()).top(&format!(
            "listen = \"{address}\"\nbase_url = \"{base_url}\"\ntrusted_proxies = [\"127.0.0.1\"]\nstate_dir = {:?}\n",
            state.as_str()
        ));
        (setup, idp)
    };

    let closed = ReservedPort::new();
    let (without_proxy, _idp) = setup(&format!("http://{}", closed.address())).await;
    let running = Portcullis::serve(&without_proxy.text()).await;
    let words = ["cannot be requested", "start the proxy"];
    without_proxy.assert_cause("no proxy", RULE, &words).await;
    drop(running);

    let of_resource_only = Peer::start(|request: &PeerRequest| {
        let is_of_resource = request.is_for_resource_metadata("/mcp");
        Some(if is_of_resource {
            metadata_of_mcp(request)
        } else {
            status(404, "not here")
        })
    })
    .await;
    let (partial, _idp) = setup(&of_resource_only.url("")).await;
    let running = Portcullis::serve(&partial.text()).await;
    let words = [
        "oauth-authorization-server",
        "404 Not Found",
        "pass all requests",
    ];
    partial.assert_cause("some paths", RULE, &words).await;
    drop(running);

    let proxy = Peer::start(|request: &PeerRequest| {
        Some(match request.is_for_resource_metadata("/mcp") {
            true => metadata_of_mcp(request),
            false => request.json(request.server_metadata()),
        })
    })
    .await;
    let (sound, _idp) = setup(&proxy.url("")).await;
    let _running = Portcullis::serve(&sound.text()).await;
    sound.assert_sound("a broker through the proxy").await;
}

/// J9: for a certificate of a private authority, the fix is the variable that the program reads.
#[tokio::test]
async fn a_proxy_with_a_private_certificate() {
    let server = issuer(|_| None).await;
    let upstream = Upstream::start().await;
    let authority = PrivateAuthority::new();
    let (certificate, key) = authority.issue("localhost");
    let certificate = Scratch::file("proxy.pem", &certificate.pem());
    let key = Scratch::file("proxy-key.pem", &key.serialize_pem());
    let (port, of_proxy) = (ReservedPort::new(), ReservedPort::new());
    let base_url = format!("https://localhost:{}", of_proxy.address().port());
    let setup = |listen| {
        Setup::new(&server.url(""), &upstream.setting()).top(&format!(
            "listen = \"{listen}\"\nbase_url = \"{base_url}\"\ntrusted_proxies = [\"127.0.0.1\"]\n"
        ))
    };
    let with_tls = format!(
        "{}\n[tls]\ncertificates = {:?}\nkey = {:?}\n",
        setup(of_proxy.address()).text(),
        certificate.as_str(),
        key.as_str()
    );
    let _proxy = Portcullis::serve(&with_tls).await;
    let setup = setup(port.address());
    let _running = Portcullis::serve(&setup.text()).await;
    let words = ["UnknownIssuer", "SSL_CERT_FILE"];
    setup.assert_cause("not trusted", RULE, &words).await;

    let file = Scratch::file("online.toml", &setup.text());
    let arguments = ["check", "--online", "--config", file.as_str()];
    let trusted = [("SSL_CERT_FILE", authority.file())];
    let finished = Portcullis::run_with(&arguments, &trusted).await;
    let met = "requests to it arrive at a server with these resources";
    assert!(finished.stdout.contains(met), "{finished:?}");
}

fn metadata_of_mcp(request: &PeerRequest) -> PeerResponse {
    request.json(json!({
        "resource": format!("{}/mcp", request.base),
        "authorization_servers": ["https://auth.example.com"],
    }))
}
