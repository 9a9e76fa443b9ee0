//! The listener for administrators on all addresses of the machine, with TLS.

use std::{sync::Arc, time::Duration};

use portcullis_scenarios::{
    Administration, Deployment, Finished, Portcullis, PrivateAuthority, Request, ReservedPort,
    Scratch, TIMEOUT,
};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::TlsConnector;

/// A deployment whose listener for administrators has a certificate of a private authority for
/// localhost.
struct Listener {
    authority: PrivateAuthority,
    port: ReservedPort,
    token: Scratch,
    _deployment: Deployment,
    _files: [Scratch; 2],
}

impl Listener {
    /// Starts a server whose listener for administrators uses TLS.
    async fn start() -> Self {
        let authority = PrivateAuthority::new();
        let token = Scratch::file("admin-token", Administration::TOKEN);
        let (certificate, key) = authority.issue("localhost");
        let files = [
            Scratch::file("cert.pem", &certificate.pem()),
            Scratch::file("key.pem", &key.serialize_pem()),
        ];
        let port = ReservedPort::new();
        let table = format!(
            "[admin]\nlisten = \"0.0.0.0:{}\"\ntoken = {{ file = \"{}\" }}\nallowed_hosts = [\"localhost\"]\n\
             [admin.tls]\ncertificates = \"{}\"\nkey = \"{}\"",
            port.port(),
            token.as_str(),
            files[0].as_str(),
            files[1].as_str()
        );
        let deployment = Deployment::builder().tables(table).start().await;
        deployment
            .open_session(&deployment.token().subject("alice").sign())
            .await;
        Self {
            authority,
            port,
            token,
            _deployment: deployment,
            _files: files,
        }
    }

    /// Runs `portcullis admin` over HTTPS.
    async fn run(&self, arguments: &[&str], more: &[&str]) -> Finished {
        let url = format!("https://localhost:{}", self.port.port());
        let server = ["--url", &url, "--token-file", self.token.as_str()];
        Portcullis::run(&[&["admin"], arguments, &server, more].concat()).await
    }

    /// Sends a request over TLS, and returns what the listener answers.
    async fn send(&self, request: Request) -> String {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_file(self.authority.file()).unwrap())
            .unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(self.port.address()).await.unwrap();
        let server = ServerName::try_from("localhost").unwrap();
        exchange(
            TlsConnector::from(Arc::new(config))
                .connect(server, stream)
                .await
                .unwrap(),
            &request,
        )
        .await
    }
}

async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &Request) -> String {
    stream.write_all(&request.to_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // An error ends the answer, too.
    let _ = timeout(TIMEOUT, stream.read_to_end(&mut answer))
        .await
        .unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

fn list(host: &str) -> Request {
    list_with(host, Administration::TOKEN)
}

fn list_with(host: &str, token: &str) -> Request {
    let request = Request::without_host("GET", "/v1/sessions").header("Host", host);
    request.header("Connection", "close").bearer(token)
}

/// F8, E12: on all addresses, the listener serves HTTPS only, and `portcullis admin` uses it with
/// the private authority and the token.
#[tokio::test]
async fn only_https_is_served() {
    let listener = Listener::start().await;
    let plain = exchange(
        TcpStream::connect(listener.port.address()).await.unwrap(),
        &list("localhost"),
    )
    .await;
    assert!(!plain.contains("HTTP/"), "{plain:?}");
    assert!(!plain.contains("alice"), "{plain:?}");
    let listed = listener
        .run(&["sessions"], &["--ca-file", listener.authority.file()])
        .await;
    assert_eq!(listed.code, Some(0), "{listed:?}");
    assert!(listed.stdout.contains("alice"), "{listed:?}");
    let ended = listener
        .run(
            &["end", "--subject", "alice"],
            &["--ca-file", listener.authority.file()],
        )
        .await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("ended 1 session"), "{ended:?}");
    let untrusted = listener.run(&["sessions"], &[]).await;
    assert_eq!(untrusted.code, Some(1), "{untrusted:?}");
    assert!(
        !untrusted.stderr.contains(Administration::TOKEN),
        "{untrusted:?}"
    );
}

/// F3, F8: with TLS, a wrong host and a wrong token are rejected, too.
#[tokio::test]
async fn hosts_and_tokens_are_checked() {
    let listener = Listener::start().await;
    let answer = listener.send(list("localhost")).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("alice"), "{answer}");

    let wrong_token = list_with("localhost", "wrong-token-of-a-scenario-0123456789abcdef");
    for (request, status, code) in [
        (list("evil.example"), "403", "host.not_allowed"),
        (list("localhost.evil.example"), "403", "host.not_allowed"),
        (
            list("localhost").header("Origin", "https://localhost"),
            "403",
            "origin.not_allowed",
        ),
        (wrong_token, "401", "admin.token_invalid"),
    ] {
        let answer = listener.send(request).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{answer}"
        );
        assert!(answer.contains(code), "{answer}");
        assert!(!answer.contains("alice"), "{answer}");
    }
}

/// E12, L9: clients that stay silent during or after the TLS handshake do not keep administrators
/// out.
#[tokio::test]
async fn silent_handshakes() {
    let listener = Listener::start().await;
    let mut held = Vec::new();
    for number in 0..40 {
        let mut stream = TcpStream::connect(listener.port.address()).await.unwrap();
        if number % 2 == 0 {
            // The beginning of a record with a ClientHello.
            stream
                .write_all(&[0x16, 0x03, 0x01, 0x02, 0x00, 0x01])
                .await
                .unwrap();
        }
        held.push(stream);
    }
    // As in `silent_connections`.
    let answer = timeout(Duration::from_secs(15), listener.send(list("localhost")))
        .await
        .expect("a response");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    for mut stream in held {
        // A reset closes it, too.
        let _ = timeout(TIMEOUT, stream.read_to_end(&mut Vec::new()))
            .await
            .expect("the connection stays open");
    }
}
