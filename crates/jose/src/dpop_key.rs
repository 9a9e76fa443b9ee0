//! [`DpopKey`]: creates DPoP proofs.

use std::fmt;

use josekit::{
    jwk::{
        KeyPair as _,
        alg::ec::{EcCurve, EcKeyPair},
    },
    jws::{ES256, alg::ecdsa::EcdsaJwsSigner},
};
use portcullis_metadata::UnixTime;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::{
    compact, encoding, error::SigningError, first_use::load_algorithms, thumbprint::ec_thumbprint,
};

/// A client's key for DPoP proofs (RFC 9449), with the algorithm ES256.
///
/// The key is wiped from memory on drop. `Debug` prints only the thumbprint.
pub struct DpopKey {
    signer: EcdsaJwsSigner,
    pkcs8: Zeroizing<Vec<u8>>,
    public: Value,
    thumbprint: String,
}

/// The content of a DPoP proof (RFC 9449 section 4.2).
#[derive(Clone, Copy)]
pub struct DpopProof<'a> {
    /// A unique identifier for this proof (`jti`).
    pub id: &'a str,
    /// The method of the request (`htm`).
    pub method: &'a str,
    /// The URL of the request without query and fragment (`htu`).
    pub url: &'a str,
    /// The time of issue (`iat`).
    pub issued_at: UnixTime,
    /// The nonce that the server requires, if any (`nonce`).
    pub nonce: Option<&'a str>,
    /// The access token in the request, if any. The proof contains its hash (`ath`).
    pub access_token: Option<&'a str>,
}

impl DpopKey {
    /// The algorithm of the proofs.
    pub const ALGORITHM: &str = "ES256";

    /// Generates a key.
    ///
    /// # Errors
    /// Fails if OpenSSL cannot generate the key.
    pub fn generate() -> Result<Self, SigningError> {
        load_algorithms();
        EcKeyPair::generate(EcCurve::P256)
            .map_err(|_| SigningError::Generation)
            .and_then(|pair| Self::new(&pair))
    }

    /// Imports a key that was exported with [`to_pkcs8`](Self::to_pkcs8).
    ///
    /// # Errors
    /// Fails if the bytes are not a private key on P-256.
    pub fn from_pkcs8(key: &[u8]) -> Result<Self, SigningError> {
        load_algorithms();
        let pair =
            EcKeyPair::from_der(key, Some(EcCurve::P256)).map_err(|_| SigningError::Import)?;
        Self::new(&pair)
    }

    /// Returns the private key as PKCS #8 in DER. Store it where only its owner can read it.
    pub fn to_pkcs8(&self) -> &[u8] {
        &self.pkcs8
    }

    /// Returns the SHA-256 thumbprint of the public key in base64url (RFC 7638). This is the `jkt`
    /// of a bound token.
    pub fn thumbprint(&self) -> &str {
        &self.thumbprint
    }

    /// Signs a proof (RFC 9449 section 4.2). Create one for each request; the caller chooses a
    /// unique [`id`](DpopProof::id).
    ///
    /// # Errors
    /// Fails if OpenSSL cannot sign.
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
            claims["ath"] = encoding::sha256_base64url(token).into();
        }
        compact::sign(&self.signer, header.to_string(), claims.to_string())
    }

    fn new(pair: &EcKeyPair) -> Result<Self, SigningError> {
        let pkcs8 = Zeroizing::new(pair.to_der_private_key());
        let signer = ES256
            .signer_from_der(&*pkcs8)
            .map_err(|_| SigningError::Import)?;
        let jwk = pair.to_jwk_public_key();
        let member = |name| {
            jwk.parameter(name)
                .and_then(Value::as_str)
                .ok_or(SigningError::Import)
        };
        let x = member("x")?;
        let y = member("y")?;
        let thumbprint = ec_thumbprint("P-256", x, y);
        let public = json!({ "kty": "EC", "crv": "P-256", "x": x, "y": y });
        Ok(Self {
            signer,
            pkcs8,
            public,
            thumbprint,
        })
    }
}

impl fmt::Debug for DpopKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DpopKey")
            .field("thumbprint", &self.thumbprint)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use portcullis_metadata::JwkSet;

    use super::*;
    use crate::{
        algorithm::{Algorithm, AlgorithmSet},
        compact::CompactJws,
        key_set::KeySet,
    };

    fn segment(token: &str, index: usize) -> Value {
        serde_json::from_slice(&encoding::decode(token.split('.').nth(index).unwrap()).unwrap())
            .unwrap()
    }

    const PROOF: DpopProof<'static> = DpopProof {
        id: "one",
        method: "POST",
        url: "https://mcp.example.com/mcp",
        issued_at: UnixTime::from_secs(1_000),
        nonce: None,
        access_token: None,
    };

    /// A proof contains the public key, verifies with it, and has the given claims.
    #[test]
    fn a_proof_verifies_with_its_own_key() {
        let key = DpopKey::generate().unwrap();
        let proof = key
            .proof(&DpopProof {
                nonce: Some("n"),
                access_token: Some("hush"),
                ..PROOF
            })
            .unwrap();
        let header = segment(&proof, 0);
        assert_eq!(header["typ"], "dpop+jwt");
        assert_eq!(header["alg"], "ES256");
        assert_eq!(header["jwk"].as_object().unwrap().len(), 4);
        assert!(header["jwk"].get("d").is_none());

        let claims = segment(&proof, 1);
        assert_eq!(
            claims,
            json!({
                "jti": "one", "htm": "POST", "htu": "https://mcp.example.com/mcp", "iat": 1000, "nonce": "n",
                "ath": encoding::sha256_base64url("hush"),
            })
        );

        let published = json!({ "keys": [header["jwk"]] }).to_string();
        let allowed = AlgorithmSet::EMPTY.with(Algorithm::Es256);
        let (keys, _) =
            KeySet::from_jwks(&JwkSet::parse(published.as_bytes()).unwrap(), allowed).unwrap();
        keys.verify(&CompactJws::parse(&proof, 4096).unwrap())
            .unwrap();
        assert_eq!(
            segment(&key.proof(&PROOF).unwrap(), 1)
                .as_object()
                .unwrap()
                .len(),
            4
        );
    }

    /// An exported key can be imported. Other bytes are rejected.
    #[test]
    fn keys_round_trip() {
        let key = DpopKey::generate().unwrap();
        let imported = DpopKey::from_pkcs8(key.to_pkcs8()).unwrap();
        assert_eq!(imported.thumbprint(), key.thumbprint());
        assert_eq!(key.thumbprint().len(), 43);
        assert_ne!(DpopKey::generate().unwrap().thumbprint(), key.thumbprint());
        for bytes in [&b""[..], b"\x30", &[0xff; 200], &key.to_pkcs8()[..60]] {
            assert_eq!(
                DpopKey::from_pkcs8(bytes).unwrap_err(),
                SigningError::Import
            );
        }
        assert!(!format!("{key:?}").contains("pkcs8"));
    }

    /// `ath` is computed as in the example of RFC 9449 section 7.1.
    #[test]
    fn the_token_hash_matches_the_rfc_example() {
        let token = "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU";
        assert_eq!(
            encoding::sha256_base64url(token),
            "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo"
        );
    }
}
