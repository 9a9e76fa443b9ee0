//! [`ReceivedProof`]: verifies DPoP proofs.

use std::fmt;

use portcullis_metadata::{AccessTokenClaims, JwkSet, UnixTime};
use serde_json::{Value, json};

use crate::{
    algorithm::AlgorithmSet, compact::CompactJws, encoding, error::JoseError, key_set::KeySet,
    thumbprint::thumbprint,
};

/// A DPoP proof from a request, signed with the key that it contains (RFC 9449 section 4.3).
///
/// The caller checks the claims: the method and URL of the request, the age, whether `jti` was used
/// before, whether the server issued the nonce, and whether the token is bound to
/// [`thumbprint`](Self::thumbprint).
///
/// ```
/// use portcullis_jose::{Algorithm, AlgorithmSet, DpopKey, DpopProof, ReceivedProof};
/// use portcullis_metadata::UnixTime;
///
/// let key = DpopKey::generate()?;
/// let sent = key.proof(&DpopProof {
///     id: "1",
///     method: "POST",
///     url: "https://auth.example.com/token",
///     issued_at: UnixTime::from_secs(1_767_225_600),
///     nonce: None,
///     access_token: None,
/// })?;
///
/// let proof = ReceivedProof::verify(&sent, 4096, AlgorithmSet::EMPTY.with(Algorithm::Es256))?;
/// assert_eq!(proof.thumbprint(), key.thumbprint());
/// assert_eq!((proof.method(), proof.url()), ("POST", "https://auth.example.com/token"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ReceivedProof {
    thumbprint: Box<str>,
    id: Box<str>,
    method: Box<str>,
    url: Box<str>,
    issued_at: UnixTime,
    nonce: Option<Box<str>>,
    token_hash: Option<Box<str>>,
}

/// Why a DPoP proof is rejected. No variant contains a part of the proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProofError {
    /// The proof is not a valid [`CompactJws`] token, or is not signed with the key that it
    /// contains.
    #[error("the proof is invalid: {0}")]
    Jose(JoseError),
    /// The proof's `typ` is not `dpop+jwt`.
    #[error("the proof's `typ` is not `dpop+jwt`")]
    Type,
    /// The proof's `jwk` is missing, is not a usable public key, or has a private member.
    #[error("the proof does not contain a usable public key")]
    Key,
    /// The proof lacks `jti`, `htm`, `htu` or `iat`, a claim has the wrong type, or `jti` is not 1
    /// to 256 bytes long.
    #[error("a claim of the proof is missing or malformed")]
    Claims,
}

impl ProofError {
    /// Returns a stable code for logs and metrics.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Jose(error) => error.code(),
            Self::Type => "proof.type",
            Self::Key => "proof.key",
            Self::Claims => "proof.claims",
        }
    }
}

/// The maximum length of `jti` in bytes.
const MAX_ID_LEN: usize = 256;

impl ReceivedProof {
    /// Parses a proof of at most `max_len` bytes and verifies its signature with the key that it
    /// contains.
    ///
    /// # Errors
    /// Fails if the proof is malformed, its `alg` is not among the `allowed` algorithms, its key is
    /// unusable, or the signature is invalid.
    pub fn verify(proof: &str, max_len: usize, allowed: AlgorithmSet) -> Result<Self, ProofError> {
        let compact = CompactJws::parse(proof, max_len).map_err(ProofError::Jose)?;
        if compact.header().typ() != Some("dpop+jwt") {
            return Err(ProofError::Type);
        }
        let jwks = embedded_key(proof).ok_or(ProofError::Key)?;
        let (keys, _) = KeySet::from_jwks(&jwks, allowed).map_err(|_| ProofError::Key)?;
        if keys.is_empty() {
            return Err(ProofError::Key);
        }
        let thumbprint = jwks
            .keys
            .first()
            .and_then(thumbprint)
            .ok_or(ProofError::Key)?;
        let payload = keys.verify(&compact).map_err(ProofError::Jose)?;
        Self::from_claims(payload.bytes(), thumbprint)
    }

