//! The environment variable `SSL_CERT_FILE`, which replaces the system's trusted certificates.

use std::{ffi::OsStr, fs::File, io::Read as _, path::Path};

use rustls::pki_types::{CertificateDer, pem::PemObject as _};

use super::settings_error::{CertificateVariableError, FetchSettingsError};

/// The maximum size of a file of trusted certificates, in bytes. Those that operating systems trust
/// take 0.3 MB.
pub(super) const MAX_CA_FILE: u64 = 4 << 20;

/// Checks the value of the variable. Fails if it is set, and the file cannot be read or has no
/// certificate.
pub(super) fn check(value: Option<&OsStr>) -> Result<(), FetchSettingsError> {
    let Some(value) = value else { return Ok(()) };
    check_file(Path::new(value)).map_err(FetchSettingsError::CertificateVariable)
}

/// Checks that a PEM file has a certificate in its first 4 MiB.
fn check_file(file: &Path) -> Result<(), CertificateVariableError> {
    if file.as_os_str().is_empty() {
        return Err(CertificateVariableError::Empty);
    }
    let path = || file.display().to_string();
    let mut pem = Vec::new();
    File::open(file)
        .and_then(|file| file.take(MAX_CA_FILE).read_to_end(&mut pem))
        .map_err(|error| CertificateVariableError::Unreadable {
            path: path(),
            kind: error.kind(),
        })?;
    if CertificateDer::pem_slice_iter(&pem).any(|certificate| certificate.is_ok()) {
        return Ok(());
    }
    Err(CertificateVariableError::NoCertificate { path: path() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G6: a value that would leave no trusted certificate is an error that names the variable and
    /// the fix.
    #[test]
    fn unusable_values_are_errors() {
        assert!(check(None).is_ok());
        for (value, reason) in [
            ("", "SSL_CERT_FILE is empty"),
            (
                "/no/such/file.pem",
                "/no/such/file.pem, which cannot be read",
            ),
            ("/", "cannot be read"),
            ("/dev/null", "no PEM certificate"),
            ("/dev/zero", "no PEM certificate"),
        ] {
            let error = check(Some(OsStr::new(value))).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
            assert!(error.contains("unset SSL_CERT_FILE"), "{error}");
        }
    }
}
