use std::borrow::Cow;

use http::{HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use portcullis_metadata::Scopes;
use portcullis_verifier::Principal;
use serde_json::Value;

use crate::link::OutboundHead;

/// A header that tells the upstream something about the caller.
///
/// It is sent only when there is something to say: a caller without a subject sends no subject header.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IdentityHeader {
    /// The header's name.
    pub name: HeaderName,
    /// What it says.
    pub source: IdentitySource,
}

/// What an [`IdentityHeader`] says. In every value, whatever is not visible ASCII, and `%`, is percent-encoded as
/// UTF-8 (RFC 3986 section 2.1), so that no value can end the header or be taken for another.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IdentitySource {
    /// The token's issuer.
    Issuer,
    /// The token's subject, unique within the issuer only.
    Subject,
    /// The client that the token was issued to.
    Client,
    /// The granted scopes, sorted, separated by single spaces.
    Scope,
    /// Another claim, by its name, or by a JSON pointer (RFC 6901) when the text begins with `/`. Texts, numbers
    /// and booleans are sent as they are, the elements of an array separated by single spaces, objects as JSON.
    Claim(Box<str>),
}

impl IdentityHeader {
    /// A header of this name that says this.
    pub fn new(name: HeaderName, source: IdentitySource) -> Self {
        Self { name, source }
    }

    /// `X-Portcullis-Issuer`, `-Subject`, `-Client` and `-Scope`.
    pub fn defaults() -> Vec<Self> {
        [
            ("x-portcullis-issuer", IdentitySource::Issuer),
            ("x-portcullis-subject", IdentitySource::Subject),
            ("x-portcullis-client", IdentitySource::Client),
            ("x-portcullis-scope", IdentitySource::Scope),
        ]
        .map(|(name, source)| Self::new(HeaderName::from_static(name), source))
        .into()
    }
}

/// Claims, read only where a header asks for one.
pub(crate) trait Claims {
    /// By its name, or by a JSON pointer.
    fn claim(&self, path: &str) -> Option<&Value>;
}

impl Claims for Principal {
    fn claim(&self, path: &str) -> Option<&Value> {
        self.claim(path)
    }
}

/// What is known of a caller.
#[derive(Clone, Copy)]
pub(crate) struct Identity<'a> {
    pub(crate) issuer: &'a str,
    pub(crate) subject: Option<&'a str>,
    pub(crate) client: Option<&'a str>,
    pub(crate) scopes: &'a Scopes,
    pub(crate) claims: &'a (dyn Claims + Sync),
}

impl<'a> From<&'a Principal> for Identity<'a> {
    fn from(principal: &'a Principal) -> Self {
        Self {
            issuer: principal.issuer().as_str(),
            subject: principal.subject(),
            client: principal.client(),
            scopes: principal.scopes(),
            claims: principal,
        }
    }
}

/// Adds the `wanted` headers to `head`. A header without a value is left out.
pub(crate) fn add(head: &mut OutboundHead, identity: Identity<'_>, wanted: &[IdentityHeader]) {
    for IdentityHeader { name, source } in wanted {
        let value = value(identity, source).and_then(|value| HeaderValue::from_str(&value).ok());
        if let Some(value) = value {
            head.header(name, &value);
        }
    }
}

fn value<'a>(identity: Identity<'a>, source: &IdentitySource) -> Option<Cow<'a, str>> {
    match source {
        IdentitySource::Issuer => Some(encode(identity.issuer)),
        IdentitySource::Subject => identity.subject.map(encode),
        IdentitySource::Client => identity.client.map(encode),
        IdentitySource::Scope if identity.scopes.is_empty() => None,
        IdentitySource::Scope => Some(joined(identity.scopes.iter().map(encode)).into()),
        IdentitySource::Claim(path) => identity.claims.claim(path).and_then(claim),
    }
}