    /// Parses the claims of a proof whose signature is verified.
    fn from_claims(payload: &[u8], thumbprint: String) -> Result<Self, ProofError> {
        let claims = AccessTokenClaims::parse(payload).map_err(|_| ProofError::Claims)?;
        let string_claim = |name| match claims.extra.get(name) {
            None => Ok(None),
            Some(Value::String(value)) => Ok(Some(Box::from(value.as_str()))),
            Some(_) => Err(ProofError::Claims),
        };
        Ok(Self {
            thumbprint: thumbprint.into(),
            method: string_claim("htm")?.ok_or(ProofError::Claims)?,
            url: string_claim("htu")?.ok_or(ProofError::Claims)?,
            issued_at: claims.iat.ok_or(ProofError::Claims)?,
            nonce: string_claim("nonce")?,
            token_hash: string_claim("ath")?,
            id: claims
                .jti
                .filter(|id| (1..=MAX_ID_LEN).contains(&id.len()))
                .ok_or(ProofError::Claims)?
                .into(),
        })
    }

    /// Returns the SHA-256 thumbprint of the signing key in base64url (RFC 7638). Compare it with
    /// the `jkt` of a bound token.
    pub fn thumbprint(&self) -> &str {
        &self.thumbprint
    }

    /// Returns the proof's identifier, 1 to 256 bytes (`jti`).
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the HTTP method for which the proof was created (`htm`).
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Returns the URL for which the proof was created, as written (`htu`).
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the time of issue (`iat`).
    pub fn issued_at(&self) -> UnixTime {
        self.issued_at
    }

    /// Returns the server's nonce, if any (`nonce`).
    pub fn nonce(&self) -> Option<&str> {
        self.nonce.as_deref()
    }

    /// Returns whether the proof was created for this access token (`ath`).
    pub fn is_for_token(&self, access_token: &str) -> bool {
        self.token_hash.as_deref() == Some(&*encoding::sha256_base64url(access_token))
    }
}

/// Prints only the thumbprint.
impl fmt::Debug for ReceivedProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceivedProof")
            .field("thumbprint", &self.thumbprint)
            .finish_non_exhaustive()
    }
}

