//! The fixed messages: names in every member that can have one, and every known ambiguity between
//! readers.

mod encodings;
mod members;
mod uris;

use std::borrow::Cow;

pub(super) use self::{
    encodings::{CONTENT_TYPES, UTF_7_NAME},
    uris::ALIASES as URI_ALIASES,
};

use portcullis_mcp::{encode_mirrored, header, meta, mirrored_member};
use serde_json::{Value, json};

/// The protocol of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Era {
    /// In a session.
    Legacy,
    /// Without a session, as in 2026-07-28.
    Modern,
}

/// One message.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) label: String,
    pub(super) era: Era,
    /// Headers in addition to the standard ones, or in their place.
    pub(super) headers: Vec<(String, Vec<u8>)>,
    pub(super) body: Vec<u8>,
    /// The name that all readers, or this one, must report.
    expected: Option<(&'static str, Option<&'static str>)>,
}

/// The identifier that [`number`] replaces, so that no two requests of a session share one.
const IDENTIFIER: &[u8] = br#""id":0"#;
const MODERN: &str = "2026-07-28";
/// Bytes of a body in a finding.
const MAX_SHOWN: usize = 240;

/// Returns all fixed messages.
pub(super) fn fixed() -> Vec<Case> {
    let mut cases = plain();
    cases.extend(uris::cases());
    cases.extend(members::cases());
    cases.extend(encodings::cases());
    cases
}

/// Returns messages for the privileged token, each with a name that readers must report.
pub(super) fn controls() -> Vec<Case> {
    let alias = "file://localhost/secret/x";
    vec![
        call("control", "admin_wipe").expecting("admin_wipe", None),
        legacy("control", "prompts/get", &json!({"name": "secret_plan"}))
            .expecting("secret_plan", None),
        read("control", "file:///secret/x").expecting("file:///secret/x", None),
        // This server is known to serve the resource under its alias.
        read("control: an alias", alias).expecting("file:///secret/x", Some("typescript")),
    ]
}

/// Gives every message a unique id.
pub(super) fn number(cases: &mut [Case]) {
    for (number, case) in (1..).zip(cases) {
        if let Some(at) = case
            .body
            .windows(IDENTIFIER.len())
            .position(|window| window == IDENTIFIER)
        {
            let identifier = format!("\"id\":{number}").into_bytes();
            case.body.splice(at..at + IDENTIFIER.len(), identifier);
        }
    }
}

/// Returns a plain message for every member that can have a name, with a protected and with another
/// name.
fn plain() -> Vec<Case> {
    let mut cases = vec![
        legacy("plain", "tools/list", &json!({})),
        legacy("plain", "ping", &json!({})),
    ];
    for (method, params) in members_with("echo", "file:///public/x", "task-1")
        .into_iter()
        .chain(members_with("admin_wipe", "file:///secret/x", "admin-1"))
    {
        cases.push(legacy("plain", method, &params));
        cases.push(modern("plain", method, &params));
    }
    cases
}

/// Returns every method with names.
fn members_with(tool: &str, uri: &str, task: &str) -> Vec<(&'static str, Value)> {
    let prompt = if tool == "echo" {
        "greeting"
    } else {
        "secret_plan"
    };
    let argument = json!({"name": "topic", "value": ""});
    vec![
        ("tools/call", json!({"name": tool, "arguments": {}})),
        ("prompts/get", json!({"name": prompt})),
        ("resources/read", json!({"uri": uri})),
        ("resources/subscribe", json!({"uri": uri})),
        ("resources/unsubscribe", json!({"uri": uri})),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": prompt}, "argument": argument}),
        ),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/resource", "uri": uri}, "argument": argument}),
        ),
        (
            "subscriptions/listen",
            json!({"notifications": {"resourceSubscriptions": [uri]}}),
        ),
        (
            "subscriptions/listen",
            json!({"notifications": {"toolsListChanged": true, "resourceSubscriptions": ["file:///public/x", uri]}}),
        ),
        ("tasks/get", json!({"taskId": task})),
        ("tasks/result", json!({"taskId": task})),
        (
            "tasks/update",
            json!({"taskId": task, "inputResponses": {}}),
        ),
        ("tasks/cancel", json!({"taskId": task})),
    ]
}

