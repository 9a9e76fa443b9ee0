//! Sign-in through an egress proxy, on a machine that cannot resolve names.

use portcullis_scenarios::{ConnectProxy, Finished, Peer, Portcullis, Scratch};
use serde_json::json;

const RESOURCE: &str = "https://mcp.corp.test";
const ISSUER: &str = "https://auth.corp.test";

/// A resource and its authorization server at another host. Both can be reached only through the
/// proxy.
struct Network {
    resource: Peer,
    issuer: Peer,
    proxy: ConnectProxy,
    store: Scratch,
}

impl Network {
    /// Starts a resource whose metadata names this authorization server.
    async fn start(named_issuer: &'static str) -> Self {
        let resource = Peer::start_as(RESOURCE, move |request| {
            request.is_for_resource_metadata("/mcp").then(|| {
                request.json(json!({ "resource": format!("{RESOURCE}/mcp"), "authorization_servers": [named_issuer] }))
            })
        })
        .await;
        let issuer = Peer::start_as(ISSUER, |_| None).await;
        let hosts = [
            ("mcp.corp.test", resource.address()),
            ("auth.corp.test", issuer.address()),
        ];
        let proxy = ConnectProxy::start(&hosts).await;
        Self {
            resource,
            issuer,
            proxy,
            store: Scratch::path_for("store"),
        }
    }

    async fn login(&self, more: &[&str], environment: &[(&str, &str)]) -> Finished {
        let url = format!("{RESOURCE}/mcp");
        let arguments = [
            &[
                "login",
                &url,
                "--auto-consent",
                "--store",
                self.store.as_str(),
            ][..],
            more,
        ]
        .concat();
        let proxy = self.proxy.url();
        let environment = [&[("HTTPS_PROXY", proxy.as_str())], environment].concat();
        Portcullis::run_with(&arguments, &environment).await
    }
}

/// G6: with a proxy, the client reaches the resource and the authorization server only through it,
/// and does not resolve their names.
#[tokio::test]
async fn a_sign_in_through_a_proxy_without_dns() {
    let network = Network::start(ISSUER).await;
    let login = network
        .login(&[], &[("SSL_CERT_FILE", network.proxy.authority())])
        .await;
    assert_eq!(login.code, Some(0), "{login:?}");
    assert_eq!(
        network.proxy.targets(),
        ["auth.corp.test:443", "mcp.corp.test:443"]
    );
    assert_eq!(network.issuer.requests("/token").len(), 1);
}

/// G6: the CA file applies to every fetch from the origin of the start URL, and to no other. For
/// another origin, the error names the variable to set.
#[tokio::test]
async fn the_ca_file_is_for_the_origin_of_the_start_url() {
    let network = Network::start(RESOURCE).await;
    let ca_file = ["--ca-file", network.proxy.authority()];
    let login = network.login(&ca_file, &[]).await;
    assert_eq!(login.code, Some(0), "{login:?}");
    assert_eq!(network.resource.requests("/token").len(), 1);

    let network = Network::start(ISSUER).await;
    let ca_file = ["--ca-file", network.proxy.authority()];
    for (more, helps) in [(&ca_file[..], "SSL_CERT_FILE"), (&[], "--ca-file")] {
        let login = network.login(more, &[]).await;
        assert_eq!(login.code, Some(1), "{login:?}");
        assert_eq!(login.stderr.lines().count(), 1, "{login:?}");
        assert!(login.stderr.contains(helps), "{login:?}");
    }
}

/// G6: the client does not send the proxy a target that may be in the internal network, in any
/// notation. The error names the flag to set.
#[tokio::test]
async fn a_peer_cannot_use_the_proxy_to_reach_the_network() {
    for internal in [
        "https://10.0.0.1",
        "https://167772161",
        "https://0x0a000001",
        "https://012.0.0.1",
        "https://[::ffff:10.0.0.1]",
        "https://9.9.9.9",
        "https://localhost",
        "https://intranet",
        "https://auth.internal",
        "https://printer.local",
    ] {
        let network = Network::start(internal).await;
        let login = network
            .login(&["--ca-file", network.proxy.authority()], &[])
            .await;
        assert_eq!(login.code, Some(1), "{internal} {login:?}");
        assert_eq!(login.stderr.lines().count(), 1, "{internal} {login:?}");
        assert!(
            login.stderr.contains("--allow-private"),
            "{internal} {login:?}"
        );
        assert_eq!(network.proxy.targets(), ["mcp.corp.test:443"], "{internal}");
    }

    // The flag permits internal targets except the metadata services of clouds.
    let network = Network::start("https://auth.internal").await;
    network
        .login(
            &["--allow-private", "--ca-file", network.proxy.authority()],
            &[],
        )
        .await;
    assert_eq!(
        network.proxy.targets(),
        ["auth.internal:443", "mcp.corp.test:443"]
    );

    for cloud in [
        "https://169.254.169.254",
        "https://metadata.google.internal",
    ] {
        let network = Network::start(cloud).await;
        network
            .login(
                &["--allow-private", "--ca-file", network.proxy.authority()],
                &[],
            )
            .await;
        assert_eq!(network.proxy.targets(), ["mcp.corp.test:443"], "{cloud}");
    }
}

/// G6: hosts of `NO_PROXY` and loopback are reached directly. The error for a failing or invalid
/// proxy names its variable.
#[tokio::test]
async fn exceptions_and_failures_of_the_proxy() {
    let network = Network::start(ISSUER).await;
    let login = network.login(&[], &[("NO_PROXY", "corp.test")]).await;
    assert_eq!(login.code, Some(1), "{login:?}");
    assert!(network.proxy.targets().is_empty());

    let login = network
        .login(&[], &[("HTTPS_PROXY", "socks5://127.0.0.1:1")])
        .await;
    assert!(login.stderr.contains("HTTPS_PROXY is not"), "{login:?}");
    let login = network
        .login(&[], &[("HTTPS_PROXY", "http://127.0.0.1:1")])
        .await;
    assert_eq!(login.stderr.lines().count(), 1, "{login:?}");
    assert!(
        login.stderr.contains("the proxy cannot be reached"),
        "{login:?}"
    );
    assert!(login.stderr.contains("NO_PROXY"), "{login:?}");

    let peer = Peer::start(|_| None).await;
    let url = peer.url("/mcp");
    let arguments = [
        "login",
        &url,
        "--auto-consent",
        "--store",
        network.store.as_str(),
    ];
    let login = Portcullis::run_with(&arguments, &[("HTTPS_PROXY", "http://127.0.0.1:1")]).await;
    assert_eq!(login.code, Some(0), "{login:?}");
}
