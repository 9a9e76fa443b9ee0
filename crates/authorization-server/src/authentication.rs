//! Client authentication (RFC 6749 section 2.3), and assertions (RFC 7523).

mod assertion;
mod client_assertion;
mod presented;

pub use assertion::{
    AssertionError, MAX_ASSERTION, MAX_ASSERTION_LIFETIME, is_plain_jwt, use_assertion,
    verify_assertion,
};
pub use presented::{PresentedCredential, check_secret};

use std::sync::Arc;

pub use crate::client::SecretMethod;

use crate::client::Client;

/// A client whose credential was verified.
#[derive(Debug)]
pub struct AuthenticatedClient {
    /// The identifier of the client.
    pub id: Box<str>,
    /// The client.
    pub client: Arc<Client>,
}
