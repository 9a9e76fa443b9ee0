//! [`ResponseExcerpt`]: the parts of a response that an error shows.

use std::fmt;

use http::{HeaderMap, HeaderName, header};
use portcullis_metadata::{EscapedText, syntax::has_media_type};
use serde_json::Value;
use url::Url;

use super::{SentSecrets, sent_secrets::REMOVED, shown_url};

/// The parts of a response that an error shows beside the status: content type, `Location` and the
/// beginning of the body.
///
/// The text is safe to print: it is escaped ([`EscapedText`]), white space is collapsed, and each
/// part has at most 200 characters. HTML is shown without its tags. `Location` has no query,
/// fragment or user information. In the body, everything that looks like a token, a code or a
/// secret is replaced by `[removed]`. If the body is complete JSON, so are the strings of members
/// such as `access_token`. What the client has sent is removed from all parts ([`SentSecrets`]).
///
/// ```
/// use http::{HeaderMap, header};
/// use portcullis_discovery::{ResponseExcerpt, SentSecrets};
///
/// let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, "text/html".parse()?)]);
/// let excerpt = ResponseExcerpt::new(&headers, b"<h1>Sign in to the\n network</h1>", &SentSecrets::default());
/// assert_eq!(excerpt.to_string(), "content type text/html, body: Sign in to the network");
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseExcerpt {
    content_type: Option<Box<str>>,
    location: Option<Box<str>>,
    /// `None` if the body is not shown.
    body: Option<Box<str>>,
}

/// The maximum number of characters of each part.
const MAX_SHOWN: usize = 200;
/// How many bytes of the body are examined.
const MAX_EXAMINED: usize = 16 * 1024;
/// A run of this many token characters with a digit counts as a secret.
const MIN_SECRET: usize = 16;
/// Members whose values are secrets (RFC 6749 section 5.1, RFC 7591 section 3.2.1, RFC 8628 section
/// 3.2).
const SECRET_MEMBERS: [&str; 9] = [
    "access_token",
    "refresh_token",
    "id_token",
    "token",
    "code",
    "code_verifier",
    "client_secret",
    "registration_access_token",
    "device_code",
];

impl ResponseExcerpt {
    /// Creates an excerpt of a response. `body` may be a part of the body. `sent` is what the
    /// client has sent, which some servers repeat in their errors.
    pub fn new(headers: &HeaderMap, body: &[u8], sent: &SentSecrets) -> Self {
        // Before the text is shortened, because a part of a secret would not be recognized.
        let mut shown = sent.redact(&body_text(body)).into_owned();
        if has_media_type(headers, "text/html") {
            shown = without_tags(&shown);
        }
        Self {
            body: Some(shortened(&without_tokens(&collapsed(&shown)))),
            ..Self::without_body(headers, sent)
        }
    }

    /// Creates an excerpt without the body, for a body that is not read or must not be shown.
    pub fn without_body(headers: &HeaderMap, sent: &SentSecrets) -> Self {
        let text = |name: HeaderName| {
            let value = headers.get(name)?;
            Some(
                sent.redact(&String::from_utf8_lossy(value.as_bytes()))
                    .into_owned(),
            )
        };
        Self {
            content_type: text(header::CONTENT_TYPE).map(|value| shortened(&value)),
            location: text(header::LOCATION).map(|value| shortened(&without_parameters(&value))),
            body: None,
        }
    }

    /// Returns the content type, escaped.
    pub fn content_type(&self) -> Option<&str> {
        self.content_type.as_deref()
    }

    /// Returns the target of a redirect, escaped and without its query.
    pub fn location(&self) -> Option<&str> {
        self.location.as_deref()
    }

    /// Returns the beginning of the body, escaped.
    pub fn body(&self) -> Option<&str> {
        self.body.as_deref()
    }
}

impl fmt::Display for ResponseExcerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.content_type {
            Some(content_type) => write!(f, "content type {content_type}")?,
            None => f.write_str("no content type")?,
        }
        if let Some(location) = &self.location {
            write!(f, ", Location {location}")?;
        }
        match self.body.as_deref() {
            Some("") => f.write_str(", no body"),
            Some(body) => write!(f, ", body: {body}"),
            None => Ok(()),
        }
    }
}

/// The body as text, without the values of secret members if it is JSON.
fn body_text(body: &[u8]) -> String {
    if let Ok(mut json) = serde_json::from_slice::<Value>(body)
        && remove_members(&mut json)
    {
        return json.to_string();
    }
    String::from_utf8_lossy(body.get(..MAX_EXAMINED).unwrap_or(body)).into_owned()
}

/// Replaces the values of secret members at any depth, and returns whether there were any.
fn remove_members(json: &mut Value) -> bool {
    let mut removed = false;
    let members = match json {
        Value::Object(members) => members,
        Value::Array(values) => {
            return values
                .iter_mut()
                .fold(false, |removed, value| remove_members(value) | removed);
        }
        _ => return false,
    };
    for (name, value) in members {
        if value.is_string() && SECRET_MEMBERS.contains(&name.as_str()) {
            *value = REMOVED.into();
            removed = true;
        } else {
            removed |= remove_members(value);
        }
    }
    removed
}

