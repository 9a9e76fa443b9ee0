//! [`SigningKey`]: a private key that signs tokens.

use std::fmt;

use josekit::{
    jwk::{Jwk as JosekitJwk, KeyPair},
    jws::JwsSigner,
};
use portcullis_metadata::JwkSet;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::{
    algorithm::Algorithm,
    compact,
    error::SigningError,
    first_use::load_algorithms,
    provider::{generate_pair, import_pair, signer},
    thumbprint::thumbprint,
};

/// A private key that signs tokens.
///
/// OpenSSL holds the private key. `Debug` prints only the key identifier and the algorithm.
pub struct SigningKey {
    algorithm: Algorithm,
    kid: Box<str>,
    signer: Box<dyn JwsSigner>,
    public: Value,
}

impl SigningKey {
    /// Generates a key: a 2048-bit key for RSA algorithms, otherwise a key on the algorithm's
    /// curve. Generating an RSA key takes a noticeable time.
    ///
    /// # Errors
    /// Fails if OpenSSL cannot generate the key.
    pub fn generate(algorithm: Algorithm, kid: impl Into<Box<str>>) -> Result<Self, SigningError> {
        load_algorithms();
        let pair = generate_pair(algorithm).ok_or(SigningError::Generation)?;
        Self::from_pair(algorithm, &*pair, kid.into()).ok_or(SigningError::Generation)
    }

    /// Imports a private key from PEM: PKCS #8 or the traditional format of its type. An RSA key
    /// must have at least 2048 bits.
    ///
    /// # Errors
    /// Fails with [`SigningError::Import`] if the input is not a private key, or the key's type,
    /// curve or size does not match the algorithm.
    pub fn from_pem(
        algorithm: Algorithm,
        pem: &str,
        kid: impl Into<Box<str>>,
    ) -> Result<Self, SigningError> {
        load_algorithms();
        let pair = import_pair(algorithm, pem).ok_or(SigningError::Import)?;
        Self::from_pair(algorithm, &*pair, kid.into()).ok_or(SigningError::Import)
    }

    /// Generates a private key as PEM (PKCS #8), to keep it. The types are those of
    /// [`generate`](Self::generate).
    ///
    /// # Errors
    /// Fails if OpenSSL cannot generate the key.
    pub fn generate_pem(algorithm: Algorithm) -> Result<Zeroizing<String>, SigningError> {
        load_algorithms();
        let pair = generate_pair(algorithm).ok_or(SigningError::Generation)?;
        String::from_utf8(pair.to_pem_private_key())
            .map(Zeroizing::new)
            .map_err(|_| SigningError::Generation)
    }

    /// Imports a private key as [`from_pem`](Self::from_pem) does. Its identifier is the SHA-256
    /// thumbprint of the public key (RFC 7638).
    ///
    /// # Errors
    /// Fails as [`from_pem`](Self::from_pem).
    pub fn from_pem_with_thumbprint(algorithm: Algorithm, pem: &str) -> Result<Self, SigningError> {
        let key = Self::from_pem(algorithm, pem, "")?;
        let set = json!({ "keys": [key.public_jwk()] }).to_string();
        let thumbprint = JwkSet::parse(set.as_bytes())
            .ok()
            .and_then(|set| thumbprint(set.keys.first()?))
            .ok_or(SigningError::Import)?;
        Self::from_pem(algorithm, pem, thumbprint)
    }

    fn from_pair(algorithm: Algorithm, pair: &dyn KeyPair, kid: Box<str>) -> Option<Self> {
        let private = Zeroizing::new(pair.to_der_private_key());
        let public = public_jwk(&pair.to_jwk_public_key(), algorithm, &kid);
        Some(Self {
            algorithm,
            signer: signer(algorithm, &private)?,
            kid,
            public,
        })
    }

    /// Returns the algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns the key identifier.
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// Returns the public key as a JWK with `kid`, `alg` and `use`, for a published JWK set.
    pub fn public_jwk(&self) -> Value {
        self.public.clone()
    }

    /// Signs a payload with a header of `alg`, `kid` and `typ`, and returns the compact
    /// serialization. The payload can be any bytes.
    ///
    /// # Errors
    /// Fails if OpenSSL cannot sign.
    pub fn sign(&self, typ: &str, payload: &[u8]) -> Result<String, SigningError> {
        let header = json!({ "alg": self.algorithm.as_str(), "kid": &*self.kid, "typ": typ });
        self.dangerous_sign_with_header(header.to_string().as_bytes(), payload)
    }

