use portcullis_discovery::FetchError;
use portcullis_metadata::DocumentError;

/// The code of [`CallError::Rejected`].
pub(crate) const CLIENT_REJECTED: &str = "introspection.client_rejected";

/// Why an introspection call failed. It is logged only and contains no part of the token. URLs have
/// no query and no user information.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// The fetch failed.
    #[error("the call of {url} failed: {error}")]
    Fetch { url: String, error: FetchError },
    /// The response's status is not 200.
    #[error("the introspection endpoint {url} answered with status {status}")]
    Status { url: String, status: u16 },
    /// The endpoint rejects this client.
    #[error(
        "the introspection endpoint {url} rejects this server's client (status {status}); check `client_id`, `client_secret` and \
         `introspection_auth` of the issuer, and that the issuer lets this client introspect tokens"
    )]
    Rejected { url: String, status: u16 },
    /// The response is not an introspection response.
    #[error("the response of the introspection endpoint {url} cannot be used: {error}")]
    Document { url: String, error: DocumentError },
    /// The fetcher exceeded its deadline.
    #[error("the call of {url} failed: the response was not complete in time")]
    Timeout { url: String },
    /// The endpoint was removed before the call, because the metadata stopped naming a usable one.
    #[error("the introspection endpoint is no longer known")]
    NoEndpoint,
    /// The operating system gave no random bytes.
    #[error("the operating system gave no random bytes")]
    Random,
    /// The maximum number of calls is running.
    #[error("too many introspection calls are running")]
    Busy,
}

impl CallError {
    /// Returns whether the endpoint rejects this client, independently of the token.
    pub(crate) fn is_client_rejected(&self) -> bool {
        matches!(self, Self::Rejected { .. })
    }

    /// Returns a stable code for logs and readiness.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Fetch { error, .. } => error.code(),
            Self::Status { .. } => "introspection.status",
            Self::Rejected { .. } => CLIENT_REJECTED,
            Self::Document { .. } => "introspection.document",
            Self::Random => "introspection.random",
            Self::Timeout { .. } => "introspection.timeout",
            Self::NoEndpoint => "introspection.no_endpoint",
            Self::Busy => "introspection.busy",
        }
    }
}
