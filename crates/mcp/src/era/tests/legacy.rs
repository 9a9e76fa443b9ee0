//! Messages of legacy revisions.

use super::*;

/// E9, E11: `initialize` begins a session, so it cannot be a modern request.
#[test]
fn initialize_is_never_modern() {
    let initialize = modern_body(
        "initialize",
        json!({"protocolVersion": "2025-11-25"}),
        "2026-07-28",
    );
    let pairs = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "initialize"),
    ];
    let error = classify_message(&initialize, &pairs).unwrap_err();
    assert_eq!(error.rpc_code().value(), -32601);
    assert_eq!(error.status(), StatusCode::NOT_FOUND);
}

/// F6: a legacy header must name a served legacy revision. Without it, the negotiated revision
/// applies.
#[test]
fn a_legacy_version_must_be_served() {
    let body = legacy_body("tools/list");
    assert_eq!(
        classify_message(&body, &[]),
        Ok(Era::Legacy { version: None })
    );
    for revision in LEGACY_ONLY {
        let pairs = [("mcp-protocol-version", revision.as_str())];
        assert_eq!(
            classify_message(&body, &pairs),
            Ok(Era::Legacy {
                version: Some(revision)
            })
        );
        assert_eq!(
            legacy_version(&headers(&pairs), Revisions::ALL),
            Ok(Some(revision))
        );
    }
    for bad in [
        "2024-11-05",
        "2099-01-01",
        "",
        "2025-11-25,2025-11-25",
        "latest",
    ] {
        let pairs = [("mcp-protocol-version", bad)];
        let error = classify_message(&body, &pairs).unwrap_err();
        assert_eq!(error, EraError::LegacyVersion, "{bad}");
        assert!(error.is_legacy());
        assert!(error.status() == StatusCode::BAD_REQUEST);
        assert_eq!(
            legacy_version(&headers(&pairs), Revisions::ALL),
            Err(EraError::LegacyVersion)
        );
    }
    let twice = [
        ("mcp-protocol-version", "2025-11-25"),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    assert_eq!(
        classify_message(&body, &twice),
        Err(EraError::LegacyVersion)
    );

    let older_only = Revisions::from_iter([Revision::V2025_06_18]);
    assert_eq!(
        classify_with(&body, &[("mcp-protocol-version", "2025-11-25")], older_only),
        Err(EraError::LegacyVersion)
    );
}

/// F6: a modern version is rejected in a request without a message.
#[test]
fn a_request_without_a_message_cannot_be_modern() {
    let modern = headers(&[("mcp-protocol-version", "2026-07-28")]);
    assert_eq!(
        legacy_version(&modern, Revisions::ALL),
        Err(EraError::LegacyVersion)
    );
    assert_eq!(legacy_version(&HeaderMap::new(), Revisions::ALL), Ok(None));
}

/// E11: a legacy version in `_meta` does not make a message modern, and must agree with the header.
#[test]
fn a_legacy_version_in_meta_stays_legacy() {
    let body = modern_body("tools/list", json!({}), "2025-11-25");
    assert_eq!(
        classify_message(&body, &[]),
        Ok(Era::Legacy { version: None })
    );
    let version = Some(Revision::V2025_11_25);
    assert_eq!(
        classify_message(&body, &[("mcp-protocol-version", "2025-11-25")]),
        Ok(Era::Legacy { version })
    );
    assert_eq!(
        code(classify_message(
            &body,
            &[("mcp-protocol-version", "2025-06-18")]
        )),
        -32020
    );
}

/// F6: sessions are checked first only if the version header is the only error.
#[test]
fn only_a_wrong_version_header_leaves_a_message_legacy() {
    assert!(EraError::LegacyVersion.is_legacy());
    for error in [
        EraError::Message(EnvelopeError::Batch),
        EraError::mismatch(header::NAME),
        EraError::ModernInitialize,
    ] {
        assert!(!error.is_legacy(), "{error}");
    }
}
