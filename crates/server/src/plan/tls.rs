//! Certificate and key files: validation of `[tls]`.

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

use super::files;
use crate::config;

/// The certificate file and the key file.
#[derive(Clone, Debug)]
pub(crate) struct TlsFiles {
    certificates: PathBuf,
    key: PathBuf,
    first: Loaded,
}

/// The content of the files.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    pub(crate) certificate: Arc<CertifiedKey>,
    /// The modification times of the files before they were read.
    pub(crate) written: Written,
}

/// The modification times of the two files.
pub(crate) type Written = [Option<SystemTime>; 2];

impl TlsFiles {
    /// # Errors
    /// Fails when `base_url` is plain `http`, or the files cannot be used.
    pub(crate) fn new(configured: &config::Tls, base_url: &Url) -> anyhow::Result<Self> {
        ensure!(
            base_url.scheme() == "https",
            "tls is set, and base_url = \"{base_url}\" is plain http; change it to https, which clients then use"
        );
        let config::Tls { certificates, key } = configured;
        Ok(Self { certificates: certificates.clone(), key: key.clone(), first: load(certificates, key)? })
    }

    /// Returns the content at startup.
    pub(crate) fn first(&self) -> &Loaded {
        &self.first
    }

    /// Reads the files again.
    ///
    /// # Errors
    /// Fails when a file cannot be read or has no certificate or key, or the key is not the certificate's.
    pub(crate) fn load(&self) -> anyhow::Result<Loaded> {
        load(&self.certificates, &self.key)
    }

    /// Returns the modification times of the files.
    pub(crate) fn written(&self) -> Written {
        written(&self.certificates, &self.key)
    }
}

fn load(certificates: &Path, key: &Path) -> anyhow::Result<Loaded> {
    let written = written(certificates, key);
    let chain = read(certificates, "tls.certificates", |text| {
        CertificateDer::pem_slice_iter(text).collect::<Result<Vec<_>, _>>()
    })?;
    ensure!(
        !chain.is_empty(),
        "tls.certificates = {} has no certificate; name a PEM file that has BEGIN CERTIFICATE",
        certificates.display()
    );
    let private = read(key, "tls.key", PrivateKeyDer::from_pem_slice)?;
    let certificate = CertifiedKey::from_der(chain, private, &ring::default_provider()).with_context(|| {
        format!(
            "tls.key = {} is not the key of {}; name the files of one certificate, the server's own first",
            key.display(),
            certificates.display()
        )
    })?;
    Ok(Loaded { certificate: Arc::new(certificate), written })
}

fn written(certificates: &Path, key: &Path) -> Written {
    [certificates, key].map(|file| fs::metadata(file).and_then(|data| data.modified()).ok())
}

fn read<T, E>(file: &Path, name: &str, parse: impl FnOnce(&[u8]) -> Result<T, E>) -> anyhow::Result<T>
where
    E: std::error::Error + Send + Sync + 'static,
{
    let text = files::read(name, file)?;
    parse(&text).with_context(|| {
        let expected = if name == "tls.key" { "PRIVATE KEY" } else { "CERTIFICATE" };
        format!(
            "{name} = {} is not a PEM file of the expected type; name one that has BEGIN {expected}",
            file.display()
        )
    })
}
