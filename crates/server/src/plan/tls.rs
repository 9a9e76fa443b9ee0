//! Certificate and key files: validation of `[tls]`.

mod validity;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use anyhow::{Context as _, ensure};
use portcullis_metadata::{Clock as _, SystemClock, UnixTime};
use rustls::{
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    sign::CertifiedKey,
};
use url::Url;

use super::files;
use crate::config::{self, Diagnostic, KeyPath};

pub(crate) use validity::{Validity, date};

/// The certificate file and the key file.
#[derive(Clone, Debug)]
pub(crate) struct TlsFiles {
    certificates: PathBuf,
    key: PathBuf,
    /// The name of the table in the configuration.
    table: &'static str,
    first: Loaded,
}

/// The content of the files.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    pub(crate) certificate: Arc<CertifiedKey>,
    /// The validity of the server's own certificate, if it can be read.
    pub(crate) validity: Option<Validity>,
    /// The modification times of the files before they were read.
    pub(crate) written: Written,
}

/// The modification times of the two files.
pub(crate) type Written = [Option<SystemTime>; 2];

impl TlsFiles {
    /// Reads the files of `[tls]`, for the listener of clients.
    ///
    /// # Errors
    /// Fails when `base_url` is plain `http`, or the files cannot be used.
    pub(crate) fn new(configured: &config::Tls, base_url: &Url) -> anyhow::Result<Self> {
        ensure!(
            base_url.scheme() == "https",
            "tls is set, and base_url = \"{base_url}\" is plain http; change it to https, which clients then use"
        );
        Self::for_listener(configured, "tls")
    }

    /// Returns the files of the table with this name, for a listener that is not at `base_url`.
    ///
    /// # Errors
    /// Fails when the files cannot be used.
    pub(crate) fn for_listener(configured: &config::Tls, table: &'static str) -> anyhow::Result<Self> {
        let config::Tls { certificates, key } = configured;
        let first = load(certificates, key, table)?;
        Ok(Self { certificates: certificates.clone(), key: key.clone(), table, first })
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
        load(&self.certificates, &self.key, self.table)
    }

    /// Returns the name of its table.
    pub(crate) fn table(&self) -> &'static str {
        self.table
    }

    /// Returns the problem of the validity of the certificate at this time, and the fix.
    pub(crate) fn invalidity(&self, now: UnixTime) -> Option<validity::Invalidity> {
        let key = format!("{}.certificates = {}", self.table, self.certificates.display());
        self.first.validity.and_then(|validity| validity.at(now, &key))
    }

    /// Returns the times between which the certificate is valid, if they can be read.
    pub(crate) fn validity(&self) -> Option<Validity> {
        self.first.validity
    }

    /// Returns the modification times of the files.
    pub(crate) fn written(&self) -> Written {
        written(&self.certificates, &self.key)
    }
}

/// Warns of certificates that are not valid, or not for long.
pub(super) fn warnings<'a>(files: impl Iterator<Item = &'a TlsFiles>) -> Vec<Diagnostic> {
    let now = SystemClock::new().now();
    let invalid = files.filter_map(|files| files.invalidity(now));
    invalid.map(|found| Diagnostic::new(&KeyPath::default(), &format!("{}; {}", found.text, found.fix))).collect()
}

/// Reads and parses both files, and checks that they belong together.
fn load(certificates: &Path, key: &Path, table: &str) -> anyhow::Result<Loaded> {
    let written = written(certificates, key);
    let chain = read(certificates, &format!("{table}.certificates"), |text| {
        CertificateDer::pem_slice_iter(text).collect::<Result<Vec<_>, _>>()
    })?;
    ensure!(
        !chain.is_empty(),
        "{table}.certificates = {} has no certificate; name a PEM file that has BEGIN CERTIFICATE",
        certificates.display()
    );
    let validity = chain.first().and_then(|own| Validity::of(own));
    let private = read(key, &format!("{table}.key"), PrivateKeyDer::from_pem_slice)?;
    let certificate = CertifiedKey::from_der(chain, private, &ring::default_provider()).with_context(|| {
        format!(
            "{table}.key = {} is not the key of {}; name the files of one certificate, the server's own first",
            key.display(),
            certificates.display()
        )
    })?;
    Ok(Loaded { certificate: Arc::new(certificate), validity, written })
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
        let expected = if name.ends_with(".key") { "PRIVATE KEY" } else { "CERTIFICATE" };
        format!(
            "{name} = {} is not a PEM file of the expected type; name one that has BEGIN {expected}",
            file.display()
        )
    })
}
