//! The era of a message follows from its body, and mirrored headers must match.

mod legacy;
mod modern;

use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::{Value, json};

use super::*;
use crate::EnvelopeLimits;

const MODERN: Revision = Revision::V2026_07_28;
const LEGACY_ONLY: [Revision; 3] = [
    Revision::V2025_03_26,
    Revision::V2025_06_18,
    Revision::V2025_11_25,
];

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_str(value).unwrap(),
            )
        })
        .collect()
}

fn classify_with(
    body: &str,
    pairs: &[(&'static str, &str)],
    served: Revisions,
) -> Result<Era, EraError> {
    let envelope = Envelope::parse(body.as_bytes(), EnvelopeLimits::default());
    classify(envelope.as_ref(), &headers(pairs), served)
}

fn classify_message(body: &str, pairs: &[(&'static str, &str)]) -> Result<Era, EraError> {
    classify_with(body, pairs, Revisions::ALL)
}

fn modern_body(method: &str, params: Value, version: &str) -> String {
    let mut params = params;
    params["_meta"] = json!({
        meta::PROTOCOL_VERSION: version,
        meta::CLIENT_CAPABILITIES: {},
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

fn legacy_body(method: &str) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"protocolVersion": "2025-11-25"}}).to_string()
}

fn code(result: Result<Era, EraError>) -> i64 {
    result.unwrap_err().rpc_code().value()
}

/// F5: the error for an unsupported version has the requested and the served versions.
#[test]
fn an_unsupported_version_names_the_served_ones() {
    let ask = |version: &str, served| {
        let body = modern_body("tools/list", json!({}), version);
        classify_with(
            &body,
            &[
                ("mcp-protocol-version", version),
                ("mcp-method", "tools/list"),
            ],
            served,
        )
        .unwrap_err()
    };
    let error = ask("2099-01-01", Revisions::ALL);
    assert_eq!(error.rpc_code().value(), -32022);
    assert_eq!(
        error.data().unwrap(),
        json!({"supported": ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"], "requested": "2099-01-01"})
    );

    let legacy_only = ask("2026-07-28", Revisions::from_iter(LEGACY_ONLY));
    assert_eq!(
        legacy_only.data().unwrap(),
        json!({"supported": ["2025-11-25", "2025-06-18", "2025-03-26"], "requested": "2026-07-28"})
    );

    let long = ask(&"9".repeat(1000), Revisions::ALL);
    assert_eq!(
        long.data().unwrap()["requested"].as_str().unwrap().len(),
        64
    );
}

/// E11: the error for an unsupported negotiated version names the served revisions with
/// `initialize`, in its message and its data.
#[test]
fn a_negotiated_version_that_is_not_served_names_the_served_ones() {
    let error = EraError::unsupported_negotiated(
        "2024-11-05",
        "2024-10-07",
        Revisions::from_iter([MODERN, Revision::V2025_06_18]),
    );
    assert_eq!(
        error.to_string(),
        "Unsupported protocol version 2024-11-05; this endpoint serves 2025-06-18"
    );
    assert_eq!(
        error.data().unwrap(),
        json!({"supported": ["2025-06-18"], "requested": "2024-10-07"})
    );
    assert_eq!(error.rpc_code().value(), -32022);
    assert_eq!(error.status(), StatusCode::BAD_REQUEST);
    assert!(!error.is_legacy());
}

/// F5, E11: if no legacy revision is served, the errors for legacy messages list the served
/// revisions.
#[test]
fn a_modern_only_endpoint_names_its_versions_to_initialize() {
    let served = Revisions::from_iter([MODERN]);
    let error = classify_with(&legacy_body("initialize"), &[], served).unwrap_err();
    assert_eq!(error.rpc_code().value(), -32022);
    assert_eq!(
        error.data().unwrap(),
        json!({"supported": ["2026-07-28"], "requested": "2025-11-25"})
    );
    let modern_initialize = modern_body("initialize", json!({}), "2026-07-28");
    let pairs = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "initialize"),
    ];
    assert_eq!(
        code(classify_with(&modern_initialize, &pairs, served)),
        -32022
    );
    assert_eq!(
        code(classify_with(
            &legacy_body("ping"),
            &[("mcp-protocol-version", "2025-11-25")],
            served
        )),
        -32022
    );
    assert_eq!(
        code(classify_with(&legacy_body("ping"), &[], served)),
        -32020
    );
    assert_eq!(code(classify_with("{", &[], served)), -32700);
}

/// J4: the codes in audit records are stable. The code of a parse error is kept.
#[test]
fn errors_have_stable_codes() {
    for (error, code) in [
        (EraError::Message(EnvelopeError::Batch), "message.batch"),
        (EraError::mismatch(header::METHOD), "era.header_mismatch"),
        (
            EraError::MissingMeta {
                key: meta::PROTOCOL_VERSION,
            },
            "era.meta_missing",
        ),
        (
            EraError::unsupported("2099-01-01", Revisions::ALL),
            "era.version_unsupported",
        ),
        (
            EraError::unsupported_negotiated("2024-11-05", "2025-11-25", Revisions::ALL),
            "era.version_negotiated",
        ),
        (EraError::ModernInitialize, "era.modern_initialize"),
        (EraError::LegacyVersion, "era.legacy_version"),
    ] {
        assert_eq!(error.code(), code);
    }
}
