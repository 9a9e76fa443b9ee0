//! The DELETE request that ends a session at the upstream.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};
use portcullis_guard::RequestId;
use tokio::time::timeout;

use super::service::HttpUpstream;
use crate::request::InboundRequest;

/// The time limit of one request. Sessions end one after another, so that an upstream that does not
/// respond delays the rest.
const END_SESSION_TIMEOUT: Duration = Duration::from_secs(10);

impl HttpUpstream {
    /// Ends a session at the upstream with a DELETE request, for a session that ended here without
    /// a request of its client: by expiry or shutdown.
    ///
    /// `backend` is the upstream's own session identifier, and `header` the header that carries it.
    /// Returns the status of the response: 502, 503 or 504 if there is none within 10 s, and 400
    /// without a request if `backend` is not a valid header value.
    pub async fn end_session(&self, header: HeaderName, backend: &[u8]) -> StatusCode {
        let Ok(backend) = HeaderValue::from_bytes(backend) else {
            return StatusCode::BAD_REQUEST;
        };
        let inbound = InboundRequest {
            method: Method::DELETE,
            version: Version::HTTP_11,
            query: None,
            headers: HeaderMap::from_iter([(header, backend)]),
            body: Bytes::new(),
            identity: None,
            request_id: RequestId::generate().to_header_value(),
            client_address: None,
            trace: None,
        };
        match timeout(END_SESSION_TIMEOUT, self.forward(inbound, None, None)).await {
            Ok(Ok(response)) => response.status(),
            Ok(Err(infallible)) => match infallible {},
            Err(_) => StatusCode::GATEWAY_TIMEOUT,
        }
    }
}
