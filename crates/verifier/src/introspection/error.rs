use portcullis_discovery::FetchError;
use portcullis_metadata::DocumentError;

/// The code of [`CallError::Rejected`].
pub(crate) const CLIENT_REJECTED: &str = "introspection.client_rejected";

/// Why an issuer did not say whether a token counts. For the log alone; it holds nothing of the token.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// There was no answer.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The answer's status is not 200.
    #[error("the introspection endpoint answered with status {status}")]
    Status { status: u16 },
    /// The endpoint does not accept this client.
    #[error(
        "the introspection endpoint rejects this server's client (status {status}); check `client_id`, `client_secret` and \
         `introspection_auth` of the issuer, and that the issuer lets this client introspect tokens"
    )]
    Rejected { status: u16 },
    /// The answer is no introspection response.
    #[error("the introspection endpoint's answer cannot be used: {0}")]
    Document(#[from] DocumentError),
    /// The fetcher did not keep to its deadline.
    #[error("no complete answer in time")]
    Timeout,
    /// The runtime that calls is shutting down.
    #[error("the call was interrupted")]
    Interrupted,
    /// The operating system gave no random bytes.
    #[error("the operating system gave no random bytes")]
    Random,
    /// As many calls as may run at once are under way.
    #[error("too many introspection calls are under way")]
    Busy,
}

impl CallError {
    /// Whether the endpoint does not accept this client. The token plays no part.
    pub(crate) fn is_rejection(&self) -> bool {
        matches!(self, Self::Rejected { .. })
    }

    /// The stable reason code, for logs and readiness.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Fetch(error) => error.code(),
            Self::Status { .. } => "introspection.status",
            Self::Rejected { .. } => CLIENT_REJECTED,
            Self::Document(_) => "introspection.document",
            Self::Random => "introspection.random",
            Self::Timeout => "introspection.timeout",
            Self::Interrupted => "introspection.interrupted",
            Self::Busy => "introspection.busy",
        }
    }
}
