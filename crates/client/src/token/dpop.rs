//! [`DpopBinding`]: a DPoP key and the nonces of the servers (RFC 9449).

use std::{
    fmt,
    sync::{Mutex, PoisonError},
};

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use portcullis_jose::{DpopKey, DpopProof};
use portcullis_metadata::UnixTime;
use url::Url;

use crate::{ClientError, random};

/// A key that tokens are bound to (RFC 9449), and the servers' nonces.
pub(crate) struct DpopBinding {
    key: DpopKey,
    /// The latest nonce of each origin, the oldest first.
    nonces: Mutex<Vec<(String, String)>>,
}

/// The request header that contains a proof.
pub(crate) const PROOF: HeaderName = HeaderName::from_static("dpop");
/// The response header that contains the next nonce.
const NONCE: HeaderName = HeaderName::from_static("dpop-nonce");
/// The error code that requires a nonce.
pub(crate) const USE_DPOP_NONCE: &str = "use_dpop_nonce";

/// The maximum number of nonces: one for each origin. In practice there are the authorization server and the resource.
const MAX_NONCES: usize = 4;
/// The maximum length of a nonce. Longer ones are ignored.
const MAX_NONCE: usize = 512;

impl DpopBinding {
    pub(crate) fn generate() -> Result<Self, ClientError> {
        DpopKey::generate().map(Self::new).map_err(|_| ClientError::Signing)
    }

    pub(crate) fn new(key: DpopKey) -> Self {
        Self { key, nonces: Mutex::default() }
    }

    pub(crate) fn key(&self) -> &DpopKey {
        &self.key
    }

    /// Stores the nonce of a response. Returns whether it differs from the previous one.
    pub(crate) fn learn(&self, url: &Url, headers: &HeaderMap) -> bool {
        let Some(nonce) = headers.get(NONCE).and_then(|nonce| nonce.to_str().ok()) else { return false };
        if nonce.is_empty() || nonce.len() > MAX_NONCE || !nonce.bytes().all(|byte| byte.is_ascii_graphic()) {
            return false;
        }
        let origin = url.origin().ascii_serialization();
        let mut nonces = self.nonces.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, held)) = nonces.iter_mut().find(|(held, _)| *held == origin) {
            let is_new = held != nonce;
            nonce.clone_into(held);
            return is_new;
        }
        if nonces.len() == MAX_NONCES {
            nonces.remove(0);
        }
        nonces.push((origin, nonce.to_owned()));
        true
    }

    /// Creates a proof for one request.
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
        let origin = url.origin().ascii_serialization();
        let nonce = {
            let nonces = self.nonces.lock().unwrap_or_else(PoisonError::into_inner);
            nonces.iter().find(|(held, _)| *held == origin).map(|(_, nonce)| nonce.clone())
        };
        let proof = self.key.proof(&DpopProof {
            id: random::secret()?.secret(),
            method: method.as_str(),
            url: bare.as_str(),
            issued_at: now,
            nonce: nonce.as_deref(),
            access_token,
        });
        proof.ok().and_then(|proof| HeaderValue::try_from(proof).ok()).ok_or(ClientError::Signing)
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

    /// The claims of a proof.
    pub(crate) fn claims(proof: &HeaderValue) -> Value {
        let text = proof.to_str().unwrap().split('.').nth(1).unwrap();
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap()
    }

    fn nonce(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(NONCE, HeaderValue::from_str(value).unwrap())])
    }

    /// I8: a proof is for one method and one URL without its query, and contains the nonce of that server only.
    #[test]
    fn a_proof_is_for_one_request() {
        let binding = DpopBinding::generate().unwrap();
        let url = Url::parse("https://mcp.example.com/mcp?a=b#c").unwrap();
        let other = Url::parse("https://auth.example.com/token").unwrap();
        assert!(binding.learn(&url, &nonce("one")));
        assert!(!binding.learn(&url, &nonce("one")));
        assert!(binding.learn(&url, &nonce("two")));

        let made = |url| binding.proof(&Method::POST, url, Some("hush"), UnixTime::from_secs(7)).unwrap();
        let said = claims(&made(&url));
        assert_eq!((&said["htm"], &said["htu"]), (&"POST".into(), &"https://mcp.example.com/mcp".into()));
        assert_eq!((&said["nonce"], &said["iat"]), (&"two".into(), &7.into()));
        assert!(said["ath"].is_string());
        assert!(claims(&made(&other)).get("nonce").is_none());
        assert_ne!(said["jti"], claims(&made(&url))["jti"]);
    }

    /// Nonces that are not valid header values are ignored, and their number is limited.
    #[test]
    fn nonces_are_bounded() {
        let binding = DpopBinding::generate().unwrap();
        let url = |host: usize| Url::parse(&format!("https://h{host}.example.com/")).unwrap();
        assert!(!binding.learn(&url(0), &HeaderMap::new()));
        for bad in ["", "a b", &"n".repeat(MAX_NONCE + 1)] {
            assert!(!binding.learn(&url(0), &nonce(bad)), "{bad}");
        }
        for host in 0..=MAX_NONCES {
            assert!(binding.learn(&url(host), &nonce(&"n".repeat(MAX_NONCE))));
        }
        assert_eq!(binding.nonces.lock().unwrap().len(), MAX_NONCES);
        let shown = format!("{binding:?}");
        assert!(shown.starts_with("DpopKey") && !shown.contains("nnn"), "{shown}");
    }
}