    /// Signs a payload with any header. The header is not checked: it need not be JSON or name this
    /// key. For tests of verifiers, and for tokens with other header members.
    ///
    /// # Errors
    /// Fails if OpenSSL cannot sign.
    pub fn dangerous_sign_with_header(
        &self,
        header: &[u8],
        payload: &[u8],
    ) -> Result<String, SigningError> {
        compact::sign(&*self.signer, header, payload)
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey")
            .field("kid", &self.kid)
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}

/// Builds the public JWK from the public members only.
fn public_jwk(pair: &JosekitJwk, algorithm: Algorithm, kid: &str) -> Value {
    let mut public =
        json!({ "kty": pair.key_type(), "kid": kid, "alg": algorithm.as_str(), "use": "sig" });
    if let Some(members) = public.as_object_mut() {
        for name in ["crv", "x", "y", "n", "e"] {
            members.extend(
                pair.parameter(name)
                    .map(|value| (name.to_owned(), value.clone())),
            );
        }
    }
    public
}

#[cfg(test)]
mod tests {
    use josekit::jwk::alg::{
        ec::EcCurve, ec::EcKeyPair, ed::EdCurve, ed::EdKeyPair, rsa::RsaKeyPair,
    };

    use super::*;

    /// A generated key can be kept and imported again. Its identifier depends on the key alone.
    #[test]
    fn a_kept_key_has_the_same_identifier() {
        let pem = SigningKey::generate_pem(Algorithm::Es256).unwrap();
        let import = || SigningKey::from_pem_with_thumbprint(Algorithm::Es256, &pem).unwrap();
        assert_eq!(import().kid(), import().kid());
        assert_eq!(import().kid().len(), 43);
        assert_eq!(import().public_jwk()["kid"], import().kid());
        let other = SigningKey::generate_pem(Algorithm::Es256).unwrap();
        let other = SigningKey::from_pem_with_thumbprint(Algorithm::Es256, &other).unwrap();
        assert_ne!(other.kid(), import().kid());
    }

    /// An imported key has the original public key. A key of another type, curve or size is
    /// rejected.
    #[test]
    fn keys_are_imported_from_pem() {
        let pem = |pair: &dyn KeyPair| String::from_utf8(pair.to_pem_private_key()).unwrap();
        let p256 = EcKeyPair::generate(EcCurve::P256).unwrap();
        let traditional = String::from_utf8(p256.to_traditional_pem_private_key()).unwrap();
        for text in [pem(&p256), traditional] {
            let key = SigningKey::from_pem(Algorithm::Es256, &text, "k").unwrap();
            assert_eq!(
                key.public_jwk()["x"],
                *p256.to_jwk_public_key().parameter("x").unwrap()
            );
            assert!(key.sign("JWT", b"{}").is_ok());
            assert_eq!(
                SigningKey::from_pem(Algorithm::Es384, &text, "k").unwrap_err(),
                SigningError::Import
            );
            assert_eq!(
                SigningKey::from_pem(Algorithm::Rs256, &text, "k").unwrap_err(),
                SigningError::Import
            );
        }
        let ed25519 = pem(&EdKeyPair::generate(EdCurve::Ed25519).unwrap());
        assert!(
            SigningKey::from_pem(Algorithm::EdDsa, &ed25519, "k")
                .unwrap()
                .sign("JWT", b"{}")
                .is_ok()
        );

        let rsa = pem(&RsaKeyPair::generate(2048).unwrap());
        for algorithm in [Algorithm::Rs256, Algorithm::Ps256] {
            assert!(
                SigningKey::from_pem(algorithm, &rsa, "k")
                    .unwrap()
                    .sign("JWT", b"{}")
                    .is_ok()
            );
        }
        for bits in [1024, 2047] {
            let short = pem(&RsaKeyPair::generate(bits).unwrap());
            assert_eq!(
                SigningKey::from_pem(Algorithm::Rs256, &short, "k").unwrap_err(),
                SigningError::Import,
                "{bits}"
            );
        }

        for text in [
            "",
            "-----BEGIN PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        ] {
            assert_eq!(
                SigningKey::from_pem(Algorithm::Es256, text, "k").unwrap_err(),
                SigningError::Import
            );
        }
    }
}
