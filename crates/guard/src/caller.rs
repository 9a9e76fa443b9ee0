use std::net::SocketAddr;

use portcullis_verifier::{Principal, VerifiedToken};

use crate::RequestId;

/// Who calls: the one thing that the guard puts into the extensions of a request that it hands on.
///
/// Only the guard makes it, so that whoever finds one knows that the request was judged. It never holds the
/// token.
#[derive(Clone, Debug)]
pub struct Caller {
    verified: Option<VerifiedToken>,
    request_id: RequestId,
}

impl Caller {
    pub(crate) fn new(verified: Option<VerifiedToken>, request_id: RequestId) -> Self {
        Self { verified, request_id }
    }

    /// Whom the token speaks for; `None` only where authentication is [off](crate::Authentication::Off).
    pub fn principal(&self) -> Option<&Principal> {
        self.verified.as_ref().map(VerifiedToken::principal)
    }

    /// The evidence that the token was verified; `None` only where authentication is off.
    pub fn verified(&self) -> Option<&VerifiedToken> {
        self.verified.as_ref()
    }

    /// The correlation id of this request.
    pub fn request_id(&self) -> &RequestId {
        &self.request_id
    }
}

/// The address of the connection's other end: a request extension that a server sets, for the
/// [`Decision`](crate::Decision).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// The reason code of a refusal that an inner service made: a response extension that the guard takes off and
/// reports in its [`Decision`](crate::Decision). It never reaches the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusalCode(pub &'static str);
