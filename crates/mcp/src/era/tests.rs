//! The era of a message follows from its body, and mirrored headers must match.

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

/// F5: a modern request whose headers match the body is accepted.
#[test]
fn a_modern_request_with_all_headers_is_accepted() {
    let list = modern_body("tools/list", json!({}), "2026-07-28");
    let pairs = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/list"),
    ];
    assert_eq!(classify_message(&list, &pairs), Ok(Era::Modern(MODERN)));

    let read = modern_body("resources/read", json!({"uri": "file:///ü"}), "2026-07-28");
    let pairs = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "resources/read"),
        ("mcp-name", "=?base64?ZmlsZTovLy/DvA==?="),
        ("mcp-param-region", "us-west1"),
    ];
    assert_eq!(classify_message(&read, &pairs), Ok(Era::Modern(MODERN)));
}

/// F5: a missing, repeated or different required header is a mismatch.
#[test]
fn a_mirrored_header_is_present_once_and_matches() {
    let call = modern_body("tools/call", json!({"name": "add"}), "2026-07-28");
    let good = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "add"),
    ];
    assert_eq!(classify_message(&call, &good), Ok(Era::Modern(MODERN)));
    for missing in 0..3 {
        let mut pairs = good.to_vec();
        let (name, value) = pairs.remove(missing);
        assert_eq!(
            classify_message(&call, &pairs),
            Err(EraError::mismatch(HeaderName::from_static(name)))
        );
        pairs.extend([(name, value), (name, value)]);
        assert_eq!(
            classify_message(&call, &pairs),
            Err(EraError::mismatch(HeaderName::from_static(name)))
        );
    }
    for (position, values) in [
        (
            0,
            &["2025-11-25", "2099-01-01", "2026-07-28,2026-07-28"][..],
        ),
        (
            1,
            &[
                "tools/list",
                "TOOLS/CALL",
                "=?base64?dG9vbHMvY2FsbA==?=",
                "",
            ][..],
        ),
        (
            2,
            &["Add", "other", "=?base64?YWRk?", "=?base64?b3RoZXI=?=", ""][..],
        ),
    ] {
        for value in values {
            let mut pairs = good.to_vec();
            pairs[position].1 = value;
            let error = classify_message(&call, &pairs).unwrap_err();
            assert_eq!(
                error,
                EraError::mismatch(HeaderName::from_static(good[position].0)),
                "{value}"
            );
            assert_eq!(error.rpc_code().value(), -32020);
            assert_eq!(error.status(), StatusCode::BAD_REQUEST);
        }
    }
}

/// F5, E11: a header alone does not make a message modern.
#[test]
fn a_modern_header_over_a_legacy_body_is_a_mismatch() {
    let claim = ("mcp-protocol-version", "2026-07-28");
    for body in [
        legacy_body("tools/list"),
        legacy_body("initialize"),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string(),
        json!({"jsonrpc": "2.0", "id": 1, "result": {}}).to_string(),
        modern_body("tools/list", json!({}), "2025-11-25"),
    ] {
        assert_eq!(code(classify_message(&body, &[claim])), -32020, "{body}");
    }
    assert_eq!(
        code(classify_message(
            &legacy_body("initialize"),
            &[claim, ("mcp-method", "initialize")]
        )),
        -32020
    );
    assert_eq!(
        code(classify_message(
            &legacy_body("tools/list"),
            &[claim, ("mcp-protocol-version", "2025-11-25")]
        )),
        -32020
    );
}

/// F5: with a modern header, a body that is not JSON gets a parse error, and a batch gets an
/// invalid request error.
#[test]
fn a_modern_header_with_an_invalid_body_gets_the_error_of_the_body() {
    let claim = [("mcp-protocol-version", "2026-07-28")];
    assert_eq!(code(classify_message("{", &claim)), -32700);
    assert_eq!(code(classify_message("[]", &claim)), -32600);
    assert_eq!(
        classify_message("{", &[]),
        Ok(Era::Legacy { version: None })
    );
}

