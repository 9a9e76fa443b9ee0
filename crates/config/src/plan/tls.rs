//! Certificate and key files: validation of `[tls]`.

mod name;
mod validity;

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, anyhow, ensure};
use portcullis_metadata::{Clock as _, SystemClock, UnixTime};
use rustls::{
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    sign::CertifiedKey,
};
use url::Url;

use super::{FileVersion, files};
use crate::{
    Diagnostic, Diagnostics, KeyPath, file,
    secret::{SecretError, may_be_secret},
};

pub use validity::{Invalidity, Validity, date};

/// The extensions of files with a private key.
const KEY_EXTENSIONS: [&str; 2] = ["key", "pem"];

/// The certificate file and the key file.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    certificates: PathBuf,
    key: PathBuf,
    /// The name of the table in the configuration.
    table: &'static str,
    /// That clients reject the certificate at `base_url`.
    other_name: Option<Invalidity>,
    first: Loaded,
}

/// The content of the files.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The certificates and the private key.
    pub certificate: Arc<CertifiedKey>,
    /// The validity of the server's own certificate, if it can be read.
    pub validity: Option<Validity>,
    /// The versions of the files before they were read: of the certificate and of the key.
    pub versions: [Option<FileVersion>; 2],
}

impl TlsFiles {
    /// Reads the files of `[tls]`, for the listener of clients.
    ///
    /// # Errors
    /// Fails when `base_url` is plain `http`, or the files cannot be used, with an error for each
    /// fault.
    pub fn new(configured: &file::Tls, base_url: &Url) -> Result<Self, Vec<Diagnostic>> {
        Diagnostics::collect(|errors| Self::for_clients(configured, base_url, false, errors))
    }

    /// As [`TlsFiles::new`]; adds the errors. Clients do not see the certificate behind a proxy.
    pub(super) fn for_clients(
        configured: &file::Tls,
        base_url: &Url,
        is_behind_proxy: bool,
        errors: &mut Diagnostics<'_>,
    ) -> Option<Self> {
        let is_https = base_url.scheme() == "https";
        if !is_https {
            let fix = "change it to https, which clients then use";
            errors.add(
                "tls",
                format!("tls is set, and base_url = \"{base_url}\" is plain http; {fix}"),
            );
        }
        let mut files = Self::for_listener(configured, "tls", &mut errors.table("tls"))?;
        if !is_behind_proxy {
            let own = files.first.certificate.end_entity_cert().ok();
            files.other_name = own.and_then(|own| name::mismatch(own, base_url, &files.key_text()));
        }
        is_https.then_some(files)
    }

    /// Returns the files of the table with this name, for a listener that is not at `base_url`.
    /// `errors` are those of the table.
    ///
    /// Adds an error for each file that cannot be used, and returns `None` if there is one.
    pub(super) fn for_listener(
        configured: &file::Tls,
        table: &'static str,
        errors: &mut Diagnostics<'_>,
    ) -> Option<Self> {
        let file::Tls { certificates, key } = configured;
        let first = load(certificates, key, errors)?;
        Some(Self {
            certificates: certificates.clone(),
            key: key.clone(),
            table,
            other_name: None,
            first,
        })
    }

    /// Returns the content at startup.
    pub fn first(&self) -> &Loaded {
        &self.first
    }

    /// Reads the files again.
    ///
    /// # Errors
    /// Fails when a file cannot be read or has no certificate or key, or the key is not the
    /// certificate's. The message names each unusable file.
    pub fn load(&self) -> Result<Loaded, Vec<Diagnostic>> {
        Diagnostics::collect(|errors| {
            load(&self.certificates, &self.key, &mut errors.table(self.table))
        })
    }

