use std::borrow::Cow;

use http::{HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use portcullis_http1::{EncodedHeaders, RequestBuilder};
use portcullis_metadata::Scopes;
use portcullis_verifier::Principal;
use serde_json::Value;

/// A header that identifies the caller to the upstream. It is not sent if the token has no such
/// value.
///
/// ```
/// use portcullis_gateway::{IdentityHeader, IdentitySource};
///
/// let email = IdentityHeader::new("x-user-email".parse()?, IdentitySource::Claim("email".into()));
/// let roles = IdentityHeader::new("x-user-roles".parse()?, IdentitySource::Claim("/realm_access/roles".into()));
/// assert_eq!(email.name, "x-user-email");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IdentityHeader {
    /// The header's name.
    pub name: HeaderName,
    /// The source of its value.
    pub source: IdentitySource,
}

/// The source of an [`IdentityHeader`]'s value. In every value, `%` and all characters except
/// visible ASCII are percent-encoded as UTF-8 (RFC 3986 section 2.1), so that a value cannot end
/// the header or imitate another value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IdentitySource {
    /// The token's issuer.
    Issuer,
    /// The token's subject. It is unique within the issuer only.
    Subject,
    /// The client that the token was issued to.
    Client,
    /// The granted scopes, sorted and separated by single spaces.
    Scope,
    /// Another claim, by its name, or by a JSON pointer (RFC 6901) if the text begins with `/`. The
    /// value of a string, number or boolean is its text, that of an array its elements separated by
    /// single spaces, that of an object its JSON.
    Claim(Box<str>),
}

impl IdentityHeader {
    /// Creates a header with this name and this value.
    pub fn new(name: HeaderName, source: IdentitySource) -> Self {
        Self { name, source }
    }

    /// Returns the default headers: `X-Portcullis-Issuer`, `-Subject`, `-Client` and `-Scope`.
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

/// Access to the claims of a token.
pub(crate) trait Claims {
    /// Returns the claim with this name, or at this JSON pointer if `path` begins with `/`.
    fn claim(&self, path: &str) -> Option<&Value>;

    /// Returns the headers that were encoded first and are kept beside the claims. `None` if none
    /// are kept.
    fn kept_headers(&self, encode: &dyn Fn() -> KeptHeaders) -> Option<&KeptHeaders>;
}

impl Claims for Principal {
    fn claim(&self, path: &str) -> Option<&Value> {
        self.claim(path)
    }

    fn kept_headers(&self, encode: &dyn Fn() -> KeptHeaders) -> Option<&KeptHeaders> {
        self.attach(|_| encode())
    }
}

/// The encoded identity headers of one principal for one configuration.
pub(crate) struct KeptHeaders {
    configured: Box<[IdentityHeader]>,
    encoded: EncodedHeaders,
}

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

/// Adds the configured identity headers that have a value to a request. They are encoded with the
/// first request of a principal; another configuration, as after a reload, encodes its own each
/// time.
pub(super) fn add_headers(
    request: &mut RequestBuilder,
    identity: Identity<'_>,
    configured: &[IdentityHeader],
) {
    let keep = || KeptHeaders {
        configured: configured.into(),
        encoded: encoded(identity, configured),
    };
    match identity.claims.kept_headers(&keep) {
        Some(kept) if *kept.configured == *configured => request.headers(&kept.encoded),
        _ => request.headers(&encoded(identity, configured)),
    };
}

fn encoded(identity: Identity<'_>, configured: &[IdentityHeader]) -> EncodedHeaders {
    let header = |IdentityHeader { name, source }: &IdentityHeader| {
        // An encoded value is visible ASCII, which every header can carry.
        Some((
            name.clone(),
            HeaderValue::try_from(&*value(identity, source)?).ok()?,
        ))
    };
    configured.iter().filter_map(header).collect()
}

/// Returns the encoded value of a source, or `None` if the token has none.
fn value<'a>(identity: Identity<'a>, source: &IdentitySource) -> Option<Cow<'a, str>> {
    match source {
        IdentitySource::Issuer => Some(encode(identity.issuer)),
        IdentitySource::Subject => identity.subject.map(encode),
        IdentitySource::Client => identity.client.map(encode),
        IdentitySource::Scope if identity.scopes.is_empty() => None,
        // Of the characters in scope names, only `%` is encoded.
        IdentitySource::Scope if !identity.scopes.as_str().contains('%') => {
            Some(identity.scopes.as_str().into())
        }
        IdentitySource::Scope => Some(join(identity.scopes.iter().map(encode)).into()),
        IdentitySource::Claim(path) => identity.claims.claim(path).and_then(claim_value),
    }
}