/// Returns the header's `jwk` as a set with one key. The header must be valid, so it has no
/// duplicate members.
fn embedded_key(proof: &str) -> Option<JwkSet> {
    let header: Value =
        serde_json::from_slice(&encoding::decode(proof.split('.').next()?)?).ok()?;
    let set = json!({ "keys": [header.get("jwk")?] });
    JwkSet::parse(set.to_string().as_bytes())
        .ok()
        .filter(|set| set.keys.len() == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        algorithm::Algorithm,
        dpop_key::{DpopKey, DpopProof},
        signing_key::SigningKey,
    };

    const PROOF: DpopProof<'static> = DpopProof {
        id: "one",
        method: "POST",
        url: "https://as.example/token",
        issued_at: UnixTime::from_secs(1_000),
        nonce: None,
        access_token: None,
    };

    fn allowed() -> AlgorithmSet {
        AlgorithmSet::EMPTY
            .with(Algorithm::Es256)
            .with(Algorithm::EdDsa)
    }

    fn verify(proof: &str) -> Result<ReceivedProof, ProofError> {
        ReceivedProof::verify(proof, 4096, allowed())
    }

    /// All claims of a proof are parsed.
    #[test]
    fn a_proof_is_parsed() {
        let key = DpopKey::generate().unwrap();
        let text = key
            .proof(&DpopProof {
                nonce: Some("n"),
                access_token: Some("hush"),
                ..PROOF
            })
            .unwrap();
        let proof = verify(&text).unwrap();
        assert_eq!(proof.thumbprint(), key.thumbprint());
        assert_eq!(proof.id(), "one");
        assert_eq!(proof.method(), "POST");
        assert_eq!(proof.url(), "https://as.example/token");
        assert_eq!(proof.issued_at(), UnixTime::from_secs(1_000));
        assert_eq!(proof.nonce(), Some("n"));
        assert!(proof.is_for_token("hush"));
        assert!(!proof.is_for_token("other"));

        let bare = verify(&key.proof(&PROOF).unwrap()).unwrap();
        assert!(bare.nonce().is_none());
        assert!(!bare.is_for_token("hush"));
    }

    /// A signature by another key, another type, a private or symmetric key, and missing claims are
    /// rejected.
    #[test]
    fn invalid_proofs_are_rejected() {
        let signer = SigningKey::generate(Algorithm::EdDsa, "one").unwrap();
        let other = SigningKey::generate(Algorithm::EdDsa, "one").unwrap();
        let jwk = |key: &SigningKey| {
            let public = key.public_jwk();
            json!({ "kty": public["kty"], "crv": public["crv"], "x": public["x"] })
        };
        let claims =
            json!({ "jti": "1", "htm": "POST", "htu": "https://as.example/token", "iat": 1000 });
        let sign = |header: &Value, claims: &Value| {
            signer
                .dangerous_sign_with_header(
                    header.to_string().as_bytes(),
                    claims.to_string().as_bytes(),
                )
                .unwrap()
        };
        let header = |typ: &str, jwk: Value| json!({ "typ": typ, "alg": "EdDSA", "jwk": jwk });
        let valid = header("dpop+jwt", jwk(&signer));
        assert!(verify(&sign(&valid, &claims)).is_ok());

        let mut private = jwk(&signer);
        private["d"] = json!("AA");
        for (header, error) in [
            (
                header("dpop+jwt", jwk(&other)),
                ProofError::Jose(JoseError::Signature),
            ),
            (header("JWT", jwk(&signer)), ProofError::Type),
            (
                json!({ "alg": "EdDSA", "jwk": jwk(&signer) }),
                ProofError::Type,
            ),
            (header("dpop+jwt", private), ProofError::Key),
            (
                header("dpop+jwt", json!({ "kty": "oct", "k": "AAAA" })),
                ProofError::Key,
            ),
            (header("dpop+jwt", json!("key")), ProofError::Key),
            (
                json!({ "typ": "dpop+jwt", "alg": "EdDSA" }),
                ProofError::Key,
            ),
            (
                json!({ "typ": "dpop+jwt", "alg": "none", "jwk": jwk(&signer) }),
                ProofError::Jose(JoseError::UnsupportedAlgorithm),
            ),
        ] {
            assert_eq!(
                verify(&sign(&header, &claims)).unwrap_err(),
                error,
                "{header}"
            );
        }
        for (name, value) in [
            ("jti", Value::Null),
            ("jti", json!("")),
            ("jti", json!("a".repeat(257))),
            ("htm", Value::Null),
            ("htm", json!(1)),
            ("htu", json!(["a"])),
            ("iat", json!("now")),
            ("nonce", json!(1)),
            ("ath", json!(1)),
        ] {
            let mut claims = claims.clone();
            claims[name] = value;
            assert_eq!(
                verify(&sign(&valid, &claims)).unwrap_err(),
                ProofError::Claims,
                "{name}"
            );
        }
        let es384 = SigningKey::generate(Algorithm::Es384, "one").unwrap();
        let public = es384.public_jwk();
        let key = json!({ "kty": public["kty"], "crv": public["crv"], "x": public["x"], "y": public["y"] });
        let header = json!({ "typ": "dpop+jwt", "alg": "ES384", "jwk": key }).to_string();
        let text = es384
            .dangerous_sign_with_header(header.as_bytes(), claims.to_string().as_bytes())
            .unwrap();
        assert_eq!(
            verify(&text).unwrap_err(),
            ProofError::Key,
            "not among the allowed algorithms"
        );
        assert!(matches!(
            verify(&"a".repeat(5000)),
            Err(ProofError::Jose(JoseError::TooLarge { .. }))
        ));
    }
}
