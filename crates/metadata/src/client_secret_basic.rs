use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::HeaderValue;
use url::form_urlencoded;
use zeroize::Zeroizing;

use crate::Secret;

/// The `Authorization` header of `client_secret_basic`: both parts form-encoded first (RFC 6749 section 2.3.1), then
/// as RFC 7617 has it. It is marked sensitive, so that HTTP libraries do not log or compress it.
pub fn client_secret_basic(client_id: &str, secret: &Secret) -> Option<HeaderValue> {
    let encode = |part: &str| -> String { form_urlencoded::byte_serialize(part.as_bytes()).collect() };
    let pair = Zeroizing::new(format!("{}:{}", encode(client_id), &*Zeroizing::new(encode(secret.secret()))));
    let text = Zeroizing::new(format!("Basic {}", &*Zeroizing::new(STANDARD.encode(pair.as_bytes()))));
    // Base64 is visible ASCII, so that this never fails.
    let mut value = HeaderValue::from_str(&text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_parts_are_form_encoded() {
        let value = client_secret_basic("a:b", &Secret::new("c d%ü")).unwrap();
        assert_eq!(value, format!("Basic {}", STANDARD.encode("a%3Ab:c+d%25%C3%BC")).as_str());
        assert!(value.is_sensitive());
    }
}
