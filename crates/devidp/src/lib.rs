//! A small, real OAuth 2.1 authorization server for development and tests.

mod app;
mod authorize;
mod client_authentication;
mod clients;
mod code;
mod consent;
mod endpoint;
mod error;
mod form;
mod handle;
mod keys;
mod metadata;
mod oauth_error;
mod page;
mod redirect;
mod registration;
mod respond;
mod routes;
mod server;
mod settings;
mod tables;
mod token;
mod user;

pub use error::DevIdpError;
pub use server::DevIdp;
pub use settings::{DevIdpSettings, SigningAlgorithm, TokenHeaderType};
