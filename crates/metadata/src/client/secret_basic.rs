//! The `client_secret_basic` authentication method.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::HeaderValue;
use url::form_urlencoded;
use zeroize::Zeroizing;

use crate::secret::Secret;

/// Returns the `Authorization` header value for `client_secret_basic`.
///
/// The identifier and the secret are form-encoded (RFC 6749 section 2.3.1) and then sent with the
/// Basic scheme (RFC 7617). The value is marked as sensitive, so HTTP libraries do not log or
/// compress it. It is never `None`.
pub fn client_secret_basic(client_id: &str, secret: &Secret) -> Option<HeaderValue> {
    let encode =
        |part: &str| -> String { form_urlencoded::byte_serialize(part.as_bytes()).collect() };
    let pair = Zeroizing::new(format!(
        "{}:{}",
        encode(client_id),
        &*Zeroizing::new(encode(secret.secret()))
    ));
    let credentials = Zeroizing::new(format!(
        "Basic {}",
        &*Zeroizing::new(STANDARD.encode(pair.as_bytes()))
    ));
    // Base64 is visible ASCII, so it is a header value.
    let mut value = HeaderValue::from_str(&credentials).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_parts_are_form_encoded() {
        let value = client_secret_basic("a:b", &Secret::new("c d%ü")).unwrap();
        assert_eq!(
            value,
            format!("Basic {}", STANDARD.encode("a%3Ab:c+d%25%C3%BC")).as_str()
        );
        assert!(value.is_sensitive());
    }
}
