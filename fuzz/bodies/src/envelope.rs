use http::{HeaderMap, HeaderValue};
use portcullis_mcp::{Envelope, Limits, Revisions, classify, decode_mirrored, encode_mirrored, header};
use serde_json::Value;

/// The input is a message. Another JSON reader finds the method and the name that the envelope found, whichever of
/// two members with one name it takes; whatever the headers say, the message belongs to an era or to none.
pub fn envelope(data: &[u8]) {
    let parsed = Envelope::parse(data, Limits::default());
    if let (Ok(envelope), Ok(message)) = (&parsed, serde_json::from_slice::<Value>(data)) {
        agree(envelope, &message);
    }
    for headers in [HeaderMap::new(), modern_headers(&parsed), legacy_headers()] {
        let _ = classify(parsed.as_ref(), &headers, Revisions::default());
    }
}

fn agree(envelope: &Envelope<'_>, message: &Value) {
    assert_eq!(envelope.method(), message.get("method").and_then(Value::as_str));
    let params = message.get("params");
    if let Some(name) = envelope.name() {
        let held = ["name", "uri"].map(|member| params.and_then(|params| params.get(member)?.as_str()));
        assert!(held.contains(&Some(name)), "{name:?}");
        assert_eq!(decode_mirrored(&encode_mirrored(name)).as_deref(), Ok(name));
    }
}

fn modern_headers<E>(parsed: &Result<Envelope<'_>, E>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::PROTOCOL_VERSION, HeaderValue::from_static("2026-07-28"));
    let Ok(envelope) = parsed else { return headers };
    if let Some(method) = envelope.method() {
        headers.insert(header::METHOD, encode_mirrored(method));
    }
    if let Some(name) = envelope.name() {
        headers.insert(header::NAME, encode_mirrored(name));
    }
    headers
}

fn legacy_headers() -> HeaderMap {
    HeaderMap::from_iter([(header::PROTOCOL_VERSION, HeaderValue::from_static("2025-06-18"))])
}
