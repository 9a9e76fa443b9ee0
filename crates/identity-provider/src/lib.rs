#![doc = include_str!("../README.md")]

mod error;
mod identity;
mod kind;
mod settings;
mod tokens;

pub use error::ProviderError;
pub use identity::Identity;
pub use kind::ProviderKind;
pub use settings::ProviderSettings;
pub use tokens::ProviderTokens;
