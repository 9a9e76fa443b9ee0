//! [`DpopProofs`]: verifies DPoP proofs (RFC 9449).

mod nonces;

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use portcullis_authorization_server::{
    ErrorCode, ErrorResponse, RandomError, authorization::Thumbprint, client::assertion_algorithms,
};
use portcullis_jose::ReceivedProof;
use portcullis_metadata::Clock;
use url::Url;

use crate::{
    authentication::dpop::nonces::Nonces,
    config::Config,
    server::endpoint::Endpoint,
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

/// The request header with the proof.
const PROOF: HeaderName = HeaderName::from_static("dpop");
/// The response header with the nonce.
const NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// The maximum size of a proof in bytes.
const MAX_PROOF: usize = 8 * 1024;
/// The maximum age of a proof, and the maximum time by which its `iat` may be in the future.
const MAX_PROOF_AGE: Duration = Duration::from_secs(60);
/// The time for which the identifier of a proof is remembered: longer than any proof is accepted.
const PROOF_RETENTION: Duration = Duration::from_secs(2 * MAX_PROOF_AGE.as_secs() + 1);

impl DpopProofs {
    pub(crate) fn new(config: &Config) -> Result<Self, RandomError> {
        let clock = &config.settings.clock;
        Ok(Self {
            used: config.table(LASTING_CAPACITY, PROOF_RETENTION),
            nonces: config
                .settings
                .dpop_nonces
                .then(|| Nonces::new(Arc::clone(clock)))
                .transpose()?,
            token_endpoint: config.url(Endpoint::Token),
            clock: Arc::clone(clock),
        })
    }

    /// Verifies the proof of a token request, if any, and returns the key's thumbprint (RFC 9449
    /// sections 4.3 and 5). Fails when there are several proofs, or the proof is malformed, for
    /// another request, more than a minute old or in the future, without the required nonce, or was
    /// used before.
    pub(crate) fn verify(&self, headers: &HeaderMap) -> Result<Option<Thumbprint>, ErrorResponse> {
        let mut values = headers.get_all(PROOF).iter();
        let Some(value) = values.next() else {
            return Ok(None);
        };
        let proof = value.to_str().ok().filter(|_| values.next().is_none());
        let proof = proof.ok_or(invalid("the request must have exactly one DPoP proof"))?;
        let proof =
            ReceivedProof::verify(proof, MAX_PROOF, assertion_algorithms()).map_err(|error| {
                tracing::info!(reason = error.code(), "rejected a DPoP proof");
                invalid(
                    "the DPoP proof must be a JWT of type dpop+jwt that is signed with its own key",
                )
            })?;
        if proof.method() != Method::POST.as_str() || !self.is_token_endpoint(proof.url()) {
            return Err(invalid(
                "htm and htu of the DPoP proof must be POST and the token endpoint",
            ));
        }
        let now = self.clock.now();
        let issued_at = proof.issued_at();
        if issued_at < now.saturating_sub(MAX_PROOF_AGE)
            || issued_at > now.saturating_add(MAX_PROOF_AGE)
        {
            return Err(invalid(
                "iat of the DPoP proof must be at most a minute from the time of this server",
            ));
        }
        if let Some(nonces) = &self.nonces
            && !proof.nonce().is_some_and(|nonce| nonces.accepts(nonce))
        {
            let description = "the DPoP proof must contain the nonce in the DPoP-Nonce header";
            return Err(ErrorResponse::new(ErrorCode::UseDpopNonce, description));
        }
        match self
            .used
            .insert_new(&format!("{}\n{}", proof.thumbprint(), proof.id()), ())
        {
            Ok(true) => Ok(Some(proof.thumbprint().into())),
            Ok(false) => Err(invalid("the DPoP proof was used before")),
            Err(_) => Err(invalid(
                "too many DPoP proofs are remembered; try again later",
            )),
        }
    }

    /// Returns the response header with the current nonce, if proofs need one.
    pub(crate) fn nonce_header(&self) -> Option<(HeaderName, HeaderValue)> {
        let nonce = self.nonces.as_ref()?.current().ok()?;
        Some((NONCE, HeaderValue::from_str(nonce.secret()).ok()?))
    }

    /// Returns whether a URL is that of the token endpoint, without query and fragment (RFC 9449
    /// section 4.3).
    fn is_token_endpoint(&self, url: &str) -> bool {
        Url::parse(url).is_ok_and(|mut url| {
            url.set_query(None);
            url.set_fragment(None);
            url == self.token_endpoint
        })
    }
}

const fn invalid(description: &'static str) -> ErrorResponse {
    ErrorResponse::new(ErrorCode::InvalidDpopProof, description)
}
