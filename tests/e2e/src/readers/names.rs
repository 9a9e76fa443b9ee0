//! The names of a message, the protected names, and equivalent spellings of a URI.

use percent_encoding::percent_decode_str;
use serde_json::Value;
use url::Url;

/// The scope that the token lacks.
pub(super) const ADMIN: &str = "mcp:admin";

/// The protected methods and names of the rules.
pub(super) const RULES: [(&str, &str); 7] = [
    ("tools/call", "admin_*"),
    ("prompts/get", "secret_*"),
    ("resources/*", "file:///secret/*"),
    ("completion/complete", "secret_*"),
    ("completion/complete", "file:///secret/*"),
    ("subscriptions/listen", "file:///secret/*"),
    ("tasks/*", "admin-*"),
];

/// Returns the names in a message's `params`, by the schemas of all served revisions and of the
/// tasks extension.
pub(super) fn names_of(method: &str, params: &Value) -> Vec<String> {
    let members: Vec<&Value> = match method {
        "tools/call" | "prompts/get" => vec![&params["name"]],
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => vec![&params["uri"]],
        "completion/complete" => vec![&params["ref"]["name"], &params["ref"]["uri"]],
        "subscriptions/listen" => params["notifications"]["resourceSubscriptions"]
            .as_array()
            .into_iter()
            .flatten()
            .collect(),
        "tasks/get" | "tasks/result" | "tasks/update" | "tasks/cancel" => vec![&params["taskId"]],
        _ => Vec::new(),
    };
    members
        .into_iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

/// Returns whether a rule requires the missing scope for this name.
///
/// A URI counts under each of its [forms]: what the reader does with it afterwards is not known.
pub(super) fn is_protected(method: &str, name: &str) -> bool {
    RULES
        .iter()
        .filter(|(methods, _)| matches(methods, method))
        .any(|(_, names)| {
            let candidates = if names.contains("://") {
                forms(name)
            } else {
                vec![name.to_owned()]
            };
            candidates.iter().any(|candidate| matches(names, candidate))
        })
}

/// Returns whether a name that a reader saw is the audited one.
///
/// The trail leaves out query, fragment and user information of a URI, and cuts long names, which
/// then end in `…`.
pub(super) fn is_audited(method: &str, seen: &str, audited: &str) -> bool {
    let is_uri = match method {
        // A query can begin before the end of the scheme, as in `fi?le:a`.
        "completion/complete" => audited.contains(':') || seen.contains(':'),
        _ => ["resources/", "subscriptions/"]
            .iter()
            .any(|start| method.starts_with(start)),
    };
    let variants = |name: &str| {
        if is_uri {
            forms(name)
        } else {
            vec![name.to_owned()]
        }
    };
    let seen = variants(seen);
    if let Some(cut) = audited.strip_suffix('…') {
        return seen
            .iter()
            .any(|seen| seen.starts_with(cut) || without_secrets(seen).starts_with(cut));
    }
    let audited = variants(audited);
    let is_same = |seen: &String| {
        audited.contains(seen)
            || (is_uri
                && audited
                    .iter()
                    .any(|audited| without_secrets(seen) == without_secrets(audited)))
    };
    seen.iter().any(is_same)
}

/// Returns a URI unchanged, normalized by the WHATWG URL standard, and additionally
/// percent-decoded.
fn forms(uri: &str) -> Vec<String> {
    let mut forms = vec![uri.to_owned()];
    if let Ok(url) = Url::parse(uri) {
        forms.push(
            percent_decode_str(url.as_str())
                .decode_utf8_lossy()
                .into_owned(),
        );
        forms.push(url.into());
    }
    forms
}

fn without_secrets(uri: &str) -> String {
    let uri = uri.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = uri.split_once("://") else {
        return uri.to_owned();
    };
    let authority = rest.split(['/', '\\']).next().unwrap_or_default();
    let after = authority
        .rsplit_once('@')
        .map_or(0, |(information, _)| information.len() + 1);
    format!("{scheme}://{}", &rest[after..])
}

/// Returns whether a text matches a glob with at most one asterisk, at the end.
fn matches(glob: &str, text: &str) -> bool {
    glob.strip_suffix('*')
        .map_or(glob == text, |start| text.starts_with(start))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_spelling_of_a_protected_uri_is_protected() {
        for uri in [
            "file:///secret/x",
            "file:///public/../secret/x",
            "file:///public/%2e%2e/secret/x",
            "file://localhost/secret/x",
            " file:///secret/x",
            "file:///sec\tret/x",
            "file:///%73ecret/x",
            "FILE:/secret/x",
        ] {
            assert!(is_protected("resources/read", uri), "{uri}");
            assert!(is_protected("subscriptions/listen", uri), "{uri}");
        }
        assert!(!is_protected("resources/read", "file:///public/secret/x"));
        assert!(!is_protected("tools/call", "file:///secret/x"));
        assert!(is_protected("tools/call", "admin_wipe"));
        assert!(!is_protected("tools/call", "echo"));
    }

    #[test]
    fn names_stand_in_many_members() {
        let listen = json!({"notifications": {"resourceSubscriptions": ["a", 1, "b"]}});
        assert_eq!(names_of("subscriptions/listen", &listen), ["a", "b"]);
        assert_eq!(
            names_of(
                "completion/complete",
                &json!({"ref": {"uri": "u", "name": "n"}})
            ),
            ["n", "u"]
        );
        assert_eq!(
            names_of("tools/list", &json!({"name": "n"})),
            Vec::<String>::new()
        );
        assert_eq!(names_of("tools/call", &json!(null)), Vec::<String>::new());
    }

    #[test]
    fn audited_names_stand_for_their_aliases() {
        assert!(is_audited("tools/call", "echo", "echo"));
        assert!(!is_audited("tools/call", "admin_wipe", "echo"));
        assert!(is_audited("tools/call", "echo_and_more", "echo…"));
        assert!(is_audited(
            "resources/read",
            "file:///secret/x",
            "file:///public/../secret/x"
        ));
        assert!(is_audited(
            "resources/read",
            "https://me:pw@a.example/b?key",
            "https://a.example/b"
        ));
        assert!(!is_audited(
            "resources/read",
            "file:///secret/x",
            "file:///public/x"
        ));
        assert!(is_audited(
            "completion/complete",
            "file?://me:pw@localhost/x",
            "file"
        ));
        assert!(is_audited("completion/complete", "fi?le:secret/x", "fi"));
        assert!(!is_audited("completion/complete", "file?x", "file"));
        assert!(!is_audited("completion/complete", "fi?le:secret/x", "file"));
    }
}
