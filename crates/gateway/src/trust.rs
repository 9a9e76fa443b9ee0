use std::{fmt, sync::Arc};

use rustls::{
    ClientConfig, ConfigBuilder, RootCertStore,
    client::WantsClientCert,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject as _},
};
use rustls_platform_verifier::BuilderVerifierExt as _;

use crate::UpstreamSettingsError;

/// The certificates that an `https` upstream is judged by. Clones share them: make it once, for all workers.
///
/// The upstream is spoken to in TLS 1.2 or 1.3. Its certificate has to be valid for the host of its address at the
/// moment of the handshake; whether it was revoked is asked of nobody.
#[derive(Clone)]
pub struct UpstreamTrust(pub(crate) Arc<ClientConfig>);

impl UpstreamTrust {
    /// Those that this machine trusts.
    ///
    /// # Errors
    /// When it trusts none, or they cannot be read.
    pub fn platform() -> Result<Self, UpstreamSettingsError> {
        Self::new(|builder| builder.with_platform_verifier().map_err(|_| UpstreamSettingsError::TrustPlatform))
    }

    /// Those in a PEM text, and no others: the text of a CA file.
    ///
    /// # Errors
    /// When there is none in it, or one that is not usable.
    pub fn from_pem(pem: &[u8]) -> Result<Self, UpstreamSettingsError> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let added = certificate.ok().and_then(|certificate| roots.add(certificate).ok());
            added.ok_or(UpstreamSettingsError::TrustInvalid)?;
        }
        if roots.is_empty() {
            return Err(UpstreamSettingsError::TrustEmpty);
        }
        Self::new(|builder| Ok(builder.with_root_certificates(roots)))
    }

    fn new(
        with_verifier: impl FnOnce(
            ConfigBuilder<ClientConfig, rustls::WantsVerifier>,
        ) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, UpstreamSettingsError>,
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

    /// L1: a CA file without a usable certificate is refused when it is read.
    #[test]
    fn a_text_without_certificates_is_refused() {
        let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap().cert.pem();
        assert!(UpstreamTrust::from_pem(certificate.as_bytes()).is_ok());
        assert_eq!(UpstreamTrust::from_pem(b"").err(), Some(UpstreamSettingsError::TrustEmpty));
        assert_eq!(UpstreamTrust::from_pem(b"no PEM").err(), Some(UpstreamSettingsError::TrustEmpty));
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert_eq!(UpstreamTrust::from_pem(broken.as_bytes()).err(), Some(UpstreamSettingsError::TrustInvalid));
    }
}
