//! [`Assertions`]: the trusted issuers of assertions, and the assertions that were used.

use std::collections::HashMap;

use portcullis_authorization_server::{
    authentication::MAX_ASSERTION_LIFETIME, client::assertion_algorithms,
};
use portcullis_jose::{CompactJws, KeySet};
use portcullis_metadata::unverified_issuer;

use crate::{
    config::Config,
    error::DevIdpError,
    settings::TrustedIssuer,
    tables::{LASTING_CAPACITY, Table, TableFull},
};

/// The keys of the trusted issuers, and the assertions that were used.
pub(crate) struct Assertions {
    /// The keys of the trusted issuers, by issuer.
    trusted: HashMap<Box<str>, KeySet>,
    /// The issuer and `jti` of each used assertion.
    used: Table<()>,
}

impl Assertions {
    /// Imports the keys of the trusted issuers. Fails when an issuer is configured twice or has no
    /// usable key.
    pub(crate) fn new(config: &Config) -> Result<Self, DevIdpError> {
        Ok(Self {
            trusted: import_keys(&config.settings.trusted_issuers)?,
            used: config.table(LASTING_CAPACITY, MAX_ASSERTION_LIFETIME),
        })
    }

    /// Returns the keys of the issuer of a token that is not verified yet, if the issuer is
    /// trusted.
    pub(crate) fn trusted_keys(&self, token: &CompactJws<'_>) -> Option<&KeySet> {
        let issuer = unverified_issuer(token.unverified_payload()).ok()??;
        self.trusted.get(&*issuer)
    }

    /// Records the use of an assertion. Returns `false` if it was used before.
    pub(crate) fn record_use(&self, issuer: &str, jti: &str) -> Result<bool, TableFull> {
        self.used.insert_new(&format!("{issuer}\n{jti}"), ())
    }
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
