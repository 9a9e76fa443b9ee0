//! URLs that are malformed and that lenient parsers repair (RFC 3986, URL Standard).

use std::cell::RefCell;

use serde_json::Value;
use url::{SyntaxViolation, Url};

use crate::{Finding, Rule, text};

const MALFORMED: Rule = Rule {
    id: "url.malformed",
    source: "RFC 3986 section 3",
};

/// Checks the members of a metadata document whose values are URLs.
pub(crate) fn check_document(body: &[u8]) -> Vec<Finding> {
    let Ok(Value::Object(members)) = serde_json::from_slice(body) else {
        return Vec::new();
    };
    let is_url = |name: &str| {
        name.ends_with("_endpoint")
            || name.ends_with("_uri")
            || matches!(
                name,
                "issuer" | "resource" | "authorization_servers" | "resource_documentation"
            )
    };
    let mut findings = Vec::new();
    for (name, value) in members.iter().filter(|(name, _)| is_url(name)) {
        let list = std::slice::from_ref(value);
        let values = value.as_array().map_or(list, Vec::as_slice);
        findings.extend(
            values
                .iter()
                .filter_map(Value::as_str)
                .filter_map(|url| check(&text::quoted(name), url)),
        );
    }
    findings
}

/// Checks one URL. A URL that cannot be parsed at all is reported elsewhere.
pub(crate) fn check(member: &str, url: &str) -> Option<Finding> {
    let violations = RefCell::new(Vec::new());
    let record = |violation: SyntaxViolation| violations.borrow_mut().push(violation.description());
    Url::options()
        .syntax_violation_callback(Some(&record))
        .parse(url)
        .ok()?;
    let mut violations = violations.into_inner();
    violations.dedup();
    (!violations.is_empty()).then(|| {
        Finding::warning(
            MALFORMED,
            format!(
                "`{member}` is malformed: {} ({})",
                text::malformed_url(url),
                violations.join(", ")
            ),
            "correct the URL: some clients repair it, others reject it",
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn repaired_urls_are_reported() {
        for (url, expected) in [
            ("https://auth.example.com/token", None),
            ("https://auth.example.com:443/a%20b?x=y#z", None),
            ("https:/auth.example.com/token", Some("expected //")),
            ("https:auth.example.com/token", Some("expected //")),
            ("https:\\\\auth.example.com\\token", Some("backslash")),
            (
                " https://auth.example.com/token",
                Some("leading or trailing control or space"),
            ),
            ("https://auth.example.com/to\nken", Some("tabs or newlines")),
            ("https://auth.example.com/a b", Some("non-URL code point")),
            ("no URL", None),
        ] {
            let text = check("token_endpoint", url).map(|finding| finding.text);
            assert_eq!(text.is_some(), expected.is_some(), "{url}: {text:?}");
            assert!(
                text.unwrap_or_default()
                    .contains(expected.unwrap_or_default()),
                "{url}"
            );
        }
    }

    #[test]
    fn every_url_of_a_document_is_checked() {
        let document = json!({
            "issuer": "https:/a.example", "authorization_servers": ["https://b.example", "https:/b.example"],
            "jwks_uri": "https:c.example", "scopes_supported": ["https:/d"], "token_endpoint": 1,
        });
        assert_eq!(check_document(document.to_string().as_bytes()).len(), 3);
        assert!(check_document(b"<html>").is_empty());
    }
}
