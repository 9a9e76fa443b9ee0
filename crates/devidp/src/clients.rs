//! Clients: configured, registered, or described by their own metadata document.

pub(crate) mod document;
pub(crate) mod management;
pub(crate) mod registration;
mod registration_token;
pub(crate) mod registry;
pub(crate) mod settings;
