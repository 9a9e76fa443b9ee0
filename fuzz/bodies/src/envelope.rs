//! Feeds input to the parser of JSON-RPC messages.

use http::{HeaderMap, HeaderValue};
use portcullis_mcp::{
    Envelope, EnvelopeLimits, Revisions, classify, decode_mirrored, encode_mirrored, header,
};
use serde_json::Value;

/// Parses a message. `serde_json` finds the same method and names, and the id of a rejected
/// message. Classification accepts any headers without a panic.
pub fn envelope(data: &[u8]) {
    let parsed = Envelope::parse(data, EnvelopeLimits::default());
    if let (Ok(envelope), Ok(message)) = (&parsed, serde_json::from_slice::<Value>(data)) {
        assert_agrees(envelope, &message);
    }
    if let Some(id) = Envelope::refused_id(data) {
        let message: Value = serde_json::from_slice(data).unwrap_or_default();
        // Numbers beyond 64 bits are read as floating-point ones.
        let held = message
            .get("id")
            .is_some_and(|held| held.is_number() || held.is_string());
        assert!(held || message.is_null(), "{id}");
    }
    for headers in [HeaderMap::new(), modern_headers(&parsed), legacy_headers()] {
        let _ = classify(parsed.as_ref(), &headers, Revisions::default());
    }
}

fn assert_agrees(envelope: &Envelope<'_>, message: &Value) {
    assert_eq!(
        envelope.method(),
        message.get("method").and_then(Value::as_str)
    );
    for name in envelope.names() {
        assert!(contains_string(message, name.as_str()), "{name:?}");
        assert_eq!(
            decode_mirrored(&encode_mirrored(name.as_str())).as_deref(),
            Ok(name.as_str())
        );
    }
}

/// Returns whether a string is anywhere in a value.
fn contains_string(value: &Value, text: &str) -> bool {
    match value {
        Value::String(held) => held == text,
        Value::Array(elements) => elements
            .iter()
            .any(|element| contains_string(element, text)),
        Value::Object(members) => members.values().any(|member| contains_string(member, text)),
        _ => false,
    }
}

/// Returns the headers that a client of 2026-07-28 sends with this message.
fn modern_headers<E>(parsed: &Result<Envelope<'_>, E>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(
        header::PROTOCOL_VERSION,
        HeaderValue::from_static("2026-07-28"),
    );
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
    HeaderMap::from_iter([(
        header::PROTOCOL_VERSION,
        HeaderValue::from_static("2025-06-18"),
    )])
}
