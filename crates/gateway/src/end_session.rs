use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};
use portcullis_guard::RequestId;

use crate::{HttpUpstream, request::Inbound};

impl HttpUpstream {
    /// Tells the upstream that one of its sessions is over, by a DELETE of this gateway's own: for sessions that ended
    /// here, by time or shutdown, without a client asking for it.
    ///
    /// `backend` is the identifier that the upstream itself gave out, sent in `header`. Gives the status of the answer,
    /// 502 or 504 when there was none; 400 without asking when the identifier cannot stand in a header.
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
            peer: None,
        };
        match self.answer(inbound).await {
            Ok(response) => response.status(),
            Err(infallible) => match infallible {},
        }
    }
}
