//! The values of mirrored headers, such as `Mcp-Name`.

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};
use http::HeaderValue;

const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";

/// The reason why a mirrored header value cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MirrorError {
    /// The value has a byte other than visible ASCII, space and tab.
    #[error("a mirrored header must have only visible ASCII, spaces and tabs")]
    NotAscii,
    /// The value is marked as Base64, but is not Base64 of UTF-8 text.
    #[error("a mirrored header is marked as Base64, but is not Base64 of UTF-8 text")]
    NotBase64,
}

impl MirrorError {
    /// Returns the stable reason code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::NotAscii => "header.not_ascii",
            Self::NotBase64 => "header.not_base64",
        }
    }
}

/// Returns the member of `params` that `Mcp-Name` must mirror for a method (2026-07-28, "Standard
/// Request Headers"); `None` for methods that do not require the header.
pub fn mirrored_member(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        _ => None,
    }
}

/// Decodes a mirrored header value (2026-07-28, "Value Encoding").
///
/// A value between `=?base64?` and `?=` is padded standard Base64. Any other value is literal.
///
/// # Errors
/// Fails if the value has a byte that is not allowed, or is marked as Base64 and does not decode to
/// UTF-8.
pub fn decode_mirrored(value: &HeaderValue) -> Result<Cow<'_, str>, MirrorError> {
    let text = value.to_str().map_err(|_| MirrorError::NotAscii)?;
    if !is_marked(text) {
        return Ok(Cow::Borrowed(text));
    }
    let encoded = text
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.strip_suffix(SUFFIX))
        .ok_or(MirrorError::NotBase64)?;
    let bytes = STANDARD
        .decode(encoded)
        .map_err(|_| MirrorError::NotBase64)?;
    String::from_utf8(bytes)
        .map(Cow::Owned)
        .map_err(|_| MirrorError::NotBase64)
}

/// Encodes a text as a mirrored header value: literally if a header can contain it unchanged, else
/// in Base64.
pub fn encode_mirrored(text: &str) -> HeaderValue {
    let plain = if is_literal(text) && !is_marked(text) {
        HeaderValue::from_str(text).ok()
    } else {
        None
    };
    plain.unwrap_or_else(|| {
        let encoded = format!("{PREFIX}{}{SUFFIX}", STANDARD.encode(text));
        // Base64 with its prefix and suffix is visible ASCII, which every header value can contain.
        HeaderValue::try_from(encoded).unwrap_or_else(|_| HeaderValue::from_static(""))
    })
}

fn is_marked(text: &str) -> bool {
    text.starts_with(PREFIX) && text.ends_with(SUFFIX)
}

fn is_literal(text: &str) -> bool {
    let blank = |b: Option<&u8>| matches!(b, Some(b' ' | b'\t'));
    let bytes = text.as_bytes();
    bytes.iter().all(|b| matches!(b, b'\t' | b' '..=b'~'))
        && !blank(bytes.first())
        && !blank(bytes.last())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// F5: the examples of the specification's table.
    #[test]
    fn the_examples_of_the_specification() {
        for (text, header) in [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(encode_mirrored(text), header);
            assert_eq!(
                decode_mirrored(&HeaderValue::from_str(header).unwrap()).unwrap(),
                text
            );
        }
    }

    /// F5: the methods that the specification lists, each with its member.
    #[test]
    fn listed_methods_mirror_a_member() {
        for (method, member) in [
            ("tools/call", Some("name")),
            ("prompts/get", Some("name")),
            ("resources/read", Some("uri")),
            ("resources/subscribe", None),
            ("tools/list", None),
            ("TOOLS/CALL", None),
        ] {
            assert_eq!(mirrored_member(method), member, "{method}");
        }
    }

    /// F5: a value with prefix and suffix that does not decode is rejected, and never used
    /// literally.
    #[test]
    fn broken_encodings_are_rejected() {
        for broken in [
            "=?base64?=",
            "=?base64?YQ?=",
            "=?base64?Y Q==?=",
            "=?base64?_-8=?=",
            "=?base64?/w==?=",
            "=?base64?YR==?=",
        ] {
            let value = HeaderValue::from_str(broken).unwrap();
            assert_eq!(
                decode_mirrored(&value),
                Err(MirrorError::NotBase64),
                "{broken}"
            );
        }
        let value = HeaderValue::from_bytes("ü".as_bytes()).unwrap();
        assert_eq!(decode_mirrored(&value), Err(MirrorError::NotAscii));
    }

    /// J4: the codes in audit records are stable.
    #[test]
    fn errors_have_stable_codes() {
        let codes = [MirrorError::NotAscii, MirrorError::NotBase64].map(MirrorError::code);
        assert_eq!(codes, ["header.not_ascii", "header.not_base64"]);
    }

    #[test]
    fn a_prefix_in_another_letter_case_is_literal() {
        let value = HeaderValue::from_static("=?BASE64?YQ==?=");
        assert_eq!(decode_mirrored(&value).unwrap(), "=?BASE64?YQ==?=");
    }

    proptest! {
        /// F5: every text decodes to itself.
        #[test]
        fn any_text_round_trips(text in any::<String>()) {
            let value = encode_mirrored(&text);
            prop_assert!(value.as_bytes().iter().all(|b| matches!(b, b'\t' | b' '..=b'~')));
            prop_assert_eq!(decode_mirrored(&value).unwrap(), text);
        }

        #[test]
        fn no_header_value_panics(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                let _ = decode_mirrored(&value);
            }
        }
    }
}
