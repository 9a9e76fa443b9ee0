//! [`ProviderTokens`]: the tokens of a provider.

use portcullis_metadata::{Secret, UnixTime};

/// The tokens of a user at a provider. They are never given to a client, an upstream or a log.
/// `Debug` prints no token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderTokens {
    /// The access token, for the provider's user API.
    pub access_token: Option<Secret>,
    /// When the access token expires, if the provider says so. An expired token does not show
    /// whether the user's sign-in has ended.
    pub access_token_expires: Option<UnixTime>,
    /// The refresh token, if the provider gave one.
    pub refresh_token: Option<Secret>,
}
