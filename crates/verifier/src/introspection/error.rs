use portcullis_discovery::FetchError;
use portcullis_metadata::DocumentError;

/// Why an issuer did not say whether a token counts. For the log alone; it holds nothing of the token.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// There was no answer.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The answer's status is not 200.
    #[error("the introspection endpoint answered with status {status}")]
    Status { status: u16 },
    /// The answer is no introspection response.
    #[error("the introspection endpoint's answer cannot be used: {0}")]
    Document(#[from] DocumentError),
    /// The fetcher did not keep to its deadline.
    #[error("no complete answer in time")]
    Timeout,
    /// The runtime that calls is shutting down.
    #[error("the call was interrupted")]
    Interrupted,
    /// As many calls as may run at once are under way.
    #[error("too many introspection calls are under way")]
    Busy,
}

impl CallError {
    /// The stable reason code, for logs and readiness.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Fetch(error) => error.code(),
            Self::Status { .. } => "introspection.status",
            Self::Document(_) => "introspection.document",
            Self::Timeout => "introspection.timeout",
            Self::Interrupted => "introspection.interrupted",
            Self::Busy => "introspection.busy",
        }
    }
}
