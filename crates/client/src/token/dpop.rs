//! [`DpopBinding`]: a DPoP key and the nonces of the servers (RFC 9449).

use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use parking_lot::Mutex;
use portcullis_jose::{DpopKey, DpopProof};
use portcullis_metadata::UnixTime;
use url::Url;

use super::dpop_nonces::DpopNonces;
use crate::{ClientError, random};

/// A key that tokens are bound to (RFC 9449), and the servers' nonces.
pub(crate) struct DpopBinding {
    key: DpopKey,
    nonces: Mutex<DpopNonces>,
}

/// The request header that contains a proof.
pub(crate) const PROOF: HeaderName = HeaderName::from_static("dpop");
/// The response header that contains the next nonce.
const NONCE: HeaderName = HeaderName::from_static("dpop-nonce");
/// The error code that requires a nonce.
pub(crate) const USE_DPOP_NONCE: &str = "use_dpop_nonce";

impl DpopBinding {
    /// Generates a key. Fails with [`ClientError::Signing`].
    pub(crate) fn generate() -> Result<Self, ClientError> {
        DpopKey::generate()
            .map(Self::new)
            .map_err(|_| ClientError::Signing)
    }

    /// Uses a stored key. Nonces are not stored.
    pub(crate) fn new(key: DpopKey) -> Self {
        Self {
            key,
            nonces: Mutex::default(),
        }
    }

    pub(crate) fn key(&self) -> &DpopKey {
        &self.key
    }

    /// Stores the nonce of a response. Returns whether it differs from the previous one.
    pub(crate) fn store_nonce(&self, url: &Url, headers: &HeaderMap) -> bool {
        let Some(nonce) = headers.get(NONCE).and_then(|nonce| nonce.to_str().ok()) else {
            return false;
        };
        self.nonces.lock().set(&url.origin(), nonce)
    }

    /// Creates a proof for one request, with the latest nonce of its origin (RFC 9449 section 4.2).
    /// Fails with [`ClientError::NoRandomness`] or [`ClientError::Signing`].
    pub(crate) fn proof(
        &self,
        method: &Method,
        url: &Url,
        access_token: Option<&str>,
        now: UnixTime,
    ) -> Result<HeaderValue, ClientError> {
        let mut bare = url.clone();
        bare.set_query(None);
        bare.set_fragment(None);
        let nonce = self.nonces.lock().get(&url.origin()).map(str::to_owned);
        let proof = self.key.proof(&DpopProof {
            id: random::secret()?.secret(),
            method: method.as_str(),
            url: bare.as_str(),
            issued_at: now,
            nonce: nonce.as_deref(),
            access_token,
        });
        proof
            .ok()
            .and_then(|proof| HeaderValue::try_from(proof).ok())
            .ok_or(ClientError::Signing)
    }
}

impl fmt::Debug for DpopBinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.fmt(f)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
    use serde_json::Value;

    use super::*;

    pub(crate) fn claims(proof: &HeaderValue) -> Value {
        let text = proof.to_str().unwrap().split('.').nth(1).unwrap();
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap()
    }

    fn nonce(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(NONCE, HeaderValue::from_str(value).unwrap())])
    }

    /// I8: a proof is for one method and one URL without its query, and contains the nonce of that
    /// server only.
    #[test]
    fn a_proof_is_for_one_request() {
        let binding = DpopBinding::generate().unwrap();
        let url = Url::parse("https://mcp.example.com/mcp?a=b#c").unwrap();
        let other = Url::parse("https://auth.example.com/token").unwrap();
        assert!(binding.store_nonce(&url, &nonce("one")));
        assert!(!binding.store_nonce(&url, &nonce("one")));
        assert!(binding.store_nonce(&url, &nonce("two")));

        let made = |url| {
            binding
                .proof(&Method::POST, url, Some("hush"), UnixTime::from_secs(7))
                .unwrap()
        };
        let said = claims(&made(&url));
        assert_eq!(said["htm"], "POST");
        assert_eq!(said["htu"], "https://mcp.example.com/mcp");
        assert_eq!(said["nonce"], "two");
        assert_eq!(said["iat"], 7);
        assert!(said["ath"].is_string());
        assert!(claims(&made(&other)).get("nonce").is_none());
        assert_ne!(said["jti"], claims(&made(&url))["jti"]);
    }

    #[test]
    fn debug_shows_no_nonce() {
        let binding = DpopBinding::generate().unwrap();
        assert!(!binding.store_nonce(
            &Url::parse("https://a.example.com/").unwrap(),
            &HeaderMap::new()
        ));
        assert!(binding.store_nonce(
            &Url::parse("https://a.example.com/").unwrap(),
            &nonce("a-nonce-of-the-server")
        ));
        let shown = format!("{binding:?}");
        assert!(shown.starts_with("DpopKey"), "{shown}");
        assert!(!shown.contains("a-nonce-of-the-server"), "{shown}");
    }
}
