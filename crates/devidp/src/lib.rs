#![doc = include_str!("../README.md")]

mod app;
mod authentication;
mod authorize;
mod clients;
mod config;
mod control;
mod device;
mod error;
mod github_api;
mod handle;
mod keys;
mod logout;
mod metadata;
mod providers;
mod server;
mod settings;
mod store;
mod tables;
mod token;
mod users;

pub use authentication::mode::ClientAuthenticationMode;
pub use clients::settings::{ClientAuthentication, ClientSettings, ClientSettingsError};
pub use control::{
    Control,
    faults::{Fault, FaultError, FaultKind, FaultPoint},
    token_faults::TokenFault,
};
pub use error::DevIdpError;
pub use keys::OldKeys;
pub use logout::LogoutError;
pub use portcullis_authorization_server::client::GrantType;
pub use providers::{Difference, Provider};
pub use server::DevIdp;
pub use settings::{
    DevIdpSettings, DocumentFetch, Registration, SigningAlgorithm, TokenHeaderType, TrustedIssuer,
};
pub use users::UserSettings;
