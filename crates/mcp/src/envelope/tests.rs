//! Messages are parsed without copies; repeated, similar and deeply nested members are rejected.

use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};

use super::*;
use crate::ErrorCode;

mod named;

fn parse(text: &str) -> Result<Envelope<'_>, EnvelopeError> {
    Envelope::parse(text.as_bytes(), EnvelopeLimits::default())
}

/// J4: the codes in audit records are stable.
#[test]
fn errors_have_stable_codes() {
    for (error, code) in [
        (EnvelopeError::NotUtf8, "message.not_utf8"),
        (EnvelopeError::NotJson, "message.not_json"),
        (EnvelopeError::TooDeep, "message.too_deep"),
        (EnvelopeError::Batch, "message.batch"),
        (EnvelopeError::NotJsonRpc, "message.not_json_rpc"),
        (EnvelopeError::DuplicateMember, "message.duplicate_member"),
        (EnvelopeError::LookAlikeMember, "message.look_alike_member"),
        (EnvelopeError::InvalidParams, "message.invalid_params"),
        (EnvelopeError::TooManyNames, "message.too_many_names"),
    ] {
        assert_eq!(error.code(), code);
    }
}

#[test]
fn a_request_is_parsed_without_copying() {
    let text = r#" {"jsonrpc":"2.0","id":"a-1","method":"tools/call","params":{"name":"add","arguments":{"name":"x","_meta":[1]}}} "#;
    let envelope = parse(text).unwrap();
    assert_eq!(envelope.message_type(), MessageType::Request);
    assert_eq!(envelope.method(), Some("tools/call"));
    assert_eq!(envelope.id().unwrap().get(), "\"a-1\"");
    assert_eq!(envelope.name(), Some("add"));
    assert!(matches!(envelope.method, Some(Cow::Borrowed(_))));
    assert!(envelope.names.is_borrowed());
    assert_eq!(envelope.protocol_version(), None);
    assert!(!envelope.is_initialize());
}

#[test]
fn message_types_are_distinguished_by_their_members() {
    for (text, message_type) in [
        (
            r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#,
            MessageType::Request,
        ),
        (
            r#"{"jsonrpc":"2.0","id":-7,"method":"ping","params":null}"#,
            MessageType::Request,
        ),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            MessageType::Notification,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            MessageType::Response,
        ),
        (
            r#"{"jsonrpc":"2.0","id":"1","error":{"code":-1,"message":"no"}}"#,
            MessageType::Response,
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"no"}}"#,
            MessageType::Response,
        ),
        (
            r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"no"}}"#,
            MessageType::Response,
        ),
    ] {
        assert_eq!(
            parse(text).map(|envelope| envelope.message_type()),
            Ok(message_type),
            "{text}"
        );
    }
}

#[test]
fn other_values_than_one_message_are_rejected() {
    for text in [
        r#"{}"#,
        r#""ping""#,
        r#"null"#,
        r#"7"#,
        r#"{"id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
        r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":["ping"]}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":null}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","error":null}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
        r#"{"jsonrpc":"2.0","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"params":{}}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
    ] {
        assert_eq!(parse(text).err(), Some(EnvelopeError::NotJsonRpc), "{text}");
    }
}

/// F4: bytes that are not UTF-8 or not one JSON value are a parse error.
#[test]
fn other_bytes_than_json_are_a_parse_error() {
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for text in [
        "",
        " ",
        "{",
        "[1,",
        "{\"a\"}",
        "\u{FEFF}{}",
        "nul",
        "{'a':1}",
        "[01]",
        "\"\u{1}\"",
    ] {
        assert_eq!(parse(text).err(), Some(EnvelopeError::NotJson), "{text}");
    }
    for value in [ping, "[]", "null", "\"ping\""] {
        for garbage in [ping, "x", "\0", "]", ","] {
            assert_eq!(
                parse(&format!("{value}{garbage}")).err(),
                Some(EnvelopeError::NotJson),
                "{value}{garbage}"
            );
        }
    }
    let bad = Envelope::parse(
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xFF\"}",
        EnvelopeLimits::default(),
    )
    .unwrap_err();
    assert_eq!(bad, EnvelopeError::NotUtf8);
    assert_eq!(bad.rpc_code(), ErrorCode::ParseError);
    assert_eq!(EnvelopeError::NotJson.rpc_code().value(), -32700);
}

/// F4: a batch is distinguished from invalid JSON and is an invalid request.
#[test]
fn a_batch_is_rejected() {
    for text in [
        "[]",
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
        "[1, 2]",
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!(error, EnvelopeError::Batch, "{text}");
        assert_eq!(error.rpc_code().value(), -32600, "{text}");
    }
}

