use http::{HeaderMap, HeaderValue, header::CONTENT_TYPE};

/// Returns whether a message's body is an event stream (`text/event-stream`, WHATWG HTML section
/// 9.2).
///
/// This is [`has_media_type`] for `text/event-stream`. A message with several media types is an
/// event stream if one of them is. Check for an event stream before other types.
pub fn is_event_stream(headers: &HeaderMap) -> bool {
    has_media_type(headers, "text/event-stream")
}

/// Returns whether `Content-Type` names this media type (RFC 9110 section 8.3.1). Letter case and
/// parameters are ignored.
///
/// `Content-Type` is a singleton field, but recipients differ in which of several values they use.
/// Every value counts, in repeated fields and in a comma-separated list. A comma or semicolon in a
/// quoted string does not separate. A value that is not a media type matches nothing.
pub fn has_media_type(headers: &HeaderMap, media_type: &str) -> bool {
    let is_named = |value: &[u8]| essence(value).eq_ignore_ascii_case(media_type.as_bytes());
    let mut fields = headers
        .get_all(CONTENT_TYPE)
        .iter()
        .map(HeaderValue::as_bytes);
    fields.any(|field| {
        // Most fields are shorter than the type of an event stream.
        field.len() >= media_type.len()
            && if memchr::memchr(b',', field).is_some() {
                list_members(field).any(is_named)
            } else {
                is_named(field)
            }
    })
}

/// The members of a comma-separated list.
fn list_members(field: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut is_quoted = false;
    let mut is_escaped = false;
    field.split(move |byte| {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_quoted,
            b'"' => is_quoted = !is_quoted,
            _ => {}
        }
        *byte == b',' && !is_quoted
    })
}

/// The type and subtype of a media type, without its parameters.
fn essence(value: &[u8]) -> &[u8] {
    let end = memchr::memchr(b';', value).unwrap_or(value.len());
    value[..end].trim_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L3: an event stream is recognized with any parameters, in any letter case, and beside other
    /// values.
    #[test]
    fn event_streams_are_recognized() {
        for (fields, expected) in [
            (&[b"text/event-stream".as_slice()][..], true),
            (&[b"Text/Event-Stream ; charset=utf-8"], true),
            (&[b"text/event-stream; x=\"\xe9\""], true),
            (&[b"text/event-stream;"], true),
            (&[b"text/event-stream; x=\""], true),
            (&[b"application/json", b"text/event-stream"], true),
            (&[b"text/event-stream", b"application/json"], true),
            (&[b"application/json, text/event-stream"], true),
            (&[b"application/json; x=\"a\", text/event-stream"], true),
            (&[b"text/event-stream,"], true),
            (&[b"text/event-streams"], false),
            (&[b"text/event-stream charset=utf-8"], false),
            (&[b"\"text/event-stream\""], false),
            (&[b"application/json; x=\"a, text/event-stream\""], false),
            (&[b"application/json; x=\"\\\", text/event-stream\""], false),
            (&[b"application/json; x=text/event-stream"], false),
            (&[b"application/json"], false),
            (&[b""], false),
            (&[], false),
        ] {
            let mut headers = HeaderMap::new();
            for field in fields {
                headers.append(CONTENT_TYPE, HeaderValue::from_bytes(field).unwrap());
            }
            assert_eq!(is_event_stream(&headers), expected, "{headers:?}");
        }
    }

    #[test]
    fn other_media_types_are_recognized() {
        let headers = HeaderMap::from_iter([(
            CONTENT_TYPE,
            HeaderValue::from_static("Application/JSON; v=1"),
        )]);
        assert!(has_media_type(&headers, "application/json"));
        assert!(!has_media_type(&headers, "application/js"));
    }
}
