//! [`Tls`]: TLS configurations of the fetcher.

use std::{
    fs::File,
    io::Read as _,
    path::Path,
    sync::{Arc, OnceLock},
};

use rustls::{
    ClientConfig, RootCertStore,
    client::danger::ServerCertVerifier,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, pem::PemObject},
};
use rustls_platform_verifier::Verifier;

use super::{
    certificate_variable::MAX_CA_FILE, pool_key::PoolKey, settings_error::FetchSettingsError,
};

/// The trusted certificates. The system's are read by the first `https` fetch.
pub(crate) struct Tls {
    provider: Arc<CryptoProvider>,
    /// The certificates of the CA file.
    own: Vec<CertificateDer<'static>>,
    with_ca_file: OnceLock<Arc<Verifier>>,
    without_ca_file: OnceLock<Arc<Verifier>>,
}

impl Tls {
    /// Reads the CA file. Fails when the file cannot be read, has more than 4 MiB, or has no or an
    /// invalid certificate.
    pub(crate) fn new(ca_file: Option<&Path>) -> Result<Self, FetchSettingsError> {
        Ok(Self {
            provider: Arc::new(rustls::crypto::ring::default_provider()),
            own: ca_file.map(certificates).transpose()?.unwrap_or_default(),
            with_ca_file: OnceLock::new(),
            without_ca_file: OnceLock::new(),
        })
    }

    /// Returns the configuration for the connections of a pool. Plain connections trust nothing, so
    /// that `https` fails on them. Fails when the system's trusted certificates cannot be read.
    pub(crate) fn config(&self, key: PoolKey) -> Result<ClientConfig, FetchSettingsError> {
        let builder = ClientConfig::builder_with_provider(self.provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|_| FetchSettingsError::TrustStore)?;
        let verifier = match key {
            PoolKey::Plain => {
                return Ok(builder
                    .with_root_certificates(RootCertStore::empty())
                    .with_no_client_auth());
            }
            _ if key.trusts_ca_file() => self.verifier(&self.with_ca_file, &self.own)?,
            _ => self.verifier(&self.without_ca_file, &[])?,
        };
        let mut config = builder
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }

    /// Returns the verifier in a slot, which the first call fills.
    fn verifier(
        &self,
        slot: &OnceLock<Arc<Verifier>>,
        own: &[CertificateDer<'static>],
    ) -> Result<Arc<dyn ServerCertVerifier>, FetchSettingsError> {
        if let Some(verifier) = slot.get() {
            return Ok(verifier.clone());
        }
        check_environment()?;
        let verifier = Verifier::new_with_extra_roots(own.iter().cloned(), self.provider.clone())
            .map_err(|_| FetchSettingsError::TrustStore)?;
        Ok(slot.get_or_init(|| Arc::new(verifier)).clone())
    }
}

/// Checks that the environment names no unusable certificates.
pub(super) fn check_environment() -> Result<(), FetchSettingsError> {
    #[cfg(all(unix, not(target_vendor = "apple")))]
    super::certificate_variable::check(std::env::var_os("SSL_CERT_FILE").as_deref())?;
    Ok(())
}

/// Reads the certificates of a PEM file.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, FetchSettingsError> {
    let shown = || path.display().to_string();
    let mut pem = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_CA_FILE + 1).read_to_end(&mut pem))
        .map_err(|error| FetchSettingsError::CaFileUnreadable {
            path: shown(),
            kind: error.kind(),
        })?;
    if pem.len() as u64 > MAX_CA_FILE {
        return Err(FetchSettingsError::CaFileTooLarge { path: shown() });
    }
    let invalid = || FetchSettingsError::CaFileInvalid { path: shown() };
    let found: Vec<_> = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<_, _>>()
        .map_err(|_| invalid())?;
    // Reports invalid certificates at startup instead of at the first fetch.
    let mut store = RootCertStore::empty();
    for certificate in &found {
        store.add(certificate.clone()).map_err(|_| invalid())?;
    }
    if found.is_empty() {
        Err(invalid())
    } else {
        Ok(found)
    }
}
