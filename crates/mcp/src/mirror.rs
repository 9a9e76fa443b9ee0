use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};
use http::HeaderValue;

const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";

/// Why a mirrored header value cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MirrorError {
    /// It has a byte other than visible ASCII, space and tab.
    #[error("a mirrored header has visible ASCII, spaces and tabs only")]
    NotAscii,
    /// It is marked as Base64 and is none, or its content is not UTF-8.
    #[error("a mirrored header is marked as Base64 and holds no Base64 of UTF-8 text")]
    NotBase64,
}

impl MirrorError {
    /// The stable reason code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::NotAscii => "header.not_ascii",
            Self::NotBase64 => "header.not_base64",
        }
    }
}

/// The member of `params` that `Mcp-Name` mirrors for a method (2026-07-28, "Standard Request Headers"); `None` for
/// methods that need no such header.
pub fn mirrored_member(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        _ => None,
    }
}

/// Reads the text behind a mirrored header value, such as `Mcp-Name` (2026-07-28, "Value Encoding").
///
/// A value between `=?base64?` and `?=` is decoded from padded standard Base64; any other stands for itself.
///
/// # Errors
/// When the value has a byte that such a header may not have, or is marked as Base64 and does not decode
/// to UTF-8.
pub fn decode_mirrored(value: &HeaderValue) -> Result<Cow<'_, str>, MirrorError> {
    let text = value.to_str().map_err(|_| MirrorError::NotAscii)?;
    if !is_marked(text) {
        return Ok(Cow::Borrowed(text));
    }
    let encoded = text.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX)).ok_or(MirrorError::NotBase64)?;
    let bytes = STANDARD.decode(encoded).map_err(|_| MirrorError::NotBase64)?;
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| MirrorError::NotBase64)
}

/// Writes a text as a mirrored header value: as it is where a header can carry it unchanged, in Base64 otherwise.
pub fn encode_mirrored(text: &str) -> HeaderValue {
    let plain = if travels_unchanged(text) && !is_marked(text) { HeaderValue::from_str(text).ok() } else { None };
    plain.unwrap_or_else(|| {
        let encoded = format!("{PREFIX}{}{SUFFIX}", STANDARD.encode(text));
        // Base64 and its marks are visible ASCII, which every header value may hold.
        HeaderValue::try_from(encoded).unwrap_or_else(|_| HeaderValue::from_static(""))
    })
}

fn is_marked(text: &str) -> bool {
    text.starts_with(PREFIX) && text.ends_with(SUFFIX)
}

fn travels_unchanged(text: &str) -> bool {
    let blank = |b: Option<&u8>| matches!(b, Some(b' ' | b'\t'));
    let bytes = text.as_bytes();
    bytes.iter().all(|b| matches!(b, b'\t' | b' '..=b'~')) && !blank(bytes.first()) && !blank(bytes.last())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// F5: the examples of the specification's table.
    #[test]
    fn the_published_examples_encode_as_published() {
        for (text, header) in [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(encode_mirrored(text), header);
            assert_eq!(decode_mirrored(&HeaderValue::from_str(header).unwrap()).unwrap(), text);
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

    /// F5: what is marked and does not decode is refused, never taken literally.
    #[test]
    fn broken_encodings_are_refused() {
        for broken in
            ["=?base64?=", "=?base64?YQ?=", "=?base64?Y Q==?=", "=?base64?_-8=?=", "=?base64?/w==?=", "=?base64?YR==?="]
        {
            let value = HeaderValue::from_str(broken).unwrap();
            assert_eq!(decode_mirrored(&value), Err(MirrorError::NotBase64), "{broken}");
        }
        let value = HeaderValue::from_bytes("ü".as_bytes()).unwrap();
        assert_eq!(decode_mirrored(&value), Err(MirrorError::NotAscii));
    }

    /// J4: the words that audit trails have for a header that cannot be read.
    #[test]
    fn errors_have_stable_codes() {
        let codes = [MirrorError::NotAscii, MirrorError::NotBase64].map(MirrorError::code);
        assert_eq!(codes, ["header.not_ascii", "header.not_base64"]);
    }

    #[test]
    fn marks_in_another_case_are_plain_text() {
        let value = HeaderValue::from_static("=?BASE64?YQ==?=");
        assert_eq!(decode_mirrored(&value).unwrap(), "=?BASE64?YQ==?=");
    }

    proptest! {
        /// F5: every text survives the way through a header.
        #[test]
        fn any_text_survives(text in any::<String>()) {
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
