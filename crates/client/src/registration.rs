//! Client registration, credentials and keys.

pub(crate) mod authentication_method;
pub(crate) mod client_key;
pub(crate) mod configuration_endpoint;
pub(crate) mod credentials;
pub(crate) mod dynamic;
pub(crate) mod registered;

pub use self::{
    authentication_method::TokenAuthMethod,
    client_key::{ClientKey, ClientKeyError},
    credentials::{ClientAuthentication, ClientCredentials, ClientInformation},
    dynamic::client_id_metadata_document,
};
