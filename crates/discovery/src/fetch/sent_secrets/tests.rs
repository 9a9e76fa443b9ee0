use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use http::Method;
use portcullis_metadata::client::client_secret_basic;
use url::Url;

use super::*;
use crate::UrlPolicy;

/// A secret with characters that every encoding changes.
const SECRET: &str = "p+q/r s\"t\\u<v>&w=é~0-_";

fn sent(secrets: &[&str]) -> SentSecrets {
    let sent = SentSecrets::new();
    secrets.iter().for_each(|secret| sent.add(secret));
    sent
}

fn request(name: header::HeaderName, value: HeaderValue) -> FetchRequest {
    let url = Url::parse("https://mcp.example.com/mcp").unwrap();
    FetchRequest::new(Method::GET, url, UrlPolicy::StartOrigin).header(name, value)
}

fn percent(text: &str, upper: bool) -> String {
    text.bytes()
        .map(|byte| {
            if upper {
                format!("%{byte:02X}")
            } else {
                format!("%{byte:02x}")
            }
        })
        .collect()
}

fn json(text: &str) -> String {
    text.encode_utf16()
        .map(|unit| format!("\\u{unit:04x}"))
        .collect()
}

/// J2: a secret is removed in each encoding in which a server can repeat it.
#[test]
fn each_encoding_is_removed() {
    let sent = sent(&[SECRET]);
    let form: String = form_urlencoded::byte_serialize(SECRET.as_bytes()).collect();
    let html = SECRET
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;");
    let numbers: String = SECRET
        .chars()
        .map(|character| format!("&#{};", u32::from(character)))
        .collect();
    let hexadecimal: String = SECRET
        .chars()
        .map(|character| format!("&#x{:X};", u32::from(character)))
        .collect();
    for (name, repeated) in [
        ("unchanged", SECRET.to_owned()),
        ("every byte in upper case", percent(SECRET, true)),
        ("every byte in lower case", percent(SECRET, false)),
        ("twice for a URL", percent(&percent(SECRET, true), false)),
        ("a form", form.clone()),
        (
            "JSON",
            serde_json::to_string(SECRET)
                .unwrap()
                .trim_matches('"')
                .to_owned(),
        ),
        (
            "JSON with escaped slashes",
            SECRET
                .replace('\\', "\\\\")
                .replace('"', "\\\"")
                .replace('/', "\\/"),
        ),
        ("JSON in numbers", json(SECRET)),
        ("a URL in JSON", json(&form)),
        ("HTML", html),
        ("HTML in numbers", numbers),
        ("HTML in hexadecimal numbers", hexadecimal),
    ] {
        assert_eq!(
            sent.redact(&format!("a {repeated} b")),
            "a [removed] b",
            "{name}: {repeated}"
        );
    }
}

/// J2: a secret is removed in base64, whatever precedes it.
#[test]
fn base64_is_removed() {
    for secret in [
        SECRET,
        "s3cr3t",
        "a-secret-value-1",
        "a-secret-value-12",
        "a-secret-value-123",
    ] {
        let sent = sent(&[secret]);
        for before in ["", "a:", "id:", "id1:", "Bearer "] {
            for after in ["", "\n", ", and more"] {
                for (engine, encoding) in [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD]
                    .iter()
                    .zip(0..)
                {
                    let encoded = engine.encode(format!("{before}{secret}{after}"));
                    let text = sent.redact(&encoded).into_owned();
                    assert!(
                        text.contains("[removed]"),
                        "{before:?} {secret} {after:?} {encoding}: {text}"
                    );
                    // What is left encodes nothing of the secret.
                    let kept: usize = text.replace("[removed]", "").trim_end_matches('=').len();
                    assert!(
                        kept <= (before.len() + after.len()) * 4 / 3 + 1,
                        "{before:?} {secret} {encoding}: {text}"
                    );
                }
            }
        }
        let pair: String = form_urlencoded::byte_serialize(secret.as_bytes()).collect();
        let basic = STANDARD.encode(format!("client:{pair}"));
        assert!(sent.redact(&basic).contains("[removed]"), "{basic}");
        let in_url = percent(&STANDARD.encode(secret), true);
        assert!(!sent.redact(&in_url).contains('%'), "{in_url}");
    }
}

