use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};

use super::*;
use crate::meta;

fn parse(text: &str) -> Result<Envelope<'_>, EnvelopeError> {
    Envelope::parse(text.as_bytes(), Limits::default())
}

/// J4: the words that audit trails have for a message that cannot be judged.
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
fn a_request_is_read_without_copying() {
    let text = r#" {"jsonrpc":"2.0","id":"a-1","method":"tools/call","params":{"name":"add","arguments":{"name":"x","_meta":[1]}}} "#;
    let envelope = parse(text).unwrap();
    assert_eq!(envelope.kind(), Kind::Request);
    assert_eq!(envelope.method(), Some("tools/call"));
    assert_eq!(envelope.id().unwrap().get(), "\"a-1\"");
    assert_eq!(envelope.name(), Some("add"));
    assert!(matches!(envelope.method, Some(Cow::Borrowed(_))) && envelope.names.is_borrowed());
    assert_eq!(envelope.protocol_version(), None);
    assert!(!envelope.is_initialize());
}

#[test]
fn each_kind_is_told_by_its_members() {
    for (text, kind) in [
        (r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#, Kind::Request),
        (r#"{"jsonrpc":"2.0","id":-7,"method":"ping","params":null}"#, Kind::Request),
        (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, Kind::Notification),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, Kind::Response),
        (r#"{"jsonrpc":"2.0","id":"1","error":{"code":-1,"message":"no"}}"#, Kind::Response),
        (r#"{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"no"}}"#, Kind::Response),
        (r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"no"}}"#, Kind::Response),
    ] {
        assert_eq!(parse(text).map(|envelope| envelope.kind()), Ok(kind), "{text}");
    }
}

#[test]
fn what_is_no_single_message_is_refused() {
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

/// F4: what is not UTF-8 or not one JSON value is a parse error, whatever else it is.
#[test]
fn what_is_not_json_is_a_parse_error() {
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for text in ["", " ", "{", "[1,", "{\"a\"}", "\u{FEFF}{}", "nul", "{'a':1}", "[01]", "\"\u{1}\""] {
        assert_eq!(parse(text).err(), Some(EnvelopeError::NotJson), "{text}");
    }
    for garbage in [ping, "x", "\0", "]", ","] {
        assert_eq!(parse(&format!("{ping}{garbage}")).err(), Some(EnvelopeError::NotJson), "{garbage}");
    }
    let bad = Envelope::parse(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xFF\"}", Limits::default()).unwrap_err();
    assert_eq!((bad, bad.rpc_code()), (EnvelopeError::NotUtf8, ErrorCode::ParseError));
    assert_eq!(EnvelopeError::NotJson.rpc_code().value(), -32700);
}

/// F4: a batch is told from rubbish and answered as an invalid request.
#[test]
fn a_batch_is_refused_as_one() {
    for text in ["[]", r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, "[1, 2]"] {
        let error = parse(text).unwrap_err();
        assert_eq!((error, error.rpc_code().value()), (EnvelopeError::Batch, -32600), "{text}");
    }
}

/// F4: nesting is bounded wherever it is, and the bound itself is allowed.
#[test]
fn depth_is_bounded_everywhere() {
    let limits = Limits { max_depth: 8 };
    let deep = |arrays: usize| format!("{}{}", "[".repeat(arrays), "]".repeat(arrays));
    for (prefix, suffix, depth) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","other":"#, "}", 1),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"#, "}}", 2),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"NAME":"#, "}}", 2),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"a":"#, "}}}", 3),
        (r#"{"jsonrpc":"2.0","id":1,"result":"#, "}", 1),
    ] {
        let fits = format!("{prefix}{}{suffix}", deep(8 - depth));
        assert!(Envelope::parse(fits.as_bytes(), limits).is_ok(), "{fits}");
        let over = format!("{prefix}{}{suffix}", deep(9 - depth));
        assert_eq!(Envelope::parse(over.as_bytes(), limits).err(), Some(EnvelopeError::TooDeep), "{over}");
    }
    let empty = r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{}}}"#.as_bytes();
    assert!(Envelope::parse(empty, Limits { max_depth: 3 }).is_ok());
    assert_eq!(Envelope::parse(empty, Limits { max_depth: 2 }).err(), Some(EnvelopeError::TooDeep));
    let brackets_in_text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":["{}\"[["]}}"#, "[".repeat(100));
    assert!(Envelope::parse(brackets_in_text.as_bytes(), limits).is_ok());
    let bomb = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{}}}"#, deep(200_000));
    assert_eq!(parse(&bomb).err(), Some(EnvelopeError::TooDeep));
    assert_eq!(parse(&deep(200_000)).err(), Some(EnvelopeError::Batch));
}

