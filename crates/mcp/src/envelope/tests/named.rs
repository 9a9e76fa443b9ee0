//! The names and the id of a message, compared with a simple JSON parser.

mod messages;
mod rejected_id;

use proptest::prelude::*;
use serde_json::Value;

use self::messages::{message, plainly_named};
use super::*;
use crate::{Revisions, client_methods};

type Named = (
    &'static str,
    &'static str,
    &'static [(TargetType, &'static str)],
);

/// One message for each entry of the table of names: method, params, and the names in order.
const NAMED: &[Named] = &[
    (
        "tools/call",
        r#"{"name":"a","uri":"b","ref":{"name":"c"}}"#,
        &[(TargetType::Tool, "a")],
    ),
    (
        "prompts/get",
        r#"{"name":"a"}"#,
        &[(TargetType::Prompt, "a")],
    ),
    (
        "resources/read",
        r#"{"uri":"a:b","name":"x"}"#,
        &[(TargetType::Resource, "a:b")],
    ),
    (
        "resources/subscribe",
        r#"{"uri":"a:b"}"#,
        &[(TargetType::Resource, "a:b")],
    ),
    (
        "resources/unsubscribe",
        r#"{"uri":"a:b"}"#,
        &[(TargetType::Resource, "a:b")],
    ),
    (
        "completion/complete",
        r#"{"ref":{"type":"ref/prompt","name":"a"}}"#,
        &[(TargetType::Prompt, "a")],
    ),
    (
        "completion/complete",
        r#"{"ref":{"type":"ref/resource","uri":"a:b"}}"#,
        &[(TargetType::Resource, "a:b")],
    ),
    (
        "Completion/Complete",
        r#"{"ref":{"uri":"a:b","type":"ref/prompt","name":"\u0061"},"argument":{"name":"x","value":""}}"#,
        &[(TargetType::Prompt, "a"), (TargetType::Resource, "a:b")],
    ),
    ("completion/complete", r#"{"ref":null}"#, &[]),
    ("completion/complete", "null", &[]),
    (
        "subscriptions/listen",
        r#"{"notifications":{"toolsListChanged":true,"resourceSubscriptions":[ "a:b" , "c:\u0064" ]}}"#,
        &[(TargetType::Resource, "a:b"), (TargetType::Resource, "c:d")],
    ),
    (
        "subscriptions/listen",
        r#"{"notifications":{"resourceSubscriptions":[]}}"#,
        &[],
    ),
    (
        "subscriptions/listen",
        r#"{"notifications":{"resourceSubscriptions":null}}"#,
        &[],
    ),
    ("subscriptions/listen", r#"{"notifications":{}}"#, &[]),
    ("tasks/get", r#"{"taskId":"t"}"#, &[(TargetType::Task, "t")]),
    (
        "tasks/result",
        r#"{"taskId":"t"}"#,
        &[(TargetType::Task, "t")],
    ),
    (
        "tasks/cancel",
        r#"{"taskId":"t"}"#,
        &[(TargetType::Task, "t")],
    ),
    (
        "tasks/update",
        r#"{"taskId":"t","inputResponses":{"taskId":{}}}"#,
        &[(TargetType::Task, "t")],
    ),
    (
        "notifications/tasks/status",
        r#"{"taskId":"t","status":"working"}"#,
        &[(TargetType::Task, "t")],
    ),
    (
        "tools/call",
        r#"{"name":"a","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}"#,
        &[(TargetType::Tool, "a"), (TargetType::Task, "t")],
    ),
    (
        "acme/x",
        r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}"#,
        &[(TargetType::Task, "t")],
    ),
    (
        "acme/x",
        r#"{"name":"a","uri":7,"taskId":[],"ref":"x","notifications":[{}]}"#,
        &[],
    ),
];

/// F12: each listed member is read.
#[test]
fn every_listed_name_is_read() {
    for (method, params, names) in NAMED {
        let text = format!(r#"{{"params":{params},"method":"{method}","id":1,"jsonrpc":"2.0"}}"#);
        let envelope = parse(&text).unwrap();
        let read: Vec<_> = envelope
            .names()
            .map(|name| (name.target_type(), name.as_str()))
            .collect();
        assert_eq!(read, *names, "{text}");
        assert_eq!(
            envelope.name(),
            names.first().map(|(_, text)| *text),
            "{text}"
        );
    }
    let result = r#"{"jsonrpc":"2.0","id":1,"result":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}}"#;
    assert_eq!(parse(result).unwrap().name(), Some("t"));
}

/// F12: a name must be a string in every member.
#[test]
fn a_name_of_another_type_is_rejected() {
    for (method, params) in [
        ("completion/complete", r#"{"ref":"a"}"#),
        ("completion/complete", r#"{"ref":["a"]}"#),
        ("completion/complete", r#"{"ref":{"name":["a"]}}"#),
        ("completion/complete", r#"{"ref":{"uri":null}}"#),
        ("completion/complete", r#"{"ref":{"name":"a\u0000"}}"#),
        ("subscriptions/listen", r#"{"notifications":[]}"#),
        (
            "subscriptions/listen",
            r#"{"notifications":{"resourceSubscriptions":"a:b"}}"#,
        ),
        (
            "subscriptions/listen",
            r#"{"notifications":{"resourceSubscriptions":{"0":"a:b"}}}"#,
        ),
        (
            "subscriptions/listen",
            r#"{"notifications":{"resourceSubscriptions":["a:b",["c:d"]]}}"#,
        ),
        (
            "subscriptions/listen",
            r#"{"notifications":{"resourceSubscriptions":["a:b",null]}}"#,
        ),
        ("tasks/get", r#"{"taskId":7}"#),
        (
            "acme/x",
            r#"{"_meta":{"io.modelcontextprotocol/related-task":"t"}}"#,
        ),
        (
            "acme/x",
            r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":7}}}"#,
        ),
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        assert_eq!(
            parse(&text).err(),
            Some(EnvelopeError::InvalidParams),
            "{text}"
        );
    }
}

/// F12: a message has at most 1,000 names.
#[test]
fn the_number_of_names_is_bounded() {
    let listen = |count: usize| {
        let names = vec!["\"a:b\""; count].join(",");
        let params = format!(r#"{{"notifications":{{"resourceSubscriptions":[{names}]}}}}"#);
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{params}}}"#)
    };
    assert_eq!(parse(&listen(1000)).unwrap().names().count(), 1000);
    let error = parse(&listen(1001)).unwrap_err();
    assert_eq!(error, EnvelopeError::TooManyNames);
    assert_eq!(error.rpc_code().value(), -32602);
}

/// F12: the method and each name have at most 8,192 bytes, after they are decoded. All names
/// together have at most 1 MiB.
#[test]
fn the_length_of_names_is_bounded() {
    let message = |method: &str, params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
    };
    let escaped = |count| "\\u0061".repeat(count);
    let maximum = Envelope::MAX_NAME_BYTES;
    for name in ["a".repeat(maximum), escaped(maximum)] {
        let too_long = [name.clone(), "a".to_owned()].concat();
        assert!(parse(&message(&name, "{}")).is_ok());
        assert_eq!(
            parse(&message(&too_long, "{}")).unwrap_err(),
            EnvelopeError::MethodTooLong
        );
        for (method, params, names) in NAMED.iter().filter(|(.., names)| names.len() == 1) {
            let with = |name: &str| {
                message(
                    method,
                    &params.replacen(&format!("\"{}\"", names[0].1), &format!("\"{name}\""), 1),
                )
            };
            assert_eq!(
                parse(&with(&name)).unwrap().name().map(str::len),
                Some(maximum),
                "{method}"
            );
            assert_eq!(
                parse(&with(&too_long)).unwrap_err(),
                EnvelopeError::NameTooLong,
                "{method}"
            );
        }
    }
    let uris = |count: usize| {
        let uris = vec![format!("\"{}\"", "a".repeat(maximum)); count].join(",");
        message(
            "subscriptions/listen",
            &format!(r#"{{"notifications":{{"resourceSubscriptions":[{uris}]}}}}"#),
        )
    };
    assert_eq!(parse(&uris(128)).unwrap().names().count(), 128);
    assert_eq!(parse(&uris(129)).unwrap_err(), EnvelopeError::TooManyNames);
    assert_eq!(EnvelopeError::NameTooLong.rpc_code().value(), -32602);
    assert_eq!(EnvelopeError::MethodTooLong.rpc_code().value(), -32600);
}

/// F13: a duplicate or similar member is rejected if the method reads the member.
#[test]
fn members_with_names_are_unique() {
    let related = "io.modelcontextprotocol/related-task";
    for (method, params) in [
        ("tools/call", r#"{"name":"a","NAME":"b"}"#.to_owned()),
        (
            "completion/complete",
            r#"{"ref":{"name":"a"},"Ref":{"name":"b"}}"#.to_owned(),
        ),
        (
            "completion/complete",
            r#"{"ref":{"name":"a","Name":"b"}}"#.to_owned(),
        ),
        (
            "completion/complete",
            r#"{"ref":{"uri":"a:b","ur\u0131":"c:d"}}"#.to_owned(),
        ),
        (
            "completion/complete",
            r#"{"ref":{"name\u0000":"b"}}"#.to_owned(),
        ),
        (
            "subscriptions/listen",
            r#"{"notification\u017f":{"resourceSubscriptions":["a:b"]}}"#.to_owned(),
        ),
        (
            "subscriptions/listen",
            r#"{"notifications":{"re\u017fourceSubscriptions":["a:b"]}}"#.to_owned(),
        ),
        (
            "subscriptions/listen",
            r#"{"notifications":{"resourcesubscriptions":["a:b"]}}"#.to_owned(),
        ),
        (
            "tasks/get",
            "{\"taskId\":\"t\",\"tas\u{212a}Id\":\"u\"}".to_owned(),
        ),
        ("tasks/get", r#"{"ta\u017fkid":"u"}"#.to_owned()),
        (
            "acme/x",
            format!(
                r#"{{"_meta":{{"{}":{{"taskId":"t"}}}}}}"#,
                related.replace('k', "\u{212a}")
            ),
        ),
        (
            "acme/x",
            format!(r#"{{"_meta":{{"{related}":{{"TaskId":"t"}}}}}}"#),
        ),
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        assert_eq!(
            parse(&text).err(),
            Some(EnvelopeError::LookAlikeMember),
            "{text}"
        );
    }
    for (method, params) in [
        (
            "completion/complete",
            r#"{"ref":{"name":"a"},"ref":{"name":"b"}}"#.to_owned(),
        ),
        (
            "completion/complete",
            r#"{"ref":{"name":"a","n\u0061me":"b"}}"#.to_owned(),
        ),
        (
            "subscriptions/listen",
            r#"{"notifications":{"resourceSubscriptions":[],"resourceSubscriptions":["a:b"]}}"#
                .to_owned(),
        ),
        ("tasks/get", r#"{"taskId":"t","taskId":"t"}"#.to_owned()),
        (
            "acme/x",
            format!(r#"{{"_meta":{{"{related}":{{}},"{related}":{{}}}}}}"#),
        ),
        (
            "acme/x",
            format!(r#"{{"_meta":{{"{related}":{{"taskId":"t","taskId":"u"}}}}}}"#),
        ),
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        assert_eq!(
            parse(&text).err(),
            Some(EnvelopeError::DuplicateMember),
            "{text}"
        );
    }
    for (method, params) in [
        (
            "acme/x",
            r#"{"Name":1,"TaskId":2,"Ref":3,"Notifications":4,"URI":5}"#,
        ),
        (
            "tools/call",
            r#"{"name":"a","Ref":1,"TASKID":2,"arguments":{"Name":3,"name":4,"name":5}}"#,
        ),
        (
            "completion/complete",
            r#"{"ref":{"name":"a"},"Name":1,"argument":{"NAME":2}}"#,
        ),
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        assert!(parse(&text).is_ok(), "{text}");
    }
}

/// E11: 2026-07-28 does not have `resources/subscribe`, so its name is not required, but is read.
#[test]
fn a_method_that_the_revision_lacks_requires_nothing() {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        let text = |params: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#)
        };
        assert_eq!(parse(&text(meta)).unwrap().name(), None, "{method}");
        assert_eq!(
            parse(&text(&format!(r#"{meta},"uri":"a:b""#)))
                .unwrap()
                .name(),
            Some("a:b"),
            "{method}"
        );
        assert_eq!(
            parse(&text("")).err(),
            Some(EnvelopeError::InvalidParams),
            "{method}"
        );
        let legacy = meta.replace("2026-07-28", "2025-11-25");
        assert_eq!(
            parse(&text(&legacy)).err(),
            Some(EnvelopeError::InvalidParams),
            "{method}"
        );
    }
}

proptest! {
    /// F12, F13: the names of an accepted message are those that a simple parser finds.
    #[test]
    fn names_agree_with_a_simple_parser(message in message()) {
        if let Ok(envelope) = parse(&message) {
            let tree: Value = serde_json::from_str(&message).unwrap();
            let mut names: Vec<_> = envelope.names().map(|name| name.as_str().to_owned()).collect();
            names.sort_unstable();
            prop_assert_eq!(names, plainly_named(&tree));
        }
    }
}

/// B9: these methods have no member that names something.
#[test]
fn methods_without_target_are_known() {
    let without: Vec<_> = client_methods(Revisions::ALL)
        .filter(|method| !has_target(method))
        .collect();
    assert_eq!(
        without,
        [
            "initialize",
            "logging/setLevel",
            "notifications/initialized",
            "notifications/roots/list_changed",
            "ping",
            "prompts/list",
            "resources/list",
            "resources/templates/list",
            "server/discover",
            "tasks/list",
            "tools/list",
        ]
    );
}
