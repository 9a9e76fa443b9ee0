//! [`Session`]: the tokens that follow from one approval.

use portcullis_authorization_server::authorization::Thumbprint;
use portcullis_metadata::{Scopes, UnixTime};

use crate::authorize::codes::Approval;

/// The session of an approval, which refresh tokens continue. Its identifier is the `sid` of its
/// access tokens.
#[derive(Clone)]
pub(crate) struct Session {
    /// A random identifier.
    pub(crate) id: Box<str>,
    pub(crate) client_id: Box<str>,
    pub(crate) subject: Box<str>,
    pub(crate) auth_time: UnixTime,
    pub(crate) scopes: Scopes,
    pub(crate) audience: Option<Box<str>>,
    /// The DPoP key to which a public client's refresh tokens are bound (RFC 9449 section 5).
    pub(crate) key: Option<Thumbprint>,
}

impl Session {
    pub(crate) fn new(approval: &Approval, key: Option<Thumbprint>) -> Self {
        Self {
            id: approval.session_id.clone(),
            client_id: approval.request.client_id.clone(),
            subject: approval.subject.clone(),
            auth_time: approval.auth_time,
            scopes: approval.request.scopes.clone(),
            audience: approval.request.audience.clone(),
            key,
        }
    }
}
