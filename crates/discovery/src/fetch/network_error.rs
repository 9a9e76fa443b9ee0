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
        Self {
            failure,
            certificate: None,
            cause: None,
        }
    }

    /// Creates an error with a cause.
    ///
    /// The cause must not contain the URL, whose query can be secret: logs show causes. This is not
    /// checked, because the error does not know the URL.
    pub fn caused_by(failure: NetworkFailure, cause: impl Error + Send + Sync + 'static) -> Self {
        Self {
            failure,
            certificate: None,
            cause: Some(Arc::new(cause)),
        }
    }

    /// Creates the error of a TLS handshake that failed because of the peer's certificate. As in
    /// [`caused_by`](Self::caused_by), the cause must not contain the URL.
    pub fn tls(problem: CertificateProblem, cause: impl Error + Send + Sync + 'static) -> Self {
        Self {
            certificate: Some(problem),
            ..Self::caused_by(NetworkFailure::Tls, cause)
        }
    }

    /// Returns the failure of the same request through a proxy: a failure before the TLS handshake
    /// is the proxy's. With an https proxy, a failure of TLS can be that of the proxy or of the
    /// host, which are not distinguished.
    #[cfg(feature = "reqwest")]
    pub(crate) fn through_proxy(mut self) -> Self {
        if matches!(
            self.failure,
            NetworkFailure::Resolve | NetworkFailure::Connect
        ) {
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
        f.debug_struct("NetworkError")
            .field("failure", &self.failure)
            .field("certificate", &self.certificate)
            .field("cause", &self.cause)
            .finish()
    }
}

impl Error for NetworkError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause
            .as_ref()
            .map(|cause| &**cause as &(dyn Error + 'static))
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
    /// It is one of a certificate authority, not of a server (RFC 5280 section 4.2.1.9), as `openssl
    /// req -x509` creates it.
    OfAuthority,
    /// Another problem, such as a revoked certificate.
    Other,
}

/// The step of a network request that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkFailure {
    /// The host name cannot be resolved: it has no address, or no resolver responds.
    #[error("the host name cannot be resolved")]
    Resolve,
    /// No address accepted the connection.
    #[error("cannot connect")]
    Connect,
    /// The egress proxy cannot be reached, or it did not connect to the host.
    #[error("the proxy cannot be reached, or it refused to connect to the host")]
    Proxy,
    /// The TLS handshake failed, for example because of the certificate. With an https proxy, it
    /// can be the one with the proxy.
    #[error("the TLS handshake failed")]
    Tls,
    /// The server does not speak TLS on this port. With an https proxy, it can be the proxy that
    /// does not.
    #[error("the server does not speak TLS on this port; it may speak plain http")]
    NotTls,
    /// The connection was interrupted, or the response is not HTTP.
    #[error("the connection was interrupted, or the response is not HTTP")]
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

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    const FAILURES: [NetworkFailure; 6] = [
        NetworkFailure::Resolve,
        NetworkFailure::Connect,
        NetworkFailure::Proxy,
        NetworkFailure::Tls,
        NetworkFailure::NotTls,
        NetworkFailure::Interrupted,
    ];

    #[test]
    fn codes_are_stable() {
        let codes = [
            "resolve",
            "connect",
            "proxy",
            "tls",
            "not_tls",
            "interrupted",
        ];
        assert_eq!(
            FAILURES.map(NetworkFailure::code),
            codes
                .map(|code| format!("fetch.{code}"))
                .each_ref()
                .map(|code| &**code)
        );
    }

    #[cfg(feature = "reqwest")]
    #[test]
    fn failures_before_tls_are_the_proxys() {
        use NetworkFailure::{Interrupted, NotTls, Proxy, Tls};
        let proxied = FAILURES.map(|failure| NetworkError::new(failure).through_proxy().failure());
        assert_eq!(proxied, [Proxy, Proxy, Proxy, Tls, NotTls, Interrupted]);
    }

    #[test]
    fn the_cause_and_the_certificate_are_shown() {
        let cause = || io::Error::from(io::ErrorKind::ConnectionReset);
        let error = NetworkError::tls(CertificateProblem::Expired, cause());
        assert_eq!(
            (error.failure(), error.certificate_problem()),
            (NetworkFailure::Tls, Some(CertificateProblem::Expired))
        );
        assert_eq!(
            error.source().map(ToString::to_string),
            Some(cause().to_string())
        );
        assert_eq!(
            error.to_string(),
            "the TLS handshake failed",
            "the cause is only in the source"
        );
        let shown = format!("{error:?}");
        assert_eq!(
            shown,
            "NetworkError { failure: Tls, certificate: Some(Expired), cause: Some(Kind(ConnectionReset)) }"
        );
        let without = NetworkError::new(NetworkFailure::Connect);
        assert!(without.source().is_none() && without.certificate_problem().is_none());
    }
}
