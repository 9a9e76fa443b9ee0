//! [`FetchError`] and what it consists of.

use std::{error::Error, fmt, sync::Arc};

/// Why a fetch has no answer. No variant holds a header, a body or a query.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The URL policy refuses the address; nothing was sent.
    #[error("refused to connect: {0}")]
    UrlPolicy(UrlPolicyError),
    /// The deadline passed.
    #[error("no complete answer in time")]
    Timeout,
    /// The body is longer than the request allows.
    #[error("the answer is longer than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The network, TLS or HTTP failed on the way.
    #[error(transparent)]
    Network(NetworkError),
    /// The fetcher itself cannot be set up as asked: a CA file that cannot be read, a proxy URL that is none.
    #[error("{0}")]
    Settings(#[from] FetchSettingsError),
}

impl FetchError {
    /// The stable code, for logs and metrics.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UrlPolicy(refusal) => refusal.code(),
            Self::Timeout => "fetch.timeout",
            Self::TooLarge { .. } => "fetch.too_large",
            Self::Network(error) => error.failure().code(),
            Self::Settings(_) => "fetch.settings",
        }
    }

    /// A network failure without a cause to tell.
    pub fn network(failure: NetworkFailure) -> Self {
        Self::Network(NetworkError::new(failure))
    }
}

/// What the URL policy has against an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlPolicyError {
    /// Neither `https`, nor `http` to a loopback host where that is allowed.
    #[error("the URL is neither https nor, where that is allowed, http to a loopback host")]
    Scheme,
    /// The URL carries a user name or password.
    #[error("the URL carries user information")]
    UserInformation,
    /// The host is, or resolves only to, addresses that a peer may not send us to: loopback, private, link-local,
    /// shared, multicast, documentation, cloud metadata and other special ones.
    #[error("the host is or resolves to an address that is not public")]
    Address,
    /// A proxy is in use, which resolves names, and the host is an address or a name of a private network.
    #[error("a proxy is in use, and the host is not a public name but an address or a name of a private network")]
    PrivateName,
}

impl UrlPolicyError {
    /// The stable code, for logs and metrics.
    pub fn code(self) -> &'static str {
        match self {
            Self::Scheme => "fetch.refused.scheme",
            Self::UserInformation => "fetch.refused.user_information",
            Self::Address => "fetch.refused.address",
            Self::PrivateName => "fetch.refused.private_name",
        }
    }
}

/// A failure on the way to the peer or back, with its cause where there is one to tell.
#[derive(Clone)]
pub struct NetworkError {
    failure: NetworkFailure,
    certificate: Option<CertificateProblem>,
    cause: Option<Arc<dyn Error + Send + Sync>>,
}

impl NetworkError {
    /// Without a cause.
    pub fn new(failure: NetworkFailure) -> Self {
        Self { failure, certificate: None, cause: None }
    }

    /// With the cause beneath. It must not name the URL.
    pub fn caused_by(failure: NetworkFailure, cause: impl Error + Send + Sync + 'static) -> Self {
        Self { failure, certificate: None, cause: Some(Arc::new(cause)) }
    }

    /// Adds what is wrong with the peer's certificate.
    #[must_use]
    pub fn with_certificate_problem(mut self, problem: CertificateProblem) -> Self {
        self.certificate = Some(problem);
        self
    }

    /// The same failure of a request through a proxy: what failed before the TLS handshake is the proxy's.
    #[cfg(feature = "reqwest")]
    pub(crate) fn through_proxy(mut self) -> Self {
        if matches!(self.failure, NetworkFailure::Resolve | NetworkFailure::Connect) {
            self.failure = NetworkFailure::Proxy;
        }
        self
    }

    /// At which step it failed.
    pub fn failure(&self) -> NetworkFailure {
        self.failure
    }

    /// What is wrong with the peer's certificate, where that is why the TLS handshake failed.
    pub fn certificate_problem(&self) -> Option<CertificateProblem> {
        self.certificate
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

/// Why a peer's certificate is not accepted (RFC 5280 section 6, RFC 9525).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CertificateProblem {
    /// The certificate authority that issued it is not trusted, or an intermediate certificate was not sent.
    UnknownIssuer,
    /// Its time is over.
    Expired,
    /// Its time has not begun.
    NotYetValid,
    /// It is for other names than the URL's host.
    WrongName,
    /// Another one, such as a revoked certificate.
    Other,
}

/// The step at which the network failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkFailure {
    /// The name has no address.
    #[error("the host name cannot be resolved")]
    Resolve,
    /// No address accepts the connection.
    #[error("cannot connect")]
    Connect,
    /// The proxy cannot be reached, or it did not connect to the host.
    #[error("the proxy cannot be reached, or it refused to connect to the host")]
    Proxy,
    /// The TLS handshake failed: most often a certificate that does not fit.
    #[error("the TLS handshake failed")]
    Tls,
    /// The exchange broke off, or what came is no HTTP.
    #[error("the exchange broke off")]
    Interrupted,
}

impl NetworkFailure {
    /// The stable code, for logs and metrics.
    pub fn code(self) -> &'static str {
        match self {
            Self::Resolve => "fetch.resolve",
            Self::Connect => "fetch.connect",
            Self::Proxy => "fetch.proxy",
            Self::Tls => "fetch.tls",
            Self::Interrupted => "fetch.interrupted",
        }
    }
}

/// Why a fetcher cannot be set up.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchSettingsError {
    /// The CA file cannot be read.
    #[error("cannot read the CA file {path}: {kind}")]
    CaFileUnreadable {
        /// The file.
        path: String,
        /// What the system says.
        kind: std::io::ErrorKind,
    },
    /// The CA file holds no certificate in PEM form, or one that is broken.
    #[error("the CA file {path} holds no usable PEM certificate")]
    CaFileInvalid {
        /// The file.
        path: String,
    },
    /// The proxy URL is not an http or https URL with a host.
    #[error("the proxy is no http or https URL with a host")]
    Proxy,
    /// An environment variable names the proxy, and its value is not a URL of a proxy that is supported. It is reported by
    /// the first fetch that needs the proxy.
    #[error("{variable} is not an http or https URL with a host; correct it, or list the host in NO_PROXY")]
    ProxyVariable {
        /// The variable.
        variable: &'static str,
    },
    /// The user agent has characters that a header cannot carry.
    #[error("the user agent has characters that a header cannot carry")]
    UserAgent,
    /// The machine's own trusted certificates cannot be read.
    #[error("the machine's trusted certificates cannot be read; name a CA file")]
    TrustStore,
}