impl Case {
    fn new(label: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        Self {
            label: label.into(),
            era: Era::Legacy,
            headers: Vec::new(),
            body: body.into(),
            expected: None,
        }
    }

    /// Returns a generated message.
    pub(super) fn composed(body: String) -> Self {
        Self::new("composed", body)
    }

    /// With a header in addition to the standard ones, or in its place.
    pub(super) fn header(mut self, name: &str, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    fn expecting(mut self, name: &'static str, reader: Option<&'static str>) -> Self {
        self.expected = Some((name, reader));
        self
    }

    /// Returns the name that this reader must report.
    pub(super) fn expected_for(&self, reader: &str) -> Option<&'static str> {
        let (name, only) = self.expected?;
        only.is_none_or(|only| only == reader).then_some(name)
    }

    /// Returns its headers and its body as text.
    pub(super) fn body_shown(&self) -> String {
        let shown = String::from_utf8_lossy(&self.body[..self.body.len().min(MAX_SHOWN)]);
        let headers = self
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {} | ", value.escape_ascii()));
        format!("{}{}", headers.collect::<String>(), shown.escape_debug())
    }
}

/// Returns a message with these params.
fn legacy(label: &str, method: &str, params: &Value) -> Case {
    Case::new(format!("{label}: {method}"), body(method, params))
}

/// Returns a request of 2026-07-28 with its headers.
fn modern(label: &str, method: &str, params: &Value) -> Case {
    let mut params = params.clone();
    if let Some(params) = params.as_object_mut() {
        let meta = json!({meta::PROTOCOL_VERSION: MODERN, meta::CLIENT_CAPABILITIES: {}, meta::CLIENT_INFO: {"name": "readers", "version": "1"}});
        params.insert("_meta".to_owned(), meta);
    }
    let mut case = Case::new(
        format!("{label}, {MODERN}: {method}"),
        body(method, &params),
    )
    .header(header::PROTOCOL_VERSION.as_str(), MODERN)
    .header(header::METHOD.as_str(), method);
    let member = if method.starts_with("tasks/") {
        Some("taskId")
    } else {
        mirrored_member(method)
    };
    if let Some(name) = member.and_then(|member| params[member].as_str()) {
        case = case.header(header::NAME.as_str(), encode_mirrored(name).as_bytes());
    }
    case.era = Era::Modern;
    case
}

fn call(label: &str, tool: &str) -> Case {
    legacy(label, "tools/call", &json!({"name": tool, "arguments": {}}))
}

/// Returns a request to read a resource.
fn read(label: &str, uri: &str) -> Case {
    legacy(label, "resources/read", &json!({"uri": uri}))
}

/// Returns a message with these bytes as `params`.
fn raw(label: &str, method: &str, params: &str) -> Case {
    let text = format!(r#"{{"jsonrpc":"2.0","id":0,"method":"{method}","params":{params}}}"#);
    Case::new(format!("{label}: {method}"), text)
}

fn body(method: &str, params: &Value) -> Vec<u8> {
    // Not serialized, so that the id is where `number` expects it.
    let method: Cow<'_, str> = Value::from(method).to_string().into();
    format!(r#"{{"jsonrpc":"2.0","id":0,"method":{method},"params":{params}}}"#).into_bytes()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_message_with_an_identifier_has_its_own() {
        let mut cases = fixed();
        assert!(cases.len() > 200, "{}", cases.len());
        number(&mut cases);
        let read = |case: &Case| {
            Some(
                serde_json::from_slice::<Value>(&case.body)
                    .ok()?
                    .get("id")?
                    .to_string(),
            )
        };
        let identifiers: Vec<_> = cases
            .iter()
            .filter_map(read)
            .filter(|id| id.parse::<u64>().is_ok())
            .collect();
        assert_eq!(
            identifiers.iter().collect::<HashSet<_>>().len(),
            identifiers.len()
        );
    }

    #[test]
    fn modern_messages_mirror_what_they_name() {
        let case = modern("a", "tools/call", &json!({"name": "echo"}));
        let name = case
            .headers
            .iter()
            .find(|(name, _)| name == "mcp-name")
            .map(|(_, value)| value.as_slice());
        assert_eq!(name, Some(&b"echo"[..]));
        assert!(
            String::from_utf8(case.body)
                .unwrap()
                .contains(meta::PROTOCOL_VERSION)
        );
    }
}
