//! The media type of an answer.

use http::{
    HeaderMap,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};

pub(crate) const JSON: &str = "application/json";
pub(crate) const EVENT_STREAM: &str = "text/event-stream";

/// Whether the answer's body is of this media type. Parameters are ignored.
pub(crate) fn is(media_type: &str, headers: &HeaderMap) -> bool {
    let named = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    named.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(media_type)
}

/// Whether the body is encoded, so that it cannot be read as its media type.
pub(crate) fn is_encoded(headers: &HeaderMap) -> bool {
    headers.contains_key(CONTENT_ENCODING)
}
