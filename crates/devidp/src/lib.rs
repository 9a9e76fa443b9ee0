//! A small, real OAuth 2.1 authorization server for development and tests.

mod error;
mod server;
mod settings;

pub use error::DevIdpError;
pub use server::DevIdp;
pub use settings::{DevIdpSettings, SigningAlgorithm, TokenHeaderType};
