//! Client metadata, registration and authentication.

mod id_document;
mod metadata;
mod registration;
mod secret_basic;

pub use id_document::{ClientDocumentError, ClientIdMetadataDocument, ClientIdUrl};
pub use metadata::ClientMetadata;
pub use registration::{ClientRegistrationRequest, ClientRegistrationResponse, RegistrationError};
pub use secret_basic::client_secret_basic;