/// J2: the values of sensitive headers and secret form fields are recorded, and nothing else.
#[test]
fn the_secrets_of_requests_are_recorded() {
    let sent = SentSecrets::new();
    sent.record(&request(
        header::AUTHORIZATION,
        HeaderValue::from_static("Bearer token-value"),
    ));
    sent.record(&request(
        header::ACCEPT,
        HeaderValue::from_static("text/plain"),
    ));
    let mut key = HeaderValue::from_static("key-value");
    key.set_sensitive(true);
    sent.record(&request(header::HeaderName::from_static("x-api-key"), key));
    let basic = client_secret_basic("client-name", &Secret::new("client secret=&")).unwrap();
    let credentials = basic
        .to_str()
        .unwrap()
        .strip_prefix("Basic ")
        .unwrap()
        .to_owned();
    sent.record(&request(header::AUTHORIZATION, basic));
    let fields = [
        ("grant_type", "authorization_code"),
        ("code", "code value"),
        ("client_id", "client-name"),
    ];
    let url = Url::parse("https://auth.example.com/token").unwrap();
    sent.record(&FetchRequest::post_form(
        url,
        fields,
        UrlPolicy::StartOrigin,
    ));
    for (text, expected) in [
        ("Bearer token-value", "[removed]"),
        ("token-value", "[removed]"),
        ("text/plain", "text/plain"),
        ("key-value", "[removed]"),
        (&credentials, "[removed]"),
        ("client secret=&", "[removed]"),
        ("client+secret%3D%26", "[removed]"),
        ("code value", "[removed]"),
        (
            "authorization_code client-name",
            "authorization_code client-name",
        ),
    ] {
        assert_eq!(sent.redact(text), expected);
    }
    assert_eq!(format!("{sent:?}"), "SentSecrets([redacted])");
}

#[test]
fn short_secrets_are_removed_as_words() {
    let sent = sent(&["abc", "grant"]);
    assert_eq!(
        sent.redact("abc grant: no_grant, grants"),
        "abc [removed]: no_[removed], grants"
    );
}

/// J2: the beginning of a secret is removed where the text was cut.
#[test]
fn the_beginning_of_a_secret_is_removed() {
    let sent = sent(&["a-secret-value"]);
    for (text, expected) in [
        ("see a-secret-val", "see [removed]"),
        ("see a-secret…", "see [removed]…"),
        (
            "see a-secret… and a-secret-valu…",
            "see [removed]… and [removed]…",
        ),
        ("see a-secre", "see a-secre"),
        ("see a%2Dsecret-val", "see [removed]"),
        ("…", "…"),
    ] {
        assert_eq!(sent.redact(text), expected);
    }
}

/// D2: the number and the length of values are limited, and a long text with long secrets is
/// searched in a short time.
#[test]
fn values_are_limited() {
    let sent = SentSecrets::new();
    for number in 0..100 {
        sent.add("the one that is used");
        sent.add(&format!("secret number {number}"));
    }
    let values = sent.0.as_ref().unwrap().lock().len();
    assert_eq!(values, MAX_VALUES);
    assert_eq!(
        sent.redact("secret number 9, secret number 99"),
        "secret number 9, [removed]"
    );
    assert_eq!(sent.redact("the one that is used"), "[removed]");
    let long = "a".repeat(MAX_VALUE + 5);
    sent.add(&long);
    let shown = sent.redact(&long).into_owned();
    assert!(shown.len() < 32, "{shown}");
    assert_eq!(sent.redact(""), "");
    assert_eq!(
        SentSecrets::default().redact("secret number 99"),
        "secret number 99"
    );
}

#[test]
fn invalid_escapes_are_kept() {
    let sent = sent(&["a-secret-value"]);
    for text in [
        "%",
        "%a",
        "%zz",
        "\\",
        "\\u12",
        "\\ud800",
        "&",
        "&#",
        "&#;",
        "&#x110000;",
        "&#99999999;",
        "%E9é",
        "+",
    ] {
        assert_eq!(sent.redact(text), text);
        assert_eq!(
            sent.redact(&format!("{text}a-secret-value{text}")),
            format!("{text}[removed]{text}")
        );
    }
}