/// F4: the nesting depth is limited in every member. The limit itself is allowed.
#[test]
fn depth_is_limited_in_every_member() {
    let limits = EnvelopeLimits::default().with_max_depth(8);
    let deep = |arrays: usize| format!("{}{}", "[".repeat(arrays), "]".repeat(arrays));
    for (prefix, suffix, depth) in [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","other":"#,
            "}",
            1,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"#,
            "}}",
            2,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"NAME":"#,
            "}}",
            2,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"a":"#,
            "}}}",
            3,
        ),
        (r#"{"jsonrpc":"2.0","id":1,"result":"#, "}", 1),
    ] {
        let fits = format!("{prefix}{}{suffix}", deep(8 - depth));
        assert!(Envelope::parse(fits.as_bytes(), limits).is_ok(), "{fits}");
        let over = format!("{prefix}{}{suffix}", deep(9 - depth));
        assert_eq!(
            Envelope::parse(over.as_bytes(), limits).err(),
            Some(EnvelopeError::TooDeep),
            "{over}"
        );
    }
    let empty = r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{}}}"#.as_bytes();
    assert!(Envelope::parse(empty, EnvelopeLimits::default().with_max_depth(3)).is_ok());
    assert_eq!(
        Envelope::parse(empty, EnvelopeLimits::default().with_max_depth(2)).err(),
        Some(EnvelopeError::TooDeep)
    );

    let brackets_in_text = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":["{}\"[["]}}"#,
        "[".repeat(100)
    );
    assert!(Envelope::parse(brackets_in_text.as_bytes(), limits).is_ok());
    let bomb = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{}}}"#, deep(200_000));
    assert_eq!(parse(&bomb).err(), Some(EnvelopeError::TooDeep));
    assert_eq!(parse(&deep(200_000)).err(), Some(EnvelopeError::Batch));
}

#[test]
fn a_repeated_member_is_rejected_in_any_spelling() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","meth\u006fd":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"},"params":{"name":"b"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null,"params":{"name":"b"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","n\u0061me":"b"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"a:b","uri":"a:c"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{},"_meta":{}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol\/protocolVersion":"2025-11-25"}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","protocolVersion":"2025-06-18"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"result":{}}"#,
    ] {
        assert_eq!(
            parse(text).err(),
            Some(EnvelopeError::DuplicateMember),
            "{text}"
        );
    }
}

#[test]
fn a_member_that_differs_only_in_letter_case_is_rejected() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","Method":"tools/call"}"#,
        r#"{"jsonrpc":"2.0","ID":1,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"},"paramſ":{"name":"b"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","NAME":"b"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"Name":"b"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"ur\u0131":"a:b","uri":"a:c"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_META":{}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/ProtocolVersion":"2026-07-28"}}}"#,
    ] {
        assert_eq!(
            parse(text).err(),
            Some(EnvelopeError::LookAlikeMember),
            "{text}"
        );
    }
    let version = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolversion":"2025-06-18"}}"#;
    assert_eq!(parse(version).err(), Some(EnvelopeError::LookAlikeMember));

    let unrelated = r#"{"jsonrpc":"2.0","id":1,"method":"acme/rename","params":{"Name":"b","ProtocolVersion":1}}"#;
    assert!(parse(unrelated).is_ok());
}

/// A NUL is rejected in names and in member names, because parsers with C strings end them at a
/// NUL.
#[test]
fn a_nul_is_rejected() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"method\u0000x":"tools/call","method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"Name\u0000":"b","name":"a"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta\u0000":{}}}"#,
    ] {
        assert_eq!(
            parse(text).err(),
            Some(EnvelopeError::LookAlikeMember),
            "{text}"
        );
    }
    let method = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call\u0000","params":{"name":"a"}}"#;
    assert_eq!(parse(method).err(), Some(EnvelopeError::NotJsonRpc));
    let name = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"admin\u0000x"}}"#;
    assert_eq!(parse(name).err(), Some(EnvelopeError::InvalidParams));
}

/// B9: names are read for a method in any letter case, because rules ignore it.
#[test]
fn names_are_read_for_any_letter_case_of_the_method() {
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"Tools/Call","params":{"name":"admin"}}"#;
    assert_eq!(parse(text).unwrap().name(), Some("admin"));
}

