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
    endpoint::Endpoint,
    handle::random_text,
    oauth_error::{ErrorName, OAuthRefusal},
};

/// The thumbprint of a key that whoever asks was shown to hold (RFC 9449 section 6.1).
pub(crate) type Thumbprint = Box<str>;

/// Where a client sends its proof.
pub(crate) const PROOF: HeaderName = HeaderName::from_static("dpop");
/// Where it is told the nonce to use.
pub(crate) const NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

const MAX_PROOF: usize = 8 * 1024;
/// How old a proof may be, and how far the client's clock may be ahead. Its identifier is remembered for both.
const WINDOW: Duration = Duration::from_secs(60);
pub(crate) const REMEMBERED: Duration = Duration::from_secs(2 * WINDOW.as_secs() + 1);
/// How long a nonce is given out; it is taken for as long again.
const NONCE_LIFETIME: Duration = Duration::from_secs(300);
const THUMBPRINT_CHARS: usize = 43;

/// Judges the proof of a token request, where there is one (RFC 9449 sections 4.3 and 5).
pub(crate) fn proven(app: &App, headers: &HeaderMap) -> Result<Option<Thumbprint>, OAuthRefusal> {
    let mut values = headers.get_all(PROOF).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let text = value.to_str().ok().filter(|_| values.next().is_none());
    let text = text.ok_or(invalid("there is not exactly one DPoP proof"))?;
    let proof = ReceivedProof::verify(text, MAX_PROOF, assertion_algorithms()).map_err(|error| {
        tracing::info!(reason = error.code(), "a DPoP proof does not verify");
        invalid("the DPoP proof is no JWT of type dpop+jwt that the key which it carries did sign")
    })?;
    if proof.method() != Method::POST.as_str() || !is_token_endpoint(app, proof.url()) {
        return Err(invalid("htm and htu of the DPoP proof are not POST and the token endpoint"));
    }
    let now = app.settings.clock.unix();
    if proof.issued_at() < now.minus(WINDOW) || proof.issued_at() > now.plus(WINDOW) {
        return Err(invalid("the DPoP proof was not made within the last minute"));
    }
    if app.settings.dpop_nonces && !proof.nonce().is_some_and(|nonce| app.nonces.are_taken(nonce)) {
        let description = "the DPoP proof needs the nonce that the DPoP-Nonce header has";
        return Err(OAuthRefusal::new(ErrorName::UseDpopNonce, description));
    }
    match app.used_proofs.insert_new(&format!("{}\n{}", proof.thumbprint(), proof.id()), ()) {
        Ok(true) => Ok(Some(proof.thumbprint().into())),
        Ok(false) => Err(invalid("the DPoP proof was used before")),
        Err(_) => Err(invalid("too many DPoP proofs are remembered; come again later")),
    }
}

/// Reads the thumbprint that an authorization request binds its code to (RFC 9449 section 10).
pub(crate) fn parse_thumbprint(text: &str) -> Option<Thumbprint> {
    let fits = text.len() == THUMBPRINT_CHARS
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    fits.then(|| text.into())
}

/// The nonces that proofs answer (RFC 9449 section 8).
pub(crate) struct Nonces {
    given: Mutex<Given>,
    clock: Arc<dyn Clock>,
}

struct Given {
    current: Secret,
    previous: Option<Secret>,
    since: Duration,
}

impl Nonces {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Result<Self, getrandom::Error> {
        let given = Given { current: fresh()?, previous: None, since: clock.monotonic() };
        Ok(Self { given: Mutex::new(given), clock })
    }

    /// The nonce to give out now.
    pub(crate) fn current(&self) -> Result<Secret, getrandom::Error> {
        let now = self.clock.monotonic();
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let age = now.saturating_sub(given.since);
        if age >= NONCE_LIFETIME {
            let replaced = std::mem::replace(&mut given.current, fresh()?);
            given.previous = (age < 2 * NONCE_LIFETIME).then_some(replaced);
            given.since = now;
        }
        Ok(given.current.clone())
    }

    fn are_taken(&self, nonce: &str) -> bool {
        let Ok(current) = self.current() else { return false };
        let nonce = Secret::new(nonce);
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        nonce == current || given.previous.as_ref() == Some(&nonce)
    }
}

fn fresh() -> Result<Secret, getrandom::Error> {
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

const fn invalid(description: &'static str) -> OAuthRefusal {
    OAuthRefusal::new(ErrorName::InvalidDpopProof, description)
}
