//! The media type of an answer.

use http::{
    HeaderMap, HeaderValue,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};

pub(crate) const JSON: &str = "application/json";
pub(crate) const EVENT_STREAM: &str = "text/event-stream";

/// Whether the body has this media type. Parameters are ignored, also those with bytes outside ASCII.
pub(crate) fn is(media_type: &str, headers: &HeaderMap) -> bool {
    let has_essence = |value: &HeaderValue| {
        let essence = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
        essence.trim_ascii().eq_ignore_ascii_case(media_type.as_bytes())
    };
    headers.get_all(CONTENT_TYPE).iter().any(has_essence)
}

/// Whether the body is encoded, so that it cannot be read as its media type.
pub(crate) fn is_encoded(headers: &HeaderMap) -> bool {
    let is_identity = |value: &HeaderValue| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"identity");
    !headers.get_all(CONTENT_ENCODING).iter().all(is_identity)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L3: an event stream is recognized with any parameters, and when the header is repeated.
    #[test]
    fn media_types_are_recognized() {
        for (values, expected) in [
            (&[b"text/event-stream".as_slice()][..], true),
            (&[b"Text/Event-Stream ; charset=utf-8"], true),
            (&[b"text/event-stream; x=\"\xe9\""], true),
            (&[b"application/json", b"text/event-stream"], true),
            (&[b"text/event-streams"], false),
            (&[b"application/json"], false),
            (&[], false),
        ] {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(CONTENT_TYPE, HeaderValue::from_bytes(value).unwrap());
            }
            assert_eq!(is(EVENT_STREAM, &headers), expected, "{headers:?}");
        }
    }

    #[test]
    fn identity_is_no_encoding() {
        for (coding, expected) in [("identity", false), (" Identity", false), ("gzip", true), ("identity, gzip", true)]
        {
            let headers = HeaderMap::from_iter([(CONTENT_ENCODING, HeaderValue::from_static(coding))]);
            assert_eq!(is_encoded(&headers), expected, "{coding}");
        }
        assert!(!is_encoded(&HeaderMap::new()));
    }
}
