use std::fmt;

use portcullis_metadata::{AccessTokenClaims, Jwk, JwkSet, UnixTime};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{AlgorithmSet, Compact, JoseError, KeySet, encoding};

/// A DPoP proof that came with a request, and that the key which it carries did sign (RFC 9449 section 4.3).
///
/// What it says is still to be judged: whether method and URL are those of the request, when it was made, whether its `jti` was seen
/// before, whether the nonce is one that was given out, and whether [`thumbprint`](Self::thumbprint) is the one that a token is
/// bound to.
pub struct ReceivedProof {
    thumbprint: Box<str>,
    id: Box<str>,
    method: Box<str>,
    url: Box<str>,
    issued_at: UnixTime,
    nonce: Option<Box<str>>,
    token_hash: Option<Box<str>>,
}

/// Why a DPoP proof was not taken. No variant holds any part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProofError {
    /// It is no signed JWT by the rules of [`Compact`], or the key that it carries did not sign it.
    #[error("the proof is not taken: {0}")]
    Jose(JoseError),
    /// Its `typ` is not `dpop+jwt`.
    #[error("the proof's `typ` is not `dpop+jwt`")]
    Type,
    /// Its `jwk` is no usable public key, or has a private member.
    #[error("the proof carries no usable public key")]
    Key,
    /// It lacks `jti`, `htm`, `htu` or `iat`, has one of the wrong type, or an identifier of more than 256 bytes.
    #[error("the proof lacks a claim, or has one of the wrong type")]
    Claims,
}

impl ProofError {
    /// A stable name for logs and metrics.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Jose(error) => error.code(),
            Self::Type => "proof.type",
            Self::Key => "proof.key",
            Self::Claims => "proof.claims",
        }
    }
}

const MAX_ID: usize = 256;

impl ReceivedProof {
    /// Reads a proof of at most `max_len` bytes, signed with one of the `allowed` algorithms.
    ///
    /// # Errors
    /// When it is none.
    pub fn verify(proof: &str, max_len: usize, allowed: AlgorithmSet) -> Result<Self, ProofError> {
        let compact = Compact::parse(proof, max_len).map_err(ProofError::Jose)?;
        if compact.header().typ() != Some("dpop+jwt") {
            return Err(ProofError::Type);
        }
        let published = carried_key(proof).ok_or(ProofError::Key)?;
        let (keys, _) = KeySet::from_jwks(&published, allowed).map_err(|_| ProofError::Key)?;
        if keys.is_empty() {
            return Err(ProofError::Key);
        }
        let thumbprint = published.keys.first().and_then(thumbprint).ok_or(ProofError::Key)?;
        let payload = keys.verify(&compact).map_err(ProofError::Jose)?;
        let claims = AccessTokenClaims::parse(payload.bytes()).map_err(|_| ProofError::Claims)?;
        let text = |name| match claims.extra.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(Box::from(text.as_str()))),
            Some(_) => Err(ProofError::Claims),
        };
        Ok(Self {
            thumbprint: thumbprint.into(),
            method: text("htm")?.ok_or(ProofError::Claims)?,
            url: text("htu")?.ok_or(ProofError::Claims)?,
            issued_at: claims.iat.ok_or(ProofError::Claims)?,
            nonce: text("nonce")?,
            token_hash: text("ath")?,
            id: claims.jti.filter(|id| (1..=MAX_ID).contains(&id.len())).ok_or(ProofError::Claims)?.into(),
        })
    }

    /// The SHA-256 thumbprint of the key that signed (RFC 7638), base64url: the `jkt` that a token is bound to.
    pub fn thumbprint(&self) -> &str {
        &self.thumbprint
    }

    /// The name of this proof, 1 to 256 bytes (`jti`).
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The method that it is for (`htm`).
    pub fn method(&self) -> &str {
        &self.method
    }

    /// The URL that it is for, as it was written (`htu`).
    pub fn url(&self) -> &str {
        &self.url
    }

    /// When it was made (`iat`).
    pub fn issued_at(&self) -> UnixTime {
        self.issued_at
    }

    /// The nonce that it answers (`nonce`).
    pub fn nonce(&self) -> Option<&str> {
        self.nonce.as_deref()
    }

    /// Whether it was made for a request with this access token (`ath`).
    pub fn is_for_token(&self, access_token: &str) -> bool {
        self.token_hash.as_deref() == Some(&*hash(access_token))
    }
}

/// Shows the thumbprint alone.
impl fmt::Debug for ReceivedProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceivedProof").field("thumbprint", &self.thumbprint).finish_non_exhaustive()
    }
}

/// The header's `jwk` as a set of one. The header was judged: it is one object with each member once.
fn carried_key(proof: &str) -> Option<JwkSet> {
    let header: Value = serde_json::from_slice(&encoding::decode(proof.split('.').next()?)?).ok()?;
    let set = json!({ "keys": [header.get("jwk")?] });
    JwkSet::parse(set.to_string().as_bytes()).ok().filter(|set| set.keys.len() == 1)
}

