//! [`NetworkError`]: which step of a network request failed, and why.

use std::{error::Error, fmt, sync::Arc};

/// A network failure and its cause.
#[derive(Clone)]
pub struct NetworkError {
    failure: NetworkFailure,
    certificate: Option<CertificateProblem>,
    cause: Option<Arc<dyn Error + Send + Sync>>,
}

impl NetworkError {
    /// Creates an error without a cause.
    pub fn new(failure: NetworkFailure) -> Self {
        Self { failure, certificate: None, cause: None }
    }

    /// Creates an error with a cause, which must not contain the URL.
    pub fn caused_by(failure: NetworkFailure, cause: impl Error + Send + Sync + 'static) -> Self {
        Self { failure, certificate: None, cause: Some(Arc::new(cause)) }
    }

    /// Adds the problem of the peer's certificate.
    #[must_use]
    pub fn with_certificate_problem(mut self, problem: CertificateProblem) -> Self {
        self.certificate = Some(problem);
        self
    }

    /// Returns the failure of the same request through a proxy: a failure before the TLS handshake is the proxy's.
    #[cfg(feature = "reqwest")]
    pub(crate) fn through_proxy(mut self) -> Self {
        if matches!(self.failure, NetworkFailure::Resolve | NetworkFailure::Connect) {
            self.failure = NetworkFailure::Proxy;
        }
        self
    }

    /// Returns the problem of the peer's certificate, if that is why the TLS handshake failed.
    pub fn certificate_problem(&self) -> Option<CertificateProblem> {
        self.certificate
    }

    /// Returns the step that failed.
    pub fn failure(&self) -> NetworkFailure {
        self.failure
    }
}

impl fmt::Display for NetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.failure.fmt(f)
    }
}

impl fmt::Debug for NetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NetworkError").field(&self.failure).field(&self.cause).finish()
    }
}

impl Error for NetworkError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_ref().map(|cause| &**cause as &(dyn Error + 'static))
    }
}

/// Why a peer's certificate was rejected (RFC 5280 section 6, RFC 9525).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CertificateProblem {
    /// Its issuer is not trusted, or an intermediate certificate is missing.
    UnknownIssuer,
    /// It has expired.
    Expired,
    /// It is not valid yet.
    NotYetValid,
    /// It is for other names than the URL's host.
    WrongName,
    /// Another problem, such as a revoked certificate.
    Other,
}

/// The step of a network request that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkFailure {
    /// The host name has no address.
    #[error("the host name cannot be resolved")]
    Resolve,
    /// No address accepted the connection.
    #[error("cannot connect")]
    Connect,
    /// The egress proxy cannot be reached, or it did not connect to the host.
    #[error("the proxy cannot be reached, or it refused to connect to the host")]
    Proxy,
    /// The TLS handshake failed, for example because of the certificate.
    #[error("the TLS handshake failed")]
    Tls,
    /// The server does not speak TLS on this port.
    #[error("the server does not speak TLS on this port; it may speak plain http")]
    NotTls,
    /// The connection was interrupted, or the response is not HTTP.
    #[error("the connection was interrupted")]
    Interrupted,
}

impl NetworkFailure {
    /// Returns a stable code for logs and metrics.
    pub fn code(self) -> &'static str {
        match self {
            Self::Resolve => "fetch.resolve",
            Self::Connect => "fetch.connect",
            Self::Proxy => "fetch.proxy",
            Self::Tls => "fetch.tls",
            Self::NotTls => "fetch.not_tls",
            Self::Interrupted => "fetch.interrupted",
        }
    }
}
