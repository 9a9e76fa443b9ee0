//! Messages of the modern revision, and headers that mirror them.

use super::*;

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
