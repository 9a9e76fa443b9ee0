//! [`UnsupportedServer`]: why an authorization server cannot be used.

use portcullis_discovery::UrlPolicyError;

/// Why an authorization server cannot be used for the authorization code flow with PKCE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnsupportedServer {
    /// `response_types_supported` lacks `code`.
    #[error("the authorization server does not support the authorization code flow")]
    NoCodeFlow,
    /// `code_challenge_methods_supported` lacks `S256`.
    #[error("the authorization server does not support PKCE with S256")]
    NoPkce,
    /// `code_challenge_methods_supported` is missing, and the caller does not assume PKCE
    /// ([`ProviderSettings::assume_pkce`](crate::ProviderSettings::assume_pkce)).
    #[error(
        "the authorization server's metadata does not list PKCE methods (code_challenge_methods_supported is \
         missing)"
    )]
    PkceNotAdvertised,
    /// There is no `authorization_endpoint`.
    #[error("the authorization server has no authorization endpoint")]
    NoAuthorizationEndpoint,
    /// There is no `token_endpoint`.
    #[error("the authorization server has no token endpoint")]
    NoTokenEndpoint,
    /// The `authorization_endpoint` must not be opened in a browser.
    #[error("the authorization endpoint is not safe to open: {0}")]
    UnsafeAuthorizationEndpoint(UrlPolicyError),
}

impl UnsupportedServer {
    /// The stable code, for logs and tests.
    pub fn code(self) -> &'static str {
        match self {
            Self::NoCodeFlow => "server.no_code",
            Self::NoPkce => "server.no_pkce",
            Self::PkceNotAdvertised => "server.pkce_not_advertised",
            Self::NoAuthorizationEndpoint => "server.no_authorization_endpoint",
            Self::NoTokenEndpoint => "server.no_token_endpoint",
            Self::UnsafeAuthorizationEndpoint(_) => "server.unsafe_endpoint",
        }
    }
}