/// The ASCII characters that are encoded: all except `!` to `~`, and `%`. Bytes outside ASCII are
/// always encoded.
const ENCODED: &AsciiSet = &CONTROLS.add(b' ').add(b'%');

/// Percent-encodes `%` and everything but visible ASCII.
fn encode(text: &str) -> Cow<'_, str> {
    // Most values need no encoding, which is checked many bytes at once because no byte ends the
    // loop early.
    if text.bytes().fold(true, |all, byte| {
        all & byte.is_ascii_graphic() & (byte != b'%')
    }) {
        return Cow::Borrowed(text);
    }
    utf8_percent_encode(text, ENCODED).into()
}

/// Returns the encoded value of a claim, or `None` for `null`.
fn claim_value(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Null => None,
        Value::Array(elements) => Some(join(elements.iter().filter_map(element_value)).into()),
        single => element_value(single),
    }
}

/// Returns the encoded value of an element, or `None` for `null`. An object or a nested array is
/// its JSON.
fn element_value(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(encode(text)),
        other => Some(encode(&other.to_string()).into_owned().into()),
    }
}

/// Joins encoded values with single spaces, which no encoded value contains.
fn join<'a>(parts: impl Iterator<Item = Cow<'a, str>>) -> String {
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
    use crate::request::rules::tests::Parsed;

    impl Claims for Value {
        fn claim(&self, path: &str) -> Option<&Value> {
            if path.starts_with('/') {
                self.pointer(path)
            } else {
                self.get(path)
            }
        }

        fn kept_headers(&self, _: &dyn Fn() -> KeptHeaders) -> Option<&KeptHeaders> {
            None
        }
    }

    fn header_value(source: IdentitySource, claims: &Value) -> Option<String> {
        let scopes = Scopes::parse("mcp:tools a%b").unwrap();
        let identity = Identity {
            issuer: "https://auth.example.com",
            subject: Some("Zoë\r\nX-Admin: 1"),
            client: None,
            scopes: &scopes,
            claims,
        };
        let mut request = RequestBuilder::new(&Method::GET, &PathAndQuery::from_static("/"));
        let name = HeaderName::from_static("x-test");
        add_headers(
            &mut request,
            identity,
            &[IdentityHeader::new(name.clone(), source)],
        );
        Parsed::from(&request.body(Bytes::new()))
            .headers
            .get(&name)
            .map(|value| value.to_str().unwrap().to_owned())
    }

    /// L2: each default header has its encoded value, or is not sent.
    #[test]
    fn default_headers() {
        let values: Vec<_> = IdentityHeader::defaults()
            .into_iter()
            .map(|header| header_value(header.source, &json!({})))
            .collect();
        let expected = [
            Some("https://auth.example.com"),
            Some("Zo%C3%AB%0D%0AX-Admin:%201"),
            None,
            Some("a%25b mcp:tools"),
        ];
        assert_eq!(values, expected.map(|text| text.map(str::to_owned)));
    }

    /// L2: a header can carry any claim, by name or by pointer.
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
            ("empty", Some("")),
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
            assert_eq!(
                header_value(IdentitySource::Claim(path.into()), &claims).as_deref(),
                expected,
                "{path}"
            );
        }
    }

    proptest! {
        /// L2: every encoded text is visible ASCII and can be decoded.
        #[test]
        fn encoding_is_safe_and_reversible(text in any::<String>()) {
            let encoded = encode(&text);
            prop_assert!(encoded.bytes().all(|b| (0x21..=0x7E).contains(&b)));
            prop_assert_eq!(percent_decode_str(&encoded).decode_utf8().unwrap(), text.as_str());
        }
    }
}
