//! [`ProviderTokens`]: the tokens of a provider.

use portcullis_metadata::Secret;

/// The tokens of a user at a provider. They are never given to a client, an upstream or a log.
/// `Debug` prints no token.
#[derive(Clone, Debug, Default)]
pub struct ProviderTokens {
    /// The access token, for the provider's user API.
    pub access_token: Option<Secret>,
    /// The refresh token, if the provider gave one.
    pub refresh_token: Option<Secret>,
}
