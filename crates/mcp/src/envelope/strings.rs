use std::borrow::Cow;

/// Decodes a JSON string. Returns `None` for any other value, and for an unpaired surrogate.
pub(super) fn decode_string(value: &str) -> Option<Cow<'_, str>> {
    let inner = value.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str(value).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// Decodes a method or name, by which rules are selected. Returns `None` for a string with a NUL,
/// at which some parsers would end it.
pub(super) fn decode_without_nul(value: &str) -> Option<Cow<'_, str>> {
    decode_string(value).filter(|text| !text.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_strings_are_decoded() {
        for (value, decoded) in [
            (r#""""#, Some("")),
            (r#""a b""#, Some("a b")),
            (r#""\u00e9\n""#, Some("é\n")),
            (r#""\ud83d\ude00""#, Some("😀")),
            (r#""\ud83d""#, None),
            ("1", None),
            ("null", None),
            (r#"["a"]"#, None),
        ] {
            assert_eq!(decode_string(value).as_deref(), decoded, "{value}");
        }
    }

    /// F4: a string without escapes is not copied.
    #[test]
    fn plain_strings_are_borrowed() {
        assert!(matches!(decode_string(r#""a""#), Some(Cow::Borrowed("a"))));
    }

    /// F4: a NUL, at which some parsers end a string, is rejected in any escaped form.
    #[test]
    fn strings_with_a_nul_are_rejected() {
        for (value, decoded) in [
            (r#""a""#, Some("a")),
            (r#""a\u0000b""#, None),
            (r#""\u0000""#, None),
            ("1", None),
        ] {
            assert_eq!(decode_without_nul(value).as_deref(), decoded, "{value}");
        }
    }
}
