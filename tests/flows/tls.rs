//! TLS to clients and to upstreams, and certificates that change.

use std::{io, net::SocketAddr, sync::Arc};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use portcullis_scenarios::{Deployment, Portcullis, Scratch, Signal, TIMEOUT, Upstream};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName},
    version::{TLS12, TLS13},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, TlsConnector, client::TlsStream};

/// Returns a certificate and key for localhost.
fn localhost() -> CertifiedKey<rcgen::KeyPair> {
    generate_simple_self_signed(["localhost".to_owned()]).unwrap()
}

/// Connects as a client that trusts only this certificate.
async fn connect(
    address: SocketAddr,
    trusted: &CertificateDer<'static>,
    version: &'static SupportedProtocolVersion,
    protocol: &str,
) -> io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let stream = TcpStream::connect(address).await?;
    TlsConnector::from(Arc::new(config))
        .connect(ServerName::try_from("localhost").unwrap(), stream)
        .await
}

/// Requests `/healthz` with the negotiated protocol and returns the status.
async fn healthz(stream: TlsStream<TcpStream>) -> u16 {
    let request = http::Request::get("https://localhost/healthz").header("host", "localhost");
    let request = request.body(Empty::<Bytes>::new()).unwrap();
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let response = if is_http2 {
        let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
        tokio::spawn(connection);
        sender.send_request(request).await.unwrap()
    } else {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        sender.send_request(request).await.unwrap()
    };
    let (head, body) = response.into_parts();
    assert_eq!(body.collect().await.unwrap().to_bytes(), "ok\n");
    head.status.as_u16()
}

/// The program with TLS on its listener, and its certificate and key files.
struct Listener {
    portcullis: Portcullis,
    certificates: Scratch,
    key: Scratch,
}

impl Listener {
    /// Starts the program with this certificate.
    async fn start(certified: &CertifiedKey<rcgen::KeyPair>) -> Self {
        let certificates = Scratch::file("cert.pem", &certified.cert.pem());
        let key = Scratch::file("key.pem", &certified.signing_key.serialize_pem());
        let configuration = format!(
            r#"
            listen = "127.0.0.1:0"
            base_url = "https://localhost"
            [tls]
            certificates = "{}"
            key = "{}"
            [[resource]]
            endpoint = "/mcp"
            upstream = "demo"
            auth = "none"
            "#,
            certificates.as_str(),
            key.as_str()
        );
        Self {
            portcullis: Portcullis::serve(&configuration).await,
            certificates,
            key,
        }
    }

    fn address(&self) -> SocketAddr {
        self.portcullis.address()
    }

    /// Replaces both files and reloads them.
    fn replace(&self, certificate: &str, key: &str) {
        std::fs::write(self.certificates.path(), certificate).unwrap();
        std::fs::write(self.key.path(), key).unwrap();
        self.portcullis.signal(Signal::HUP);
    }
}

/// F8: clients are served with TLS 1.2 and 1.3, over HTTP/1.1 and, if they offer it, over HTTP/2.
/// Clients without TLS are not served.
#[tokio::test]
async fn both_versions_and_both_protocols() {
    let certified = localhost();
    let listener = Listener::start(&certified).await;
    for version in [&TLS12, &TLS13] {
        for protocol in ["h2", "http/1.1"] {
            let stream = connect(listener.address(), certified.cert.der(), version, protocol)
                .await
                .unwrap();
            assert_eq!(
                stream.get_ref().1.alpn_protocol(),
                Some(protocol.as_bytes())
            );
            assert_eq!(healthz(stream).await, 200, "{version:?} {protocol}");
        }
    }
    let mut plain = TcpStream::connect(listener.address()).await.unwrap();
    plain
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await
        .unwrap();
    let mut response = Vec::new();
    // A reset ends the connection, too.
    let _ = timeout(TIMEOUT, plain.read_to_end(&mut response))
        .await
        .expect("the connection is closed");
    assert!(
        !response.starts_with(b"HTTP"),
        "{}",
        String::from_utf8_lossy(&response)
    );
}

/// F8: a replaced certificate is used for new connections without a restart. Mismatched files are
/// ignored.
#[tokio::test]
async fn certificates_follow_their_files() {
    let first = localhost();
    let second = localhost();
    let listener = Listener::start(&first).await;
    let kept = connect(listener.address(), first.cert.der(), &TLS13, "http/1.1")
        .await
        .unwrap();

    listener.replace(&second.cert.pem(), &second.signing_key.serialize_pem());
    listener
        .portcullis
        .logged("the certificate was replaced", |_| true)
        .await;
    assert!(
        connect(listener.address(), first.cert.der(), &TLS13, "h2")
            .await
            .is_err()
    );
    let fresh = connect(listener.address(), second.cert.der(), &TLS13, "h2")
        .await
        .unwrap();
    assert_eq!(healthz(kept).await, 200);
    assert_eq!(healthz(fresh).await, 200);

    listener.replace(&second.cert.pem(), &first.signing_key.serialize_pem());
    listener
        .portcullis
        .logged("the certificate is unchanged", |_| true)
        .await;
    let still = connect(listener.address(), second.cert.der(), &TLS13, "h2")
        .await
        .unwrap();
    assert_eq!(healthz(still).await, 200);
}