#[test]
fn a_repeated_member_is_refused_under_any_spelling() {
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
        assert_eq!(parse(text).err(), Some(EnvelopeError::DuplicateMember), "{text}");
    }
}

#[test]
fn a_member_that_only_differs_in_letter_case_is_refused() {
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
        assert_eq!(parse(text).err(), Some(EnvelopeError::LookAlikeMember), "{text}");
    }
    let version = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolversion":"2025-06-18"}}"#;
    assert_eq!(parse(version).err(), Some(EnvelopeError::LookAlikeMember));
    let unrelated = r#"{"jsonrpc":"2.0","id":1,"method":"acme/rename","params":{"Name":"b","ProtocolVersion":1}}"#;
    assert!(parse(unrelated).is_ok());
}

/// Parsers that keep texts as C strings end them at a NUL, in names of members too.
#[test]
fn nothing_that_decides_is_cut_by_a_nul() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"method\u0000x":"tools/call","method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"Name\u0000":"b","name":"a"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta\u0000":{}}}"#,
    ] {
        assert_eq!(parse(text).err(), Some(EnvelopeError::LookAlikeMember), "{text}");
    }
    let method = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call\u0000","params":{"name":"a"}}"#;
    assert_eq!(parse(method).err(), Some(EnvelopeError::NotJsonRpc));
    let name = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"admin\u0000x"}}"#;
    assert_eq!(parse(name).err(), Some(EnvelopeError::InvalidParams));
}

/// B9: rules for names count for a method in any letter case, as those for methods do.
#[test]
fn names_are_read_in_any_case_of_the_method() {
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"Tools/Call","params":{"name":"admin"}}"#;
    assert_eq!(parse(text).unwrap().name(), Some("admin"));
}

