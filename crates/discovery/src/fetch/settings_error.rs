//! [`FetchSettingsError`]: why the settings of a fetcher cannot be used.

use std::io;

use portcullis_metadata::EscapedText;

/// Why the settings of a fetcher cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchSettingsError {
    /// The CA file cannot be read.
    #[error("cannot read the CA file {path}: {kind}")]
    CaFileUnreadable {
        /// The file.
        path: String,
        /// The error of the operating system.
        kind: io::ErrorKind,
    },
    /// The CA file is larger than 4 MiB.
    #[error("the CA file {path} has more than 4 MiB")]
    CaFileTooLarge {
        /// The file.
        path: String,
    },
    /// The CA file has no PEM certificate, or an invalid one.
    #[error("the CA file {path} has no usable PEM certificate")]
    CaFileInvalid {
        /// The file.
        path: String,
    },
    /// The proxy URL is not an http or https URL with a host.
    #[error("the proxy is not an http or https URL with a host")]
    Proxy,
    /// An environment variable does not contain the URL of a supported proxy. The first request
    /// that needs the proxy fails.
    #[error(
        "{variable} is not an http or https URL with a host; correct it, or list the host in NO_PROXY"
    )]
    ProxyVariable {
        /// The variable.
        variable: &'static str,
    },
    /// The environment variable `SSL_CERT_FILE` is set and names no file with certificates. The
    /// first `https` request fails.
    #[error(
        "{0}; unset SSL_CERT_FILE to trust the system's certificates, or name a PEM file with all that are needed"
    )]
    CertificateVariable(CertificateVariableError),
    /// The user agent is not a valid header value.
    #[error("the user agent has characters that a header cannot contain")]
    UserAgent,
    /// The system's trusted certificates cannot be read.
    #[error("the system's trusted certificates cannot be read; set a CA file")]
    TrustStore,
}

/// Why `SSL_CERT_FILE` cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateVariableError {
    /// The variable is set and empty.
    #[error("SSL_CERT_FILE is empty")]
    Empty,
    /// The file cannot be read.
    #[error("SSL_CERT_FILE names {}, which cannot be read: {kind}", EscapedText(.path))]
    Unreadable {
        /// The file.
        path: String,
        /// The error of the operating system.
        kind: io::ErrorKind,
    },
    /// The file has no PEM certificate.
    #[error("SSL_CERT_FILE names {}, which has no PEM certificate", EscapedText(.path))]
    NoCertificate {
        /// The file.
        path: String,
    },
}
