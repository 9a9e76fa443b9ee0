use bytes::Bytes;
use http::{Extensions, HeaderMap, Method, Request, Uri, Version, request::Parts};
use portcullis_guard::Caller;
use portcullis_mcp::Era;

use crate::AdmittedBody;

/// A request that was judged in every way: evidence for the inner service, which takes nothing else.
///
/// Only the endpoint makes it. The body is exactly the bytes that were judged (nothing for GET and DELETE); the
/// headers hold neither the client's `Authorization`, nor `Connection` and what that names, nor the length and framing
/// of the body as it came in; and the session header, where there is one, holds the identifier that the inner service
/// itself gave out.
#[derive(Debug)]
pub struct Admitted {
    parts: Parts,
    body: Bytes,
    caller: Caller,
    era: Era,
}

impl Admitted {
    pub(crate) fn new(parts: Parts, body: Bytes, caller: Caller, era: Era) -> Self {
        Self { parts, body, caller, era }
    }

    /// POST, GET or DELETE.
    pub fn method(&self) -> &Method {
        &self.parts.method
    }

    /// The request's target as it came in.
    pub fn uri(&self) -> &Uri {
        &self.parts.uri
    }

    /// The query, without the question mark. It never holds an `access_token`.
    pub fn query(&self) -> Option<&str> {
        self.parts.uri.query()
    }

    /// The HTTP version that the client speaks.
    pub fn version(&self) -> Version {
        self.parts.version
    }

    /// The headers. Hop-by-hop ones that `Connection` did not name, and copies of a gateway's own, are still there.
    pub fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    /// What servers and outer layers attached, such as [`Peer`](portcullis_guard::Peer). A request that opens a session
    /// has the [`CapacityPermit`](portcullis_session::CapacityPermit) for it: whoever goes on with it when the client has gone keeps
    /// that, so that the inner service's sessions stay as few as the limits allow.
    pub fn extensions(&self) -> &Extensions {
        &self.parts.extensions
    }

    /// The judged bytes. Clones share them, and count against the budget until the last is dropped.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// Who calls.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Which rules of the protocol the request follows. A legacy version is that of the header; without a header,
    /// that of the session, where it is known.
    pub fn era(&self) -> Era {
        self.era
    }

    /// The parts that a gateway builds its own request from.
    pub fn into_parts(self) -> (Parts, Bytes, Caller) {
        (self.parts, self.body, self.caller)
    }

    /// The same as a request, for services that know nothing of this crate; the [`Caller`] is in its extensions.
    pub fn into_request(self) -> Request<AdmittedBody> {
        let Self { mut parts, body, caller, .. } = self;
        parts.extensions.insert(caller);
        Request::from_parts(parts, AdmittedBody::new(body))
    }
}
