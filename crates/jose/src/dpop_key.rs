use std::fmt;

use josekit::{
    jwk::{
        KeyPair as _,
        alg::ec::{EcCurve, EcKeyPair},
    },
    jws::{ES256, JwsSigner as _, alg::ecdsa::EcdsaJwsSigner},
};
use portcullis_metadata::UnixTime;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::{SigningError, encoding};

/// A client's key for DPoP proofs (RFC 9449): ES256, made by the client itself and known to nobody by another name.
///
/// Wiped from memory when dropped; `Debug` shows the thumbprint alone.
pub struct DpopKey {
    signer: EcdsaJwsSigner,
    pkcs8: Zeroizing<Vec<u8>>,
    public: Value,
    thumbprint: String,
}

/// What a DPoP proof says (RFC 9449 section 4.2).
#[derive(Clone, Copy)]
pub struct DpopProof<'a> {
    /// A name for this proof that no other proof has (`jti`).
    pub id: &'a str,
    /// The method of the request that it goes with (`htm`).
    pub method: &'a str,
    /// The URL of the request, without query and fragment (`htu`).
    pub url: &'a str,
    /// When it is made (`iat`).
    pub issued_at: UnixTime,
    /// The nonce that the server asked for, where it did (`nonce`).
    pub nonce: Option<&'a str>,
    /// The access token that the request carries, where it carries one; its hash is sent (`ath`).
    pub access_token: Option<&'a str>,
}

impl DpopKey {
    /// Makes a key.
    ///
    /// # Errors
    /// When OpenSSL cannot generate it.
    pub fn generate() -> Result<Self, SigningError> {
        EcKeyPair::generate(EcCurve::P256).map_err(|_| SigningError::Generation).and_then(|pair| Self::new(&pair))
    }

    /// Reads a key that [`to_pkcs8`](Self::to_pkcs8) wrote.
    ///
    /// # Errors
    /// When the bytes are no private key on P-256.
    pub fn from_pkcs8(key: &[u8]) -> Result<Self, SigningError> {
        let pair = EcKeyPair::from_der(key, Some(EcCurve::P256)).map_err(|_| SigningError::Import)?;
        Self::new(&pair)
    }

    /// The private key as PKCS #8, for a store that only its owner can read.
    pub fn to_pkcs8(&self) -> &[u8] {
        &self.pkcs8
    }

    /// The SHA-256 thumbprint of the public key (RFC 7638), base64url: the `jkt` that a token is bound to.
    pub fn thumbprint(&self) -> &str {
        &self.thumbprint
    }

    /// The algorithm of the proofs.
    pub const ALGORITHM: &str = "ES256";

    /// Makes a proof.
    ///
    /// # Errors
    /// When OpenSSL cannot sign.
    pub fn proof(&self, proof: &DpopProof<'_>) -> Result<String, SigningError> {
        let header = json!({ "typ": "dpop+jwt", "alg": Self::ALGORITHM, "jwk": self.public });
        let mut claims = json!({
            "jti": proof.id,
            "htm": proof.method,
            "htu": proof.url,
            "iat": proof.issued_at.as_secs(),
        });
        if let Some(nonce) = proof.nonce {
            claims["nonce"] = nonce.into();
        }
        if let Some(token) = proof.access_token {
            claims["ath"] = digest(token).into();
        }
        let mut text = String::new();
        encoding::encode_to(header.to_string(), &mut text);
        text.push('.');
        encoding::encode_to(claims.to_string(), &mut text);
        let signature = self.signer.sign(text.as_bytes()).map_err(|_| SigningError::Signature)?;
        text.push('.');
        encoding::encode_to(signature, &mut text);
        Ok(text)
    }

    fn new(pair: &EcKeyPair) -> Result<Self, SigningError> {
        let pkcs8 = Zeroizing::new(pair.to_der_private_key());
        let signer = ES256.signer_from_der(&*pkcs8).map_err(|_| SigningError::Import)?;
        let jwk = pair.to_jwk_public_key();
        let member = |name| jwk.parameter(name).and_then(Value::as_str).ok_or(SigningError::Import);
        let (x, y) = (member("x")?, member("y")?);
        // The members in the order of RFC 7638 section 3.3, which is what the thumbprint is made of.
        let thumbprint = digest(&format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#));
        let public = json!({ "kty": "EC", "crv": "P-256", "x": x, "y": y });
        Ok(Self { signer, pkcs8, public, thumbprint })
    }
}

fn digest(text: &str) -> String {
    let mut digest = String::new();
    encoding::encode_to(Sha256::digest(text), &mut digest);
    digest
}

impl fmt::Debug for DpopKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DpopKey").field("thumbprint", &self.thumbprint).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use portcullis_metadata::JwkSet;

    use super::*;
    use crate::{Algorithm, AlgorithmSet, Compact, KeySet};

    fn part(token: &str, at: usize) -> Value {
        serde_json::from_slice(&encoding::decode(token.split('.').nth(at).unwrap()).unwrap()).unwrap()
    }

    const PROOF: DpopProof<'static> = DpopProof {
        id: "one",
        method: "POST",
        url: "https://mcp.example.com/mcp",
        issued_at: UnixTime::from_secs(1_000),
        nonce: None,
        access_token: None,
    };

    /// A proof carries the public key, verifies with it, and says what it is for.
    #[test]
    fn a_proof_verifies_with_its_own_key() {
        let key = DpopKey::generate().unwrap();
        let proof = key.proof(&DpopProof { nonce: Some("n"), access_token: Some("hush"), ..PROOF }).unwrap();
        let header = part(&proof, 0);
        assert_eq!((&header["typ"], &header["alg"]), (&json!("dpop+jwt"), &json!("ES256")));
        assert_eq!(header["jwk"].as_object().unwrap().keys().collect::<std::collections::BTreeSet<_>>().len(), 4);
        assert!(header["jwk"].get("d").is_none());
        let claims = part(&proof, 1);
        assert_eq!(
            claims,
            json!({
                "jti": "one", "htm": "POST", "htu": "https://mcp.example.com/mcp", "iat": 1000, "nonce": "n",
                "ath": digest("hush"),
            })
        );
        let published = json!({ "keys": [header["jwk"]] }).to_string();
        let allowed = AlgorithmSet::EMPTY.with(Algorithm::Es256);
        let (keys, _) = KeySet::from_jwks(&JwkSet::parse(published.as_bytes()).unwrap(), allowed).unwrap();
        keys.verify(&Compact::parse(&proof, 4096).unwrap()).unwrap();
        assert_eq!(part(&key.proof(&PROOF).unwrap(), 1).as_object().unwrap().len(), 4);
    }

    /// A key that was written and read back is the same key; what is none is refused.
    #[test]
    fn a_key_reads_back() {
        let key = DpopKey::generate().unwrap();
        let read = DpopKey::from_pkcs8(key.to_pkcs8()).unwrap();
        assert_eq!(read.thumbprint(), key.thumbprint());
        assert_eq!(key.thumbprint().len(), 43);
        assert_ne!(DpopKey::generate().unwrap().thumbprint(), key.thumbprint());
        for bytes in [&b""[..], b"\x30", &[0xff; 200], &key.to_pkcs8()[..60]] {
            assert_eq!(DpopKey::from_pkcs8(bytes).unwrap_err(), SigningError::Import);
        }
        assert!(!format!("{key:?}").contains("pkcs8"));
    }

    /// The hash of the token is that of RFC 9449 section 4.3: SHA-256 of its text, base64url.
    #[test]
    fn the_hash_is_the_one_of_the_rfc() {
        let token = "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU";
        assert_eq!(digest(token), "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo");
    }
}