/// F5: if all headers match, a missing required member of `_meta` is named.
#[test]
fn missing_members_of_meta_are_invalid_params() {
    let pairs = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "server/discover"),
    ];
    for (body, key) in [
        (json!({}), meta::PROTOCOL_VERSION),
        (
            json!({"_meta": {meta::CLIENT_CAPABILITIES: {}}}),
            meta::PROTOCOL_VERSION,
        ),
        (
            json!({"_meta": {meta::PROTOCOL_VERSION: "2026-07-28"}}),
            meta::CLIENT_CAPABILITIES,
        ),
        (
            json!({"_meta": {meta::PROTOCOL_VERSION: "2026-07-28", meta::CLIENT_CAPABILITIES: []}}),
            meta::CLIENT_CAPABILITIES,
        ),
    ] {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": body})
            .to_string();
        let error = classify_message(&body, &pairs).unwrap_err();
        assert_eq!(error, EraError::MissingMeta { key }, "{body}");
        assert_eq!(error.rpc_code().value(), -32602, "{body}");
    }
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

/// F5: notifications need not mirror their method. If they do, it must match.
#[test]
fn a_modern_notification_can_omit_its_method_header() {
    let body = json!({
        "jsonrpc": "2.0", "method": "acme/note",
        "params": {"_meta": {meta::PROTOCOL_VERSION: "2026-07-28"}},
    })
    .to_string();
    let version = ("mcp-protocol-version", "2026-07-28");
    assert_eq!(classify_message(&body, &[version]), Ok(Era::Modern(MODERN)));
    assert_eq!(
        classify_message(&body, &[version, ("mcp-method", "acme/note")]),
        Ok(Era::Modern(MODERN))
    );
    assert_eq!(
        code(classify_message(
            &body,
            &[version, ("mcp-method", "acme/other")]
        )),
        -32020
    );
}

/// F5: only requests of the listed methods must mirror a name. If others do, it must match.
#[test]
fn a_name_is_mirrored_if_required() {
    let request = modern_body(
        "resources/subscribe",
        json!({"uri": "file:///a"}),
        "2026-07-28",
    );
    let notification = json!({
        "jsonrpc": "2.0", "method": "tools/call",
        "params": {"name": "file:///a", "_meta": {meta::PROTOCOL_VERSION: "2026-07-28"}},
    })
    .to_string();
    let version = ("mcp-protocol-version", "2026-07-28");
    for (body, method) in [
        (request, "resources/subscribe"),
        (notification, "tools/call"),
    ] {
        let heads = [version, ("mcp-method", method)];
        assert_eq!(
            classify_message(&body, &heads),
            Ok(Era::Modern(MODERN)),
            "{body}"
        );
        assert_eq!(
            classify_message(&body, &[&heads[..], &[("mcp-name", "file:///a")]].concat()),
            Ok(Era::Modern(MODERN)),
            "{body}"
        );
        assert_eq!(
            code(classify_message(
                &body,
                &[&heads[..], &[("mcp-name", "file:///b")]].concat()
            )),
            -32020,
            "{body}"
        );
    }
}

/// F5: `Mcp-Name` must match the task of `tasks/*` if it is present. It is not checked for methods
/// with names in other members.
#[test]
fn a_task_can_be_mirrored() {
    let version = ("mcp-protocol-version", "2026-07-28");
    let task = modern_body("tasks/get", json!({"taskId": "t"}), "2026-07-28");
    let heads = [version, ("mcp-method", "tasks/get")];
    assert_eq!(classify_message(&task, &heads), Ok(Era::Modern(MODERN)));
    assert_eq!(
        classify_message(&task, &[&heads[..], &[("mcp-name", "t")]].concat()),
        Ok(Era::Modern(MODERN))
    );
    assert_eq!(
        code(classify_message(
            &task,
            &[&heads[..], &[("mcp-name", "u")]].concat()
        )),
        -32020
    );
    let complete = modern_body(
        "completion/complete",
        json!({"ref": {"name": "a"}}),
        "2026-07-28",
    );
    let heads = [
        version,
        ("mcp-method", "completion/complete"),
        ("mcp-name", "b"),
    ];
    assert_eq!(classify_message(&complete, &heads), Ok(Era::Modern(MODERN)));
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
