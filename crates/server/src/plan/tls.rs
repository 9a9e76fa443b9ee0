//! `[tls]`: certificates from files.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use anyhow::{Context as _, ensure};
use rustls::{
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    sign::CertifiedKey,
};
use url::Url;

use crate::config;

/// Two files that belong together.
#[derive(Clone, Debug)]
pub(crate) struct TlsFiles {
    certificates: PathBuf,
    key: PathBuf,
}

/// When the two files were last written.
pub(crate) type Written = [Option<SystemTime>; 2];

impl TlsFiles {
    /// # Errors
    /// When clients are not to expect TLS, or the files cannot be used.
    pub(crate) fn new(configured: &config::Tls, base_url: &Url) -> anyhow::Result<Self> {
        ensure!(
            base_url.scheme() == "https",
            "[tls] is set, and base_url = \"{base_url}\" is plain http; clients see https then, so write that"
        );
        let files = Self { certificates: configured.certificates.clone(), key: configured.key.clone() };
        files.load()?;
        Ok(files)
    }

    /// Reads the certificates and their key.
    ///
    /// # Errors
    /// When a file cannot be read, has nothing of its kind, or the key is not the certificate's.
    pub(crate) fn load(&self) -> anyhow::Result<Arc<CertifiedKey>> {
        let certificates = read(&self.certificates, "tls.certificates", |text| {
            CertificateDer::pem_slice_iter(text).collect::<Result<Vec<_>, _>>()
        })?;
        ensure!(!certificates.is_empty(), "tls.certificates = {} has no certificate", self.certificates.display());
        let key = read(&self.key, "tls.key", PrivateKeyDer::from_pem_slice)?;
        CertifiedKey::from_der(certificates, key, &ring::default_provider()).map(Arc::new).with_context(|| {
            format!("tls.key = {} is not the key of {}", self.key.display(), self.certificates.display())
        })
    }

    /// When the files were last written: it changes when they do.
    pub(crate) fn written(&self) -> Written {
        [&self.certificates, &self.key].map(|file| fs::metadata(file).and_then(|data| data.modified()).ok())
    }
}

fn read<T, E>(file: &Path, name: &str, parse: impl FnOnce(&[u8]) -> Result<T, E>) -> anyhow::Result<T>
where
    E: std::error::Error + Send + Sync + 'static,
{
    let text = fs::read(file).with_context(|| format!("{name} = {} cannot be read", file.display()))?;
    parse(&text).with_context(|| format!("{name} = {} is no PEM file of that kind", file.display()))
}
