//! The id of a rejected message.

use super::*;

/// E11: the id of a rejected request is read if there is exactly one and it belongs to the client.
#[test]
fn the_id_of_a_rejected_request_is_read() {
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"x","params":{{"a":{}{}}}}}"#,
        "[".repeat(99),
        "]".repeat(99)
    );
    for (text, id) in [
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{}}"#,
            Some("7"),
        ),
        (
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"a","name":"b"},"id":"a\u0062"}"#,
            Some(r#""a\u0062""#),
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"Name":"a"}}"#,
            Some("7"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"x","Method":"y"}"#,
            Some("7"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"x","method":"y"}"#,
            Some("7"),
        ),
        (r#"{"jsonrpc":"1.0","id":-7,"method":"x"}"#, Some("-7")),
        (r#"{"jsonrpc":"2.0","id":7,"method":5}"#, Some("7")),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"x","params":[]}"#,
            Some("7"),
        ),
        (&deep, Some("7")),
        (
            r#"{"jsonrpc":"2.0","id":7,"id":7,"method":"x","params":[]}"#,
            None,
        ),
        (r#"{"jsonrpc":"2.0","id":7,"ID":8,"method":"x"}"#, None),
        (
            r#"{"jsonrpc":"2.0","id":7,"id\u0000":8,"method":"x"}"#,
            None,
        ),
        (r#"{"jsonrpc":"2.0","id":7.5,"method":"x"}"#, None),
        (r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#, None),
        (r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#, None),
        (r#"{"jsonrpc":"2.0","id":7,"result":1,"error":2}"#, None),
        (r#"{"jsonrpc":"2.0","id":7}"#, None),
        (r#"{"jsonrpc":"2.0","id":7,"method":"x""#, None),
        (r#"{"jsonrpc":"2.0","id":7,"method":"x"} 1"#, None),
        (r#"[{"jsonrpc":"2.0","id":7,"method":"x"}]"#, None),
        ("7", None),
        ("", None),
    ] {
        assert!(parse(text).is_err(), "{text}");
        assert_eq!(
            Envelope::refused_id(text.as_bytes()).map(RawValue::get),
            id,
            "{text}"
        );
    }
    assert!(Envelope::refused_id(b"{\"id\":7,\"method\":\"\xFF\"}").is_none());
}

proptest! {
    /// E11: the id of a rejected request is the one that a simple parser finds.
    #[test]
    fn a_rejected_id_agrees_with_a_simple_parser(message in message(), cut in 0_usize..200) {
        let _ = Envelope::refused_id(&message.as_bytes()[..cut.min(message.len())]);
        if let Some(id) = Envelope::refused_id(message.as_bytes()) {
            let tree: Value = serde_json::from_str(&message).unwrap();
            prop_assert_eq!(id.get(), tree["id"].to_string());
        }
    }
}
