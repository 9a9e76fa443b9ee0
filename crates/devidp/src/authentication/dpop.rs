//! DPoP proofs and nonces (RFC 9449).

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http::{HeaderMap, HeaderName, Method};
use portcullis_jose::ReceivedProof;
use portcullis_metadata::{Clock, Secret};
use url::Url;

use crate::{
    app::App,
    clients::assertion_algorithms,
    handle::random_text,
    server::{
        endpoint::Endpoint,
        oauth_error::{ErrorCode, ErrorResponse},
    },
};

/// The thumbprint of a client's DPoP key (RFC 9449 section 6.1).
pub(crate) type Thumbprint = Box<str>;

/// The request header with the proof.
pub(crate) const PROOF: HeaderName = HeaderName::from_static("dpop");
/// The response header with the nonce.
pub(crate) const NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// The maximum size of a proof in bytes.
const MAX_PROOF: usize = 8 * 1024;
/// The maximum age of a proof and the maximum time by which the client's clock may be ahead.
const MAX_PROOF_AGE: Duration = Duration::from_secs(60);
/// The time for which the identifier of a proof is remembered.
pub(crate) const PROOF_RETENTION: Duration = Duration::from_secs(2 * MAX_PROOF_AGE.as_secs() + 1);
/// The time for which a nonce is issued. It is accepted for the same time afterwards.
const NONCE_LIFETIME: Duration = Duration::from_secs(300);
const THUMBPRINT_CHARS: usize = 43;

/// Verifies the proof of a token request, if any, and returns the key's thumbprint (RFC 9449 sections 4.3 and 5).
pub(crate) fn verify_proof(app: &App, headers: &HeaderMap) -> Result<Option<Thumbprint>, ErrorResponse> {
    let mut values = headers.get_all(PROOF).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let proof = value.to_str().ok().filter(|_| values.next().is_none());
    let proof = proof.ok_or(invalid("the request must have exactly one DPoP proof"))?;
    let proof = ReceivedProof::verify(proof, MAX_PROOF, assertion_algorithms()).map_err(|error| {
        tracing::info!(reason = error.code(), "rejected a DPoP proof");
        invalid("the DPoP proof must be a JWT of type dpop+jwt that is signed with its own key")
    })?;
    if proof.method() != Method::POST.as_str() || !is_token_endpoint(app, proof.url()) {
        return Err(invalid("htm and htu of the DPoP proof must be POST and the token endpoint"));
    }
    let now = app.settings.clock.now();
    if proof.issued_at() < now.saturating_sub(MAX_PROOF_AGE) || proof.issued_at() > now.saturating_add(MAX_PROOF_AGE) {
        return Err(invalid("the DPoP proof was not created within the last minute"));
    }
    if app.settings.dpop_nonces && !proof.nonce().is_some_and(|nonce| app.nonces.accepts(nonce)) {
        let description = "the DPoP proof must contain the nonce in the DPoP-Nonce header";
        return Err(ErrorResponse::new(ErrorCode::UseDpopNonce, description));
    }
    match app.used_proofs.insert_new(&format!("{}\n{}", proof.thumbprint(), proof.id()), ()) {
        Ok(true) => Ok(Some(proof.thumbprint().into())),
        Ok(false) => Err(invalid("the DPoP proof was used before")),
        Err(_) => Err(invalid("too many DPoP proofs are remembered; try again later")),
    }
}

/// Parses the `dpop_jkt` parameter of an authorization request (RFC 9449 section 10).
pub(crate) fn parse_thumbprint(thumbprint: &str) -> Option<Thumbprint> {
    let is_valid = thumbprint.len() == THUMBPRINT_CHARS
        && thumbprint.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    is_valid.then(|| thumbprint.into())
}

/// The server's nonces (RFC 9449 section 8).
pub(crate) struct Nonces {
    state: Mutex<NonceState>,
    clock: Arc<dyn Clock>,
}

struct NonceState {
    current: Secret,
    previous: Option<Secret>,
    since: Duration,
}

impl Nonces {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Result<Self, getrandom::Error> {
        let state = NonceState { current: generate_nonce()?, previous: None, since: clock.monotonic() };
        Ok(Self { state: Mutex::new(state), clock })
    }

    /// Returns the current nonce and replaces it when its lifetime is over.
    pub(crate) fn current(&self) -> Result<Secret, getrandom::Error> {
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

fn is_token_endpoint(app: &App, url: &str) -> bool {
    let mut endpoint = app.issuer.url().clone();
    endpoint.set_path(&Endpoint::Token.path(&app.settings.issuer_path));
    Url::parse(url).is_ok_and(|mut url| {
        url.set_query(None);
        url.set_fragment(None);
        url == endpoint
    })
}

const fn invalid(description: &'static str) -> ErrorResponse {
    ErrorResponse::new(ErrorCode::InvalidDpopProof, description)
}
