//! [`ClientKey`]: the key for `private_key_jwt`.

use std::{fmt, sync::Arc};

use portcullis_jose::{Algorithm, SigningKey};
use portcullis_metadata::{Issuer, Secret, UnixTime};
use serde_json::json;

use crate::{ClientError, random};

/// A private key for client authentication (`private_key_jwt`, RFC 7523 section 2.2).
///
/// Cloning is cheap. `Debug` shows only the algorithm and the key identifier.
#[derive(Clone)]
pub struct ClientKey {
    key: Arc<SigningKey>,
    /// Whether assertions name the key in `kid`.
    has_kid: bool,
}

/// Why a private key cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientKeyError {
    /// The algorithm is not one of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512
    /// and EdDSA.
    #[error("the signature algorithm is not supported")]
    Algorithm,
    /// The text is not a private key in PEM form, or does not fit the algorithm.
    #[error("the text is not a private key in PEM form that fits the algorithm")]
    Key,
}

impl ClientKeyError {
    /// Returns the stable code, for logs and tests.
    pub fn code(self) -> &'static str {
        match self {
            Self::Algorithm => "client_key.algorithm",
            Self::Key => "client_key.key",
        }
    }
}

/// The lifetime of an assertion. It is sent at once; the time allows for clock differences.
const LIFETIME_SECS: u64 = 120;

impl ClientKey {
    /// Reads a key from PEM: PKCS #8, or the traditional form of its type. `algorithm` is the
    /// registered name, such as `ES256`; `kid` is the key's identifier at the authorization server,
    /// if it has one.
    ///
    /// # Errors
    /// Fails if the algorithm is not supported, or the text is not a private key that fits it.
    pub fn from_pem(algorithm: &str, pem: &str, kid: Option<&str>) -> Result<Self, ClientKeyError> {
        let algorithm: Algorithm = algorithm.parse().map_err(|_| ClientKeyError::Algorithm)?;
        let key = SigningKey::from_pem(algorithm, pem, kid.unwrap_or_default())
            .map_err(|_| ClientKeyError::Key)?;
        Ok(Self {
            key: Arc::new(key),
            has_kid: kid.is_some(),
        })
    }

    /// Returns a client assertion (RFC 7523 section 3). Its only audience is the issuer identifier,
    /// so that no other server accepts it.
    pub(crate) fn assertion(
        &self,
        client_id: &str,
        audience: &Issuer,
        now: UnixTime,
    ) -> Result<Secret, ClientError> {
        let mut header = json!({ "alg": self.key.algorithm().as_str(), "typ": "JWT" });
        if self.has_kid {
            header["kid"] = self.key.kid().into();
        }
        let claims = json!({
            "iss": client_id,
            "sub": client_id,
            "aud": audience.as_str(),
            "jti": random::secret()?.secret(),
            "iat": now.as_secs(),
            "exp": now.as_secs().saturating_add(LIFETIME_SECS),
        });
        let signed = self.key.dangerous_sign_with_header(
            header.to_string().as_bytes(),
            claims.to_string().as_bytes(),
        );
        signed.map(Secret::new).map_err(|_| ClientError::Signing)
    }
}

/// Compares identities: two keys from the same text differ.
impl PartialEq for ClientKey {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.key, &other.key)
    }
}

impl Eq for ClientKey {}

impl fmt::Debug for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.fmt(f)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
    use serde_json::Value;

    use super::*;

    /// A key that is used only in tests.
    pub(crate) const PEM: &str = "-----BEGIN PRIVATE KEY-----\n\
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgbgk34AL9MUDhUkNd\n\
        pa/ivDGwB7P3W9IXOki8jD8eVUyhRANCAAQlz8y72RT3UnLqqlzuHYmRLsAHnHHT\n\
        wOrJj8Ta4RVoxgY+QxoBt9wTtY3jBAd/j4VGqT+XXUU6JsvbLsv2n/t/\n\
        -----END PRIVATE KEY-----\n";

    fn part(token: &Secret, at: usize) -> Value {
        let text = token.secret().split('.').nth(at).unwrap();
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap()
    }

    /// I4: an assertion has the client as issuer and subject, one audience, and a short lifetime.
    #[test]
    fn an_assertion_is_for_one_issuer() {
        let issuer = Issuer::parse("https://auth.example.com/a").unwrap();
        let key = ClientKey::from_pem("ES256", PEM, None).unwrap();
        let assertion = key
            .assertion("me", &issuer, UnixTime::from_secs(1_000))
            .unwrap();
        assert_eq!(part(&assertion, 0), json!({ "alg": "ES256", "typ": "JWT" }));

        let claims = part(&assertion, 1);
        assert_eq!(claims["iss"], "me");
        assert_eq!(claims["sub"], "me");
        assert_eq!(claims["aud"], "https://auth.example.com/a");
        assert_eq!(claims["iat"], json!(1_000));
        assert_eq!(claims["exp"], json!(1_120));

        let second = key
            .assertion("me", &issuer, UnixTime::from_secs(1_000))
            .unwrap();
        assert_ne!(claims["jti"], part(&second, 1)["jti"]);
        let with_kid = ClientKey::from_pem("ES256", PEM, Some("k1")).unwrap();
        assert_eq!(
            part(
                &with_kid
                    .assertion("me", &issuer, UnixTime::default())
                    .unwrap(),
                0
            )["kid"],
            "k1"
        );
    }

    /// Two keys from the same text differ.
    #[test]
    fn a_key_equals_only_itself() {
        let [one, other] = [(); 2].map(|()| ClientKey::from_pem("ES256", PEM, None).unwrap());
        assert_eq!(one.clone(), one);
        assert_ne!(one, other);
        assert!(format!("{one:?}").starts_with("SigningKey { "));
    }

    #[test]
    fn invalid_keys_are_rejected() {
        assert_eq!(
            ClientKey::from_pem("HS256", PEM, None).unwrap_err().code(),
            "client_key.algorithm"
        );
        assert_eq!(
            ClientKey::from_pem("RS256", PEM, None).unwrap_err().code(),
            "client_key.key"
        );
        assert_eq!(
            ClientKey::from_pem("ES256", "no key", None)
                .unwrap_err()
                .code(),
            "client_key.key"
        );
    }
}
