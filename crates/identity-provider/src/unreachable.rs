//! [`UnreachableCause`]: why a provider cannot be reached.

use std::{error::Error, fmt, sync::Arc};

use portcullis_metadata::EscapedText;

/// The maximum number of characters of the text of a cause.
const MAX_TEXT: usize = 300;

/// Why a provider cannot be reached. Two causes with the same code are equal.
#[derive(Clone, Debug)]
pub struct UnreachableCause {
    code: &'static str,
    /// What the network or TLS reports, such as `connection refused`.
    text: Option<Arc<str>>,
}

impl UnreachableCause {
    /// A cause with the text of an error and of its innermost source, which is that of the system
    /// or of TLS.
    pub(crate) fn new(code: &'static str, error: &(dyn Error + 'static)) -> Self {
        let sources = std::iter::successors(error.source(), |error| (*error).source());
        let text = match sources.last() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
        Self {
            code,
            text: Some(EscapedText::first(&text, MAX_TEXT).to_string().into()),
        }
    }

    /// Returns a stable code, such as `fetch.timeout`.
    pub const fn code(&self) -> &'static str {
        self.code
    }
}

impl From<&'static str> for UnreachableCause {
    fn from(code: &'static str) -> Self {
        Self { code, text: None }
    }
}

impl fmt::Display for UnreachableCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text.as_deref().unwrap_or(self.code))
    }
}

impl PartialEq for UnreachableCause {
    fn eq(&self, other: &Self) -> bool {
        self.code == other.code
    }
}

impl Eq for UnreachableCause {}

#[cfg(test)]
mod tests {
    use std::io;

    use portcullis_discovery::{FetchError, NetworkError, NetworkFailure};

    use crate::ProviderError;

    /// The text names what the system reports, and has a bounded length.
    #[test]
    fn the_cause_of_the_system_is_named() {
        let network = |cause: String| {
            let cause = io::Error::other(cause);
            let error = NetworkError::caused_by(NetworkFailure::Connect, cause);
            ProviderError::from(FetchError::Network(error))
        };
        let refused = network("connection refused".to_owned());
        assert_eq!(refused.code(), "provider.unreachable");
        assert_eq!(refused.cause(), Some("fetch.connect"));
        let text = refused.to_string();
        assert!(text.ends_with(": connection refused"), "{text}");
        assert!(
            text.starts_with("the identity provider cannot be reached: "),
            "{text}"
        );
        assert_eq!(refused, network("other".to_owned()));

        let text = network("a\u{1b}".repeat(10_000)).to_string();
        assert!(
            !text.contains('\u{1b}') && text.len() < 3_000,
            "{}",
            text.len()
        );
    }
}