#[test]
fn names_are_read_if_the_method_has_one() {
    for (method, params, name) in [
        (
            "tools/call",
            r#"{"uri":7,"name":"a\"b\u00e9"}"#,
            Some("a\"bé"),
        ),
        ("prompts/get", r#"{"name":""}"#, Some("")),
        (
            "resources/read",
            r#"{"name":[],"uri":"file:///x"}"#,
            Some("file:///x"),
        ),
        ("resources/subscribe", r#"{"uri":"a:b"}"#, Some("a:b")),
        ("resources/unsubscribe", r#"{"uri":"a:b"}"#, Some("a:b")),
        ("tools/list", r#"{"name":"a","uri":"a:b"}"#, None),
    ] {
        let text = format!(r#"{{"params":{params},"method":"{method}","id":1,"jsonrpc":"2.0"}}"#);
        assert_eq!(parse(&text).unwrap().name(), name, "{text}");
    }
}

#[test]
fn required_names_are_required() {
    for params in [
        r#"{"arguments":{}}"#,
        r#"{"name":["admin"]}"#,
        r#"{"name":7}"#,
        r#"{"name":null}"#,
        r#"{"name":"\udc00"}"#,
        r#"{"name":"a","_meta":"x"}"#,
        r#"{"name":"a","_meta":[]}"#,
        r#"{"name":"a","_meta":{"io.modelcontextprotocol/protocolVersion":20260728}}"#,
        "null",
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        let error = parse(&text).unwrap_err();
        assert_eq!(error, EnvelopeError::InvalidParams, "{text}");
        assert_eq!(error.rpc_code().value(), -32602, "{text}");
    }
    assert_eq!(
        parse(r#"{"jsonrpc":"2.0","id":1,"method":"resources/read"}"#).err(),
        Some(EnvelopeError::InvalidParams)
    );
}

/// E2, F5: `initialize` has its own version, and modern requests have it in `_meta`.
#[test]
fn versions_of_each_era_are_read() {
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
    let envelope = parse(initialize).unwrap();
    assert!(envelope.is_initialize());
    assert_eq!(envelope.initialize_version(), Some("2025-11-25"));
    assert_eq!(envelope.protocol_version(), None);

    let notification = parse(r#"{"jsonrpc":"2.0","method":"initialize","params":{}}"#).unwrap();
    assert!(!notification.is_initialize());

    let modern = r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"protocolVersion":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"a":1}}}}"#;
    let envelope = parse(modern).unwrap();
    assert_eq!(envelope.initialize_version(), None);
    assert_eq!(envelope.protocol_version(), Some("2026-07-28"));
    assert!(envelope.has_client_capabilities());

    for capabilities in ["null", "[]", "\"x\""] {
        let text = modern.replace(r#"{"a":1}"#, capabilities);
        assert!(!parse(&text).unwrap().has_client_capabilities(), "{text}");
    }
}

#[test]
fn unread_members_are_not_checked() {
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"acme/x","extra":1e999,"extra":2,"params":{"arguments":{"half":"\ud83d","a":1,"a":2}}}"#;
    assert_eq!(parse(text).unwrap().method(), Some("acme/x"));
}

/// Any JSON value, up to a few levels deep.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(".{0,6}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

proptest! {
    #[test]
    fn messages_round_trip(method in ".{0,12}", name in any::<String>(), id in any::<i64>(), arguments in value()) {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"arguments": arguments}}).to_string();
        if let Ok(envelope) = parse(&message) {
            prop_assert_eq!(envelope.method(), Some(&*method));
            prop_assert_eq!(envelope.id().unwrap().get(), id.to_string());
        } else {
            prop_assert!(names::is_listed(&method) || method.contains('\0'));
        }
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"arguments": arguments, "name": name}}).to_string();
        match parse(&call) {
            Ok(envelope) => prop_assert_eq!(envelope.name(), Some(&*name)),
            Err(error) => prop_assert!(name.contains('\0') && error == EnvelopeError::InvalidParams),
        }
    }

    #[test]
    fn depth_equals_that_of_the_tree(value in value()) {
        let message = json!({"jsonrpc": "2.0", "id": 1, "result": value}).to_string();
        let needed = 1 + depth(&value);
        let fits = EnvelopeLimits::default().with_max_depth(needed);
        prop_assert!(Envelope::parse(message.as_bytes(), fits).is_ok());
        prop_assert_eq!(
            Envelope::parse(message.as_bytes(), EnvelopeLimits::default().with_max_depth(needed - 1)).err(),
            Some(EnvelopeError::TooDeep)
        );
    }

    #[test]
    fn no_bytes_panic(bytes in vec(any::<u8>(), 0..128)) {
        let _ = Envelope::parse(&bytes, EnvelopeLimits::default());
    }

    #[test]
    fn no_truncated_or_changed_message_panics_or_has_another_meaning(at in 0_usize..120, byte in any::<u8>()) {
        let message = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","_meta":{"progressToken":"t"}}}"#;
        let at = at % message.len();
        prop_assert!(Envelope::parse(&message[..at], EnvelopeLimits::default()).is_err());
        let mut changed = message.to_vec();
        changed[at] = byte;
        if let Ok(envelope) = Envelope::parse(&changed, EnvelopeLimits::default()) {
            let tree: Value = serde_json::from_slice(&changed).unwrap();
            prop_assert_eq!(envelope.method(), tree["method"].as_str());
            if envelope.name().is_some() {
                prop_assert_eq!(envelope.name(), tree["params"]["name"].as_str());
            }
        }
    }
}
