//! [`ConnectProxy`]: an egress proxy that knows its hosts without DNS, and a private certificate
//! authority.

use std::{collections::HashMap, net::SocketAddr, sync::Arc};

use parking_lot::Mutex;
use rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;

use crate::PrivateAuthority;

/// A proxy for `CONNECT` requests. It connects only to the configured hosts, without DNS, and
/// responds to others with
/// 502. It presents a certificate of a private authority for each host and forwards the decrypted
///      bytes to a loopback address.
pub struct ConnectProxy {
    address: SocketAddr,
    targets: Arc<Mutex<Vec<String>>>,
    authority: PrivateAuthority,
}

impl ConnectProxy {
    /// Starts a proxy that forwards connections to these hosts.
    ///
    /// # Panics
    /// Panics if there is no free port or a host is not a name.
    pub async fn start(hosts: &[(&str, SocketAddr)]) -> Self {
        let authority = PrivateAuthority::new();
        let hosts: HashMap<_, _> = hosts
            .iter()
            .map(|(host, address)| ((*host).to_owned(), (acceptor(host, &authority), *address)))
            .collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let hosts = Arc::new(hosts);
        let targets = Arc::<Mutex<Vec<String>>>::default();
        let recorded = Arc::clone(&targets);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&hosts), Arc::clone(&recorded)));
            }
        });
        Self {
            address,
            targets,
            authority,
        }
    }

    /// Returns the URL of the proxy.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the path of the authority's certificate.
    pub fn authority(&self) -> &str {
        self.authority.file()
    }

    /// Returns the targets of the requests so far, without repetitions, such as `mcp.example:443`.
    ///
    /// # Panics
    /// Panics if the proxy has panicked.
    pub fn targets(&self) -> Vec<String> {
        let mut targets = self.targets.lock().clone();
        targets.sort_unstable();
        targets.dedup();
        targets
    }
}

/// The acceptor of TLS connections for each host, and the address that they are forwarded to.
type Hosts = HashMap<String, (TlsAcceptor, SocketAddr)>;

/// Returns an acceptor with a certificate of the authority.
fn acceptor(host: &str, authority: &PrivateAuthority) -> TlsAcceptor {
    let (certificate, key) = authority.issue(host);
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a private key");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            builder
                .with_no_client_auth()
                .with_single_cert(vec![certificate.into()], key)
        })
        .expect("a configuration");
    TlsAcceptor::from(Arc::new(config))
}

/// Serves one `CONNECT` request.
async fn serve(
    mut stream: TcpStream,
    hosts: Arc<Hosts>,
    targets: Arc<Mutex<Vec<String>>>,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
    targets.lock().push(target.clone());
    let host = target
        .strip_suffix(":443")
        .filter(|_| head.starts_with("CONNECT "));
    let Some((acceptor, address)) = host.and_then(|host| hosts.get(host)) else {
        return stream
            .write_all(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n")
            .await;
    };
    stream
        .write_all(b"HTTP/1.1 200 Connection Established\r\n\r\n")
        .await?;
    let mut tunnel = acceptor.accept(stream).await?;
    let mut upstream = TcpStream::connect(address).await?;
    copy_bidirectional(&mut tunnel, &mut upstream)
        .await
        .map(|_| ())
}
