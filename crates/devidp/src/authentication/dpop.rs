//! [`DpopProofs`]: verifies DPoP proofs and issues nonces (RFC 9449).

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use portcullis_jose::ReceivedProof;
use portcullis_metadata::{Clock, Secret};
use url::Url;

use crate::{
    clients::assertion_algorithms,
    config::Config,
    handle::random_text,
    server::{
        endpoint::Endpoint,
        oauth_error::{ErrorCode, ErrorResponse},
    },
    tables::{LASTING_CAPACITY, Table},
};

/// The used proofs, and the nonces if the settings require them.
pub(crate) struct DpopProofs {
    /// The key thumbprint and `jti` of each used proof.
    used: Table<()>,
    /// `None` if proofs need no nonce.
    nonces: Option<Nonces>,
    token_endpoint: Url,
    clock: Arc<dyn Clock>,
}

/// The thumbprint of a client's DPoP key (RFC 9449 section 6.1).
pub(crate) type Thumbprint = Box<str>;

/// The request header with the proof.
const PROOF: HeaderName = HeaderName::from_static("dpop");
/// The response header with the nonce.
const NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// The maximum size of a proof in bytes.
const MAX_PROOF: usize = 8 * 1024;
/// The maximum age of a proof and the maximum time by which the client's clock may be ahead.
const MAX_PROOF_AGE: Duration = Duration::from_secs(60);
/// The time for which the identifier of a proof is remembered.
const PROOF_RETENTION: Duration = Duration::from_secs(2 * MAX_PROOF_AGE.as_secs() + 1);
/// The time for which a nonce is issued. It is accepted for the same time afterwards.
const NONCE_LIFETIME: Duration = Duration::from_secs(300);
const THUMBPRINT_CHARS: usize = 43;

impl DpopProofs {
    pub(crate) fn new(config: &Config) -> Result<Self, getrandom::Error> {
        let clock = &config.settings.clock;
        Ok(Self {
            used: config.table(LASTING_CAPACITY, PROOF_RETENTION),
            nonces: config.settings.dpop_nonces.then(|| Nonces::new(Arc::clone(clock))).transpose()?,
            token_endpoint: config.url(Endpoint::Token),
            clock: Arc::clone(clock),
        })
    }

    /// Verifies the proof of a token request, if any, and returns the key's thumbprint (RFC 9449 sections 4.3 and 5).
    pub(crate) fn verify(&self, headers: &HeaderMap) -> Result<Option<Thumbprint>, ErrorResponse> {
        let mut values = headers.get_all(PROOF).iter();
        let Some(value) = values.next() else { return Ok(None) };
        let proof = value.to_str().ok().filter(|_| values.next().is_none());
        let proof = proof.ok_or(invalid("the request must have exactly one DPoP proof"))?;
        let proof = ReceivedProof::verify(proof, MAX_PROOF, assertion_algorithms()).map_err(|error| {
            tracing::info!(reason = error.code(), "rejected a DPoP proof");
            invalid("the DPoP proof must be a JWT of type dpop+jwt that is signed with its own key")
        })?;
        if proof.method() != Method::POST.as_str() || !self.is_token_endpoint(proof.url()) {
            return Err(invalid("htm and htu of the DPoP proof must be POST and the token endpoint"));
        }
        let (now, issued_at) = (self.clock.now(), proof.issued_at());
        if issued_at < now.saturating_sub(MAX_PROOF_AGE) || issued_at > now.saturating_add(MAX_PROOF_AGE) {
            return Err(invalid("the DPoP proof was not created within the last minute"));
        }
        if let Some(nonces) = &self.nonces
            && !proof.nonce().is_some_and(|nonce| nonces.accepts(nonce))
        {
            let description = "the DPoP proof must contain the nonce in the DPoP-Nonce header";
            return Err(ErrorResponse::new(ErrorCode::UseDpopNonce, description));
        }
        match self.used.insert_new(&format!("{}\n{}", proof.thumbprint(), proof.id()), ()) {
            Ok(true) => Ok(Some(proof.thumbprint().into())),
            Ok(false) => Err(invalid("the DPoP proof was used before")),
            Err(_) => Err(invalid("too many DPoP proofs are remembered; try again later")),
        }
    }

    /// Returns the response header with the current nonce, if proofs need one.
    pub(crate) fn nonce_header(&self) -> Option<(HeaderName, HeaderValue)> {
        let nonce = self.nonces.as_ref()?.current().ok()?;
        Some((NONCE, HeaderValue::from_str(nonce.secret()).ok()?))
    }

    /// Compares without query and fragment.
    fn is_token_endpoint(&self, url: &str) -> bool {
        Url::parse(url).is_ok_and(|mut url| {
            url.set_query(None);
            url.set_fragment(None);
            url == self.token_endpoint
        })
    }
}

/// Parses the `dpop_jkt` parameter of an authorization request (RFC 9449 section 10).
pub(crate) fn parse_thumbprint(thumbprint: &str) -> Option<Thumbprint> {
    let is_valid = thumbprint.len() == THUMBPRINT_CHARS
        && thumbprint.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    is_valid.then(|| thumbprint.into())
}

/// The server's nonces (RFC 9449 section 8).
struct Nonces {
    state: Mutex<NonceState>,
    clock: Arc<dyn Clock>,
}

struct NonceState {
    current: Secret,
    previous: Option<Secret>,
    since: Duration,
}

impl Nonces {
    fn new(clock: Arc<dyn Clock>) -> Result<Self, getrandom::Error> {
        let state = NonceState { current: generate_nonce()?, previous: None, since: clock.monotonic() };
        Ok(Self { state: Mutex::new(state), clock })
    }

    /// Returns the current nonce and replaces it when its lifetime is over.
    fn current(&self) -> Result<Secret, getrandom::Error> {
        let now = self.clock.monotonic();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let age = now.saturating_sub(state.since);
        if age >= NONCE_LIFETIME {
            let replaced = std::mem::replace(&mut state.current, generate_nonce()?);
            state.previous = (age < 2 * NONCE_LIFETIME).then_some(replaced);
            state.since = now;
        }
        Ok(state.current.clone())
    }

    fn accepts(&self, nonce: &str) -> bool {
        let Ok(current) = self.current() else { return false };
        let nonce = Secret::new(nonce);
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        nonce == current || state.previous.as_ref() == Some(&nonce)
    }
}

fn generate_nonce() -> Result<Secret, getrandom::Error> {
    Ok(Secret::new(random_text(16)?.as_str()))
}

const fn invalid(description: &'static str) -> ErrorResponse {
    ErrorResponse::new(ErrorCode::InvalidDpopProof, description)
}
