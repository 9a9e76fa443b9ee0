/// What a client can get tokens with (RFC 7591 section 2, `grant_types`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GrantType {
    /// `authorization_code`: a person allowed it at the browser (RFC 6749 section 4.1).
    AuthorizationCode,
    /// `refresh_token`: an earlier grant goes on (RFC 6749 section 6).
    RefreshToken,
    /// `client_credentials`: the client acts for itself (RFC 6749 section 4.4).
    ClientCredentials,
    /// `urn:ietf:params:oauth:grant-type:jwt-bearer`: another issuer vouches for somebody (RFC 7523 section 2.1).
    JwtBearer,
    /// `urn:ietf:params:oauth:grant-type:token-exchange`: an identity assertion becomes an authorization grant for
    /// another authorization server (RFC 8693).
    TokenExchange,
}

impl GrantType {
    pub(crate) const ALL: [Self; 5] =
        [Self::AuthorizationCode, Self::RefreshToken, Self::ClientCredentials, Self::JwtBearer, Self::TokenExchange];

    pub(crate) const WITHOUT_ASSERTIONS: [Self; 3] =
        [Self::AuthorizationCode, Self::RefreshToken, Self::ClientCredentials];

    /// The grant type with this name, where it is one of these.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|grant| grant.as_str() == name)
    }

    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AuthorizationCode => "authorization_code",
            Self::RefreshToken => "refresh_token",
            Self::ClientCredentials => "client_credentials",
            Self::JwtBearer => "urn:ietf:params:oauth:grant-type:jwt-bearer",
            Self::TokenExchange => "urn:ietf:params:oauth:grant-type:token-exchange",
        }
    }
}
