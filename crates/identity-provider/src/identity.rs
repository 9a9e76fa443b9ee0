//! [`Identity`]: who the user is.

use portcullis_metadata::UnixTime;
use serde_json::{Map, Value};

/// A user that a provider identified.
#[derive(Clone, Debug, PartialEq)]
pub struct Identity {
    /// The `sub` for tokens of this server: the name of the provider, an underscore, and a hash of
    /// the identifiers that the provider never assigns again. It contains no e-mail address or login.
    pub subject: Box<str>,
    /// The identifier of the user at the provider, which a logout token names as `sub`.
    pub provider_subject: Box<str>,
    /// The identifier of the session at the provider (`sid`), if it has one.
    pub provider_session: Option<Box<str>>,
    /// When the user signed in at the provider, or when the provider identified the user.
    pub auth_time: UnixTime,
    /// What the provider says about the user, for rules and for mapped claims.
    pub claims: Map<String, Value>,
}
