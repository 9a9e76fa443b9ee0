//! [`UpstreamTrust`]: the trusted certificate authorities of an https upstream.

use std::{fmt, sync::Arc};

use rustls::{
    ClientConfig, ConfigBuilder, RootCertStore,
    client::WantsClientCert,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject as _},
};
use rustls_platform_verifier::BuilderVerifierExt as _;

use crate::error::UpstreamSettingsError;

/// The certificate authorities that are trusted for an `https` upstream. Clones are cheap and share
/// them.
///
/// Connections use TLS 1.2 or 1.3. The upstream's certificate must be valid for the host of its
/// address at the time of the handshake. Revocation is not checked.
#[derive(Clone)]
pub struct UpstreamTrust(pub(super) Arc<ClientConfig>);

impl UpstreamTrust {
    /// Returns the certificate authorities of the operating system.
    ///
    /// # Errors
    /// Fails if there are none, or they cannot be read.
    pub fn platform() -> Result<Self, UpstreamSettingsError> {
        Self::new(|builder| {
            builder
                .with_platform_verifier()
                .map_err(|_| UpstreamSettingsError::TrustPlatform)
        })
    }

    /// Returns the certificate authorities in a PEM file, and no others.
    ///
    /// # Errors
    /// Fails if it contains no certificate, or an unusable one. The messages continue the name of
    /// the file.
    pub fn from_pem(pem: &[u8]) -> Result<Self, UpstreamSettingsError> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let added = certificate
                .ok()
                .and_then(|certificate| roots.add(certificate).ok());
            added.ok_or(UpstreamSettingsError::TrustInvalid)?;
        }
        if roots.is_empty() {
            return Err(UpstreamSettingsError::TrustEmpty);
        }
        Self::new(|builder| Ok(builder.with_root_certificates(roots)))
    }

    /// Returns the TLS settings, for a program that connects to the upstream itself, such as a
    /// check of the configuration.
    pub fn tls_settings(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.0)
    }

    /// Creates TLS settings with a verifier of certificates.
    fn new(
        with_verifier: impl FnOnce(
            ConfigBuilder<ClientConfig, rustls::WantsVerifier>,
        ) -> Result<
            ConfigBuilder<ClientConfig, WantsClientCert>,
            UpstreamSettingsError,
        >,
    ) -> Result<Self, UpstreamSettingsError> {
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|_| UpstreamSettingsError::TrustPlatform)?;
        let mut config = with_verifier(builder)?.with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Arc::new(config)))
    }
}

impl fmt::Debug for UpstreamTrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UpstreamTrust")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L1: a CA file without a usable certificate is rejected.
    #[test]
    fn a_file_without_certificates_is_rejected() {
        let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned()])
            .unwrap()
            .cert
            .pem();
        assert!(UpstreamTrust::from_pem(certificate.as_bytes()).is_ok());
        assert_eq!(
            UpstreamTrust::from_pem(b"").err(),
            Some(UpstreamSettingsError::TrustEmpty)
        );
        assert_eq!(
            UpstreamTrust::from_pem(b"no PEM").err(),
            Some(UpstreamSettingsError::TrustEmpty)
        );
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert_eq!(
            UpstreamTrust::from_pem(broken.as_bytes()).err(),
            Some(UpstreamSettingsError::TrustInvalid)
        );
    }
}
