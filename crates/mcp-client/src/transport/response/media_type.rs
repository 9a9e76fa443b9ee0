//! [`MediaType`]: what the body of a response contains.

use http::HeaderMap;
use portcullis_metadata::syntax::{has_media_type, is_event_stream};

/// The media type of a response, as far as the MCP transports distinguish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaType {
    /// `application/json`
    Json,
    /// `text/event-stream`
    EventStream,
    /// Another media type, or none.
    Other,
}

impl MediaType {
    /// Reads `Content-Type`. A response with several media types is an event stream if one of them
    /// is.
    pub fn of(headers: &HeaderMap) -> Self {
        if is_event_stream(headers) {
            Self::EventStream
        } else if has_media_type(headers, "application/json") {
            Self::Json
        } else {
            Self::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, header::CONTENT_TYPE};

    use super::*;

    /// Repeated fields and lists are read as the other parts of the program read them.
    #[test]
    fn several_media_types_are_read() {
        for (fields, expected) in [
            (&["application/json; charset=utf-8"][..], MediaType::Json),
            (&["Text/Event-Stream"], MediaType::EventStream),
            (
                &["application/json", "text/event-stream"],
                MediaType::EventStream,
            ),
            (&["text/html, application/json"], MediaType::Json),
            (&["text/html"], MediaType::Other),
            (&[], MediaType::Other),
        ] {
            let mut headers = HeaderMap::new();
            for field in fields {
                headers.append(CONTENT_TYPE, HeaderValue::from_static(field));
            }
            assert_eq!(MediaType::of(&headers), expected, "{fields:?}");
        }
    }
}
