//! Client assertions: the `private_key_jwt` authentication method.

use portcullis_jose::{CompactJws, KeySet};
use portcullis_metadata::{AccessTokenClaims, UnixTime};

use crate::{
    authentication::assertion::{
        AssertionError, MAX_ASSERTION, use_assertion, verify_assertion_for,
    },
    error::{ErrorCode, ErrorResponse},
    store::Store,
};

/// The only supported value of `client_assertion_type` (RFC 7523 section 2.2).
pub(super) const TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// A client assertion that is not verified yet (RFC 7523 section 2.2, `private_key_jwt`).
pub(super) struct ClientAssertion<'a> {
    compact: CompactJws<'a>,
    client_id: Box<str>,
}

impl<'a> ClientAssertion<'a> {
    /// Parses an assertion. Its issuer and its subject must both be the client.
    pub(super) fn parse(assertion: &'a str) -> Result<Self, ErrorResponse> {
        let compact = CompactJws::parse(assertion, MAX_ASSERTION)
            .map_err(|_| failed("client_assertion is not a signed JWT"))?;
        let types = ["JWT", "client-authentication+jwt"];
        if compact.header().typ().is_some_and(|typ| {
            !types
                .iter()
                .any(|expected| expected.eq_ignore_ascii_case(typ))
        }) {
            return Err(failed("client_assertion is a JWT of the wrong type"));
        }
        let claims = AccessTokenClaims::parse(compact.unverified_payload());
        match claims.map(|claims| (claims.iss, claims.sub)) {
            Ok((Some(issuer), Some(subject))) if issuer == subject => Ok(Self {
                compact,
                client_id: subject.as_str().into(),
            }),
            _ => Err(failed(
                "iss and sub of client_assertion must both be the client identifier",
            )),
        }
    }

    /// Returns the client identifier that the assertion claims.
    pub(super) fn client_id(&self) -> &str {
        &self.client_id
    }

    /// Verifies the assertion with the client's keys and rejects reuse. `audiences` are the names
    /// of this server, of which the assertion has one.
    pub(super) async fn verify(
        &self,
        store: &impl Store,
        keys: &KeySet,
        audiences: &[&str],
        now: UnixTime,
    ) -> Result<(), ErrorResponse> {
        let failed = |error: AssertionError| failed(error.description());
        let claims = verify_assertion_for(keys, &self.compact, audiences, now).map_err(failed)?;
        use_assertion(store, &claims).await.map_err(failed)
    }
}

const fn failed(description: &'static str) -> ErrorResponse {
    ErrorResponse::new(ErrorCode::InvalidClient, description)
}
