//! [`Assertions`]: verifies signed assertions (RFC 7523) and rejects their reuse.

use std::{collections::HashMap, sync::Arc, time::Duration};

use portcullis_authorization_server::client::assertion_algorithms;
use portcullis_jose::{CompactJws, KeySet};
use portcullis_metadata::{AccessTokenClaims, Clock, unverified_issuer};

use crate::{
    config::Config,
    error::DevIdpError,
    settings::TrustedIssuer,
    tables::{LASTING_CAPACITY, Table},
};

/// The keys of the trusted issuers, and the assertions that were used.
pub(crate) struct Assertions {
    /// The keys of the trusted issuers, by issuer.
    trusted: HashMap<Box<str>, KeySet>,
    /// The issuer and `jti` of each used assertion.
    used: Table<()>,
    clock: Arc<dyn Clock>,
}

/// The maximum size of an assertion in bytes.
pub(crate) const MAX_ASSERTION: usize = 16 * 1024;
/// The maximum remaining lifetime of an assertion, and the time for which its identifier is
/// remembered.
const MAX_LIFETIME: Duration = Duration::from_secs(3600);
/// The time by which `nbf` and `iat` of an assertion may be in the future.
const LEEWAY: Duration = Duration::from_secs(10);
/// The maximum size of an assertion's identifier in bytes.
const MAX_JTI: usize = 256;

impl Assertions {
    /// Imports the keys of the trusted issuers. Fails when an issuer is configured twice or has no
    /// usable key.
    pub(crate) fn new(config: &Config) -> Result<Self, DevIdpError> {
        Ok(Self {
            trusted: import_keys(&config.settings.trusted_issuers)?,
            used: config.table(LASTING_CAPACITY, MAX_LIFETIME),
            clock: Arc::clone(&config.settings.clock),
        })
    }

    /// Returns the keys of the issuer of a token that is not verified yet, if the issuer is
    /// trusted.
    pub(crate) fn trusted_keys(&self, token: &CompactJws<'_>) -> Option<&KeySet> {
        let issuer = unverified_issuer(token.unverified_payload()).ok()??;
        self.trusted.get(&*issuer)
    }

    /// Verifies an assertion (RFC 7523 section 3) and returns its claims.
    ///
    /// Checks the signature, the times and the audience, which must be exactly `audience`. For
    /// assertions this is the issuer identifier of this server (draft-ietf-oauth-rfc7523bis). Does
    /// not check the subject, nor whether the assertion was used before; see
    /// [`use_once`](Self::use_once). The error is a sentence for the client's developer.
    pub(crate) fn verify(
        &self,
        keys: &KeySet,
        assertion: &CompactJws<'_>,
        audience: &str,
    ) -> Result<AccessTokenClaims, &'static str> {
        let payload = keys
            .verify(assertion)
            .map_err(|_| "the assertion is not signed with a known key of its issuer")?;
        let claims = AccessTokenClaims::parse(payload.bytes())
            .map_err(|_| "the assertion's claims are malformed")?;
        let entries: Vec<_> = claims
            .aud
            .iter()
            .flat_map(|audience| audience.iter())
            .collect();
        if entries != [audience] {
            return Err("the assertion's aud must be exactly the expected audience");
        }
        let now = self.clock.now();
        let end = claims.exp.ok_or("the assertion has no exp")?;
        if end <= now {
            return Err("the assertion has expired");
        }
        if end > now.saturating_add(MAX_LIFETIME) {
            return Err("the assertion is valid for more than an hour");
        }
        let latest = now.saturating_add(LEEWAY);
        if claims.nbf.is_some_and(|begin| begin > latest)
            || claims.iat.is_some_and(|made| made > latest)
        {
            return Err("the assertion is not valid yet");
        }
        Ok(claims)
    }

    /// Rejects an assertion that was used before. Remembers its issuer and `jti` until it expires.
    pub(crate) fn use_once(&self, claims: &AccessTokenClaims) -> Result<(), &'static str> {
        let jti = claims
            .jti
            .as_deref()
            .filter(|jti| (1..=MAX_JTI).contains(&jti.len()));
        let jti = jti.ok_or("the assertion must have a jti of 1 to 256 bytes")?;
        let issuer = claims.iss.as_deref().unwrap_or_default();
        match self.used.insert_new(&format!("{issuer}\n{jti}"), ()) {
            Ok(true) => Ok(()),
            Ok(false) => Err("the assertion was used before"),
            Err(_) => Err("too many assertions are remembered; try again later"),
        }
    }
}

/// Returns whether a token has the type `JWT` or none (RFC 7519 section 5.1).
pub(crate) fn is_plain_jwt(token: &CompactJws<'_>) -> bool {
    token
        .header()
        .typ()
        .is_none_or(|typ| typ.eq_ignore_ascii_case("JWT"))
}

/// Returns the keys of each issuer.
fn import_keys(issuers: &[TrustedIssuer]) -> Result<HashMap<Box<str>, KeySet>, DevIdpError> {
    let mut imported = HashMap::new();
    for TrustedIssuer { issuer, keys } in issuers {
        let unusable = || DevIdpError::TrustedIssuer {
            issuer: issuer.clone(),
        };
        let (keys, _) = KeySet::from_jwks(keys, assertion_algorithms()).map_err(|_| unusable())?;
        if keys.is_empty() || imported.insert(issuer.as_str().into(), keys).is_some() {
            return Err(unusable());
        }
    }
    Ok(imported)
}