    /// Returns the name of its table.
    pub fn table(&self) -> &'static str {
        self.table
    }

    /// Returns the problem of the validity of the certificate at this time, and the fix.
    pub fn invalidity(&self, now: UnixTime) -> Option<Invalidity> {
        let key = self.key_text();
        self.first
            .validity
            .and_then(|validity| validity.at(now, &key))
    }

    /// Returns that the certificate is not for the host of `base_url`, and the fix. `None` also
    /// behind a proxy and for administrators.
    pub fn other_name(&self) -> Option<&Invalidity> {
        self.other_name.as_ref()
    }

    /// The key of the certificates with its value.
    fn key_text(&self) -> String {
        format!(
            "{}.certificates = {}",
            self.table,
            self.certificates.display()
        )
    }

    /// Returns the times between which the certificate is valid, if they can be read.
    pub fn validity(&self) -> Option<Validity> {
        self.first.validity
    }

    /// Returns the present versions of the files.
    pub fn versions(&self) -> [Option<FileVersion>; 2] {
        versions(&self.certificates, &self.key)
    }
}

/// Warns of certificates that are not valid, or not for long, or not for the host of `base_url`.
pub(super) fn warnings<'a>(files: impl Iterator<Item = &'a TlsFiles>) -> Vec<Diagnostic> {
    let now = SystemClock::new().now();
    files
        .flat_map(|files| {
            files
                .other_name
                .clone()
                .into_iter()
                .chain(files.invalidity(now))
        })
        .map(|found| {
            Diagnostic::new(
                &KeyPath::default(),
                &format!("{}; {}", found.text, found.fix),
            )
        })
        .collect()
}

/// Reads and parses both files, and checks that they belong together. `errors` are those of their
/// table.
fn load(certificates: &Path, key: &Path, errors: &mut Diagnostics<'_>) -> Option<Loaded> {
    // Before the files are read, so that a later change is noticed.
    let versions = versions(certificates, key);
    if are_swapped(certificates, key) {
        errors.add(
            "certificates",
            format!(
                "certificates = \"{}\" has a private key, and key = \"{}\" a certificate; swap the two paths",
                certificates.display(),
                key.display()
            ),
        );
        return None;
    }
    let chain = errors.take("certificates", read_chain(certificates));
    let private = errors.take("key", read_key(key));
    let chain = chain?;
    let private = private?;
    let validity = chain.first().and_then(|own| Validity::of(own));
    let certificate = CertifiedKey::from_der(chain, private, &ring::default_provider()).map_err(|error| {
        let text = format!(
            "key = {} is not the key of {}; name the files of one certificate, the server's own first",
            key.display(),
            certificates.display()
        );
        match error {
            // The text says so.
            rustls::Error::InconsistentKeys(_) => anyhow!(text),
            other => anyhow::Error::from(other).context(text),
        }
    });
    Some(Loaded {
        certificate: Arc::new(errors.take("key", certificate)?),
        validity,
        versions,
    })
}

/// Whether each of the two files has only what belongs into the other.
fn are_swapped(certificates: &Path, key: &Path) -> bool {
    let has = |file: &Path| {
        let text = files::content(file).unwrap_or_default();
        let has_certificate = CertificateDer::from_pem_slice(&text).is_ok();
        (
            has_certificate,
            PrivateKeyDer::from_pem_slice(&text).is_ok(),
        )
    };
    has(certificates) == (false, true) && has(key) == (true, false)
}

/// Whether a PEM file has a key that needs a passphrase, in PKCS #8 or in the traditional form.
fn is_encrypted_key(pem: &[u8]) -> bool {
    let has = |text: &[u8]| pem.windows(text.len()).any(|part| part == text);
    has(b"-----BEGIN ENCRYPTED PRIVATE KEY-----") || has(b"Proc-Type: 4,ENCRYPTED")
}

fn versions(certificates: &Path, key: &Path) -> [Option<FileVersion>; 2] {
    [certificates, key].map(FileVersion::of)
}

fn read_chain(file: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let parse = |text: &[u8]| CertificateDer::pem_slice_iter(text).collect::<Result<Vec<_>, _>>();
    let chain = read(file, "certificates", "CERTIFICATE", parse)?;
    ensure!(
        !chain.is_empty(),
        "certificates = {} has no certificate; name a PEM file that has BEGIN CERTIFICATE",
        file.display()
    );
    Ok(chain)
}

