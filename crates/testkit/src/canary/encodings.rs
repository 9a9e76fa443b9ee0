//! The encodings in which a program is likely to write a secret.

use base64::{
    Engine as _, alphabet,
    engine::{GeneralPurpose, general_purpose::NO_PAD},
};

/// The minimum length in bytes. Shorter strings occur by chance.
pub(super) const MIN_LEN: usize = 8;

/// Returns the encodings of a secret with their names.
pub(super) fn forms(secret: &str) -> Vec<(&'static str, String)> {
    let bytes = secret.as_bytes();
    let joined = |byte: &dyn Fn(u8) -> String| bytes.iter().map(|b| byte(*b)).collect::<String>();
    let without_quotes = |text: String| text[1..text.len() - 1].to_owned();
    let mut forms = vec![
        ("raw", secret.to_owned()),
        (
            "JSON",
            without_quotes(serde_json::Value::from(secret).to_string()),
        ),
        ("debug", without_quotes(format!("{secret:?}"))),
        ("hex", joined(&|byte| format!("{byte:02x}"))),
        ("hex", joined(&|byte| format!("{byte:02X}"))),
        (
            "decimal",
            bytes
                .iter()
                .map(u8::to_string)
                .collect::<Vec<_>>()
                .join(", "),
        ),
        (
            "decimal",
            bytes
                .iter()
                .map(u8::to_string)
                .collect::<Vec<_>>()
                .join(","),
        ),
        ("percent", joined(&|byte| format!("%{byte:02x}"))),
        ("percent", joined(&|byte| format!("%{byte:02X}"))),
        ("reversed", secret.chars().rev().collect()),
    ];

    // Encoders differ in the characters that they leave unescaped and in the case of hexadecimal
    // digits.
    for kept in ["-_.~", "-_.", "-_~", "-_", "-_.!~*'()", ""] {
        for upper in [true, false] {
            let escaped = joined(&|byte| match byte {
                byte if byte.is_ascii_alphanumeric() || kept.as_bytes().contains(&byte) => {
                    char::from(byte).to_string()
                }
                byte if upper => format!("%{byte:02X}"),
                byte => format!("%{byte:02x}"),
            });
            forms.push(("percent", escaped));
        }
    }
    forms.push(("percent", in_query(secret)));
    forms.push((
        "form",
        url::form_urlencoded::byte_serialize(bytes).collect(),
    ));
    for alphabet in [alphabet::STANDARD, alphabet::URL_SAFE] {
        let engine = GeneralPurpose::new(&alphabet, NO_PAD);
        forms.extend((0..3).map(|before| ("base64", encoded_within(&engine, bytes, before))));
    }
    forms.retain(|(_, form)| form.len() >= MIN_LEN);
    forms
}

/// Returns a string as it is escaped in the query of a URL by the `url` crate.
pub(super) fn in_query(text: &str) -> String {
    let mut url = url::Url::parse("http://localhost/").expect("a URL");
    url.set_query(Some(text));
    url.query().unwrap_or_default().to_owned()
}

/// Returns the Base64 characters that depend only on `bytes` if they follow `before` other bytes
/// (modulo 3).
fn encoded_within(engine: &GeneralPurpose, bytes: &[u8], before: usize) -> String {
    let encoded = engine.encode([&[0; 2][..before], bytes].concat());
    let first = (before * 8).div_ceil(6);
    let end = (before + bytes.len()) * 8 / 6;
    encoded[first.min(end)..end].to_owned()
}
