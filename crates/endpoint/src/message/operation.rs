//! The operation that decisions report for a message.

use std::borrow::Cow;

use portcullis_guard::Operation;
use portcullis_mcp::{Envelope, Name, TargetType};

/// Returns the method and targets of a message; `None` for a response.
pub(crate) fn operation(envelope: &Envelope<'_>) -> Option<Operation> {
    let method = envelope.method()?;
    let mut targets = envelope.names().map(target);
    let operation = Operation::new(method, targets.next().as_deref());
    Some(operation.with_additional_targets(targets))
}

fn target<'e>(name: &'e Name<'_>) -> Cow<'e, str> {
    match name.target_type() {
        TargetType::Resource => without_secrets(name.as_str()),
        _ => Cow::Borrowed(name.as_str()),
    }
}

/// Removes query, fragment and user information from a URI. They can contain secrets. A resource's
/// URI does not have to be a URL that parses.
fn without_secrets(uri: &str) -> Cow<'_, str> {
    let uri = uri.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = uri.split_once("://") else {
        return Cow::Borrowed(uri);
    };
    let authority = rest.split(['/', '\\']).next().unwrap_or_default();
    match authority.rsplit_once('@') {
        Some((information, _)) => {
            Cow::Owned(format!("{scheme}://{}", &rest[information.len() + 1..]))
        }
        None => Cow::Borrowed(uri),
    }
}

#[cfg(test)]
mod tests {
    use portcullis_mcp::EnvelopeLimits;
    use serde_json::json;

    use super::*;

    fn reported(method: &str, params: serde_json::Value) -> (String, Option<String>) {
        let message =
            json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let envelope = Envelope::parse(message.as_bytes(), EnvelopeLimits::default()).unwrap();
        let operation = operation(&envelope).unwrap();
        (
            operation.name().to_owned(),
            operation.target().map(str::to_owned),
        )
    }

    /// J4: method and tool are reported.
    #[test]
    fn messages_are_reported_by_method_and_name() {
        for (method, params, target) in [
            (
                "tools/call",
                json!({"name": "a?b#c://d@e"}),
                Some("a?b#c://d@e"),
            ),
            ("prompts/get", json!({"name": "greet"}), Some("greet")),
            ("tools/list", json!({"name": "x"}), None),
        ] {
            assert_eq!(
                reported(method, params),
                (method.to_owned(), target.map(str::to_owned))
            );
        }
        let response = Envelope::parse(
            br#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            EnvelopeLimits::default(),
        )
        .unwrap();
        assert_eq!(operation(&response), None);
    }

    /// J4: every checked name is reported.
    #[test]
    fn all_names_of_a_message_are_reported() {
        let message = json!({
            "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen",
            "params": {"notifications": {"resourceSubscriptions": ["file:///a", "https://u:p@b/?key=secret", "note:c"]}},
        })
        .to_string();
        let envelope = Envelope::parse(message.as_bytes(), EnvelopeLimits::default()).unwrap();
        let operation = operation(&envelope).unwrap();
        assert_eq!(operation.target(), Some("file:///a"));
        assert_eq!(operation.target_count(), 3);
        assert_eq!(
            operation.additional_targets().collect::<Vec<_>>(),
            ["https://b/", "note:c"]
        );
    }

    /// J2: the parts of a resource URI that can contain secrets are not reported, in any letter
    /// case of the method.
    #[test]
    fn secrets_in_uris_are_not_reported() {
        for (uri, target) in [
            ("file:///a/b", "file:///a/b"),
            ("https://a.example/b?key=secret", "https://a.example/b"),
            ("https://a.example/b#secret", "https://a.example/b"),
            ("https://me:secret@a.example/b@c?d", "https://a.example/b@c"),
            ("https://me:sec@ret@a.example", "https://a.example"),
            ("note:1?secret", "note:1"),
        ] {
            assert_eq!(
                reported("Resources/Read", json!({"uri": uri})).1.as_deref(),
                Some(target),
                "{uri}"
            );
        }
    }
}
