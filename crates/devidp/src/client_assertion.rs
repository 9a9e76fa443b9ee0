use portcullis_jose::{Compact, KeySet};
use portcullis_metadata::AccessTokenClaims;

use crate::{
    app::App,
    assertion::{self, MAX_ASSERTION},
    oauth_error::{ErrorName, OAuthRefusal},
};

/// The one value of `client_assertion_type` (RFC 7523 section 2.2).
pub(crate) const TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// A client's own statement of who it is (RFC 7523 section 2.2, `private_key_jwt`), read and not verified.
pub(crate) struct ClientAssertion<'a> {
    compact: Compact<'a>,
    client_id: Box<str>,
}

impl<'a> ClientAssertion<'a> {
    /// Reads an assertion. Its issuer and its subject are both the client.
    pub(crate) fn parse(text: &'a str) -> Result<Self, OAuthRefusal> {
        let compact = Compact::parse(text, MAX_ASSERTION).map_err(|_| failed("client_assertion is no signed JWT"))?;
        let types = ["JWT", "client-authentication+jwt"];
        if compact.header().typ().is_some_and(|typ| !types.iter().any(|good| good.eq_ignore_ascii_case(typ))) {
            return Err(failed("client_assertion is a JWT of another type"));
        }
        let claims = AccessTokenClaims::parse(compact.unverified_payload());
        match claims.map(|claims| (claims.iss, claims.sub)) {
            Ok((Some(issuer), Some(subject))) if issuer == subject => {
                Ok(Self { compact, client_id: subject.as_str().into() })
            }
            _ => Err(failed("iss and sub of client_assertion are not both the client identifier")),
        }
    }

    /// The client that it claims to come from.
    pub(crate) fn client_id(&self) -> &str {
        &self.client_id
    }

    /// Verifies it with the client's keys, and sees to it that it counts once.
    pub(crate) fn verify(&self, app: &App, keys: &KeySet) -> Result<(), OAuthRefusal> {
        let claims = assertion::verified(app, keys, &self.compact, app.issuer.as_str()).map_err(failed)?;
        assertion::use_once(app, &claims).map_err(failed)
    }
}

const fn failed(description: &'static str) -> OAuthRefusal {
    OAuthRefusal::new(ErrorName::InvalidClient, description)
}
