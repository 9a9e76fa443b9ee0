//! Addresses in the metadata of an issuer, which its operator need not share with the operator of
//! the server.

use std::{net::SocketAddr, sync::Arc};

use parking_lot::Mutex;
use portcullis_scenarios::{ConnectProxy, Peer, Portcullis, Scratch};
use serde_json::json;

const ISSUER: &str = "https://auth.corp.test";

/// Starts a server whose issuer is public, with metadata that names addresses of this internal
/// service. Reaches the issuer through a proxy.
async fn start(internal: SocketAddr, issuer_settings: &str) -> (Portcullis, ConnectProxy) {
    let issuer = Peer::start_as(ISSUER, move |request| {
        request.is_for_server_metadata().then(|| {
            let mut metadata = request.server_metadata();
            metadata["jwks_uri"] = json!(format!("http://{internal}/keys"));
            metadata["introspection_endpoint"] = json!(format!("http://{internal}/introspect"));
            request.json(metadata)
        })
    })
    .await;
    let proxy = ConnectProxy::start(&[("auth.corp.test", issuer.address())]).await;
    let configuration = format!(
        "listen = \"127.0.0.1:0\"\nbase_url = \"http://127.0.0.1:3000\"\nstate_dir = \"off\"\n[[issuer]]\nissuer = \"{ISSUER}\"\nca_file = \
         \"{}\"\n{issuer_settings}\n[[resource]]\nendpoint = \"/mcp\"\nupstream = \"demo\"\n",
        proxy.authority()
    );
    let file = Scratch::file("portcullis.toml", &configuration);
    let arguments = ["--log-format", "json", "serve", "--config", file.as_str()];
    (
        Portcullis::start_with(&arguments, &[("HTTPS_PROXY", &proxy.url())]).await,
        proxy,
    )
}

/// Starts an internal service that records the paths of its requests.
async fn internal() -> (Peer, Arc<Mutex<Vec<String>>>) {
    let paths = Arc::<Mutex<Vec<String>>>::default();
    let recorded = Arc::clone(&paths);
    let peer = Peer::start(move |request| {
        recorded.lock().push(request.path.clone());
        Some(request.json(json!({ "keys": [] })))
    })
    .await;
    (peer, paths)
}

/// G6: the metadata of a public issuer does not make the server send requests to its own machine or
/// network.
#[tokio::test]
async fn of_a_public_issuer_are_public() {
    let introspection = "validate = \"introspection\"\nclient_id = \"gateway\"";
    for (settings, code, member) in [
        ("", "issuer.jwks_uri", "jwks_uri"),
        (
            introspection,
            "issuer.introspection_endpoint",
            "introspection_endpoint",
        ),
    ] {
        let (internal, paths) = internal().await;
        let (portcullis, proxy) = start(internal.address(), settings).await;
        let line = portcullis
            .logged(member, |line| line["issuer.failure"] == code)
            .await;
        assert!(
            line["message"].as_str().unwrap().contains("configure it"),
            "{line}"
        );
        assert_eq!(proxy.targets(), ["auth.corp.test:443"]);
        assert_eq!(*paths.lock(), [""; 0], "{member}");
    }
}

/// G6: an address that the operator configured can be anywhere.
#[tokio::test]
async fn configured_ones_are_permitted() {
    let (internal, paths) = internal().await;
    let settings = format!("jwks_uri = \"http://{}/keys\"", internal.address());
    let (portcullis, _proxy) = start(internal.address(), &settings).await;
    portcullis.logged("issuer keys", |_| true).await;
    assert_eq!(paths.lock()[0], "/keys");
}
