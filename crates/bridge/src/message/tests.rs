//! Messages are classified and kept on one line; invalid ones are rejected, and no bytes panic.

use portcullis_testkit::strategies::any_json;
use proptest::prelude::*;

use super::*;

fn parse(text: &'static str) -> Result<MessageKind, MessageError> {
    Message::parse(Bytes::from_static(text.as_bytes())).map(|message| message.kind)
}

#[test]
fn messages_are_classified() {
    let id = |text: &str| RequestId::parse(text.as_bytes()).unwrap();
    let method = "m".to_owned();
    let request = |text| {
        Ok(MessageKind::Request {
            id: id(text),
            method: "m".into(),
        })
    };
    assert_eq!(
        parse(r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#),
        request("1")
    );
    assert_eq!(
        parse(r#"{"jsonrpc":"2.0","id":"a b","method":"m","params":[1]}"#),
        request("\"a b\"")
    );
    assert_eq!(
        parse(r#"{"jsonrpc":"2.0","method":"m"}"#),
        Ok(MessageKind::Notification { method })
    );
    assert_eq!(
        parse("\t {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"} "),
        request("1")
    );
    let expected = Ok(MessageKind::Response { id: Some(id("-1")) });
    assert_eq!(
        parse(r#"{"jsonrpc":"2.0","id":-1,"result":null,"result2":0}"#),
        expected
    );
    assert_eq!(
        parse(r#"{"jsonrpc":"2.0","id":null,"error":{}}"#),
        Ok(MessageKind::Response { id: None })
    );
}

#[test]
fn invalid_messages_are_rejected() {
    for text in [
        "",
        "hello",
        "{",
        "{} {}",
        "\"",
        "{\"jsonrpc\":\"2.0\",\"method\":\"m\"",
    ] {
        assert_eq!(parse(text), Err(MessageError::NotJson), "{text}");
    }
    for text in [
        "1",
        "\"a\"",
        "{}",
        r#"{"jsonrpc":"1.0","method":"m"}"#,
        r#"{"jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#,
        r#"{"jsonrpc":"2.0","id":true,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","result":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","result":1}"#,
    ] {
        assert_eq!(parse(text), Err(MessageError::NotJsonRpc), "{text}");
    }
    for text in ["[]", " []"] {
        assert_eq!(parse(text), Err(MessageError::Batch), "{text}");
    }
}

/// Bytes that are not UTF-8 are rejected in every position.
#[test]
fn bytes_that_are_not_utf_8_are_rejected() {
    for text in [
        &b"{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"other\":\"\xff\"}"[..],
        b"{\"jsonrpc\":\"2.0\",\"method\":\"m\xc3\"}",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{\"a\":\"\xed\xa0\x80\"}}",
        b"\xfe\xff",
    ] {
        let rejected = Message::parse(Bytes::from_static(text)).map(|message| message.kind);
        assert_eq!(rejected, Err(MessageError::NotJson), "{text:?}");
    }
}

#[test]
fn a_batch_is_split_into_lines() {
    let text =
        "[{\"jsonrpc\":\"2.0\",\n\"method\":\"a\"},\r\n{\"jsonrpc\":\"2.0\",\"method\":\"b\\n\"}]";
    let texts: Vec<_> = Message::parse_all(Bytes::from_static(text.as_bytes()))
        .unwrap()
        .map(|one| one.text)
        .collect();
    assert_eq!(
        texts,
        [
            &br#"{"jsonrpc":"2.0", "method":"a"}"#[..],
            br#"{"jsonrpc":"2.0","method":"b\n"}"#
        ]
    );
    assert!(Message::parse_all(Bytes::from_static(b"[[]]")).is_err());
}

#[test]
fn only_object_parameters_are_read() {
    let message = |params: &str| {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{params}}}"#);
        Message::parse(text.into()).unwrap()
    };
    let modern = message(
        r#"{"name":"ä\"","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"requestId":"x"}"#,
    );
    assert_eq!(
        modern.params().protocol_version().as_deref(),
        Some("2026-07-28")
    );
    assert_eq!(modern.params().name().as_deref(), Some("ä\""));
    assert_eq!(modern.params().uri(), None);
    assert_eq!(modern.params().request_id(), RequestId::parse(b"\"x\""));

    for odd in [
        "null",
        "[1]",
        "1",
        r#"{"_meta":1,"name":2,"requestId":{}}"#,
        r#"{"_meta":["a"]}"#,
    ] {
        let odd = message(odd);
        assert_eq!(odd.params().protocol_version(), None);
        assert_eq!(odd.params().name(), None);
        assert_eq!(odd.params().request_id(), None);
    }
}

#[test]
fn created_responses_are_messages() {
    let id = RequestId::parse(b"\"a\"").unwrap();
    for text in [
        new_error(Some(&id), ErrorCode::InternalError, "x\n\"", Some("a.b")),
        new_error(None, ErrorCode::ParseError, "x", None),
        error_with_id(
            &id,
            serde_json::from_str(r#"{"code":1,"message":"m"}"#).unwrap(),
        ),
        new_request(&RequestId::own(7), "tools/list", Some("{}")).text,
    ] {
        let message = Message::parse(text.clone()).unwrap();
        assert_eq!(message.text, text);
    }
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = Message::parse_all(bytes.into());
    }

    /// A message with line breaks becomes one line with the same value.
    #[test]
    fn a_message_on_one_line_has_the_same_value(params in any_json(), id in any::<String>()) {
        let sent = serde_json::json!({ "jsonrpc": "2.0", "id": id, "method": "m", "params": params });
        let message = Message::parse(serde_json::to_vec_pretty(&sent).unwrap().into()).unwrap();
        prop_assert!(!message.text.iter().any(|byte| matches!(byte, b'\n' | b'\r')));
        prop_assert_eq!(serde_json::from_slice::<serde_json::Value>(&message.text).unwrap(), sent);
    }
}
