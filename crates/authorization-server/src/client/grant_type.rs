//! [`GrantType`]: the grant types of the server.

/// An OAuth grant type (RFC 7591 section 2, `grant_types`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GrantType {
    /// `authorization_code`: the user consents in the browser (RFC 6749 section 4.1).
    AuthorizationCode,
    /// `refresh_token`: the client renews an earlier grant (RFC 6749 section 6).
    RefreshToken,
    /// `urn:ietf:params:oauth:grant-type:device_code`: the user consents in a browser on another
    /// device (RFC 8628).
    DeviceCode,
    /// `client_credentials`: the client acts on its own behalf (RFC 6749 section 4.4).
    ClientCredentials,
    /// `urn:ietf:params:oauth:grant-type:jwt-bearer`: the client presents an assertion of a trusted
    /// issuer (RFC 7523 section 2.1).
    JwtBearer,
    /// `urn:ietf:params:oauth:grant-type:token-exchange`: the client exchanges an ID token for an
    /// identity assertion for another authorization server (RFC 8693).
    TokenExchange,
}

impl GrantType {
    /// All grant types.
    pub const ALL: [Self; 6] = [
        Self::AuthorizationCode,
        Self::RefreshToken,
        Self::DeviceCode,
        Self::ClientCredentials,
        Self::JwtBearer,
        Self::TokenExchange,
    ];

    /// Parses a grant type. Returns `None` for unknown ones.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|grant| grant.as_str() == name)
    }

    /// Returns the value of the `grant_type` parameter.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AuthorizationCode => "authorization_code",
            Self::RefreshToken => "refresh_token",
            Self::DeviceCode => "urn:ietf:params:oauth:grant-type:device_code",
            Self::ClientCredentials => "client_credentials",
            Self::JwtBearer => "urn:ietf:params:oauth:grant-type:jwt-bearer",
            Self::TokenExchange => "urn:ietf:params:oauth:grant-type:token-exchange",
        }
    }
}