#[test]
fn names_are_read_where_the_method_has_one() {
    for (method, params, name) in [
        ("tools/call", r#"{"uri":7,"name":"a\"b\u00e9"}"#, Some("a\"bé")),
        ("prompts/get", r#"{"name":""}"#, Some("")),
        ("resources/read", r#"{"name":[],"uri":"file:///x"}"#, Some("file:///x")),
        ("resources/subscribe", r#"{"uri":"a:b"}"#, Some("a:b")),
        ("resources/unsubscribe", r#"{"uri":"a:b"}"#, Some("a:b")),
        ("tools/list", r#"{"name":"a","uri":"a:b"}"#, None),
    ] {
        let text = format!(r#"{{"params":{params},"method":"{method}","id":1,"jsonrpc":"2.0"}}"#);
        assert_eq!(parse(&text).unwrap().name(), name, "{text}");
    }
}

/// What the table of names lists, for one message each: method, params, and the names in their order.
const NAMED: &[(&str, &str, &[(NameOf, &str)])] = &[
    ("tools/call", r#"{"name":"a","uri":"b","ref":{"name":"c"}}"#, &[(NameOf::Tool, "a")]),
    ("prompts/get", r#"{"name":"a"}"#, &[(NameOf::Prompt, "a")]),
    ("resources/read", r#"{"uri":"a:b","name":"x"}"#, &[(NameOf::Resource, "a:b")]),
    ("resources/subscribe", r#"{"uri":"a:b"}"#, &[(NameOf::Resource, "a:b")]),
    ("resources/unsubscribe", r#"{"uri":"a:b"}"#, &[(NameOf::Resource, "a:b")]),
    ("completion/complete", r#"{"ref":{"type":"ref/prompt","name":"a"}}"#, &[(NameOf::Prompt, "a")]),
    ("completion/complete", r#"{"ref":{"type":"ref/resource","uri":"a:b"}}"#, &[(NameOf::Resource, "a:b")]),
    (
        "Completion/Complete",
        r#"{"ref":{"uri":"a:b","type":"ref/prompt","name":"\u0061"},"argument":{"name":"x","value":""}}"#,
        &[(NameOf::Prompt, "a"), (NameOf::Resource, "a:b")],
    ),
    ("completion/complete", r#"{"ref":null}"#, &[]),
    ("completion/complete", "null", &[]),
    (
        "subscriptions/listen",
        r#"{"notifications":{"toolsListChanged":true,"resourceSubscriptions":[ "a:b" , "c:\u0064" ]}}"#,
        &[(NameOf::Resource, "a:b"), (NameOf::Resource, "c:d")],
    ),
    ("subscriptions/listen", r#"{"notifications":{"resourceSubscriptions":[]}}"#, &[]),
    ("subscriptions/listen", r#"{"notifications":{"resourceSubscriptions":null}}"#, &[]),
    ("subscriptions/listen", r#"{"notifications":{}}"#, &[]),
    ("tasks/get", r#"{"taskId":"t"}"#, &[(NameOf::Task, "t")]),
    ("tasks/result", r#"{"taskId":"t"}"#, &[(NameOf::Task, "t")]),
    ("tasks/cancel", r#"{"taskId":"t"}"#, &[(NameOf::Task, "t")]),
    ("tasks/update", r#"{"taskId":"t","inputResponses":{"taskId":{}}}"#, &[(NameOf::Task, "t")]),
    ("notifications/tasks/status", r#"{"taskId":"t","status":"working"}"#, &[(NameOf::Task, "t")]),
    (
        "tools/call",
        r#"{"name":"a","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}"#,
        &[(NameOf::Tool, "a"), (NameOf::Task, "t")],
    ),
    ("acme/x", r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}"#, &[(NameOf::Task, "t")]),
    ("acme/x", r#"{"name":"a","uri":7,"taskId":[],"ref":"x","notifications":[{}]}"#, &[]),
];

/// F12: each listed member is read, wherever a revision puts it.
#[test]
fn every_listed_name_is_read() {
    for (method, params, names) in NAMED {
        let text = format!(r#"{{"params":{params},"method":"{method}","id":1,"jsonrpc":"2.0"}}"#);
        let envelope = parse(&text).unwrap();
        let read: Vec<_> = envelope.names().map(|name| (name.of(), name.text())).collect();
        assert_eq!(read, *names, "{text}");
        assert_eq!(envelope.name(), names.first().map(|(_, text)| *text), "{text}");
    }
    let result =
        r#"{"jsonrpc":"2.0","id":1,"result":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}}"#;
    assert_eq!(parse(result).unwrap().name(), Some("t"));
}

/// F12: a name that is there is a text, wherever it stands.
#[test]
fn a_name_of_another_type_is_refused() {
    for (method, params) in [
        ("completion/complete", r#"{"ref":"a"}"#),
        ("completion/complete", r#"{"ref":["a"]}"#),
        ("completion/complete", r#"{"ref":{"name":["a"]}}"#),
        ("completion/complete", r#"{"ref":{"uri":null}}"#),
        ("completion/complete", r#"{"ref":{"name":"a\u0000"}}"#),
        ("subscriptions/listen", r#"{"notifications":[]}"#),
        ("subscriptions/listen", r#"{"notifications":{"resourceSubscriptions":"a:b"}}"#),
        ("subscriptions/listen", r#"{"notifications":{"resourceSubscriptions":{"0":"a:b"}}}"#),
        ("subscriptions/listen", r#"{"notifications":{"resourceSubscriptions":["a:b",["c:d"]]}}"#),
        ("subscriptions/listen", r#"{"notifications":{"resourceSubscriptions":["a:b",null]}}"#),
        ("tasks/get", r#"{"taskId":7}"#),
        ("acme/x", r#"{"_meta":{"io.modelcontextprotocol/related-task":"t"}}"#),
        ("acme/x", r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":7}}}"#),
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        assert_eq!(parse(&text).err(), Some(EnvelopeError::InvalidParams), "{text}");
    }
}

/// F12: a message carries at most 1,000 names.
#[test]
fn the_number_of_names_is_bounded() {
    let listen = |count: usize| {
        let names = vec!["\"a:b\""; count].join(",");
        let params = format!(r#"{{"notifications":{{"resourceSubscriptions":[{names}]}}}}"#);
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{params}}}"#)
    };
    assert_eq!(parse(&listen(1000)).unwrap().names().count(), 1000);
    let error = parse(&listen(1001)).unwrap_err();
    assert_eq!((error, error.rpc_code().value()), (EnvelopeError::TooManyNames, -32602));
}

/// F13: a member that some readers take for one of the table is refused where the method reads that one, and so is a second one.
#[test]
fn members_that_name_something_stand_alone() {
    let related = "io.modelcontextprotocol/related-task";
    for (method, params) in [
        ("tools/call", r#"{"name":"a","NAME":"b"}"#.to_owned()),
        ("completion/complete", r#"{"ref":{"name":"a"},"Ref":{"name":"b"}}"#.to_owned()),
        ("completion/complete", r#"{"ref":{"name":"a","Name":"b"}}"#.to_owned()),
        ("completion/complete", r#"{"ref":{"uri":"a:b","ur\u0131":"c:d"}}"#.to_owned()),
        ("completion/complete", r#"{"ref":{"name\u0000":"b"}}"#.to_owned()),
        ("subscriptions/listen", r#"{"notification\u017f":{"resourceSubscriptions":["a:b"]}}"#.to_owned()),
        ("subscriptions/listen", r#"{"notifications":{"re\u017fourceSubscriptions":["a:b"]}}"#.to_owned()),
        ("subscriptions/listen", r#"{"notifications":{"resourcesubscriptions":["a:b"]}}"#.to_owned()),
        ("tasks/get", "{\"taskId\":\"t\",\"tas\u{212a}Id\":\"u\"}".to_owned()),
        ("tasks/get", r#"{"ta\u017fkid":"u"}"#.to_owned()),
        ("acme/x", format!(r#"{{"_meta":{{"{}":{{"taskId":"t"}}}}}}"#, related.replace('k', "\u{212a}"))),
        ("acme/x", format!(r#"{{"_meta":{{"{related}":{{"TaskId":"t"}}}}}}"#)),
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        assert_eq!(parse(&text).err(), Some(EnvelopeError::LookAlikeMember), "{text}");
    }
    for (method, params) in [
        ("completion/complete", r#"{"ref":{"name":"a"},"ref":{"name":"b"}}"#.to_owned()),
        ("completion/complete", r#"{"ref":{"name":"a","n\u0061me":"b"}}"#.to_owned()),
        (
            "subscriptions/listen",
            r#"{"notifications":{"resourceSubscriptions":[],"resourceSubscriptions":["a:b"]}}"#.to_owned(),
        ),
        ("tasks/get", r#"{"taskId":"t","taskId":"t"}"#.to_owned()),
        ("acme/x", format!(r#"{{"_meta":{{"{related}":{{}},"{related}":{{}}}}}}"#)),
        ("acme/x", format!(r#"{{"_meta":{{"{related}":{{"taskId":"t","taskId":"u"}}}}}}"#)),
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        assert_eq!(parse(&text).err(), Some(EnvelopeError::DuplicateMember), "{text}");
    }
    for (method, params) in [
        ("acme/x", r#"{"Name":1,"TaskId":2,"Ref":3,"Notifications":4,"URI":5}"#),
        ("tools/call", r#"{"name":"a","Ref":1,"TASKID":2,"arguments":{"Name":3,"name":4,"name":5}}"#),
        ("completion/complete", r#"{"ref":{"name":"a"},"Name":1,"argument":{"NAME":2}}"#),
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        assert!(parse(&text).is_ok(), "{text}");
    }
}

/// E11: 2026-07-28 does not have `resources/subscribe`: what it lacks is for the server to say; what it has is read.
#[test]
fn a_method_that_the_revision_lacks_requires_nothing() {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        let text = |params: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#);
        assert_eq!(parse(&text(meta)).unwrap().name(), None, "{method}");
        assert_eq!(parse(&text(&format!(r#"{meta},"uri":"a:b""#))).unwrap().name(), Some("a:b"), "{method}");
        assert_eq!(parse(&text("")).err(), Some(EnvelopeError::InvalidParams), "{method}");
        let legacy = meta.replace("2026-07-28", "2025-11-25");
        assert_eq!(parse(&text(&legacy)).err(), Some(EnvelopeError::InvalidParams), "{method}");
    }
}

/// E11: the id of a refused request is read where there is exactly one, and it is the client's.
#[test]
fn the_id_of_a_refused_request_is_read() {
    let deep =
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"x","params":{{"a":{}{}}}}}"#, "[".repeat(99), "]".repeat(99));
    for (text, id) in [
        (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{}}"#, Some("7")),
        (
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"a","name":"b"},"id":"a\u0062"}"#,
            Some(r#""a\u0062""#),
        ),
        (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"Name":"a"}}"#, Some("7")),
        (r#"{"jsonrpc":"2.0","id":7,"method":"x","Method":"y"}"#, Some("7")),
        (r#"{"jsonrpc":"2.0","id":7,"method":"x","method":"y"}"#, Some("7")),
        (r#"{"jsonrpc":"1.0","id":-7,"method":"x"}"#, Some("-7")),
        (r#"{"jsonrpc":"2.0","id":7,"method":5}"#, Some("7")),
        (r#"{"jsonrpc":"2.0","id":7,"method":"x","params":[]}"#, Some("7")),
        (&deep, Some("7")),
        (r#"{"jsonrpc":"2.0","id":7,"id":7,"method":"x","params":[]}"#, None),
        (r#"{"jsonrpc":"2.0","id":7,"ID":8,"method":"x"}"#, None),
        (r#"{"jsonrpc":"2.0","id":7,"id\u0000":8,"method":"x"}"#, None),
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
        assert_eq!(Envelope::refused_id(text.as_bytes()).map(RawValue::get), id, "{text}");
    }
    assert!(Envelope::refused_id(b"{\"id\":7,\"method\":\"\xFF\"}").is_none());
}

#[test]
fn a_method_that_acts_on_something_must_say_on_what() {
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
        assert_eq!((error, error.rpc_code().value()), (EnvelopeError::InvalidParams, -32602), "{text}");
    }
    assert_eq!(
        parse(r#"{"jsonrpc":"2.0","id":1,"method":"resources/read"}"#).err(),
        Some(EnvelopeError::InvalidParams)
    );
}

/// E2, F5: `initialize` is a request with its own version; `_meta` carries the modern one.
#[test]
fn versions_are_read_from_where_each_era_has_them() {
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
    let envelope = parse(initialize).unwrap();
    assert!(envelope.is_initialize());
    assert_eq!((envelope.initialize_version(), envelope.protocol_version()), (Some("2025-11-25"), None));
    let notification = parse(r#"{"jsonrpc":"2.0","method":"initialize","params":{}}"#).unwrap();
    assert!(!notification.is_initialize());

    let modern = r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"protocolVersion":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"a":1}}}}"#;
    let envelope = parse(modern).unwrap();
    assert_eq!((envelope.initialize_version(), envelope.protocol_version()), (None, Some("2026-07-28")));
    assert!(envelope.has_client_capabilities());
    for capabilities in ["null", "[]", "\"x\""] {
        let text = modern.replace(r#"{"a":1}"#, capabilities);
        assert!(!parse(&text).unwrap().has_client_capabilities(), "{text}");
    }
}

#[test]
fn members_that_are_not_read_pass_whatever_they_are() {
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"acme/x","extra":1e999,"extra":2,"params":{"arguments":{"half":"\ud83d","a":1,"a":2}}}"#;
    assert_eq!(parse(text).unwrap().method(), Some("acme/x"));
}

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

/// The texts that a plain reader finds where the table lists a name, in any order.
fn plainly_named(message: &Value) -> Vec<String> {
    let method = message["method"].as_str().unwrap_or_default().to_ascii_lowercase();
    let params = &message["params"];
    let related =
        [&params["_meta"], &message["result"]["_meta"]].map(|meta| meta[meta::RELATED_TASK]["taskId"].clone());
    let mut found: Vec<_> = related.into();
    found.extend(match &*method {
        "tools/call" | "prompts/get" => vec![params["name"].clone()],
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => vec![params["uri"].clone()],
        "completion/complete" => vec![params["ref"]["name"].clone(), params["ref"]["uri"].clone()],
        "subscriptions/listen" => {
            params["notifications"]["resourceSubscriptions"].as_array().cloned().unwrap_or_default()
        }
        "tasks/get" | "tasks/result" | "tasks/cancel" | "tasks/update" | "notifications/tasks/status" => {
            vec![params["taskId"].clone()]
        }
        _ => vec![],
    });
    let mut found: Vec<_> = found.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    found.sort_unstable();
    found
}

/// A message out of the members that decide something, in any order, some of them odd.
fn message() -> impl Strategy<Value = String> {
    let member = |names: &'static [&'static str], values: &'static [&'static str]| {
        let member = (proptest::sample::select(names), proptest::sample::select(values));
        member.prop_map(|(name, value)| format!("\"{name}\":{value}"))
    };
    let object = |members: BoxedStrategy<String>, most: usize| {
        vec(members, 0..most).prop_map(|all| format!("{{{}}}", all.join(","))).boxed()
    };
    let texts: &[&str] =
        &["\"a\"", "\"b:c\"", "\"\\u0064\"", "null", "7", "[]", "{}", "[\"e\",\"f\"]", "[7]", "\"\\u0000\""];
    let task = object(member(&["taskId", "TaskId", "x"], texts).boxed(), 2);
    let meta = object(task.prop_map(|task| format!("\"{}\":{task}", meta::RELATED_TASK)).boxed(), 2);
    let reference = object(member(&["name", "uri", "type", "Name"], texts).boxed(), 4);
    let filter =
        object(member(&["resourceSubscriptions", "toolsListChanged", "re\u{17f}ourceSubscriptions"], texts).boxed(), 3);
    let param = prop_oneof![
        4 => member(&["name", "uri", "taskId", "arguments", "NAME", "ta\u{17f}kId"], texts),
        2 => prop_oneof![reference, Just("\"x\"".to_owned())].prop_map(|reference| format!("\"ref\":{reference}")),
        2 => prop_oneof![filter, Just("null".to_owned())].prop_map(|filter| format!("\"notifications\":{filter}")),
        1 => meta.clone().prop_map(|meta| format!("\"_meta\":{meta}")),
    ];
    let methods = NAMED.iter().map(|(method, ..)| *method).chain(["TOOLS/CALL", "acme/x"]).collect::<Vec<_>>();
    let call = (proptest::sample::select(methods), object(param.boxed(), 5))
        .prop_map(|(method, params)| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#));
    prop_oneof![
        9 => call,
        1 => meta.prop_map(|meta| format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"_meta":{meta}}}}}"#)),
    ]
}

proptest! {
    /// F12, F13: the names of a message that is accepted are those that a plain reader finds.
    #[test]
    fn names_are_those_of_a_plain_reader(message in message()) {
        if let Ok(envelope) = parse(&message) {
            let tree: Value = serde_json::from_str(&message).unwrap();
            let mut names: Vec<_> = envelope.names().map(|name| name.text().to_owned()).collect();
            names.sort_unstable();
            prop_assert_eq!(names, plainly_named(&tree));
        }
    }

    /// E11: the id of a refused request is the one that a plain reader finds.
    #[test]
    fn a_refused_id_is_that_of_a_plain_reader(message in message(), cut in 0_usize..200) {
        let _ = Envelope::refused_id(&message.as_bytes()[..cut.min(message.len())]);
        if let Some(id) = Envelope::refused_id(message.as_bytes()) {
            let tree: Value = serde_json::from_str(&message).unwrap();
            prop_assert_eq!(id.get(), tree["id"].to_string());
        }
    }

    #[test]
    fn what_was_written_is_read(method in ".{0,12}", name in any::<String>(), id in any::<i64>(), arguments in value()) {
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
    fn depth_is_counted_as_the_tree_has_it(value in value()) {
        let message = json!({"jsonrpc": "2.0", "id": 1, "result": value}).to_string();
        let needed = 1 + depth(&value);
        let fits = Limits { max_depth: needed };
        prop_assert!(Envelope::parse(message.as_bytes(), fits).is_ok());
        prop_assert_eq!(
            Envelope::parse(message.as_bytes(), Limits { max_depth: needed - 1 }).err(),
            Some(EnvelopeError::TooDeep)
        );
    }

    #[test]
    fn no_bytes_panic(bytes in vec(any::<u8>(), 0..128)) {
        let _ = Envelope::parse(&bytes, Limits::default());
    }

    #[test]
    fn no_cut_or_changed_message_panics_or_reads_as_another(at in 0_usize..120, byte in any::<u8>()) {
        let message = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","_meta":{"progressToken":"t"}}}"#;
        let at = at % message.len();
        prop_assert!(Envelope::parse(&message[..at], Limits::default()).is_err());
        let mut changed = message.to_vec();
        changed[at] = byte;
        if let Ok(envelope) = Envelope::parse(&changed, Limits::default()) {
            let tree: Value = serde_json::from_slice(&changed).unwrap();
            prop_assert_eq!(envelope.method(), tree["method"].as_str());
            if envelope.name().is_some() {
                prop_assert_eq!(envelope.name(), tree["params"]["name"].as_str());
            }
        }
    }
}
