use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use josekit::{
    jwk::Jwk,
    jws::{JwsVerifier, RS256},
};
use serde_json::Value;

/// josekit's part of a verification, the signature, with which the verifier is compared.
pub(crate) struct Josekit(Box<dyn JwsVerifier>);

/// The signed message, and the decoded signature.
pub(crate) struct Signed {
    message: Vec<u8>,
    signature: Vec<u8>,
}

impl Josekit {
    /// Creates a verifier with a public RSA key.
    pub(crate) fn new(mut members: Value) -> Self {
        let kept = members.as_object_mut().expect("an object");
        kept.retain(|name, _| ["kty", "n", "e"].contains(&name.as_str()));
        let jwk = Jwk::from_map(kept.clone()).expect("a key");
        Self(Box::new(RS256.verifier_from_jwk(&jwk).expect("a verifier")))
    }

    /// Splits a token and decodes its signature.
    pub(crate) fn split(&self, token: &str) -> Signed {
        let (message, signature) = token.rsplit_once('.').expect("a compact token");
        let signature = URL_SAFE_NO_PAD.decode(signature).expect("base64url");
        Signed {
            message: message.as_bytes().to_vec(),
            signature,
        }
    }

    /// Verifies a valid signature.
    pub(crate) fn verify(&self, signed: &Signed) {
        self.0
            .verify(&signed.message, &signed.signature)
            .expect("a valid signature");
    }
}
