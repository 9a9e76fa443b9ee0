//! [`Admitted`]: the evidence that a request has passed all checks.

mod body;

use bytes::Bytes;
use http::{Extensions, HeaderMap, Method, Request, Uri, Version, request::Parts};
use portcullis_guard::Caller;
use portcullis_mcp::{Era, MessageId};

pub use self::body::AdmittedBody;

/// A request that has passed all checks. The inner service accepts nothing else, and only the
/// endpoint creates it.
///
/// - The body consists of exactly the checked bytes. It is empty for GET and DELETE.
/// - The headers contain neither the client's `Authorization`, nor `Connection` and the headers it
///   names, nor the length and framing of the received body.
/// - The session header, if present, contains the identifier that the inner service issued.
#[derive(Debug)]
pub struct Admitted {
    parts: Parts,
    body: Bytes,
    caller: Caller,
    era: Era,
    message_id: Option<MessageId>,
}

impl Admitted {
    /// Only the admission of this crate calls this, after all checks.
    pub(crate) fn new(
        parts: Parts,
        body: Bytes,
        caller: Caller,
        era: Era,
        message_id: Option<MessageId>,
    ) -> Self {
        Self {
            parts,
            body,
            caller,
            era,
            message_id,
        }
    }

    /// Returns the method: POST, GET or DELETE.
    pub fn method(&self) -> &Method {
        &self.parts.method
    }

    /// Returns the request's target as received.
    pub fn uri(&self) -> &Uri {
        &self.parts.uri
    }

    /// Returns the query, without the question mark. It never contains an `access_token`.
    pub fn query(&self) -> Option<&str> {
        self.parts.uri.query()
    }

    /// Returns the HTTP version of the client's request.
    pub fn version(&self) -> Version {
        self.parts.version
    }

    /// Returns the headers. Hop-by-hop headers that `Connection` did not name, and headers with the
    /// names of a gateway's own, are still there.
    pub fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    /// Returns the extensions of servers and outer layers, such as
    /// [`Peer`](portcullis_guard::Peer).
    ///
    /// A request that opens a session has a [`CapacityPermit`](portcullis_session::CapacityPermit).
    /// A service that continues the request after the client has disconnected must keep the permit
    /// meanwhile, so that the inner service has no more sessions than the limits allow.
    pub fn extensions(&self) -> &Extensions {
        &self.parts.extensions
    }

    /// Returns the checked bytes. Clones share them. They count against the budget until the last
    /// clone is dropped.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// Returns the caller.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Returns the era of the request. A legacy version is that of the header or, without a header,
    /// that of the session, if it is known.
    pub fn era(&self) -> Era {
        self.era
    }

    /// Removes and returns the `id` of the JSON-RPC message, for a response of the inner service's
    /// own, such as an error. `None` for GET and DELETE, and for a message without an id.
    pub fn take_message_id(&mut self) -> Option<MessageId> {
        self.message_id.take()
    }

    /// Returns the parts of the request, for a gateway that builds its own.
    pub fn into_parts(self) -> (Parts, Bytes, Caller) {
        (self.parts, self.body, self.caller)
    }

    /// Converts to an HTTP request, for services that do not depend on this crate. The [`Caller`]
    /// is in the extensions.
    pub fn into_request(self) -> Request<AdmittedBody> {
        let Self {
            mut parts,
            body,
            caller,
            ..
        } = self;
        parts.extensions.insert(caller);
        Request::from_parts(parts, AdmittedBody::new(body))
    }
}