/// Everything but `!` to `~` without `%`. Bytes outside ASCII are always encoded.
const UNSAFE: &AsciiSet = &CONTROLS.add(b' ').add(b'%');

fn encode(text: &str) -> Cow<'_, str> {
    // Nearly all texts are safe as they are, and told so faster in one go.
    if text.bytes().all(|b| matches!(b, b'!'..=b'~') && b != b'%') {
        return text.into();
    }
    utf8_percent_encode(text, UNSAFE).into()
}

fn claim(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Null => None,
        Value::Array(elements) => Some(joined(elements.iter().filter_map(single)).into()),
        single_value => single(single_value),
    }
}

fn single(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(encode(text)),
        other => Some(encode(&other.to_string()).into_owned().into()),
    }
}

fn joined<'a>(parts: impl Iterator<Item = Cow<'a, str>>) -> String {
    let mut text = String::new();
    for part in parts {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&part);
    }
    text
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{Method, uri::PathAndQuery};
    use percent_encoding::percent_decode_str;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    impl Claims for Value {
        fn claim(&self, path: &str) -> Option<&Value> {
            if path.starts_with('/') { self.pointer(path) } else { self.get(path) }
        }
    }

    fn says(source: IdentitySource, claims: &Value) -> Option<String> {
        let scopes = Scopes::parse("mcp:tools a%b").unwrap();
        let identity = Identity {
            issuer: "https://auth.example.com",
            subject: Some("Zoë\r\nX-Admin: 1"),
            client: None,
            scopes: &scopes,
            claims,
        };
        let mut head = OutboundHead::new(&Method::GET, &PathAndQuery::from_static("/"));
        let name = HeaderName::from_static("x-says");
        add(&mut head, identity, &[IdentityHeader::new(name.clone(), source)]);
        head.finish(Bytes::new()).parsed().headers.get(&name).map(|value| value.to_str().unwrap().to_owned())
    }

    /// L2: each default header says its part, encoded, or is not sent.
    #[test]
    fn defaults_say_who_calls() {
        let said: Vec<_> =
            IdentityHeader::defaults().into_iter().map(|header| says(header.source, &json!({}))).collect();
        let expected =
            [Some("https://auth.example.com"), Some("Zo%C3%AB%0D%0AX-Admin:%201"), None, Some("a%25b mcp:tools")];
        assert_eq!(said, expected.map(|text| text.map(str::to_owned)));
    }

    /// L2: other claims can be named, nested ones by pointer.
    #[test]
    fn claims_by_name_and_pointer() {
        let claims = json!({
            "email": "a b@example.com", "level": 3, "ok": true, "none": null, "empty": [],
            "realm_access": {"roles": ["admin", "two words", 7, null]},
            "https://example.com/claim": "x", "a/b~c": {"d": "deep"},
        });
        let cases = [
            ("email", Some("a%20b@example.com")),
            ("level", Some("3")),
            ("ok", Some("true")),
            ("none", None),
            ("missing", None),
            ("/realm_access/roles", Some("admin two%20words 7")),
            ("/realm_access/roles/0", Some("admin")),
            ("/realm_access/missing", None),
            ("https://example.com/claim", Some("x")),
            ("/a~1b~0c/d", Some("deep")),
            ("/level", Some("3")),
            ("/a~1b~0c", Some(r#"{"d":"deep"}"#)),
        ];
        for (path, expected) in cases {
            assert_eq!(says(IdentitySource::Claim(path.into()), &claims).as_deref(), expected, "{path}");
        }
    }

    proptest! {
        /// L2: any text becomes visible ASCII from which it can be read back.
        #[test]
        fn encoding_is_safe_and_reversible(text in any::<String>()) {
            let encoded = encode(&text);
            prop_assert!(encoded.bytes().all(|b| (0x21..=0x7E).contains(&b)));
            prop_assert_eq!(percent_decode_str(&encoded).decode_utf8().unwrap(), text.as_str());
        }
    }
}
