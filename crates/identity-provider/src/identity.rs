//! [`Identity`]: who the user is.

use std::{borrow::Cow, fmt};

use portcullis_metadata::UnixTime;
use portcullis_verifier::claim_at;
use serde_json::{Map, Value};

/// A user that a provider identified. `Debug` prints the subject alone, because the rest describes
/// a person.
#[derive(Clone, PartialEq)]
pub struct Identity {
    /// The `sub` for tokens of this server: the name of the provider, an underscore, and a hash of
    /// the identifiers that the provider never assigns again. It contains no e-mail address or
    /// login.
    pub subject: Box<str>,
    /// The identifier of the user at the provider, which a logout token names as `sub`.
    pub provider_subject: Box<str>,
    /// The identifier of the session at the provider (`sid`), if it has one.
    pub provider_session: Option<Box<str>>,
    /// When the user signed in at the provider, or when the provider identified the user.
    pub auth_time: UnixTime,
    /// What the provider says about the user, for rules and for mapped claims.
    pub claims: Map<String, Value>,
    /// The names of claims that the provider left out because their values are too many. They are
    /// not in `claims`.
    pub omitted_claims: Vec<Box<str>>,
    /// Whether the claims come from an ID token, with those of the user API if it was asked. With
    /// `false` they come from the user API alone, which may know fewer than an earlier ID token.
    pub has_id_token: bool,
}

/// The provider left a claim out, because it has too many values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the identity provider left the claim out, because it has too many values")]
pub struct OmittedClaim;

impl Identity {
    /// Returns a claim for a rule, by its name or by a JSON pointer (RFC 6901). `None` if the user
    /// does not have it.
    ///
    /// # Errors
    /// Fails if the provider left the claim out, so that a rule cannot be evaluated.
    pub fn claim(&self, path: &str) -> Result<Option<&Value>, OmittedClaim> {
        let name = match path.strip_prefix('/') {
            Some(pointer) => {
                let name = pointer.split('/').next().unwrap_or_default();
                name.replace("~1", "/").replace("~0", "~").into()
            }
            None => Cow::Borrowed(path),
        };
        self.check_not_omitted(&name)?;
        Ok(claim_at(&self.claims, path))
    }

    fn check_not_omitted(&self, name: &str) -> Result<(), OmittedClaim> {
        if self.omitted_claims.iter().any(|omitted| **omitted == *name) {
            Err(OmittedClaim)
        } else {
            Ok(())
        }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("subject", &self.subject)
            .finish_non_exhaustive()
    }
}