fn read_key(file: &Path) -> anyhow::Result<PrivateKeyDer<'static>> {
    if may_be_key(file) && !file.exists() {
        return Err(SecretError::NotAPath).context("key");
    }
    read(file, "key", "PRIVATE KEY", PrivateKeyDer::from_pem_slice)
}

/// Whether a path can be the private key itself, without the lines around it, or its passphrase.
fn may_be_key(file: &Path) -> bool {
    let is_of_key = |extension: &OsStr| KEY_EXTENSIONS.iter().any(|known| extension == *known);
    may_be_secret(file) && !file.extension().is_some_and(is_of_key)
}

/// Reads the file of a key, and parses a PEM section of the expected type.
fn read<T, E>(
    file: &Path,
    name: &str,
    expected: &str,
    parse: impl FnOnce(&[u8]) -> Result<T, E>,
) -> anyhow::Result<T>
where
    E: std::error::Error + Send + Sync + 'static,
{
    let text = files::read(name, file)?;
    ensure!(
        !is_encrypted_key(&text),
        "{name} = {file} is an encrypted private key, and the server cannot ask for its passphrase; name one that `openssl pkey -in \
         {file} -out NEW_FILE` has decrypted, which only the user of the service can read",
        file = file.display()
    );
    parse(&text).with_context(|| {
        format!(
            "{name} = {} is not a PEM file of the expected type; name one that has BEGIN {expected}",
            file.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J9: two files in each other's place are named as such.
    #[test]
    fn swapped_files_are_named() {
        let of = |label: &str| {
            let file = tempfile::NamedTempFile::new().unwrap();
            let pem = format!("-----BEGIN {label}-----\nAAAA\n-----END {label}-----\n");
            std::fs::write(&file, pem).unwrap();
            file
        };
        let (certificate, key) = (of("CERTIFICATE"), of("PRIVATE KEY"));
        let load = |certificates: &Path, key: &Path| {
            let loaded =
                Diagnostics::collect(|errors| load(certificates, key, &mut errors.table("tls")));
            loaded.err().unwrap()
        };
        let errors = load(key.path(), certificate.path());
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(
            errors[0].text.ends_with("; swap the two paths"),
            "{errors:?}"
        );
        assert_eq!(errors[0].key, KeyPath::parse("tls.certificates"));
        for (certificates, key) in [
            (&certificate, &certificate),
            (&key, &key),
            (&certificate, &key),
        ] {
            let errors = load(certificates.path(), key.path());
            assert!(
                errors.iter().all(|error| !error.text.contains("swap")),
                "{errors:?}"
            );
        }
    }

    /// J6: what may be the key itself, or its passphrase, is not printed.
    #[test]
    fn a_key_in_place_of_its_path_is_not_printed() {
        let base64 = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC+hunter2/".repeat(40);
        for key in ["hunter2", "hunter2/x", &*base64] {
            let errors = Diagnostics::collect(|errors| {
                load(
                    Path::new("/nonexistent/tls.pem"),
                    Path::new(key),
                    &mut errors.table("tls"),
                )
            });
            let errors = Diagnostic::joined(&errors.err().unwrap());
            assert!(!errors.contains("hunter2"), "{errors}");
            assert!(
                errors
                    .contains("tls.key: there is no file with this path in the working directory"),
                "{errors}"
            );
        }
        for path in ["tls/key.pem", "./key", "/key", "~/key"] {
            assert!(!may_be_key(Path::new(path)), "{path}");
        }
    }

    /// J9: a key that needs a passphrase is named as such.
    #[test]
    fn an_encrypted_key_is_named() {
        for pem in [
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
            "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nAAAA\n-----END EC PRIVATE KEY-----\n",
        ] {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(&file, pem).unwrap();
            let file = file.path();
            let error = read_key(file).unwrap_err().to_string();
            let start = format!("key = {} is an encrypted private key", file.display());
            assert!(error.starts_with(&start), "{error}");
            assert!(error.contains("openssl pkey -in"), "{error}");
        }
        assert!(!is_encrypted_key(b"-----BEGIN PRIVATE KEY-----\nAAAA\n"));
    }
}
