//! [`HttpUpstream`]: the upstream as a tower service.

use std::{
    convert::Infallible,
    fmt,
    sync::Arc,
    task::{Context, Poll},
};

use http::Response;
use portcullis_endpoint::Admitted;
use portcullis_guard::Caller;
use portcullis_mcp::MessageId;
use portcullis_metadata::Clock;
use tower_service::Service;

use super::{future::UpstreamFuture, state::UpstreamState};
use crate::{
    error::UpstreamSettingsError,
    request::{Identity, InboundRequest},
    response::UpstreamBody,
    settings::HttpUpstreamSettings,
};

/// An HTTP/1.1 server behind the gateway, over TCP, TLS or a Unix socket: a `tower` service that
/// takes admitted requests and never fails.
///
/// Its connections belong to the runtime that opened them. Make one instance per runtime; clones
/// share the connections.
///
/// **Request.** These headers are removed:
/// - credentials: `Authorization`, `Proxy-Authorization`, `DPoP`, and `Cookie` unless
///   [`forward_cookies`](HttpUpstreamSettings::forward_cookies) is set, and then only
///   [cookies of the broker](portcullis_metadata::syntax::is_broker_cookie);
/// - hop-by-hop headers (RFC 9110 section 7.6.1) and `Expect`;
/// - the client's copies of the identity headers;
/// - headers that assert the client's address or identity (`Forwarded`, `X-Real-IP`, `Remote-User`
///   and those of other proxies), unless [`forward_headers`](HttpUpstreamSettings::forward_headers)
///   lists them;
/// - headers that name another path or method (`X-Original-URL`, `X-HTTP-Method-Override` and
///   similar);
/// - headers whose names contain characters other than letters, digits and hyphens, except
///   `Mcp-Param-*`.
///
/// The identity headers, `X-Request-Id`, `Via` and, if `public_url` is set, `Forwarded` and
/// `X-Forwarded-*` are added. A valid W3C trace context is forwarded, or replaced if the guard's
/// traces are on. A POST has the `Content-Type` `application/json` and no `Content-Encoding`.
///
/// **Response.** The body is streamed. A 101, a 401, a 407 or a redirect becomes 502. Challenges,
/// addresses of the upstream (`Location`, `Content-Location`, `Refresh`, `Alt-Svc`),
/// `Service-Worker-Allowed`, `Clear-Site-Data`, and `Set-Cookie` are removed; with
/// `forward_cookies`, only `Set-Cookie` for cookies of the broker.
///
/// **Failures** become responses with a generic text and a
/// [`RejectionCode`](portcullis_guard::RejectionCode) in their extensions: 502 with `Retry-After`
/// if the upstream cannot be reached, has a wrong certificate or sends no valid response, 504 after
/// a timeout, and 503 with `Retry-After` at the connection limit. The response to a POST is a
/// JSON-RPC error with the id of the message.
///
/// A request is sent a second time only if none of its bytes were written to an idle connection
/// that the upstream had closed.
#[derive(Clone)]
pub struct HttpUpstream(pub(super) Arc<UpstreamState>);

impl HttpUpstream {
    /// Creates an upstream without connections. `clock` measures how long connections are idle and,
    /// for the caller's [`Decision`](portcullis_guard::Decision), how long the upstream takes. Use
    /// the guard's clock.
    ///
    /// # Errors
    /// Fails if the address or the public URL is not usable, an `https` address has no trusted
    /// certificates, or a header name is not allowed or listed twice.
    pub fn new(
        settings: HttpUpstreamSettings,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, UpstreamSettingsError> {
        Ok(Self(Arc::new(UpstreamState::new(settings, clock)?)))
    }

    /// Forwards a request. A caller's time of the upstream is measured. `message_id` is the id of
    /// the JSON-RPC message in the request, for an error.
    pub(super) fn forward(
        &self,
        inbound: InboundRequest<'_>,
        caller: Option<Caller>,
        message_id: Option<MessageId>,
    ) -> UpstreamFuture {
        UpstreamFuture::new(Arc::clone(&self.0), inbound, caller, message_id)
    }
}

impl Service<Admitted> for HttpUpstream {
    type Response = Response<UpstreamBody>;
    type Error = Infallible;
    type Future = UpstreamFuture;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut admitted: Admitted) -> UpstreamFuture {
        let message_id = admitted.take_message_id();
        let (parts, body, caller) = admitted.into_parts();
        let measured = caller.clone();
        let inbound = InboundRequest {
            method: parts.method,
            version: parts.version,
            query: parts.uri.query(),
            headers: parts.headers,
            body,
            identity: caller.principal().map(Identity::from),
            request_id: caller.request_id().to_header_value(),
            client_address: caller.client_address(),
            trace: caller.trace(),
        };
        self.forward(inbound, Some(measured), message_id)
    }
}

impl fmt::Debug for HttpUpstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpUpstream")
            .field("host", &self.0.target.host)
            .finish_non_exhaustive()
    }
}