/// The thumbprint over the required members in the order of their names (RFC 7638 section 3.2, RFC 8037 section 2).
fn thumbprint(key: &Jwk) -> Option<String> {
    let Jwk { kty, crv, n, e, x, y, .. } = key;
    let text = match (kty.as_str(), crv, n, e, x, y) {
        ("RSA", _, Some(n), Some(e), ..) => format!(r#"{{"e":"{e}","kty":"RSA","n":"{n}"}}"#),
        ("EC", Some(crv), _, _, Some(x), Some(y)) => format!(r#"{{"crv":"{crv}","kty":"EC","x":"{x}","y":"{y}"}}"#),
        ("OKP", Some(crv), _, _, Some(x), _) => format!(r#"{{"crv":"{crv}","kty":"OKP","x":"{x}"}}"#),
        _ => return None,
    };
    Some(hash(&text))
}

fn hash(text: &str) -> String {
    let mut hash = String::new();
    encoding::encode_to(Sha256::digest(text), &mut hash);
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Algorithm, DpopKey, DpopProof, SigningKey};

    const PROOF: DpopProof<'static> = DpopProof {
        id: "one",
        method: "POST",
        url: "https://as.example/token",
        issued_at: UnixTime::from_secs(1_000),
        nonce: None,
        access_token: None,
    };

    fn allowed() -> AlgorithmSet {
        AlgorithmSet::EMPTY.with(Algorithm::Es256).with(Algorithm::EdDsa)
    }

    fn verify(proof: &str) -> Result<ReceivedProof, ProofError> {
        ReceivedProof::verify(proof, 4096, allowed())
    }

    /// The example of RFC 7638 section 3.1.
    #[test]
    fn the_thumbprint_is_the_one_of_the_rfc() {
        let n = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw";
        let set = json!({ "keys": [{ "kty": "RSA", "n": n, "e": "AQAB", "alg": "RS256", "kid": "2011-04-29" }] });
        let set = JwkSet::parse(set.to_string().as_bytes()).unwrap();
        assert_eq!(thumbprint(&set.keys[0]).as_deref(), Some("NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"));
    }

    /// A client's proof is read with all that it says.
    #[test]
    fn a_proof_is_read() {
        let key = DpopKey::generate().unwrap();
        let text = key.proof(&DpopProof { nonce: Some("n"), access_token: Some("hush"), ..PROOF }).unwrap();
        let proof = verify(&text).unwrap();
        assert_eq!(proof.thumbprint(), key.thumbprint());
        assert_eq!((proof.id(), proof.method(), proof.url()), ("one", "POST", "https://as.example/token"));
        assert_eq!((proof.issued_at(), proof.nonce()), (UnixTime::from_secs(1_000), Some("n")));
        assert!(proof.is_for_token("hush") && !proof.is_for_token("other"));
        let bare = verify(&key.proof(&PROOF).unwrap()).unwrap();
        assert!(bare.nonce().is_none() && !bare.is_for_token("hush"));
    }

    /// Another key's signature, another type, a private or symmetric key, and missing claims are refused.
    #[test]
    fn other_proofs_are_refused() {
        let signer = SigningKey::generate(Algorithm::EdDsa, "one").unwrap();
        let other = SigningKey::generate(Algorithm::EdDsa, "one").unwrap();
        let jwk = |key: &SigningKey| {
            let public = key.public_jwk();
            json!({ "kty": public["kty"], "crv": public["crv"], "x": public["x"] })
        };
        let claims = json!({ "jti": "1", "htm": "POST", "htu": "https://as.example/token", "iat": 1000 });
        let sign = |header: &Value, claims: &Value| {
            signer.dangerous_sign_with_header(header.to_string().as_bytes(), claims.to_string().as_bytes()).unwrap()
        };
        let header = |typ: &str, jwk: Value| json!({ "typ": typ, "alg": "EdDSA", "jwk": jwk });
        let good = header("dpop+jwt", jwk(&signer));
        assert!(verify(&sign(&good, &claims)).is_ok());

        let mut private = jwk(&signer);
        private["d"] = json!("AA");
        for (header, error) in [
            (header("dpop+jwt", jwk(&other)), ProofError::Jose(JoseError::Signature)),
            (header("JWT", jwk(&signer)), ProofError::Type),
            (json!({ "alg": "EdDSA", "jwk": jwk(&signer) }), ProofError::Type),
            (header("dpop+jwt", private), ProofError::Key),
            (header("dpop+jwt", json!({ "kty": "oct", "k": "AAAA" })), ProofError::Key),
            (header("dpop+jwt", json!("key")), ProofError::Key),
            (json!({ "typ": "dpop+jwt", "alg": "EdDSA" }), ProofError::Key),
            (
                json!({ "typ": "dpop+jwt", "alg": "none", "jwk": jwk(&signer) }),
                ProofError::Jose(JoseError::UnsupportedAlgorithm),
            ),
        ] {
            assert_eq!(verify(&sign(&header, &claims)).unwrap_err(), error, "{header}");
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
            assert_eq!(verify(&sign(&good, &claims)).unwrap_err(), ProofError::Claims, "{name}");
        }
        let rs256 = SigningKey::generate(Algorithm::Es384, "one").unwrap();
        let public = rs256.public_jwk();
        let key = json!({ "kty": public["kty"], "crv": public["crv"], "x": public["x"], "y": public["y"] });
        let header = json!({ "typ": "dpop+jwt", "alg": "ES384", "jwk": key }).to_string();
        let text = rs256.dangerous_sign_with_header(header.as_bytes(), claims.to_string().as_bytes()).unwrap();
        assert_eq!(verify(&text).unwrap_err(), ProofError::Key, "not among the allowed algorithms");
        assert!(matches!(verify(&"a".repeat(5000)), Err(ProofError::Jose(JoseError::TooLarge { .. }))));
    }
}