/// The server name and the protocol that a connection requested.
type Handshake = (Option<String>, Option<Vec<u8>>);

/// A TLS server in front of an upstream without TLS.
struct TlsFront {
    port: u16,
    handshakes: Arc<Mutex<Vec<Handshake>>>,
}

impl TlsFront {
    async fn start(certified: &CertifiedKey<rcgen::KeyPair>, upstream: &Upstream) -> Self {
        let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key)
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let handshakes = Arc::default();
        let origin = upstream.origin().trim_start_matches("http://").to_owned();
        let front = Self {
            port,
            handshakes: Arc::clone(&handshakes),
        };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                let handshakes = Arc::clone(&handshakes);
                let origin = origin.clone();
                tokio::spawn(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    let state = stream.get_ref().1;
                    let entry = (
                        state.server_name().map(str::to_owned),
                        state.alpn_protocol().map(<[u8]>::to_vec),
                    );
                    handshakes.lock().push(entry);
                    let mut plain = TcpStream::connect(origin).await.unwrap();
                    let _ = copy_bidirectional(&mut stream, &mut plain).await;
                });
            }
        });
        front
    }

    fn setting(&self, host: &str) -> String {
        format!("{{ http = \"https://{host}:{}/backend\" }}", self.port)
    }
}

async fn deployment(upstream: &Upstream, setting: String, ca: &Scratch) -> Deployment {
    let resource = format!(
        "{}\nupstream_ca_file = \"{}\"",
        Deployment::SCOPED,
        ca.as_str()
    );
    Deployment::builder()
        .upstream(upstream.clone())
        .upstream_setting(setting)
        .resource(resource)
        .start()
        .await
}

/// L1: requests to an https upstream use TLS with its name, over persistent connections.
#[tokio::test]
async fn an_upstream_in_tls() {
    let certified = localhost();
    let upstream = Upstream::start().await;
    let front = TlsFront::start(&certified, &upstream).await;
    let ca = Scratch::file("ca.pem", &certified.cert.pem());
    let deployment = deployment(&upstream, front.setting("localhost"), &ca).await;
    for round in 0..8 {
        deployment
            .assert_accepted(&format!("round {round}"), &deployment.good_token())
            .await;
    }
    assert_eq!(
        upstream.last().header("host").unwrap(),
        format!("localhost:{}", front.port)
    );
    let handshakes = front.handshakes.lock().clone();
    assert!(
        handshakes.len() <= 2,
        "one connection a worker: {handshakes:?}"
    );
    let expected = (Some("localhost".to_owned()), Some(b"http/1.1".to_vec()));
    assert!(
        handshakes.iter().all(|entry| *entry == expected),
        "{handshakes:?}"
    );
}

/// L1: an upstream with an untrusted certificate, or one for another name, gets no request. The
/// client gets 502, and one log line has the reason.
#[tokio::test]
async fn an_upstream_with_a_wrong_certificate() {
    let certified = localhost();
    let other = localhost();
    let upstream = Upstream::start().await;
    let front = TlsFront::start(&certified, &upstream).await;
    for (host, trusted) in [("localhost", &other), ("127.0.0.1", &certified)] {
        let ca = Scratch::file("ca.pem", &trusted.cert.pem());
        let deployment = deployment(&upstream, front.setting(host), &ca).await;
        let response = deployment.try_token(&deployment.good_token()).await;
        response.assert_rpc_error(502, -32603);
        deployment
            .portcullis
            .assert_denied(&response, "upstream.tls")
            .await;
        let line = deployment
            .portcullis
            .logged("certificate", |line| line["deny.code"] == "upstream.tls")
            .await;
        assert_eq!(line["level"], "WARN", "{line}");
    }
    assert_eq!(upstream.count(), 0);
}

/// L1: a missing, empty or unusable CA file is named at startup.
#[tokio::test]
async fn ca_files_that_cannot_be_used() {
    let missing = Scratch::path_for("missing.pem");
    let empty = Scratch::file("empty.pem", "");
    let broken = Scratch::file(
        "ca.pem",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    );
    for (url, file, reason) in [
        ("https://localhost/mcp", &missing, "cannot be read"),
        (
            "https://localhost/mcp",
            &empty,
            "it contains no certificate",
        ),
        (
            "https://localhost/mcp",
            &broken,
            "contains an unusable certificate",
        ),
        ("http://localhost/mcp", &empty, "the upstream is not https"),
    ] {
        let configuration = format!(
            r#"
            listen = "127.0.0.1:0"
            base_url = "http://127.0.0.1:3000"
            [[resource]]
            endpoint = "/mcp"
            auth = "none"
            upstream = {{ http = "{url}" }}
            upstream_ca_file = "{}"
            "#,
            file.as_str()
        );
        let configuration = Scratch::file("portcullis.toml", &configuration);
        let finished = Portcullis::run(&["serve", "--config", configuration.as_str()]).await;
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert!(
            finished.stderr.contains(file.as_str()),
            "{}",
            finished.stderr
        );
        assert!(finished.stderr.contains(reason), "{}", finished.stderr);
    }
}
