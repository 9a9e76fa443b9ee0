//! Feeds input to the parser of JSON-RPC messages.

use http::{HeaderMap, HeaderValue};
use portcullis_mcp::{Envelope, EnvelopeLimits, Revisions, classify, decode_mirrored, encode_mirrored, header};
use serde_json::Value;

/// The input is a message. Another JSON reader finds the method and the names that the envelope found, whichever of
/// two members with one name it takes, and the id that answers a refused message; under any headers the message belongs to an
/// era or to none.
pub fn envelope(data: &[u8]) {
    let parsed = Envelope::parse(data, EnvelopeLimits::default());
    if let (Ok(envelope), Ok(message)) = (&parsed, serde_json::from_slice::<Value>(data)) {
        agree(envelope, &message);
    }
    if let Some(id) = Envelope::refused_id(data) {
        let message: Value = serde_json::from_slice(data).unwrap_or_default();
        // Numbers beyond 64 bits are read as floating-point ones.
        let held = message.get("id").is_some_and(|held| held.is_number() || held.is_string());
        assert!(held || message.is_null(), "{id}");
    }
    for headers in [HeaderMap::new(), modern_headers(&parsed), legacy_headers()] {
        let _ = classify(parsed.as_ref(), &headers, Revisions::default());
    }
}

fn agree(envelope: &Envelope<'_>, message: &Value) {
    assert_eq!(envelope.method(), message.get("method").and_then(Value::as_str));
    for name in envelope.names() {
        assert!(holds(message, name.as_str()), "{name:?}");
        assert_eq!(decode_mirrored(&encode_mirrored(name.as_str())).as_deref(), Ok(name.as_str()));
    }
}

/// Whether a text stands anywhere in a value.
fn holds(value: &Value, text: &str) -> bool {
    match value {
        Value::String(held) => held == text,
        Value::Array(elements) => elements.iter().any(|element| holds(element, text)),
        Value::Object(members) => members.values().any(|member| holds(member, text)),
        _ => false,
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