/// The text of a page, with a space for each tag. It is for a reader, and is not safe as HTML.
fn without_tags(html: &str) -> String {
    let mut text = String::with_capacity(html.len());
    let mut rest = html;
    while let Some((before, from)) = rest.split_once('<') {
        let Some((_, after)) = from.split_once('>') else {
            break;
        };
        text.push_str(before);
        text.push(' ');
        rest = after;
    }
    text + rest
}

fn collapsed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Replaces runs of token characters (RFC 6750 section 2.1, without `/`) that are long and have a
/// digit.
fn without_tokens(text: &str) -> String {
    let is_token =
        |character: char| character.is_ascii_alphanumeric() || "-._~+=".contains(character);
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_token) {
        let (before, from) = rest.split_at(start);
        let (run, after) = from.split_at(
            from.find(|character| !is_token(character))
                .unwrap_or(from.len()),
        );
        let is_secret = run.len() >= MIN_SECRET && run.bytes().any(|byte| byte.is_ascii_digit());
        shown.push_str(before);
        shown.push_str(if is_secret { REMOVED } else { run });
        rest = after;
    }
    shown + rest
}

/// The target without query, fragment and user information.
fn without_parameters(location: &str) -> String {
    match Url::parse(location) {
        Ok(url) => shown_url(&url),
        Err(_) => location
            .split(['?', '#'])
            .next()
            .unwrap_or_default()
            .to_owned(),
    }
}

fn shortened(text: &str) -> Box<str> {
    let mut shown = EscapedText::first(text, MAX_SHOWN).to_string();
    if text.chars().nth(MAX_SHOWN).is_some() {
        shown.push('…');
    }
    shown.into()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn body(text: &str) -> String {
        ResponseExcerpt::new(&HeaderMap::new(), text.as_bytes(), &SentSecrets::default())
            .body()
            .unwrap()
            .to_owned()
    }

    /// J8: nothing of a peer deceives the reader, and nothing is long.
    #[test]
    fn the_text_is_escaped_and_short() {
        assert_eq!(body("a\u{1b}[2J\r\n  b\u{202e}"), "a\\u{1b}[2J b\\u{202e}");
        assert_eq!(body(&"x".repeat(100_000)), format!("{}…", "x".repeat(200)));
        let many =
            ResponseExcerpt::new(&HeaderMap::new(), &[0xff; 100_000], &SentSecrets::default());
        assert_eq!(many.body().unwrap().chars().count(), 201);
        assert_eq!(
            ResponseExcerpt::new(&HeaderMap::new(), b"", &SentSecrets::default()).to_string(),
            "no content type, no body"
        );
    }

    /// J8: the page of a proxy is shown as its text.
    #[test]
    fn a_page_has_no_tags() {
        let html = HeaderMap::from_iter([(
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        )]);
        let shown = |body: &str| {
            ResponseExcerpt::new(&html, body.as_bytes(), &SentSecrets::default())
                .body()
                .unwrap()
                .to_owned()
        };
        assert_eq!(
            shown(
                "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<hr><center>nginx</center>"
            ),
            "502 Bad Gateway nginx"
        );
        assert_eq!(shown("1 < 2"), "1 < 2");
        assert_eq!(body("<a>"), "<a>");
    }

    /// J2: a redirect shows its target without what may be secret.
    #[test]
    fn a_redirect_shows_its_target() {
        for (location, expected) in [
            (
                "https://u:p@sso.example/login?code=hush#t",
                "https://sso.example/login",
            ),
            ("/login?code=hush", "/login"),
            ("//sso.example/x#token", "//sso.example/x"),
        ] {
            let headers =
                HeaderMap::from_iter([(header::LOCATION, HeaderValue::from_static(location))]);
            let excerpt = ResponseExcerpt::new(&headers, b"", &SentSecrets::default());
            assert_eq!(
                excerpt.to_string(),
                format!("no content type, Location {expected}, no body")
            );
        }
    }

    /// J2: no token, code or secret, whether the server issues it or repeats it.
    #[test]
    fn secrets_are_removed() {
        assert_eq!(
            body(r#"{"access_token":"hush","scope":"a"}"#),
            r#"{"access_token":"[removed]","scope":"a"}"#
        );
        assert_eq!(
            body(r#"{"data":{"client_secret":"hush"}}"#),
            r#"{"data":{"client_secret":"[removed]"}}"#
        );
        assert_eq!(
            body(r#"[{"a":1},[{"code":"hush"}]]"#),
            r#"[{"a":1},[{"code":"[removed]"}]]"#
        );
        assert_eq!(
            body("<p>token eyJhbGciOiJFUzI1NiJ9.e30.c2ln</p>"),
            "<p>token [removed]</p>"
        );
        let kept = "org.example.SomeLongClassName failed: 404 at /realms/production/token";
        assert_eq!(body(kept), kept);
    }
}
