#![doc = include_str!("../README.md")]

mod bounded_fetch;
mod endpoints;
mod error;
mod identity;
mod kind;
mod kinds;
mod provider;
mod response;
mod settings;
mod settings_error;
mod subject;
mod tenant;
mod token_error;
mod tokens;
mod unreachable;

pub use error::ProviderError;
pub use identity::{Identity, OmittedClaim};
pub use kind::ProviderKind;
pub use kinds::Quirk;
pub use portcullis_verifier::LogoutToken;
pub use provider::{Callback, IdentityProvider, SignInRequest};
pub use response::ProviderResponse;
pub use settings::{ClientAuthentication, ProviderSettings};
pub use settings_error::ProviderSettingsError;
pub use tokens::ProviderTokens;
pub use unreachable::UnreachableCause;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
