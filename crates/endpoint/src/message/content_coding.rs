//! The content coding of a response (RFC 9110 section 8.4).

use http::{HeaderMap, HeaderValue, header::CONTENT_ENCODING};

/// Returns whether the body is encoded, so that its bytes are not those of its media type.
pub(crate) fn is_encoded(headers: &HeaderMap) -> bool {
    let is_identity = |value: &HeaderValue| {
        value
            .as_bytes()
            .trim_ascii()
            .eq_ignore_ascii_case(b"identity")
    };
    !headers.get_all(CONTENT_ENCODING).iter().all(is_identity)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_identity_is_not_encoded() {
        for (coding, expected) in [
            ("identity", false),
            (" Identity", false),
            ("gzip", true),
            ("identity, gzip", true),
        ] {
            let headers =
                HeaderMap::from_iter([(CONTENT_ENCODING, HeaderValue::from_static(coding))]);
            assert_eq!(is_encoded(&headers), expected, "{coding}");
        }
        assert!(!is_encoded(&HeaderMap::new()));
    }
}
