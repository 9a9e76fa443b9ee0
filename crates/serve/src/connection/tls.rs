//! TLS 1.2 and 1.3 on the listener, and reloading of the certificate from its files.

use std::{fmt, io, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use portcullis_config::plan::{Loaded, TlsFiles};
use portcullis_telemetry::metrics::Expiry;
use rustls::{
    ServerConfig,
    crypto::ring,
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// The time limit for the TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The server side of TLS. Clones share the certificate.
#[derive(Clone)]
pub(crate) struct Tls {
    acceptor: TlsAcceptor,
    current: Arc<Current>,
    expiry: Expiry,
}

/// The certificate for new connections.
struct Current(ArcSwap<CertifiedKey>);

impl Tls {
    /// Uses the certificate that was loaded at startup. Fails when TLS cannot be set up.
    pub(crate) fn new(files: &TlsFiles) -> anyhow::Result<Self> {
        let current = Arc::new(Current(ArcSwap::new(Arc::clone(
            &files.first().certificate,
        ))));
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&current) as _);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let expiry = Expiry::default();
        expiry.set(files.first().validity.map(|validity| validity.until));
        Ok(Self {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            current,
            expiry,
        })
    }

    /// Returns when the certificate in use expires, for the metrics.
    pub(crate) fn expiry(&self) -> Expiry {
        self.expiry.clone()
    }

    /// Performs the handshake with a client. Fails when the handshake fails or takes too long.
    pub(crate) async fn accept<S>(&self, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        timeout(HANDSHAKE_TIMEOUT, self.acceptor.accept(stream))
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Replaces the certificate for new connections.
    pub(crate) fn set_certificate(&self, loaded: &Loaded) {
        self.current.0.store(Arc::clone(&loaded.certificate));
        self.expiry
            .set(loaded.validity.map(|validity| validity.until));
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Current")
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf};

    use rcgen::{CertifiedKey as Generated, generate_simple_self_signed};
    use rustls::{
        ClientConfig, RootCertStore,
        pki_types::{CertificateDer, ServerName},
        version::{TLS12, TLS13},
    };
    use tokio::io::duplex;
    use tokio_rustls::TlsConnector;

    use super::*;
    use crate::reload::key_material_files::CertificateFiles;
    use portcullis_config::{Diagnostic, file};

    /// A folder with a new certificate for localhost and its key.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder =
                std::env::temp_dir().join(format!("portcullis-tls-{}-{name}", std::process::id()));
            fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        fn configured(&self) -> file::Tls {
            file::Tls {
                certificates: self.0.join("cert.pem"),
                key: self.0.join("key.pem"),
            }
        }

        fn renew(&self) -> CertificateDer<'static> {
            let Generated { cert, signing_key } =
                generate_simple_self_signed(["localhost".to_owned()]).unwrap();
            let file::Tls { certificates, key } = self.configured();
            // Files that are written again within a tick of the file system's clock may have the
            // same version; files that are replaced do not.
            for (file, text) in [
                (certificates, cert.pem()),
                (key, signing_key.serialize_pem()),
            ] {
                let new = self.0.join("new.pem");
                fs::write(&new, text).unwrap();
                fs::rename(new, file).unwrap();
            }
            cert.der().clone()
        }

        fn files(&self) -> Result<TlsFiles, String> {
            self.files_at("https://localhost")
        }

        fn files_at(&self, base_url: &str) -> Result<TlsFiles, String> {
            let base_url = base_url.parse().unwrap();
            TlsFiles::new(&self.configured(), &base_url)
                .map_err(|errors| Diagnostic::joined(&errors))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// Returns the TLS version and application protocol that a client negotiates that trusts only
    /// this certificate.
    async fn negotiated(
        tls: &Tls,
        trusted: &CertificateDer<'static>,
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> io::Result<Option<Vec<u8>>> {
        let mut roots = RootCertStore::empty();
        roots.add(trusted.clone()).unwrap();
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let (client, server) = duplex(64 << 10);
        let name = ServerName::try_from("localhost").unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        let (connected, _) = tokio::join!(connector.connect(name, client), tls.accept(server));
        Ok(connected?.get_ref().1.alpn_protocol().map(<[u8]>::to_vec))
    }

    #[tokio::test]
    async fn both_versions_of_tls_negotiate_http_2() {
        let folder = Folder::new("versions");
        let certificate = folder.renew();
        let tls = Tls::new(&folder.files().unwrap()).unwrap();
        for version in [&TLS12, &TLS13] {
            assert_eq!(
                negotiated(&tls, &certificate, &[version])
                    .await
                    .unwrap()
                    .as_deref(),
                Some(&b"h2"[..])
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewed_certificate_is_served_and_a_broken_one_is_not() {
        let folder = Folder::new("renewed");
        let first = folder.renew();
        let files = folder.files().unwrap();
        let tls = Tls::new(&files).unwrap();
        let mut files = CertificateFiles::new(tls.clone(), files);

        let second = folder.renew();
        files.check();
        assert!(negotiated(&tls, &first, &[&TLS13]).await.is_err());
        assert!(negotiated(&tls, &second, &[&TLS13]).await.is_ok());

        fs::write(folder.configured().key, "nothing").unwrap();
        files.check();
        assert!(
            negotiated(&tls, &second, &[&TLS13]).await.is_ok(),
            "the valid one stays in use"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_without_tls_is_disconnected() {
        let folder = Folder::new("plain");
        folder.renew();
        let tls = Tls::new(&folder.files().unwrap()).unwrap();
        let (mut client, server) = duplex(1 << 10);
        tokio::io::AsyncWriteExt::write_all(&mut client, b"GET / HTTP/1.1\r\n\r\n")
            .await
            .unwrap();
        assert!(tls.accept(server).await.is_err());
        let (_silent, server) = duplex(1 << 10);
        assert_eq!(
            tls.accept(server).await.err().map(|error| error.kind()),
            Some(io::ErrorKind::TimedOut)
        );
    }

    #[test]
    fn mismatched_files_are_named() {
        let folder = Folder::new("misfits");
        let error = |folder: &Folder| folder.files().expect_err("refused");
        let missing = error(&folder);
        for (key, file) in [
            ("tls.certificates = ", "cert.pem\" cannot be read"),
            ("tls.key = ", "key.pem\" cannot be read"),
        ] {
            assert!(missing.contains(key), "{missing}");
            assert!(missing.contains(file), "{missing}");
        }
        folder.renew();
        let key = fs::read(folder.configured().key).unwrap();
        folder.renew();
        fs::write(folder.configured().key, key).unwrap();
        assert!(
            error(&folder).contains("is not the key of"),
            "{}",
            error(&folder)
        );
        folder.renew();
        let plain = folder.files_at("http://localhost").expect_err("refused");
        assert!(plain.starts_with("tls is set, and base_url"), "{plain}");
    }
}
