use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};
use portcullis_guard::RequestId;
use tokio::time::timeout;

use crate::{HttpUpstream, request::Inbound};

/// Nobody waits for the answer, and no stream opens with it: a silent upstream must not hold up the sessions after it.
const PATIENCE: Duration = Duration::from_secs(10);

impl HttpUpstream {
    /// Tells the upstream that one of its sessions is over, by a DELETE of this gateway's own: for sessions that ended
    /// here, by time or shutdown, without a client asking for it.
    ///
    /// `backend` is the identifier that the upstream itself gave out, sent in `header`. Gives the status of the answer,
    /// 502 or 504 when there was none, at the latest after 10 s; 400 without asking when the identifier cannot stand in a header.
    pub async fn end_session(&self, header: HeaderName, backend: &[u8]) -> StatusCode {
        let Ok(backend) = HeaderValue::from_bytes(backend) else { return StatusCode::BAD_REQUEST };
        let inbound = Inbound {
            method: Method::DELETE,
            version: Version::HTTP_11,
            query: None,
            headers: HeaderMap::from_iter([(header, backend)]),
            body: Bytes::new(),
            identity: None,
            request_id: RequestId::generate().to_header_value(),
            client_address: None,
        };
        match timeout(PATIENCE, self.answer(inbound)).await {
            Ok(Ok(response)) => response.status(),
            Ok(Err(infallible)) => match infallible {},
            Err(_) => StatusCode::GATEWAY_TIMEOUT,
        }
    }
}
